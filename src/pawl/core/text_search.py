"""The search for what two texts have in common, on lines that stand as small numbers. Bounded in work for any input."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

STEPS = 1_000_000
"""The work one comparison may cost; what is left then counts as replaced."""
_ANCHOR_DEPTH = 32
_SEARCH_DEPTH = 512
"""How many edits one search looks ahead before it settles for the best way found so far."""


class MatchingBlock(NamedTuple):
    """`size` lines that are equal, from line `a` of the one text and line `b` of the other, counted from 0."""

    a: int
    b: int
    size: int


class Gap(NamedTuple):
    """The lines `a_start:a_end` of the one text against the lines `b_start:b_end` of the other."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int

    @property
    def empty(self) -> bool:
        return self.a_start == self.a_end or self.b_start == self.b_end


class _Within(NamedTuple):
    """A gap to search, and the lines that each side is held to have."""

    gap: Gap
    a_lines: set[int]
    b_lines: set[int]


def by_anchors(a: Sequence[int], b: Sequence[int]) -> list[MatchingBlock]:
    """Matches lines that occur once in both first, again and again between those, and the rest by edit distance."""
    blocks: list[MatchingBlock] = []
    steps = STEPS
    waiting = [(Gap(0, len(a), 0, len(b)), 0)]
    while waiting:
        whole, depth = waiting.pop()
        gap = _trimmed(a, b, whole, blocks)
        if gap.empty:
            continue
        anchors = _anchors(a, b, gap) if depth < _ANCHOR_DEPTH else []
        if anchors:
            blocks.extend(anchors)
            waiting.extend((between, depth + 1) for between in _gaps_in(gap, anchors))
        else:
            lines = set(a[gap.a_start : gap.a_end]), set(b[gap.b_start : gap.b_end])
            steps = _search(a, b, _Within(gap, *lines), steps, blocks)
    return _joined(blocks)


def by_distance(a: Sequence[int], b: Sequence[int]) -> list[MatchingBlock]:
    """Matches so that the fewest lines are removed and inserted."""
    blocks: list[MatchingBlock] = []
    gap = _trimmed(a, b, Gap(0, len(a), 0, len(b)), blocks)
    _search(a, b, _Within(gap, set(a), set(b)), STEPS, blocks)
    return _joined(blocks)


def gaps(blocks: Sequence[MatchingBlock], a_size: int, b_size: int) -> Iterator[Gap]:
    """What the blocks leave of two texts of these sizes."""
    return _gaps_in(Gap(0, a_size, 0, b_size), blocks)


def _gaps_in(whole: Gap, blocks: Sequence[MatchingBlock]) -> Iterator[Gap]:
    a, b = whole.a_start, whole.b_start
    for block in (*blocks, MatchingBlock(whole.a_end, whole.b_end, 0)):
        if a < block.a or b < block.b:
            yield Gap(a, block.a, b, block.b)
        a, b = block.a + block.size, block.b + block.size


def _anchors(a: Sequence[int], b: Sequence[int], gap: Gap) -> list[MatchingBlock]:
    """The longest rising run of pairs of lines that occur once on each side of the gap."""
    a_lines, b_lines = a[gap.a_start : gap.a_end], b[gap.b_start : gap.b_end]
    a_counts, b_counts = Counter(a_lines), Counter(b_lines)
    places = {line: gap.b_start + at for at, line in enumerate(b_lines) if b_counts[line] == 1}
    pairs = [
        (gap.a_start + at, places[line]) for at, line in enumerate(a_lines) if a_counts[line] == 1 and line in places
    ]
    return [MatchingBlock(x, y, 1) for x, y in _rising(pairs)]


def _search(a: Sequence[int], b: Sequence[int], within: _Within, steps: int, blocks: list[MatchingBlock]) -> int:
    """Matches by edit distance and returns the steps left.

    Lines that the other side lacks are left out first: they can match nothing, and would only cost steps.
    """
    gap = within.gap
    a_places = [at for at in range(gap.a_start, gap.a_end) if a[at] in within.b_lines]
    b_places = [at for at in range(gap.b_start, gap.b_end) if b[at] in within.a_lines]
    search = _Search([a[at] for at in a_places], [b[at] for at in b_places], steps)
    for x, y, size in search.run():
        blocks.extend(MatchingBlock(a_places[x + at], b_places[y + at], 1) for at in range(size))
    return search.steps


