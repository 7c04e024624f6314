"""A text of any length as lines for a person's eyes: what is left out is counted, what hides is named."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from pawl.core.display import safe_text

_BLANKS = re.compile(r"[ \t]{33,}")
_FAR = 120
FAR_BLANKS = re.compile(rf"[ \t]{{{_FAR},}}")
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{96,}={0,2}|(?:\\x[0-9A-Fa-f]{2}|\\[0-7]{3}){8,}")
_EMPTY_LINES = 3
"""So many in a row are shown; more are counted."""
_MANY_EMPTY = 8
MARK = "…"
HEAD, TAIL = 24, 16
"""Lines from the start and from the end of a long text."""
_LINE_HEAD, _LINE_TAIL = 400, 200
MOST_WHOLE = _LINE_HEAD + _LINE_TAIL
"""Characters of a line that are always shown."""
AFTER_BLANKS = "text after many blanks"
AFTER_LINES = "text after many empty lines"
ENCODED = "a long encoded word"


@dataclass(frozen=True, slots=True)
class Shown:
    """Lines that are safe to show. Every `…` in them is Pawl's own: one of the text is written out."""

    lines: tuple[str, ...]
    flags: tuple[str, ...] = ()
    """Why the eyes may be deceived."""


def shown_text(text: str, *, whole: bool = False) -> Shown:
    """The head and the tail of the text, or all of it; long runs of blanks and empty lines only as their number."""
    flags = dict.fromkeys(sorted(map(str, safe_text(text).flags)))
    if _ENCODED.search(text):
        flags[ENCODED] = None
    lines = list(_rows(text, flags, whole=whole))
    return Shown(tuple(lines if whole else head_and_tail(lines)), tuple(flags))


def head_and_tail(lines: list[str], what: str = "lines", head: int = HEAD, tail: int = TAIL) -> list[str]:
    """The lines, or the first and the last of them around the number of the others."""
    middle = lines[head:-tail]
    if len(middle) < 2:
        return lines
    characters = sum(map(len, middle))
    left_out = f"… {len(middle):,} {what}, {characters:,} characters not shown …"
    return [*lines[:head], left_out, *lines[-tail:]]


def shown_line(line: str, *, whole: bool = False) -> str:
    """One line of a file: only what is far longer than people write is counted instead of shown."""
    if len(line) < _FAR:
        return safe_text(line).text
    return _row(line, {}, FAR_BLANKS, whole=whole)


def _rows(text: str, flags: dict[str, None], *, whole: bool) -> Iterator[str]:
    found_empty = False
    for is_empty, group in groupby(text.split("\n"), key=lambda row: not row.strip(" \t\r")):
        rows = list(group)
        if is_empty and len(rows) > _EMPTY_LINES:
            found_empty = found_empty or len(rows) >= _MANY_EMPTY
            yield f"… {len(rows):,} empty lines …"
            continue
        if not is_empty and found_empty:
            flags[AFTER_LINES] = None
        for row in rows:
            yield "" if is_empty else _row(row, flags, whole=whole)


def _row(row: str, flags: dict[str, None], blanks: re.Pattern[str] = _BLANKS, *, whole: bool) -> str:
    parts: list[str] = []
    at = 0
    for run in blanks.finditer(row):
        kind = {" ": "spaces", "\t": "tabs"}.get("".join(set(run[0])), "blanks")
        parts += [_written(row[at : run.start()]), f"… {len(run[0]):,} {kind} …"]
        at = run.end()
        if row[at:].strip():
            flags[AFTER_BLANKS] = None
    shown = "".join((*parts, _written(row[at:])))
    return shown if whole else _cut_line(shown)


def _written(text: str) -> str:
    return safe_text(text).text.replace("…", "\\u{2026}")


def _cut_line(line: str) -> str:
    left_out = len(line) - _LINE_HEAD - _LINE_TAIL
    if left_out < 40:
        return line
    return f"{line[:_LINE_HEAD]}… {left_out:,} characters …{line[-_LINE_TAIL:]}"
