"""What every edit goes through before it counts: its size, its syntax, its imports, and that it changes something."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.content import Text, changed_lines
from pawl.core.errors import NothingToDo, TooLarge
from pawl.core.guardrails import Guardrails
from pawl.workspace.edits import imports, syntax


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The new content of a file; None when it is deleted."""

    data: bytes | None
    changed_lines: int
    notes: tuple[str, ...] = ()


def decoded(path: str, data: bytes, guardrails: Guardrails) -> Text:
    """The text of a file that is small enough."""
    check_size(path, data, guardrails)
    return Text.decode(data, path)


def checked(path: str, before: bytes | None, text: Text, guardrails: Guardrails) -> Outcome:
    """The outcome of an edit that passes every check; its error otherwise."""
    after = text.encode(path)
    check_size(path, after, guardrails)
    if before == after:
        raise NothingToDo(
            f"the edit leaves {path!r} as it is", advice="the file already has this content; go on with the next step"
        )
    notes = syntax.check(path, before, after)
    imports.check(path, before, after)
    return Outcome(data=after, changed_lines=changed_lines(before or b"", after), notes=notes)


def check_size(path: str, data: bytes, guardrails: Guardrails) -> None:
    if len(data) > guardrails.file_bytes:
        raise TooLarge(
            f"{path!r} has {len(data):,} bytes; {guardrails.file_bytes:,} is the most",
            advice="work on a smaller file, or search for the part that matters",
        )
