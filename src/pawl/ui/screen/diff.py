"""A change for a person to read: hunks with their numbers, lines with theirs, long ones folded, nothing obeyed."""

from __future__ import annotations

from collections.abc import Iterator

from pawl.core.change import BlobReader, Change, ChangeSet, NodeKind
from pawl.core.display import AFTER_BLANKS, FAR_BLANKS, MOST_WHOLE, safe_text, shown_line
from pawl.core.patch import Hunk, content, hunks, text_hunks
from pawl.core.text import is_binary
from pawl.ui.screen.screen import Screen, cells, one_line, warnings

_STYLES = {"+": "green", "-": "red"}
_PATH_STYLE = "bold"
_MARKED = ("+", "-", " ")
_MANY = 20
HEAD, TAIL = 1_200, 400
"""Lines from the start and from the end of a very long change."""
TAB = 4


def show_diff(screen: Screen, changes: ChangeSet, blobs: BlobReader, *, whole: bool = False) -> bool:
    """Every path with its hunks, numbered over the whole; whether nothing of it was left out.

    Of very long lines and very long changes only the start and the end are shown, unless it is asked for `whole`.
    """
    width = screen.width if screen.is_terminal else None
    styled = list(diff_lines(changes, blobs, width, whole=whole))
    middle = [] if whole else styled[HEAD:-TAIL]
    complete = whole or not any(_is_long(change, blobs) for change in changes)
    if middle:
        paths = sum(style == _PATH_STYLE for _, style in middle)
        counts = f"{len(middle):,} lines, {paths:,} paths, {sum(len(text) for text, _ in middle):,} characters"
        styled[HEAD:-TAIL] = [(f"… {counts} not shown …", "bold yellow")]
        complete = False
    for text, style in styled:
        screen.say(text, style)
    if len(changes) > _MANY:
        screen.say(f"{len(changes):,} paths in all", "bold")
    found = sorted({flag for change in changes for flag in _flags(change, blobs)})
    if found:
        screen.say(f"note: it holds {', '.join(found)}, written out above", "bold yellow")
    return complete


def diff_lines(
    changes: ChangeSet, blobs: BlobReader, width: int | None, *, whole: bool = False
) -> Iterator[tuple[str, str]]:
    """Lines with their styles. With a width, lines are numbered and folded to it; without, they stand as in a patch."""
    number = 0
    for change in changes:
        hint = warnings(change.path)
        yield one_line(change.path) + (f"  {hint}" if hint else ""), _PATH_STYLE
        for hunk in hunks(change, blobs):
            number += 1
            yield f"[{number}] {one_line(hunk.header)}", "cyan"
            for shown in (hunk,) if hunk.lines else _whole(change, hunk, blobs):
                lines = _texts(shown, whole=whole)
                yield from _numbered(shown, lines, width) if width is not None else _plain(lines)


def _whole(change: Change, hunk: Hunk, blobs: BlobReader) -> tuple[Hunk, ...]:
    """A text that comes or goes as a whole, with its lines."""
    nodes = [node for node in (change.before, change.after) if node is not None]
    if hunk.id.endswith("#mode") or any(node.kind is not NodeKind.FILE for node in nodes):
        return ()
    old, new = content(change.before, blobs), content(change.after, blobs)
    return () if is_binary(old) or is_binary(new) else text_hunks(change.path, old, new)


def _plain(lines: list[str]) -> Iterator[tuple[str, str]]:
    for text in lines:
        yield text, _STYLES.get(text[:1], "")


def _numbered(hunk: Hunk, lines: list[str], width: int) -> Iterator[tuple[str, str]]:
    digits = len(str(max(hunk.old_start + hunk.old_lines, hunk.new_start + hunk.new_lines, 1)))
    old, new = hunk.old_start, hunk.new_start
    room = max(10, width - digits - 3)
    for text in lines:
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


def _texts(hunk: Hunk, *, whole: bool) -> list[str]:
    """The lines with their marks. Line ends of another system are left out where every line has them."""
    texts = [_decoded(line) for line in hunk.lines]
    alike = all(text.endswith("\r") for text in texts if text[:1] in _MARKED)
    return [shown_line(text.removesuffix("\r") if alike else text, whole=whole) for text in texts]


def _decoded(line: bytes) -> str:
    return line.decode("utf-8", "surrogateescape").removesuffix("\n")


def _shown_hunks(change: Change, blobs: BlobReader) -> Iterator[Hunk]:
    for hunk in hunks(change, blobs):
        yield from (hunk,) if hunk.lines else _whole(change, hunk, blobs)


def _is_long(change: Change, blobs: BlobReader) -> bool:
    """Whether some line is shown in part."""
    several = (text for hunk in _shown_hunks(change, blobs) for text in map(_decoded, hunk.lines))
    return any(len(text) > MOST_WHOLE and shown_line(text) != shown_line(text, whole=True) for text in several)


def _flags(change: Change, blobs: BlobReader) -> Iterator[str]:
    for hunk in _shown_hunks(change, blobs):
        for line in hunk.lines:
            text = _decoded(line).removesuffix("\r")
            yield from safe_text(text).flags
            if FAR_BLANKS.search(text.rstrip()):
                yield AFTER_BLANKS
