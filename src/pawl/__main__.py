"""The entry of the `pawl` command. Nothing is imported before it is needed: starting is free."""

from __future__ import annotations

import sys


def main() -> int:
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        from pawl import __version__

        sys.stdout.write(f"pawl {__version__}\n")
        return 0
    if arguments in ([], ["--help"], ["-h"]):
        from pawl.interfaces.cli.overview import overview

        sys.stdout.write(overview())
        return 0
    from pawl.interfaces.cli.main import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
