"""`pawl run`: a command on a bench, and what becomes of its changes."""

from __future__ import annotations

import os
import signal
import sys
from argparse import REMAINDER, ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, TextIO

from pawl.core.change import BlobReader, ChangeSet
from pawl.core.display import SafeStream
from pawl.core.errors import PawlError, UsageError
from pawl.core.execution import Completed, Ending, Network, Secrets, Stream
from pawl.ui.cli.call import Call, Interrupted, Interruptions
from pawl.ui.cli.encoder import Json, changes_json, held_json, picked
from pawl.ui.cli.parser import Command, CommandParser, protected_option
from pawl.ui.screen.screen import Screen, counted, warnings

if TYPE_CHECKING:
    from pawl.workspace.benches import CommandRequest, Landing, Ran
    from pawl.workspace.capture import HeldBack
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    parser.usage = "pawl run [options] -- CMD ..."
    fate = parser.add_mutually_exclusive_group()
    fate.add_argument("--ask", dest="fate", action="store_const", const="ask", help="show and ask (in a terminal)")
    fate.add_argument("--apply", dest="fate", action="store_const", const="apply", help="promote if it succeeds")
    kept = "promote nothing, keep the changes as an entry (default without a terminal)"
    fate.add_argument("--discard", dest="fate", action="store_const", const="discard", help=kept)
    parser.add_argument("--net", action="store_true", help="allow network access")
    parser.add_argument("--seconds", type=float, metavar="N", help="time limit (default: the setting run_seconds, 600)")
    parser.add_argument("--secrets", action="store_true", help="let the command read .env and key files")
    parser.add_argument("--ignored", action="store_true", help="promote ignored files too")
    protected_option(parser)
    parser.add_argument("argv", nargs=REMAINDER, metavar="CMD", help="the command and its arguments, after '--'")


def read(parser: CommandParser, words: list[str]) -> Namespace:
    """Splits the words at `--`, which argparse treats differently in different versions of Python."""
    cut = words.index("--") if "--" in words else len(words)
    options = parser.parse_args(words[:cut])
    tail = words[cut:] if options.argv else words[cut + 1 :]
    options.argv = [*options.argv, *tail]
    return options


DECLARED = {
    "run": Command(words=words, example="pawl run --apply -- sed -i s/colour/color/ README.md", read=read),
}


class Live:
    """Shows the command's output as it comes."""

    def __init__(self, interruptions: Interruptions) -> None:
        self._interruptions = interruptions
        self._streams: dict[Stream, TextIO] = {Stream.STDOUT: sys.stdout, Stream.STDERR: sys.stderr}
        self._safe = {stream: SafeStream() for stream, place in self._streams.items() if place.isatty()}
        self._broken = False
        self._line_open = False
        self._anything = False

    def show(self, stream: Stream, data: bytes) -> None:
        if self._broken:
            return
        safe = self._safe.get(stream)
        try:
            self._write(stream, data if safe is None else safe.feed(data))
        except OSError as error:
            # As in a pipe of a shell, a command whose reader has gone is stopped; what it changed is kept.
            self._broken = True
            if not isinstance(error, BrokenPipeError):
                with suppress(OSError):
                    sys.stderr.write(f"pawl: the output cannot be written: {error.strerror}\n")
            self._interruptions.stop(signal.SIGPIPE)

    def close(self) -> None:
        """Ends a colour and a line that the command left open, and sets what Pawl says apart."""
        if self._broken:
            return
        with suppress(OSError):  # The terminal has gone; what the command changed is still to be kept.
            for stream, safe in self._safe.items():
                self._write(stream, safe.close())
            if self._anything and os.path.sameopenfile(sys.stdout.fileno(), sys.stderr.fileno()):
                sys.stderr.write("\n\n" if self._line_open else "\n")

    def _write(self, stream: Stream, data: bytes | str) -> None:
        place = self._streams[stream]
        if isinstance(data, str):
            place.write(data)
            end: object = data[-1:]
        else:
            place.buffer.write(data)
            end = data[-1:]
        place.flush()
        if data:
            self._anything = True
            self._line_open = end not in ("\n", b"\n")


_MOST = 12
_SAID_BY_THE_SANDBOX = (Ending.TIMED_OUT, Ending.MEMORY_LIMIT, Ending.PROCESS_LIMIT, Ending.DISK_LIMIT)
"""Endings that come with a notice of their own."""


def tell_ending(screen: Screen, done: Completed) -> None:
    screen.notes(done.notices, "yellow")
    if done.ending is Ending.TIMED_OUT:
        screen.hint("give it longer with --seconds N")
    elif done.ending not in (Ending.EXITED, *_SAID_BY_THE_SANDBOX):
        screen.say(f"note: {_how(done)}", "yellow")
    for name, captured in (("stdout", done.stdout), ("stderr", done.stderr)):
        if captured.dropped:
            screen.say(f"note: {captured.dropped:,} of {captured.total:,} bytes of {name} were not kept")


