"""Carries out a command line and kills itself just before the given write to the store becomes durable.

python -m scenarios.killed_command N WORDS…
"""

from __future__ import annotations

import sys

from scenarios.dying import dying_at

from pawl.__main__ import main

if __name__ == "__main__":
    last, sys.argv[1:] = int(sys.argv[1]), sys.argv[2:]
    with dying_at(last):
        code = main()
    sys.exit(code)
