"""Starts the engine in the workspace's own interpreter: `python start.py REQUEST`, events as JSON lines on stdout."""

import sys

from reflex_inside.engine import main

if __name__ == "__main__":
    # The package finds its own modules from now on; its folder on the path could shadow a module of the workspace.
    del sys.path[0]
    sys.exit(main(sys.argv[1:]))