def tell_landing(screen: Screen, blobs: BlobReader, ran: Ran, landing: Landing, *, failed: bool, listed: bool) -> None:
    """`failed` says that only the command's failure kept its changes out, `listed` that the user has seen them."""
    promotion, kept = landing.promotion, landing.kept
    changes = promotion.changes if promotion is not None else ran.capture.changes
    if promotion is not None:
        screen.say(f"promoted as entry {promotion.entry}", "bold")
    elif kept is not None:
        why = "the command failed, so nothing was promoted; " if failed else "not promoted, "
        screen.say(f"{why}kept as entry {kept}", "bold")
    elif not landing.held:
        screen.say("nothing changed" if not ran.capture.ignored else "nothing to promote")
    if not listed:
        screen.changes(changes, blobs, most=_MOST)
    screen.notes(promotion.notices if promotion is not None else (), "yellow")
    tell_held(screen, landing.held)
    screen.marked([("!", path, "you changed it meanwhile; your version is kept") for path in landing.conflicts])
    _tell_ignored(screen, ran.capture.ignored)
    if promotion is not None:
        screen.hint(f"undo with: pawl undo {promotion.entry}")
    if kept is not None and promotion is None:
        screen.hint(f"see it with: pawl diff {kept}     promote it with: pawl promote {kept}")
    elif kept is not None:
        screen.hint(f"the rest is kept as entry {kept}; see it with: pawl diff {kept}")
    if kept is not None:
        hint_protected(screen, landing.held, kept)


def tell_held(screen: Screen, held: Iterable[HeldBack]) -> None:
    rows = [("!", one.path, "  ".join(filter(None, (one.told, warnings(one.path))))) for one in held]
    if rows:
        screen.say("held back")
        screen.marked(rows[:_MOST])
    if len(rows) > _MOST:
        screen.say(f"  … and {len(rows) - _MOST} more")


def hint_protected(screen: Screen, held: Iterable[HeldBack], entry: int) -> None:
    if any(one.needs_yes for one in held):
        screen.hint(f"promote what is protected with: pawl promote {entry} --allow-protected")


def tell_changes(screen: Screen, changes: ChangeSet, blobs: BlobReader) -> None:
    screen.say(f"{counted(len(changes), 'change')} on the bench", "bold")
    screen.changes(changes, blobs, most=_MOST)


def _tell_ignored(screen: Screen, ignored: tuple[str, ...]) -> None:
    if not ignored:
        return
    some = ", ".join(ignored[:3])
    more = f" and {len(ignored) - 3} more" if len(ignored) > 3 else ""
    screen.hint(f"left on the bench, because ignored: {some}{more}")


def _how(done: Completed) -> str:
    if done.ending is Ending.CANCELLED:
        return f"the command was stopped after {done.seconds:.1f} s"
    if done.signal is not None:
        return f"the command was ended by signal {done.signal} ({signal.Signals(done.signal).name})"
    return f"the command ended: {done.ending}"


_NOT_KEPT = ("too large", "too many folders deep", "unreadable")
"""Reasons for which all of a change may be left out against the user's word."""
_MOST_SECONDS = 86_400
_DIFF_LINES = 400
"""Shown before the question; more would push it out of sight."""


class RunDecision(Enum):
    KEEP = "keep"
    PROMOTE = "promote"
    PROMOTE_PROTECTED = "promote, protected files too"


def run(shop: Project, call: Call) -> int:
    """Pawl's own words go to stderr, so that stdout is the command's."""
    fate = _fate(call)
    ran = _run(shop, call)
    stopped = call.interruptions.heard
    verdict = RunDecision.KEEP
    try:
        if stopped is None:
            verdict = _verdict(shop, call, ran, fate)
    except Interrupted as error:
        stopped = error
        call.aside.say()
    landing = _landed(shop, ran, verdict)
    code = stopped.exit_code if stopped is not None else exit_code(ran)
    lost = landing.promotion is None and any(one.reason in _NOT_KEPT for one in landing.held)
    # What is left out of an entry is told; where there is none, the work is lost.
    lost = lost and (verdict is not RunDecision.KEEP or landing.kept is None)
    if code == 0 and (lost or (verdict is not RunDecision.KEEP and landing.conflicts)):
        code = 1
    if call.options.json:
        call.emit(_json(shop, ran, landing, code))
    else:
        failed = fate == "apply" and stopped is None and not ran.completed.ok
        listed = fate == "ask" and call.interruptions.heard is None
        tell_landing(call.aside, shop.store.blobs, ran, landing, failed=failed, listed=listed)
    return code


def exit_code(ran: Ran) -> int:
    """The command's own code, or what the shell would say of how it ended."""
    done = ran.completed
    match done.ending:
        case Ending.EXITED:
            return done.code or 0
        case Ending.TIMED_OUT:
            return 124
        case Ending.CANCELLED:
            return 130
        case _:
            return 128 + (done.signal or 9)