def _trimmed(a: Sequence[int], b: Sequence[int], gap: Gap, blocks: list[MatchingBlock]) -> Gap:
    """The gap without the lines that are equal at its start and at its end; those go to `blocks`."""
    a_start, a_end, b_start, b_end = gap
    while a_start < a_end and b_start < b_end and a[a_start] == b[b_start]:
        a_start, b_start = a_start + 1, b_start + 1
    while a_start < a_end and b_start < b_end and a[a_end - 1] == b[b_end - 1]:
        a_end, b_end = a_end - 1, b_end - 1
    if a_start > gap.a_start:
        blocks.append(MatchingBlock(gap.a_start, gap.b_start, a_start - gap.a_start))
    if a_end < gap.a_end:
        blocks.append(MatchingBlock(a_end, b_end, gap.a_end - a_end))
    return Gap(a_start, a_end, b_start, b_end)


class _Search:
    """The search for the fewest edits (Myers): from both corners of a gap until the ways meet, then in both halves."""

    def __init__(self, a: Sequence[int], b: Sequence[int], steps: int) -> None:
        self.a, self.b = a, b
        self.steps = steps

    def run(self) -> list[MatchingBlock]:
        blocks: list[MatchingBlock] = []
        waiting = [Gap(0, len(self.a), 0, len(self.b))]
        while waiting:
            gap = _trimmed(self.a, self.b, waiting.pop(), blocks)
            if not gap.empty and self.steps > 0:
                x, y = self._middle(gap)
                waiting.append(Gap(gap.a_start, x, gap.b_start, y))
                waiting.append(Gap(x, gap.a_end, y, gap.b_end))
        return blocks

    def _middle(self, gap: Gap) -> tuple[int, int]:
        """A point on a shortest way through the gap; when that takes too long to find, the furthest one reached.

        Both fronts hold the furthest x reached on each diagonal x - y.
        """
        first, last = gap.a_start - gap.b_start, gap.a_end - gap.b_end
        forward, backward = {first: gap.a_start}, {last: gap.a_end}
        meets_forward = (first - last) % 2 == 1
        for depth in range(1, _SEARCH_DEPTH):
            met = self._forward(gap, forward, _diagonals(gap, first, depth), backward if meets_forward else {})
            if met is None:
                met = self._backward(gap, backward, _diagonals(gap, last, depth), {} if meets_forward else forward)
            if met is not None:
                return met
            if self.steps <= 0:
                break
        return _furthest(gap, forward, backward)

    def _forward(
        self, gap: Gap, front: dict[int, int], diagonals: range, other: dict[int, int]
    ) -> tuple[int, int] | None:
        a, b, walked = self.a, self.b, 0
        for diagonal in diagonals:
            removed, inserted = front.get(diagonal - 1, -1) + 1, front.get(diagonal + 1, -1)
            start = x = max(removed, inserted)
            y = x - diagonal
            while x < gap.a_end and y < gap.b_end and a[x] == b[y]:
                x, y = x + 1, y + 1
            walked += 1 + x - start
            front[diagonal] = x
            if x >= other.get(diagonal, x + 1) and x <= gap.a_end and y <= gap.b_end:
                return x, y
        self.steps -= walked
        return None

    def _backward(
        self, gap: Gap, front: dict[int, int], diagonals: range, other: dict[int, int]
    ) -> tuple[int, int] | None:
        a, b, walked = self.a, self.b, 0
        beyond = len(a) + 1
        for diagonal in diagonals:
            inserted, removed = front.get(diagonal - 1, beyond), front.get(diagonal + 1, beyond) - 1
            start = x = min(inserted, removed)
            y = x - diagonal
            while x > gap.a_start and y > gap.b_start and a[x - 1] == b[y - 1]:
                x, y = x - 1, y - 1
            walked += 1 + start - x
            front[diagonal] = x
            if x <= other.get(diagonal, x - 1) and x >= gap.a_start and y >= gap.b_start:
                return x, y
        self.steps -= walked
        return None


def _diagonals(gap: Gap, start: int, depth: int) -> range:
    """The diagonals that so many edits can reach from `start` without leaving the gap, from the right to the left."""
    left, right = gap.a_start - gap.b_end, gap.a_end - gap.b_start
    lowest = max(start - depth, 2 * left - start + depth)
    highest = min(start + depth, 2 * right - start - depth)
    return range(highest, lowest - 1, -2)


def _furthest(gap: Gap, forward: dict[int, int], backward: dict[int, int]) -> tuple[int, int]:
    """The point furthest from the corner that its front set out from."""
    corner = gap.a_start + gap.b_start + gap.a_end + gap.b_end
    points = [(2 * x - diagonal, x, x - diagonal) for diagonal, x in forward.items()]
    points += [(corner - (2 * x - diagonal), x, x - diagonal) for diagonal, x in backward.items()]
    inside = [
        point for point in points if gap.a_start <= point[1] <= gap.a_end and gap.b_start <= point[2] <= gap.b_end
    ]
    _, x, y = max(inside)
    return x, y


@dataclass(slots=True)
class _Stretch:
    """Changed lines of one text; `rank` counts the unchanged lines above them, which both texts share."""

    start: int
    end: int
    rank: int

    def move(self, by: int) -> None:
        self.start, self.end, self.rank = self.start + by, self.end + by, self.rank + by


