"""Starts the engine in the workspace's own interpreter: `python start.py REQUEST`, events as JSON lines on stdout."""

import os
import sys

from reflex_inside.engine import main

if __name__ == "__main__":
    # The package finds its own modules from now on; its folder on the path could shadow a module of the workspace.
    sys.path.remove(os.path.dirname(os.path.abspath(__file__)))
    sys.exit(main(sys.argv[1:]))