def _fate(call: Call) -> str:
    fate: str | None = call.options.fate
    if fate == "ask" and not call.can_ask:
        raise UsageError("--ask needs a terminal to ask on", advice="say --apply or --discard")
    # With the output in a pipe, whoever reads it may want the keyboard for itself, as a pager does.
    return fate or ("ask" if call.can_ask and call.out.is_terminal else "discard")


def _run(shop: Project, call: Call) -> Ran:
    from pawl.workspace.benches import run_on_bench
    from pawl.workspace.masks import hidden_note

    live = None if call.options.json else Live(call.interruptions)
    with call.interruptions.stopping() as cancel:
        ran = run_on_bench(shop, _request(shop, call), on_output=live.show if live else None, cancel=cancel)
    if live is not None:
        live.close()
        if call.interruptions.heard is not None and call.aside.is_terminal:
            call.aside.say()  # The terminal has written ^C.
        tell_ending(call.aside, ran.completed)
        hidden = "" if call.options.secrets else hidden_note(shop.tree, shop.guardrails, "--secrets")
        if hidden:
            call.aside.hint(hidden)
    return ran


def _request(shop: Project, call: Call) -> CommandRequest:
    from pawl.workspace.benches import CommandRequest

    options = call.options
    if not options.argv:
        raise UsageError("there is no command to run", advice="write it after '--', such as: pawl run -- make test")
    seconds = shop.config.settings.run_seconds if options.seconds is None else options.seconds
    if not 0 < seconds <= _MOST_SECONDS:
        raise UsageError(
            f"--seconds {seconds:g} is not above 0 and at most {_MOST_SECONDS}", advice="give the limit in seconds"
        )
    return CommandRequest(
        argv=tuple(options.argv),
        directory=call.directory(shop.workspace),
        network=Network.ON if options.net else Network.OFF,
        secrets=Secrets.SHOWN if options.secrets else Secrets.HIDDEN,
        seconds=seconds,
        include_ignored=options.ignored,
    )


def _verdict(shop: Project, call: Call, ran: Ran, fate: str) -> RunDecision:
    """The decision of the options or the user. A yes to the changes is not yet one to protected files among them."""
    if fate == "discard" or (fate == "apply" and not ran.completed.ok):
        return RunDecision.KEEP
    changes, held = ran.capture.changes, ran.capture.held
    protected = ChangeSet.of(one.change for one in held if one.needs_yes and one.change is not None)
    if fate == "ask" and changes:
        tell_changes(call.aside, changes, shop.store.blobs)
        if not ran.completed.ok:
            call.aside.say("the command failed", "yellow")
        if not _agreed(shop, call, changes, "promote to the workspace?"):
            return RunDecision.KEEP
    if call.options.allow_protected:
        return RunDecision.PROMOTE_PROTECTED
    if fate == "ask" and protected:
        call.aside.say("protected, because they configure or execute things, or asked about by a rule", "bold")
        call.aside.changes(protected, shop.store.blobs, most=len(protected))
        if _agreed(shop, call, protected, "promote these too?"):
            return RunDecision.PROMOTE_PROTECTED
    return RunDecision.PROMOTE if changes or fate == "apply" else RunDecision.KEEP


def _agreed(shop: Project, call: Call, changes: ChangeSet, question: str) -> bool:
    while True:
        match call.aside.ask(question, "nyd", "y/N, d for the diff"):
            case "y":
                return True
            case "d":
                call.aside.patch(changes, shop.store.blobs, most=_DIFF_LINES)
            case _:
                return False


def _landed(shop: Project, ran: Ran, verdict: RunDecision) -> Landing:
    from pawl.workspace.benches import keep, land

    if verdict is RunDecision.KEEP:
        return keep(shop, ran)
    try:
        return land(shop, ran, allow_protected=verdict is RunDecision.PROMOTE_PROTECTED)
    except PawlError as error:
        kept = keep(shop, ran).kept
        hint = f"what the command changed is kept: pawl promote {kept}"
        error.advice = f"{error.advice}; {hint}" if error.advice else hint
        raise


def _json(shop: Project, ran: Ran, landing: Landing, code: int) -> Json:
    done = ran.completed
    return {
        "argv": ran.request.argv,
        **picked(done, "ending code signal"),
        "exit_code": code,
        "seconds": round(done.seconds, 3),
        "peak_memory_bytes": done.peak_memory_bytes,
        "stdout": done.stdout.text,
        "stderr": done.stderr.text,
        "output_dropped": done.stdout.dropped + done.stderr.dropped,
        **picked(done, "confinement notices"),
        "changes": changes_json(ran.capture.changes, shop.store.blobs),
        "ignored": ran.capture.ignored,
        "held": [held_json(held) for held in landing.held],
        "conflicts": landing.conflicts,
        "promoted": landing.promotion.entry if landing.promotion else None,
        "kept": landing.kept,
        "run": shop.run_id,
    }
