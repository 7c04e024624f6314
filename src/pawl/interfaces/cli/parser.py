"""The words of the command line. Knows every option, does nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from pawl.interfaces.cli import checking_words, loop_words
from pawl.interfaces.cli.overview import COMMANDS
from pawl.interfaces.cli.request_words import approve_words, ask_words, do_words, session_words

EXAMPLES = {
    "session": "pawl session -c\n  pawl session -r c0ffee12 --fork-session",
    "run": "pawl run --apply -- sed -i s/colour/color/ README.md",
    "fix": "pawl fix\n  pawl fix src/cart.py --test 'pytest tests/unit' --seconds 30 --explain",
    "verify": "pawl verify\n  pawl verify --all --json",
    "dev": "pawl dev start\n  pawl dev stop",
    "ask": "pawl ask 'where are orders priced?'\n  git diff | pawl ask --model ollama/qwen3-coder 'is this right?'",
    "do": "pawl do 'add a --verbose option'\n  pawl do --approve never 'make the tests pass'",
    "loop": "pawl loop\n  pawl loop src/cart.py 'prices are rounded once' --simple 3 --max-cost 0.50",
    "audit": "pawl audit\n  pawl audit r4f1c09ab --json",
    "approve": "pawl approve r4f1c09ab --yes",
    "locate": "pawl locate 'prices are rounded twice'\n  pawl locate --issue-file issue.md --symbols --top 5",
    "models": "pawl models --offline",
    "policy": "pawl policy --mode chat --role artisan",
    "prompts": "pawl prompts show stages/act",
    "permissions": "pawl permissions check 'Bash(git push)'",
    "trust": "pawl trust\n  pawl trust --revoke",
    "memory": "pawl memory add 'tests run with: make test'\n  pawl memory list parser\n  pawl memory forget 3",
    "promote": "pawl promote 3",
    "patch": "git diff | pawl patch -\n  pawl patch --path app.py --old 'retries = 3' --new 'retries = 5'",
    "history": "pawl history --all",
    "diff": "pawl diff 3 --file src",
    "undo": "pawl undo\n  pawl undo 3 --file src/app.py",
    "redo": "pawl redo",
    "checkpoint": "pawl checkpoint before-upgrade",
    "restore": "pawl restore before-upgrade --dry-run",
    "doctor": "pawl doctor",
    "gc": "pawl gc --days 7",
}

AROUND = frozenset({"session", "do", "loop", "memory", "permissions"})
"""Commands whose words may stand before and after their options."""


class WrongWords(Exception):
    """What was typed cannot be read."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CommandParser(argparse.ArgumentParser):
    """The options of one command."""

    def error(self, message: str) -> NoReturn:
        raise WrongWords(f"{self.prog}: {message}", f"see '{self.prog} --help'")


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """The command and its options. `-C` and `--json` may stand before the command too."""
    shared, words = _before_the_command(_with_name(list(arguments)))
    if shared.help or shared.version:
        return argparse.Namespace(command="help" if shared.help else "version", json=False)
    if words[:1] == ["help"]:
        words = [*words[1:2], "--help"]
    if not words:
        raise WrongWords("pawl: there is no command", "'pawl --help' lists them")
    name, rest = words[0], words[1:]
    if name not in OPTIONS:
        raise WrongWords(f"pawl: there is no command {name!r}", _similar(name))
    parser = parser_for(name)
    parse = parser.parse_intermixed_args if name in AROUND else parser.parse_args
    options = parse(_without_tail(name, rest))
    if name == "run":
        # Read here, because what argparse does with `--` differs between versions of Python.
        tail = rest[rest.index("--") + 1 :] if "--" in rest else []
        options.argv = [*options.argv, "--", *tail] if options.argv and "--" in rest else options.argv or tail
    options.command = name
    options.json = options.json or shared.json
    options.workspace = shared.workspace if options.workspace is None else options.workspace
    return options


