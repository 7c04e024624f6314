"""Lines of bytes and how two texts match. Nothing is ever decoded, so every line end, byte order mark and missing
final newline survives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from pawl.core.text_search import Block, by_anchors, by_distance, gaps, slid

BINARY_WINDOW = 8000
"""How far `is_binary` looks, the same as git."""


class Edit(NamedTuple):
    """The lines `a_start:a_end` become the lines `b_start:b_end`; either range may be empty, never both."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int


class Matching(StrEnum):
    """Ways to match lines. They agree wherever there is only one reasonable way."""

    ANCHORS = "anchors"
    """Lines that occur once in both texts first, then the fewest edits between them: what people read best."""
    FORWARD = "forward"
    """The fewest edits, looked for from the top."""
    BACKWARD = "backward"
    """The fewest edits, looked for from the bottom."""


def split_lines(data: bytes) -> list[bytes]:
    """The lines with their ends; only the last one may lack its newline."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:BINARY_WINDOW]


def matching_blocks(a: Sequence[bytes], b: Sequence[bytes], matching: Matching = Matching.ANCHORS) -> list[Block]:
    """What stays the same, in order."""
    numbers: dict[bytes, int] = {}
    one, two = ([numbers.setdefault(line, len(numbers)) for line in lines] for lines in (a, b))
    match matching:
        case Matching.ANCHORS:
            blocks = by_anchors(one, two)
        case Matching.FORWARD:
            blocks = by_distance(one, two)
        case Matching.BACKWARD:
            mirrored = reversed(by_distance(one[::-1], two[::-1]))
            blocks = [Block(len(a) - x - size, len(b) - y - size, size) for x, y, size in mirrored]
    return slid(one, two, blocks)


def edits(a: Sequence[bytes], b: Sequence[bytes], matching: Matching = Matching.ANCHORS) -> list[Edit]:
    """What changes, in order: the gaps between the matching blocks."""
    return [Edit(*gap) for gap in gaps(matching_blocks(a, b, matching), len(a), len(b))]


def grouped(changes: Sequence[Edit], context: int) -> Iterator[list[Edit]]:
    """Edits whose surrounding `context` lines touch or overlap, together."""
    group: list[Edit] = []
    for edit in changes:
        if group and edit.a_start - group[-1].a_end > 2 * context:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group
