"""Reads a command line. Each command's file declares its own options; this finds the file and collects them.

A command's file loads the rooms that carry it out inside of its functions: its help costs no second of waiting.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

from pawl.core.lazy_dataclass import dataclass
from pawl.ui.cli.overview import COMMANDS

ALIASES = {"show": "diff"}
ELSEWHERE = {
    "resume": "pawl -r",
    "continue": "pawl -c",
    "login": "pawl setup",
    "auth": "pawl setup",
    "config": "pawl setup",
    "chat": "pawl --mode chat",
    "exec": "pawl -p",
    "init": "/init in a session",
    "commit": "/commit in a session",
    "review": "/review in a session",
}
"""Commands of other agents, and how Pawl does the same."""
FILES = {
    "session": "pawl.ui.terminal.session_command",
    "acp": "pawl.ui.editor.acp_command",
    "web": "pawl.ui.web.web_command",
    "audit": "pawl.ui.cli.loop_command",
    "loop": "pawl.ui.cli.loop_command",
    "memory": "pawl.ui.cli.memory_command",
    "run": "pawl.ui.cli.run_command",
    "worker": "pawl.ui.cli.queue",
    "approve": "pawl.ui.cli.do",
    "policy": "pawl.ui.cli.rules",
    "prompts": "pawl.ui.cli.rules",
    "skills": "pawl.ui.cli.skills_command",
    "agents": "pawl.ui.cli.skills_command",
    "permissions": "pawl.ui.cli.permissions_command",
    "trust": "pawl.ui.cli.permissions_command",
    "patch": "pawl.ui.cli.patch_command",
    "promote": "pawl.ui.cli.patch_command",
    "history": "pawl.ui.cli.history_commands",
    "diff": "pawl.ui.cli.history_commands",
    "undo": "pawl.ui.cli.history_commands",
    "redo": "pawl.ui.cli.history_commands",
    "checkpoint": "pawl.ui.cli.history_commands",
    "restore": "pawl.ui.cli.history_commands",
    "requests": "pawl.ui.cli.run_logs",
    "scores": "pawl.ui.cli.run_logs",
    "doctor": "pawl.ui.cli.upkeep",
    "gc": "pawl.ui.cli.upkeep",
}
"""The files of commands that share one with others; every other command has `pawl.ui.cli.NAME`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command as its file declares it in `DECLARED`. The function that runs it has the command's name."""

    words: Callable[[argparse.ArgumentParser], None]
    """Adds its options and their help."""
    example: str
    reads: bool | frozenset[str] = False
    """It never writes the workspace; or these of its actions do not."""
    rescue: bool = False
    """It works with defaults where the settings file is wrong, and in every folder."""
    read: Callable[[CommandParser, list[str]], argparse.Namespace] = argparse.ArgumentParser.parse_args
    """How its command line is read."""


class WrongWords(Exception):
    """The command line cannot be read."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CommandParser(argparse.ArgumentParser):
    """The options of one command."""

    def error(self, message: str) -> NoReturn:
        raise WrongWords(f"{self.prog}: {message}", f"see '{self.prog} --help'")


def mixed(parser: CommandParser, words: list[str]) -> argparse.Namespace:
    """Reads options before, between and after the other words."""
    return parser.parse_intermixed_args(words)


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """The command and its options. `-C` and `--json` may stand before the command too."""
    shared, words = _before_the_command(_with_name(list(arguments)))
    if shared.help or shared.version:
        return argparse.Namespace(command="help" if shared.help else "version", json=False)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words:
        raise WrongWords("pawl: there is no command", "'pawl --help' lists them")
    name, rest = ALIASES.get(words[0], words[0]), words[1:]
    if name not in COMMANDS:
        raise WrongWords(f"pawl: there is no command {name!r}", _similar(name))
    options = declared(name).read(parser_for(name), rest)
    options.command = name
    options.json = options.json or shared.json
    options.workspace = shared.workspace if options.workspace is None else options.workspace
    return options


def _file_of(name: str) -> ModuleType:
    """The module of a command, loaded when it is needed."""
    return importlib.import_module(FILES.get(name, f"pawl.ui.cli.{name}"))


def declared(name: str) -> Command:
    command: Command = _file_of(name).DECLARED[name]
    return command


def runner(name: str) -> Callable[..., int]:
    """The function that runs a command."""
    function: Callable[..., int] = getattr(_file_of(name), name)
    return function


def parser_for(name: str) -> CommandParser:
    command = declared(name)
    parser = CommandParser(
        prog=f"pawl {name}",
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=f"example:\n  {command.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _share(parser)
    command.words(parser)
    return parser


def _share(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-C", dest="workspace", metavar="DIR", help="the workspace (default: the current repository)")
    parser.add_argument("--json", action="store_true", help="write one JSON object to stdout, for programs")


def _before_the_command(words: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """The options that all commands share, and the words from the command on."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] == "-C" else 1
    parser = CommandParser(prog="pawl", add_help=False, allow_abbrev=False)
    _share(parser)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("-V", "--version", action="store_true")
    return parser.parse_args(words[:at]), words[at:]


