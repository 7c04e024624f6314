"""A change for a person to read: hunks with their numbers, lines with theirs, long ones folded, nothing obeyed."""

from __future__ import annotations

from collections.abc import Iterator

from pawl.core.change import Change, ChangeSet, Kind
from pawl.core.display import Flag, safe_text
from pawl.core.hunks import Hunk, content, hunks, text_hunks
from pawl.core.ports import BlobReader
from pawl.core.text import is_binary
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
            for shown in (hunk,) if hunk.lines else _whole(change, hunk, blobs):
                yield from _numbered(shown, width) if width is not None else _plain(shown)


def _whole(change: Change, hunk: Hunk, blobs: BlobReader) -> tuple[Hunk, ...]:
    """A text that comes or goes as a whole, with its lines."""
    nodes = [node for node in (change.before, change.after) if node is not None]
    if hunk.id.endswith("#mode") or any(node.kind is not Kind.FILE for node in nodes):
        return ()
    old, new = content(change.before, blobs), content(change.after, blobs)
    return () if is_binary(old) or is_binary(new) else text_hunks(change.path, old, new)


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
        for shown in (hunk,) if hunk.lines else _whole(change, hunk, blobs):
            for line in shown.lines:
                yield from safe_text(line.decode("utf-8", "surrogateescape").rstrip("\r\n")).flags
