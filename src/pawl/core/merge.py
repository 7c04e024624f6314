"""Three-way merge of texts by lines. A merge is clean only when it does not depend on how equal lines are matched."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pawl.core.text import LineChange, Matching, edits, split_lines


@dataclass(frozen=True, slots=True)
class MergePart:
    """Lines of one version: `first` is the number of the first one, counted from 1, or where it would stand."""

    first: int
    lines: tuple[bytes, ...]

    @property
    def text(self) -> bytes:
        return b"".join(self.lines)


@dataclass(frozen=True, slots=True)
class Region:
    """A place where both sides changed the same lines, or lines that touch, in different ways."""

    base: MergePart
    ours: MergePart
    theirs: MergePart


@dataclass(frozen=True, slots=True)
class Merged:
    data: bytes | None
    """The merged text; None when there are conflicts."""
    conflicts: tuple[Region, ...]
    pieces: tuple[bytes | Region, ...]
    """What was merged and what was not, in order."""


def merge3(base: bytes, ours: bytes, theirs: bytes) -> Merged:
    """Both sides' changes of `base` in one text. Changes conflict when they overlap or touch and are not the same."""
    if ours in (base, theirs):
        return _clean(theirs)
    if theirs == base:
        return _clean(ours)
    sides = (split_lines(base), split_lines(ours), split_lines(theirs))
    results = []
    for matching in Matching:
        merged = _merged(*sides, matching)
        if merged.conflicts:
            return merged
        results.append(merged)
    return results[0] if len({merged.data for merged in results}) == 1 else _whole(*sides)


def with_markers(merged: Merged, *, ours: str, theirs: str, base: str | None = None) -> bytes:
    """The merged text with both versions of every conflict between markers; with `base`, that version too."""
    return b"".join(
        piece if isinstance(piece, bytes) else _marked(piece, ours=ours, theirs=theirs, base=base)
        for piece in merged.pieces
    )


def _clean(data: bytes) -> Merged:
    return Merged(data, (), (data,))


def _whole(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes]) -> Merged:
    """One conflict from the first to the last line on which the sides differ from each other or from the base."""
    sides = (base, ours, theirs)
    shortest = min(map(len, sides))
    top = next((at for at in range(shortest) if not base[at] == ours[at] == theirs[at]), shortest)
    room = shortest - top
    tail = next((at for at in range(room) if not base[-1 - at] == ours[-1 - at] == theirs[-1 - at]), room)
    region = Region(*(MergePart(top + 1, tuple(lines[top : len(lines) - tail])) for lines in sides))
    return _assembled((b"".join(base[:top]), region, b"".join(base[len(base) - tail :])))


def _merged(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes], matching: Matching) -> Merged:
    our_edits, their_edits = edits(base, ours, matching), edits(base, theirs, matching)
    pieces: list[bytes | Region] = []
    at = 0
    our_shift = their_shift = 0
    for group in _groups(our_edits, their_edits):
        pieces.append(b"".join(base[at : group.start]))
        at = group.end
        our_lines, our_end = _span(group, group.ours, our_shift)
        their_lines, their_end = _span(group, group.theirs, their_shift)
        region = Region(
            MergePart(group.start + 1, tuple(base[group.start : group.end])),
            MergePart(our_lines + 1, tuple(ours[our_lines:our_end])),
            MergePart(their_lines + 1, tuple(theirs[their_lines:their_end])),
        )
        our_shift, their_shift = our_end - group.end, their_end - group.end
        pieces.append(_settled(region, group))
    pieces.append(b"".join(base[at:]))
    return _assembled(tuple(pieces))


def _assembled(pieces: Sequence[bytes | Region]) -> Merged:
    kept = tuple(piece for piece in pieces if piece)
    conflicts = tuple(piece for piece in kept if isinstance(piece, Region))
    data = None if conflicts else b"".join(piece for piece in kept if isinstance(piece, bytes))
    return Merged(data, conflicts, kept)


@dataclass(slots=True)
class _Group:
    """Edits of both sides that overlap or touch, with the lines of the base they cover."""

    start: int
    end: int
    ours: list[LineChange]
    theirs: list[LineChange]


def _groups(ours: Sequence[LineChange], theirs: Sequence[LineChange]) -> Iterator[_Group]:
    sided = sorted([(edit, True) for edit in ours] + [(edit, False) for edit in theirs])
    group: _Group | None = None
    for edit, is_ours in sided:
        if group is None or edit.a_start > group.end:
            if group is not None:
                yield group
            group = _Group(edit.a_start, edit.a_end, [], [])
        group.end = max(group.end, edit.a_end)
        (group.ours if is_ours else group.theirs).append(edit)
    if group is not None:
        yield group


def _span(group: _Group, own: Sequence[LineChange], shift: int) -> tuple[int, int]:
    """Which lines of one side stand for the group's lines of the base; `shift` is by how much that side is longer."""
    grown = sum((edit.b_end - edit.b_start) - (edit.a_end - edit.a_start) for edit in own)
    return group.start + shift, group.end + shift + grown


def _settled(region: Region, group: _Group) -> bytes | Region:
    if not group.theirs or region.ours.lines == region.theirs.lines:
        return region.ours.text
    return region if group.ours else region.theirs.text


def _marked(region: Region, *, ours: str, theirs: str, base: str | None) -> bytes:
    lines = (*region.base.lines, *region.ours.lines, *region.theirs.lines)
    end = b"\r\n" if any(line.endswith(b"\r\n") for line in lines) else b"\n"
    parts = [_marker("<", ours, end), _ended(region.ours, end)]
    if base is not None:
        parts += [_marker("|", base, end), _ended(region.base, end)]
    parts += [_marker("=", "", end), _ended(region.theirs, end), _marker(">", theirs, end)]
    return b"".join(parts)


def _marker(sign: str, label: str, end: bytes) -> bytes:
    return f"{sign * 7} {label}".rstrip().encode("utf-8", "surrogateescape") + end


def _ended(part: MergePart, end: bytes) -> bytes:
    """The text with a newline at its end, so that the next marker starts a line of its own."""
    text = part.text
    return text if not text or text.endswith(b"\n") else text + end
