"""A change for a person to read: hunks with their numbers, lines with theirs, long ones folded, nothing obeyed."""

from __future__ import annotations

from collections.abc import Iterator

from pawl.core.change import Change, ChangeSet
from pawl.core.display import Flag, safe_text
from pawl.core.hunks import Hunk, hunks
from pawl.core.ports import BlobReader
from pawl.interfaces.screen.screen import Screen, cells, one_line, warnings

_STYLES = {"+": "green", "-": "red"}
TAB = 4


def show_diff(screen: Screen, changes: ChangeSet, blobs: BlobReader, *, most: int | None = None) -> None:
    """Every path with its hunks, numbered over the whole; at most so many lines."""
    styled = list(diff_lines(changes, blobs, screen.width if screen.is_terminal else None))
    for text, style in styled[:most]:
        screen.say(text, style)
    if most is not None and len(styled) > most:
        screen.say(f"… and {len(styled) - most} more lines")
    found = sorted({str(flag) for change in changes for flag in _flags(change, blobs)})
    if found:
        screen.say(f"note: it holds {', '.join(found)}, written out above", "bold yellow")


def diff_lines(changes: ChangeSet, blobs: BlobReader, width: int | None) -> Iterator[tuple[str, str]]:
    """Lines with their styles. With a width, lines are numbered and folded to it; without, they stand as in a patch."""
    number = 0
    for change in changes:
        hint = warnings(change.path)
        yield one_line(change.path) + (f"  {hint}" if hint else ""), "bold"
        for hunk in hunks(change, blobs):
            number += 1
            yield f"[{number}] {one_line(hunk.header)}", "cyan"
            yield from _numbered(hunk, width) if width is not None else _plain(hunk)


def _plain(hunk: Hunk) -> Iterator[tuple[str, str]]:
    for line in hunk.lines:
        text = _shown(line)
        yield text, _STYLES.get(text[:1], "")


def _numbered(hunk: Hunk, width: int) -> Iterator[tuple[str, str]]:
    digits = len(str(max(hunk.old_start + hunk.old_lines, hunk.new_start + hunk.new_lines, 1)))
    old, new = hunk.old_start, hunk.new_start
    room = max(10, width - digits - 3)
    for line in hunk.lines:
        text = _shown(line)
        mark, rest = text[:1], text[1:].replace("\t", " " * TAB)
        old += mark in ("-", " ")
        new += mark in ("+", " ")
        place = {"-": str(old), "\\": ""}.get(mark, str(new))
        for part in folded(rest, room):
            yield f"{place:>{digits}} {mark} {part}".rstrip(), _STYLES.get(mark, "")
            place = ""


def folded(text: str, width: int) -> Iterator[str]:
    """The text in pieces that are no wider; at least one."""
    while cells(text) > width:
        cut = len(text)
        taken = 0
        for at, letter in enumerate(text):
            taken += cells(letter)
            if taken > width:
                cut = max(1, at)
                break
        yield text[:cut]
        text = text[cut:]
    yield text


def _shown(line: bytes) -> str:
    return safe_text(line.decode("utf-8", "surrogateescape").rstrip("\r\n")).text


def _flags(change: Change, blobs: BlobReader) -> Iterator[Flag]:
    for hunk in hunks(change, blobs):
        for line in hunk.lines:
            yield from safe_text(line.decode("utf-8", "surrogateescape").rstrip("\r\n")).flags
