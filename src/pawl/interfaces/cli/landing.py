"""Says what became of the changes on a bench: what was promoted, what was kept, and how to take either further."""

from __future__ import annotations

import signal
from collections.abc import Iterable

from pawl.app.running import Held, Landing, Ran
from pawl.core.change import ChangeSet
from pawl.core.execution import Completed, Ending
from pawl.core.ports import BlobReader
from pawl.interfaces.screen.screen import Screen, warnings

_MOST = 12
_SAID_BY_THE_SANDBOX = (Ending.TIMED_OUT, Ending.MEMORY_LIMIT, Ending.PROCESS_LIMIT, Ending.DISK_LIMIT)
"""Endings that come with a notice of their own."""


def tell_ending(screen: Screen, done: Completed) -> None:
    for notice in done.notices:
        screen.say(f"note: {notice}", "yellow")
    if done.ending is Ending.TIMED_OUT:
        screen.hint("give it longer with --seconds N")
    elif done.ending not in (Ending.EXITED, *_SAID_BY_THE_SANDBOX):
        screen.say(f"note: {_how(done)}", "yellow")
    for name, captured in (("stdout", done.stdout), ("stderr", done.stderr)):
        if captured.dropped:
            screen.say(f"note: of its {captured.total:,} bytes of {name} {captured.dropped:,} were not kept")


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
    for notice in promotion.notices if promotion is not None else ():
        screen.say(f"note: {notice}", "yellow")
    tell_held(screen, landing.held)
    screen.marked([("!", path, "you changed it meanwhile; yours stands") for path in landing.conflicts])
    _tell_ignored(screen, ran.capture.ignored)
    if promotion is not None:
        screen.hint(f"take it back with: pawl undo {promotion.entry}")
    if kept is not None and promotion is None:
        screen.hint(f"see it with: pawl diff {kept}     promote it with: pawl promote {kept}")
    elif kept is not None:
        screen.hint(f"the rest is kept as entry {kept}; see it with: pawl diff {kept}")
    if kept is not None:
        hint_protected(screen, landing.held, kept)


def tell_held(screen: Screen, held: Iterable[Held]) -> None:
    rows = [("!", one.path, _reason(one)) for one in held]
    if rows:
        screen.say("held back")
        screen.marked(rows[:_MOST])
    if len(rows) > _MOST:
        screen.say(f"  … and {len(rows) - _MOST} more")


def hint_protected(screen: Screen, held: Iterable[Held], entry: int) -> None:
    if any(one.needs_yes for one in held):
        screen.hint(f"promote what is protected with: pawl promote {entry} --allow-protected")


def tell_changes(screen: Screen, changes: ChangeSet, blobs: BlobReader) -> None:
    count = len(changes)
    screen.say(f"{count} change{'' if count == 1 else 's'} on the bench", "bold")
    screen.changes(changes, blobs, most=_MOST)


def _tell_ignored(screen: Screen, ignored: tuple[str, ...]) -> None:
    if not ignored:
        return
    some = ", ".join(ignored[:3])
    more = f" and {len(ignored) - 3} more" if len(ignored) > 3 else ""
    screen.hint(f"left on the bench, because ignored: {some}{more}")


def _reason(held: Held) -> str:
    flags = warnings(held.path)
    return f"{held.told}{f'  {flags}' if flags else ''}"


def _how(done: Completed) -> str:
    if done.ending is Ending.CANCELLED:
        return f"the command was stopped after {done.seconds:.1f} s"
    if done.signal is not None:
        return f"the command was ended by signal {done.signal} ({signal.Signals(done.signal).name})"
    return f"the command ended: {done.ending}"