def parser_for(name: str) -> CommandParser:
    parser = CommandParser(
        prog=f"pawl {name}",
        description=f"{COMMANDS[name][0].upper()}{COMMANDS[name][1:]}.",
        epilog=f"example:\n  {EXAMPLES[name]}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    _share(parser)
    OPTIONS[name](parser)
    return parser


def _share(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-C", dest="workspace", metavar="DIR", help="the workspace (default: the repository around)")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, for programs")


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
    if rest[:1] and (not rest[0].startswith("-") or rest[0] in ("-h", "--help", "-V", "--version")):
        return words
    name = "session" if {"-p", "--print"}.isdisjoint(rest) else "do"
    return [*words[:at], name, *rest]


def _without_tail(name: str, words: list[str]) -> list[str]:
    if name == "loop":
        return loop_words.with_number(words)
    return words[: words.index("--")] if name == "run" and "--" in words else words


def _similar(name: str) -> str:
    import difflib

    close = difflib.get_close_matches(name, OPTIONS, n=1)
    return f"did you mean 'pawl {close[0]}'?" if close else "'pawl --help' lists them"


def _run(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pawl run [options] -- CMD ..."
    fate = parser.add_mutually_exclusive_group()
    fate.add_argument("--ask", dest="fate", action="store_const", const="ask", help="show and ask (in a terminal)")
    fate.add_argument("--apply", dest="fate", action="store_const", const="apply", help="promote if it succeeds")
    fate.add_argument(
        "--discard",
        dest="fate",
        action="store_const",
        const="discard",
        help="promote nothing, keep the changes as an entry (default without a terminal)",
    )
    parser.add_argument("--net", action="store_true", help="let it use the network")
    parser.add_argument("--seconds", type=float, metavar="N", help="time limit (default: the setting run_seconds, 600)")
    parser.add_argument("--secrets", action="store_true", help="let it read .env and key files")
    parser.add_argument("--ignored", action="store_true", help="promote ignored files too")
    parser.add_argument("--allow-protected", action="store_true", help="promote protected files too (hooks, CI, …)")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="CMD", help="the command and its words, after '--'")


def _fix(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="sources to edit, or tests to mend (default: all)")
    parser.add_argument("--test", metavar="CMD", help="the command that runs the tests (default: found by itself)")
    parser.add_argument(
        "--seconds", type=float, metavar="N", help="time of the search (default: the setting fix_seconds, 60)"
    )
    checking_words.install(parser)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes that try candidates (default 2)")
    parser.add_argument("--pick", type=int, metavar="N", help="take this one of several patches")
    parser.add_argument("--accept-first", action="store_true", help="take the likeliest even if patches disagree")
    parser.add_argument("--explain", action="store_true", help="show suspicious lines, steps and figures")
    parser.add_argument("--dry-run", action="store_true", help="promote nothing")
    parser.add_argument(
        "--escalate",
        action=argparse.BooleanOptionalAction,
        help="let models mend what the search leaves, as pawl loop, or not (default: the setting escalate)",
    )
    parser.add_argument("--model", metavar="NAME", help="the model of that (default: the configured one)")
    parser.add_argument("--max-cost", metavar="USD", help="the most that it may cost (default: your budget, or 5)")


def _locate(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("text", nargs="*", metavar="TEXT", help="what is wrong or should change; or pipe it in")
    parser.add_argument("--issue-file", metavar="F", help="read it from a file; '-' for stdin")
    parser.add_argument("--workspace", metavar="DIR", help="the same as -C")
    parser.add_argument("--top", type=int, default=10, metavar="K", help="how many files (default 10)")
    parser.add_argument("--symbols", action="store_true", help="show the definitions that may change")
    parser.add_argument("--no-tests", action="store_true", help="leave out files of tests")
    parser.add_argument("--no-history", action="store_true", help="do not ask the commits")


def _models(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--model", metavar="NAME", help="look at this one instead of the configured default")
    parser.add_argument("--offline", action="store_true", help="do not try to reach them")


def _policy(parser: argparse.ArgumentParser) -> None:
    from pawl.core.run import RoleName, Stage

    parser.add_argument("--mode", choices=["chat", "agent"], help="only this mode")
    parser.add_argument("--stage", choices=[str(stage) for stage in Stage], help="only this stage")
    parser.add_argument("--role", choices=[str(role) for role in RoleName], help="only this role")
    parser.add_argument("--markdown", action="store_true", help="the whole table as Markdown")


def _prompts(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=["list", "show", "check"], metavar="ACTION", help="list, show or check")
    parser.add_argument("name", nargs="?", metavar="NAME", help="the prompt to show, such as stages/act")


def _memory(parser: argparse.ArgumentParser) -> None:
    actions = ["list", "show", "add", "forget", "session"]
    help = "list, show, add, forget or session"
    parser.add_argument("action", nargs="?", choices=actions, default="list", metavar="ACTION", help=help)
    parser.add_argument("words", nargs="*", metavar="WORD", help="words to look for, the number, or what to remember")
    parser.add_argument("--tier", choices=["fact", "decision", "outcome"], help="only these, or as what it is added")
    parser.add_argument("--all", action="store_true", help="forget everything, kept answers too")


def _permissions(parser: argparse.ArgumentParser) -> None:
    actions = ["list", "check"]
    parser.add_argument("action", nargs="?", choices=actions, default="list", metavar="ACTION", help="list or check")
    parser.add_argument("call", nargs="?", metavar="CALL", help="the call to check, such as 'Bash(git push)'")
    parser.add_argument("--net", action="store_true", help="for commands that may use the network")
    parser.add_argument("--mode", choices=["chat", "agent"], help="for runs in this mode (default: agent)")


def _trust(parser: argparse.ArgumentParser) -> None:
    wish = parser.add_mutually_exclusive_group()
    wish.add_argument("--revoke", action="store_true", help="take the trust back")
    wish.add_argument("--list", action="store_true", help="list the folders that are trusted")


def _promote(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the entry (default: the newest, if it was kept)")
    parser.add_argument("--allow-protected", action="store_true", help="promote protected files too (hooks, CI, …)")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")


def _patch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("patch", nargs="?", metavar="FILE", help="a git or unified patch; '-' or none for stdin")
    parser.add_argument("--path", metavar="F", help="strict patch of this file: the old text must occur exactly once")
    parser.add_argument("--old", metavar="TEXT", help="what stands there (with --path)")
    parser.add_argument("--new", metavar="TEXT", help="what shall stand there (with --path)")
    parser.add_argument("--reason", default="", metavar="TEXT", help="why, for the history")
    parser.add_argument("--allow-protected", action="store_true", help="change protected files too (hooks, CI, …)")
    parser.add_argument("--yes", action="store_true", help="go over the guardrail's size limits without asking")
    parser.add_argument("--dry-run", action="store_true", help="show what would change")


def _history(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="also what was kept, rolled back or left in conflict")
    parser.add_argument("--run", metavar="RUN", help="only this run")
    parser.add_argument("--limit", type=int, default=20, metavar="N", help="how many (default: 20)")


def _diff(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the entry (default: the newest)")
    _files(parser)
    parser.add_argument("--stat", action="store_true", help="names and counts only")


def _files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--file", action="append", default=[], metavar="F", help="only this file or folder; repeatable")


def _reversal(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on-conflict",
        choices=("stop", "keep", "overwrite", "mark"),
        default="stop",
        help="where you changed the same place since: stop (default), keep yours, overwrite it (undo brings it back), "
        "or mark both in the file",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would change")


def _undo(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="entry number or run (default: the newest entry)")
    _files(parser)
    _reversal(parser)


def _checkpoint(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="its name (default: checkpoint-1, -2, …)")
    parser.add_argument("--list", action="store_true", help="list them instead")


def _restore(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="name or number (default: the newest)")
    _files(parser)
    _reversal(parser)


def _doctor(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--verify", action="store_true", help="also check every stored content (reads the whole store)")


def _gc(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--days", type=int, metavar="N", help="keep what is younger (default: the setting retention_days, 30)"
    )
    parser.add_argument(
        "--backups",
        type=int,
        metavar="N",
        help="keep the last N changes of each file (default: the setting backups, 5)",
    )


OPTIONS: dict[str, Callable[[argparse.ArgumentParser], None]] = {
    "session": session_words,
    "run": _run,
    "fix": _fix,
    "verify": checking_words.verify,
    "dev": checking_words.dev,
    "ask": ask_words,
    "do": do_words,
    "loop": loop_words.loop,
    "audit": loop_words.audit,
    "approve": approve_words,
    "locate": _locate,
    "models": _models,
    "policy": _policy,
    "prompts": _prompts,
    "permissions": _permissions,
    "trust": _trust,
    "memory": _memory,
    "promote": _promote,
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
