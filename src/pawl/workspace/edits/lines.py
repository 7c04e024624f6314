"""Edits by line number: each is validated against the line that is there now, and all are applied or none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pawl.core.content import Text, plain
from pawl.core.edits import LineEdit
from pawl.core.errors import LineMismatch, NothingToDo, TooManyEdits
from pawl.core.guardrails import Guardrails
from pawl.workspace.edits.outcome import Outcome, checked, decoded

_NAMED_LINES = 5


def line_edits(path: str, data: bytes, edits: Sequence[LineEdit], guardrails: Guardrails) -> Outcome:
    """The content with the lines replaced, from the last to the first so that no number shifts."""
    if not edits:
        raise NothingToDo(f"no line of {path!r} is named", advice="give at least one edit")
    if len(edits) > guardrails.line_edits:
        raise TooManyEdits(
            f"{len(edits)} line edits for {path!r}; {guardrails.line_edits} is the most",
            advice="make several calls, reading the file again in between",
        )
    text = decoded(path, data, guardrails)
    mismatches = _mismatches(text, edits)
    if mismatches:
        raise LineMismatch(
            f"{path!r} is not as the edits say, and none was applied:\n" + "\n".join(mismatches),
            advice="read the file again and give the lines as they are now",
        )
    for edit in sorted(edits, key=lambda edit: edit.line, reverse=True):
        text = replaced_line(text, edit.line, edit.new)
    return checked(path, data, text, guardrails)


def replaced_line(text: Text, line: int, new: str | None) -> Text:
    """The text with a line (from 1) replaced by one or several, or taken out."""
    start, stop = text.line_start(line - 1), text.line_start(line)
    if new is None:
        return text.spliced(start, stop, "")
    return text.spliced(start, start + len(text.lines[line - 1]), without_last_break(new))


def line_mismatch(text: Text, line: int, old: str | None) -> str | None:
    """What is wrong with the claim that a line (from 1) is `old`; only its number is judged when that is None."""
    count = len(text.lines)
    if not 1 <= line <= count:
        where = "" if old is None else _elsewhere(text, without_last_break(old))
        return f"line {line}: the file has {count} line{'' if count == 1 else 's'}{where}"
    if old is None or text.lines[line - 1] == without_last_break(old):
        return None
    wanted = without_last_break(old)
    return f"line {line} is {text.lines[line - 1]!r}, not {wanted!r}{_elsewhere(text, wanted)}"


def without_last_break(content: str) -> str:
    """A line is the same line with or without its line break."""
    return plain(content).removesuffix("\n")


def _mismatches(text: Text, edits: Sequence[LineEdit]) -> list[str]:
    times = Counter(edit.line for edit in edits)
    found = [f"line {line} is edited {count} times" for line, count in sorted(times.items()) if count > 1]
    for edit in sorted(edits, key=lambda edit: edit.line):
        mismatch = line_mismatch(text, edit.line, edit.old)
        if mismatch is not None:
            found.append(mismatch)
    return found


def _elsewhere(text: Text, wanted: str) -> str:
    """Where the line that was meant stands now."""
    if not wanted.strip():
        return ""
    places = [number for number, line in enumerate(text.lines, 1) if line == wanted]
    loose = [number for number, line in enumerate(text.lines, 1) if line.split() == wanted.split()]
    if not places and not loose:
        return "; that text is nowhere in the file"
    what = "that text is now at" if places else "that text, but for its whitespace, is at"
    numbers = ", ".join(str(number) for number in (places or loose)[:_NAMED_LINES])
    return f"; {what} line {numbers}"
