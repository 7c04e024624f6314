"""The options of the commands that check and serve a project."""

from __future__ import annotations

import argparse


def verify(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="run every step, also after one has failed")
    parser.add_argument("--test", metavar="CMD", help="the command that runs the tests (default: found by itself)")
    parser.add_argument("--fresh", action="store_true", help="run steps also where nothing has changed since")
    install(parser)
    parser.add_argument("--set-baseline", action="store_true", help="what is found now is old from now on")
    parser.add_argument("--no-baseline", action="store_true", help="judge old findings too")


def dev(parser: argparse.ArgumentParser) -> None:
    actions = ["start", "status", "logs", "stop"]
    parser.add_argument("action", choices=actions, metavar="ACTION", help="start, status, logs or stop")
    parser.add_argument("--port", type=int, metavar="N", help="the port to try first (default: the server's usual one)")
    parser.add_argument("--seconds", type=float, default=60.0, metavar="N", help="how long it may take (default 60)")
    install(parser)
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="how many lines of the log (default 50)")


def install(parser: argparse.ArgumentParser) -> None:
    what = "install missing packages on the bench, as the lock file says, with a network"
    parser.add_argument("--install", action="store_true", help=what)
