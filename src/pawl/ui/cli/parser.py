"""The words of the command line. Knows every option, does nothing."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import NoReturn

from pawl.ui.cli.overview import COMMANDS


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
    parser.add_argument("--secrets", action="store_true", help="let the server read .env and key files")
    parser.add_argument("--lines", type=int, default=50, metavar="N", help="how many lines of the log (default 50)")


def install(parser: argparse.ArgumentParser) -> None:
    what = "install missing packages on the bench, as the lock file says, with a network"
    parser.add_argument("--install", action="store_true", help=what)


SIMPLE = 5


def loop(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("target", nargs="?", metavar="TARGET", help="the file that is to change (default: found)")
    parser.add_argument(
        "objective", nargs="*", metavar="OBJECTIVE", help="what is wanted (default: that failing tests pass)"
    )
    parser.add_argument(
        "--simple", nargs="?", type=int, const=SIMPLE, metavar="N", help="iterations of simple mode (default 5)"
    )
    parser.add_argument("--full", action="store_true", help="begin with full mode: librarian, artisan, critic")
    parser.add_argument("--no-escalate", action="store_true", help="end with the first tier that asks a model")
    parser.add_argument("--no-reflex", action="store_true", help="leave out the search without a model")
    parser.add_argument("--tiers", metavar="FILE", help="tiers from a YAML file; it wins over the flags")
    parser.add_argument("--test", metavar="CMD", help="the command that decides (default: found by itself)")
    parser.add_argument("--no-generate", action="store_true", help="make no test where the target has none")
    parser.add_argument("--max-cost", metavar="USD", help="stop before a request that could cost more (default 5)")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens (default 5,000,000)")
    parser.add_argument("--max-minutes", type=float, metavar="N", help="time of the whole (default 240)")
    parser.add_argument("--max-iterations", type=int, metavar="N", help="iterations of all tiers (default 100)")
    parser.add_argument("--samples", type=int, metavar="N", help="attempts of one iteration; the checks choose")
    parser.add_argument("--parallel", type=int, metavar="N", help="attempts side by side, each on its bench")
    parser.add_argument("--chaos", action="store_true", help="attack what was verified before it counts")
    parser.add_argument(
        "--approve",
        choices=["final", "never"],
        default="never",
        help="ask before what was verified is promoted, or only above the guardrails' limits (default)",
    )
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning while it comes")
    parser.add_argument("--resume", nargs="?", const="", metavar="RUN", help="go on with an interrupted loop")
    parser.add_argument("--record", metavar="FILE", help="write what is said as a script for scripted:FILE")
    parser.add_argument("--max-runtime", type=float, metavar="SECONDS", help="the same as --max-minutes, in seconds")
    parser.add_argument("--completion-promise", metavar="TEXT", help="taken and not relied on: the checks decide")


def audit(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", metavar="RUN", help="one run (default: the newest that climbed a ladder)")
    parser.add_argument("--list", action="store_true", help="every run that climbed a ladder")


def with_number(words: list[str]) -> list[str]:
    """`--simple` before a word that is no number stands alone."""
    made: list[str] = []
    for number, word in enumerate(words):
        alone = word == "--simple" and not "".join(words[number + 1 : number + 2]).isdigit()
        made.append(f"--simple={SIMPLE}" if alone else word)
    return made


def session_words(parser: argparse.ArgumentParser) -> None:
    parser.usage = "pawl [session] [options] [REQUEST ...]"
    parser.add_argument("request", nargs="*", metavar="REQUEST", help="what is asked for first")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    which.add_argument(
        "-r", "--resume", nargs="?", const="", metavar="ID", help="go on with this conversation or run; choose without"
    )
    parser.add_argument("--fork-session", action="store_true", help="with -c or -r: go on in a copy of it")
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--mode", choices=["agent", "chat"], default="agent", help="chat reads and answers only")
    parser.add_argument(
        "--approve",
        choices=["each", "final", "never"],
        default="final",
        help="ask before each edit, once at the end (default), or only above the guardrails' limits",
    )


def ask_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("question", nargs="*", metavar="QUESTION", help="your question; piped input goes with it")
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning while it comes")
    parser.add_argument("--max-budget-usd", metavar="USD", help="stop before a request that could cost more")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens, in and out")
    parser.add_argument("--max-turns", type=int, metavar="N", help="requests at most (default 50)")
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    parser.add_argument("--conversation", metavar="ID", help="go on with this one")
    parser.add_argument("--no-cache", action="store_true", help="ask again even if the answer is known and still holds")
    parser.add_argument("--record", metavar="FILE", help="write what is said as a script for scripted:FILE")


def do_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("request", nargs="*", metavar="REQUEST", help="what is to be done; piped input goes with it")
    parser.add_argument(
        "--approve",
        choices=["each", "final", "never"],
        default="final",
        help="ask before each edit, once at the end (default), or only above the guardrails' limits",
    )
    parser.add_argument("--mode", choices=["agent", "chat"], default="agent", help="chat reads and answers only")
    parser.add_argument(
        "--escalate",
        action=argparse.BooleanOptionalAction,
        help="climb as pawl loop does if the checks keep refusing, or not (default: the setting escalate)",
    )
    parser.add_argument("--test", metavar="CMD", help="the command that runs the tests (default: found by itself)")
    parser.add_argument("--model", metavar="NAME", help="provider/name, local:FILE.gguf or scripted:FILE")
    parser.add_argument("--reasoning", choices=["on", "off"], help="ask the model to reason (default: the setting)")
    parser.add_argument("--thoughts", action="store_true", help="show the reasoning while it comes")
    parser.add_argument("--seconds", type=float, metavar="N", help="time limit of the whole request (default 300)")
    parser.add_argument("--max-budget-usd", metavar="USD", help="stop before a request that could cost more")
    parser.add_argument("--max-tokens", type=int, metavar="N", help="the same in tokens, in and out")
    parser.add_argument("--max-turns", type=int, metavar="N", help="requests of one talk at most (default 50)")
    parser.add_argument("-c", "--continue", dest="go_on", action="store_true", help="go on with the last conversation")
    parser.add_argument("--conversation", metavar="ID", help="go on with this conversation")
    parser.add_argument("--fork-session", action="store_true", help="go on with a copy of it")
    parser.add_argument("--commit", action="store_true", help="commit what is promoted, without what you have staged")
    parser.add_argument("--template", metavar="NAME", help="put the request into a form, such as surgical_patch")
    parser.add_argument("--then", action="append", default=[], metavar="REQUEST", help="what follows; repeatable")
    parser.add_argument("-r", "--resume", nargs="?", const="", metavar="RUN", help="go on with an interrupted run")
    parser.add_argument("--record", metavar="FILE", help="write what is said as a script for scripted:FILE")
    parser.add_argument("-p", "--print", action="store_true", help="for programs: no questions, one result at the end")
    parser.add_argument(
        "--output-format",
        choices=["text", "json", "stream-json"],
        default="text",
        help="with -p: the answer, one object, or every event as a line (default text)",
    )
    parser.add_argument("--json-schema", metavar="F", help="with -p: the result must fit this JSON schema")


def approve_words(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="the run (default: the newest that waits)")
    answer = parser.add_mutually_exclusive_group()
    answer.add_argument("--yes", action="store_true", help="approve all of it")
    answer.add_argument("--reject", metavar="REASON", help="reject it and say why")
    answer.add_argument("--hunks", metavar="N,…", help="approve these hunks only")
    answer.add_argument("--edit", action="store_true", help="edit the patch in $EDITOR and approve that")
    answer.add_argument("--patch", metavar="FILE", help="approve the patch as it is edited in this file; '-' for stdin")
    parser.add_argument("--full", action="store_true", help="show all of what waits, however long")
    parser.add_argument("--digest", metavar="SHA", help="refuse if what waits is not exactly this")


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
        return with_number(words)
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
    install(parser)
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
    "verify": verify,
    "dev": dev,
    "ask": ask_words,
    "do": do_words,
    "loop": loop,
    "audit": audit,
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
