"""The words of the command line. Knows every option, does nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from pawl import __version__
from pawl.interfaces.cli.overview import COMMANDS, overview


class _Overview(argparse.ArgumentParser):
    """Shows the same page as `pawl --help` does without it."""

    def format_help(self) -> str:
        return overview()


def build() -> argparse.ArgumentParser:
    parser = _Overview(prog="pawl", usage="pawl COMMAND [options]")
    parser.add_argument("-V", "--version", action="version", version=f"pawl {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", required=True, parser_class=argparse.ArgumentParser
    )
    for name, options in OPTIONS.items():
        sub = commands.add_parser(name, prog=f"pawl {name}", help=COMMANDS[name], description=COMMANDS[name])
        sub.add_argument("-C", dest="workspace", metavar="DIR", help="the workspace (default: the repository around)")
        sub.add_argument("--json", action="store_true", help="one JSON object on stdout")
        options(sub)
    return parser


def _run(parser: argparse.ArgumentParser) -> None:
    fate = parser.add_mutually_exclusive_group()
    fate.add_argument("--apply", dest="fate", action="store_const", const="apply", help="promote if it succeeds")
    fate.add_argument("--ask", dest="fate", action="store_const", const="ask", help="show and ask (default)")
    fate.add_argument("--discard", dest="fate", action="store_const", const="discard", help="promote nothing")
    parser.add_argument("--net", action="store_true", help="let it use the network")
    parser.add_argument("--seconds", type=float, metavar="N", help="time limit (default from settings: 600)")
    parser.add_argument("--secrets", action="store_true", help="let it read .env and key files")
    parser.add_argument("--ignored", action="store_true", help="promote ignored files too")
    parser.add_argument("--allow-protected", action="store_true", help="promote protected files too (hooks, CI, …)")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="-- CMD", help="the command and its words")


def _patch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patch", nargs="?", metavar="FILE", help="a git or unified patch; '-' or none for stdin")
    parser.add_argument("--path", metavar="F", help="strict patch of this file: --old must occur exactly once")
    parser.add_argument("--old", metavar="TEXT")
    parser.add_argument("--new", metavar="TEXT")
    parser.add_argument("--reason", default="", help="why; needed when several files change by a strict patch")
    parser.add_argument("--allow-protected", action="store_true", help="also change protected files")
    parser.add_argument("--yes", action="store_true", help="go over the guardrail's size limits without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also what was kept, rolled back or never promoted")
    parser.add_argument("--run", metavar="RUN", help="only this run")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default 20)")


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the entry (default: the newest)")
    parser.add_argument("--file", action="append", default=[], metavar="F", help="only this file or folder")
    parser.add_argument("--stat", action="store_true", help="names and counts only")


def _reversal(parser: argparse.ArgumentParser) -> None:
    choices = ("stop", "keep", "overwrite", "mark")
    parser.add_argument("--on-conflict", choices=choices, default="stop", help="where you changed the same place since")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")


def _undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="entry number or run (default: the newest entry)")
    parser.add_argument("--file", action="append", default=[], metavar="F", help="only this file or folder")
    _reversal(parser)


def _checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="list them instead")


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="name or number (default: the newest)")
    parser.add_argument("--file", action="append", default=[], metavar="F", help="only this file or folder")
    _reversal(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="also check every stored content (reads the whole store)")


def _gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=int, metavar="N", help="keep what is younger (default from settings: 30)")
    parser.add_argument("--backups", type=int, metavar="N", help="keep so many of each file (default: 5)")


OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "run": _run,
    "patch": _patch,
    "history": _history,
    "diff": _diff,
    "undo": _undo,
    "redo": _reversal,
    "checkpoint": _checkpoint,
    "restore": _restore,
    "doctor": _doctor,
    "gc": _gc,
}