def _with_name(words: list[str]) -> list[str]:
    """`pawl -p …` is `pawl do -p …`, and `pawl` with options alone is `pawl session`."""
    at = 0
    while at < len(words) and words[at] in ("-C", "--json"):
        at += 2 if words[at] == "-C" else 1
    rest = words[at:]
    if at > len(words) or (not rest and "--json" in words):
        return words
    if is_request(rest):
        return [*words[:at], "session", *rest]
    if rest[:1] and (not rest[0].startswith("-") or rest[0] in ("-h", "--help", "-V", "--version")):
        return words
    name = "session" if {"-p", "--print"}.isdisjoint(rest) else "do"
    return [*words[:at], name, *rest]


def is_request(words: Sequence[str]) -> bool:
    """`pawl "explain this"` and `pawl explain this`: words that name no command, nor one with a slip of the pen."""
    first = words[0] if words else ""
    if not first or first.startswith("-") or first in COMMANDS or first in ALIASES or first == "help":
        return False
    plain = [word for word in words if not word.startswith("-")]
    return " " in first.strip() or (len(plain) > 1 and not _close(first))


def _close(name: str) -> list[str]:
    import difflib

    return difflib.get_close_matches(name, COMMANDS, n=1)


def _similar(name: str) -> str:
    if name in ELSEWHERE:
        return f"use {ELSEWHERE[name]}"
    close = _close(name)
    return f"did you mean 'pawl {close[0]}'?" if close else "'pawl --help' lists them"


# Options that several commands share.


def model_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")


def thinking_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning as it arrives")


def record_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--record", metavar="FILE", help="record the dialogue as a script for scripted:FILE")


def spending_options(parser: argparse.ArgumentParser, seconds: int = 300) -> None:
    parser.add_argument("--max-budget-usd", metavar="USD", help="stop before a request that could cost more")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="stop before a request that could use more tokens")
    parser.add_argument("--max-turns", type=int, metavar="N", help="at most this many requests (default 50)")
    parser.add_argument("--seconds", type=float, metavar="N", help=f"time limit in seconds (default {seconds})")


def continue_option(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="continue the last conversation")


def mode_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--approve",
        choices=["each", "final", "never"],
        default="final",
        help="ask before each edit, once at the end (default), or only above the guardrails' limits",
    )
    parser.add_argument("--mode", choices=["agent", "chat"], default="agent", help="chat only reads and answers")


def accept_option(parser: argparse.ArgumentParser) -> None:
    what = "promote a change that nothing proves, such as one without tests"
    parser.add_argument("--accept-unverified", action="store_true", help=what)


def verified_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--verified", action="store_true", help="refuse a change that is not verified though it needs proof"
    )


def test_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--test", metavar="CMD", help="the command that runs the tests (default: detected)")


def seconds_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, metavar="N", help="overall time limit in seconds (default: none)")


def install_option(parser: argparse.ArgumentParser) -> None:
    what = "install missing packages on the bench as the lock file says, with network access"
    parser.add_argument("--install", action="store_true", help=what)


def protected_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--allow-protected", action="store_true", help="also change protected files (hooks, CI, …)")


def dry_run_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dry-run", action="store_true", help="show what would change, change nothing")
