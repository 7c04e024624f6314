"""Starts the engine in the workspace's own interpreter: `python start.py REQUEST`, events as JSON lines on stdout."""

import sys

# The package finds its own modules afterwards; leaving its folder on the path could shadow a workspace's module.
FOLDER = sys.path.pop(0)
sys.path.insert(0, FOLDER)
import reflex_inside  # noqa: E402

sys.path.remove(FOLDER)

if __name__ == "__main__":
    from reflex_inside.engine import main

    sys.exit(main(sys.argv[1:]))
