"""The options of the commands that check and serve a project."""

from __future__ import annotations

import argparse


def verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="run every step, also after one has failed")
    parser.add_argument("--test", metavar="CMD", help="the command that runs the tests (default: found by itself)")
    parser.add_argument("--fresh", action="store_true", help="run steps also where nothing has changed since")
    parser.add_argument("--set-baseline", action="store_true", help="what is found now is old from now on")
    parser.add_argument("--no-baseline", action="store_true", help="judge old findings too")