class _Slider:
    """Moves changed stretches among equal lines: next to a change of the other text, else as far down as they go.

    A stretch that repeats its surroundings can be said to stand at several places. One rule, the same as git's, makes
    equal changes look equal, which the three-way merge depends on.
    """

    def __init__(self, lines: Sequence[int], stretches: Sequence[_Stretch], others: Sequence[_Stretch]) -> None:
        self.lines = lines
        self.waiting = list(reversed(stretches))
        self.done: list[_Stretch] = []
        self.opposite = {other.rank for other in others}
        self.steps = STEPS

    def run(self) -> list[_Stretch]:
        while self.waiting:
            stretch = self.waiting.pop()
            if self.steps > 0:
                self._place(stretch)
            self.done.append(stretch)
        return self.done

    def _place(self, stretch: _Stretch) -> None:
        while True:
            size = stretch.end - stretch.start
            self._up(stretch)
            highest = stretch.rank
            aligned = self._down(stretch)
            if stretch.end - stretch.start == size or self.steps <= 0:
                break
        if aligned is not None and aligned >= highest:
            stretch.move(aligned - stretch.rank)

    def _up(self, stretch: _Stretch) -> None:
        lines, before = self.lines, stretch.start
        while stretch.start > 0 and lines[stretch.start - 1] == lines[stretch.end - 1]:
            stretch.move(-1)
            if self.done and self.done[-1].end == stretch.start:
                stretch.start = self.done.pop().start
        self.steps -= 1 + before - stretch.start

    def _down(self, stretch: _Stretch) -> int | None:
        """Moves as far down as possible; returns the last rank on the way at which the other text changes too."""
        lines, before = self.lines, stretch.end
        aligned = stretch.rank if stretch.rank in self.opposite else None
        while stretch.end < len(lines) and lines[stretch.start] == lines[stretch.end]:
            stretch.move(1)
            if self.waiting and self.waiting[-1].start == stretch.end:
                stretch.end = self.waiting.pop().end
            if stretch.rank in self.opposite:
                aligned = stretch.rank
        self.steps -= 1 + stretch.end - before
        return aligned


def slid(a: Sequence[int], b: Sequence[int], blocks: Sequence[MatchingBlock]) -> list[MatchingBlock]:
    """The same matching with every changed stretch moved to its one agreed place."""
    removed, inserted = [], []
    grown = 0
    for gap in gaps(blocks, len(a), len(b)):
        rank = gap.a_start - grown
        grown += gap.a_end - gap.a_start
        if gap.a_start < gap.a_end:
            removed.append(_Stretch(gap.a_start, gap.a_end, rank))
        if gap.b_start < gap.b_end:
            inserted.append(_Stretch(gap.b_start, gap.b_end, rank))
    removed = _Slider(a, removed, inserted).run()
    inserted = _Slider(b, inserted, removed).run()
    return _between(removed, inserted, sum(block.size for block in blocks))


def _between(removed: Sequence[_Stretch], inserted: Sequence[_Stretch], size: int) -> list[MatchingBlock]:
    """The blocks that the changed stretches leave, of `size` lines in all."""
    a_sizes = {stretch.rank: stretch.end - stretch.start for stretch in removed}
    b_sizes = {stretch.rank: stretch.end - stretch.start for stretch in inserted}
    blocks = []
    a_shift = b_shift = 0
    for rank, following in pairwise(sorted({0, size, *a_sizes, *b_sizes})):
        a_shift += a_sizes.get(rank, 0)
        b_shift += b_sizes.get(rank, 0)
        blocks.append(MatchingBlock(rank + a_shift, rank + b_shift, following - rank))
    return blocks


def _joined(blocks: Sequence[MatchingBlock]) -> list[MatchingBlock]:
    """The blocks in order, with those that continue each other as one."""
    joined: list[MatchingBlock] = []
    for block in sorted(blocks):
        if joined and (last := joined[-1]).a + last.size == block.a and last.b + last.size == block.b:
            joined[-1] = MatchingBlock(last.a, last.b, last.size + block.size)
        else:
            joined.append(block)
    return joined


def _rising(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The longest run of pairs, which come in order of their first, that also rises in their second."""
    ends: list[int] = []
    tops: list[int] = []
    before: list[int | None] = []
    for index, (_, second) in enumerate(pairs):
        at = bisect_left(ends, second)
        ends[at : at + 1] = [second]
        tops[at : at + 1] = [index]
        before.append(tops[at - 1] if at else None)
    rising: list[tuple[int, int]] = []
    link = tops[-1] if tops else None
    while link is not None:
        rising.append(pairs[link])
        link = before[link]
    rising.reverse()
    return rising
