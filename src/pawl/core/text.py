"""Lines of bytes and how two texts match, and the text of a file as its lines. The search is bounded in work for any
input; bytes are never decoded for it, so every line end, byte order mark and missing final newline survives."""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from pawl.core.errors import BadEncoding, BinaryFile
from pawl.core.lazy_dataclass import dataclass

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


class LineChange(NamedTuple):
    """The lines `a_start:a_end` become the lines `b_start:b_end`."""

    a_start: int
    a_end: int
    b_start: int
    b_end: int

    @property
    def one_sided(self) -> bool:
        """Lines are only removed, or only inserted."""
        return self.a_start == self.a_end or self.b_start == self.b_end


class _Within(NamedTuple):
    """A gap to search, and the lines that each side is held to have."""

    gap: LineChange
    a_lines: set[int]
    b_lines: set[int]


def by_anchors(a: Sequence[int], b: Sequence[int]) -> list[MatchingBlock]:
    """Matches lines that occur once in both first, again and again between those, and the rest by edit distance."""
    blocks: list[MatchingBlock] = []
    steps = STEPS
    waiting = [(LineChange(0, len(a), 0, len(b)), 0)]
    while waiting:
        whole, depth = waiting.pop()
        gap = _trimmed(a, b, whole, blocks)
        if gap.one_sided:
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
    gap = _trimmed(a, b, LineChange(0, len(a), 0, len(b)), blocks)
    _search(a, b, _Within(gap, set(a), set(b)), STEPS, blocks)
    return _joined(blocks)


def _by_distance_up(a: Sequence[int], b: Sequence[int]) -> list[MatchingBlock]:
    """The same, looked for from the bottom."""
    mirrored = reversed(by_distance(a[::-1], b[::-1]))
    return [MatchingBlock(len(a) - x - size, len(b) - y - size, size) for x, y, size in mirrored]


def _exchanged(blocks: Sequence[MatchingBlock]) -> list[MatchingBlock]:
    return [MatchingBlock(b, a, size) for a, b, size in blocks]


def gaps(blocks: Sequence[MatchingBlock], a_size: int, b_size: int) -> Iterator[LineChange]:
    """The stretches that the blocks leave of two texts of these sizes."""
    return _gaps_in(LineChange(0, a_size, 0, b_size), blocks)


def _gaps_in(whole: LineChange, blocks: Sequence[MatchingBlock]) -> Iterator[LineChange]:
    a, b = whole.a_start, whole.b_start
    for block in (*blocks, MatchingBlock(whole.a_end, whole.b_end, 0)):
        if a < block.a or b < block.b:
            yield LineChange(a, block.a, b, block.b)
        a, b = block.a + block.size, block.b + block.size


def _anchors(a: Sequence[int], b: Sequence[int], gap: LineChange) -> list[MatchingBlock]:
    """The longest rising run of pairs of lines that occur once on each side of the gap."""
    a_lines, b_lines = a[gap.a_start : gap.a_end], b[gap.b_start : gap.b_end]
    a_counts, b_counts = Counter(a_lines), Counter(b_lines)
    places = {line: gap.b_start + at for at, line in enumerate(b_lines) if b_counts[line] == 1}
    pairs = [
        (gap.a_start + at, places[line]) for at, line in enumerate(a_lines) if a_counts[line] == 1 and line in places
    ]
    return [MatchingBlock(x, y, 1) for x, y in _rising(pairs)]


def _search(a: Sequence[int], b: Sequence[int], within: _Within, steps: int, blocks: list[MatchingBlock]) -> int:
    """Matches by edit distance (Myers) and returns the steps left.

    Lines that the other side lacks are left out first: they can match nothing, and would only cost steps. After many
    edits it settles for the furthest way found so far, and looks on from its end.
    """
    gap = within.gap
    a_places = [at for at in range(gap.a_start, gap.a_end) if a[at] in within.b_lines]
    b_places = [at for at in range(gap.b_start, gap.b_end) if b[at] in within.a_lines]
    one, two = [a[at] for at in a_places], [b[at] for at in b_places]
    x = y = 0
    while x < len(one) and y < len(two) and steps > 0:
        fronts, steps = _fronts(one, two, (x, y), steps)
        diagonal = max(fronts[-1], key=lambda at: 2 * fronts[-1][at] - at)
        x_end = fronts[-1][diagonal]
        y_end = x_end - diagonal
        for depth in range(len(fronts) - 1, -1, -1):
            begin, came_from = _step(fronts[depth - 1], diagonal) if depth else (x, diagonal)
            blocks.extend(
                MatchingBlock(a_places[at], b_places[at - diagonal], 1) for at in range(begin, fronts[depth][diagonal])
            )
            diagonal = came_from
        x, y = x_end, y_end
    return steps


def _fronts(a: Sequence[int], b: Sequence[int], start: tuple[int, int], steps: int) -> tuple[list[dict[int, int]], int]:
    """For each number of edits the furthest x on each diagonal x - y, up to the end of both; and the steps left."""
    first = start[0] - start[1]
    fronts: list[dict[int, int]] = []
    while len(fronts) < _SEARCH_DEPTH and (not fronts or steps > 0):
        depth, reached = len(fronts), {}
        for diagonal in range(first - depth, first + depth + 1, 2):
            x = begin = _step(fronts[-1], diagonal)[0] if fronts else start[0]
            y = x - diagonal
            steps -= 1
            if x < 0 or x > len(a) or y > len(b):
                continue
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            steps -= x - begin
            reached[diagonal] = x
            if x == len(a) and y == len(b):
                return [*fronts, {diagonal: x}], steps
        fronts.append(reached)
    return fronts, steps


def _step(front: dict[int, int], diagonal: int) -> tuple[int, int]:
    """Where one edit more leads on a diagonal, and the diagonal it comes from: a line is removed or inserted."""
    removed, inserted = front.get(diagonal - 1, -2) + 1, front.get(diagonal + 1, -1)
    return (removed, diagonal - 1) if removed > inserted else (inserted, diagonal + 1)


def _trimmed(a: Sequence[int], b: Sequence[int], gap: LineChange, blocks: list[MatchingBlock]) -> LineChange:
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
    return LineChange(a_start, a_end, b_start, b_end)


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
    return _between(removed, _Slider(b, inserted, removed).run(), sum(block.size for block in blocks))


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


BINARY_WINDOW = 8000
"""How far `is_binary` looks, the same as git."""
CHARACTERS_PER_TOKEN = 4


def tokens_of(text: str) -> int:
    """A rough count, rounded up."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


def shortened(text: str, most: int) -> str:
    """The text, or as much of it as so many characters hold, with a sign that it goes on."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def one_line(text: str, most: int) -> str:
    """The words of the text on one line of at most so many characters."""
    return shortened(" ".join(text.split()), most)


class Matching(StrEnum):
    """Ways to match lines. They agree wherever there is only one reasonable way."""

    ANCHORS = "anchors"
    """Lines that occur once in both texts first, then the fewest edits between them: what people read best."""
    FORWARD = "forward"
    """The fewest edits, looked for from the top."""
    BACKWARD = "backward"
    """The fewest edits, looked for from the bottom."""
    FORWARD_FROM_NEW = "forward from new"
    """The fewest edits that lead back, looked for from the top: of two ways that cost the same it takes the other."""
    BACKWARD_FROM_NEW = "backward from new"
    """The fewest edits that lead back, looked for from the bottom."""


def split_lines(data: bytes) -> list[bytes]:
    """The lines with their ends; only the last one may lack its newline."""
    lines = [line + b"\n" for line in data.split(b"\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:BINARY_WINDOW]


def matching_blocks(
    a: Sequence[bytes], b: Sequence[bytes], matching: Matching = Matching.ANCHORS
) -> list[MatchingBlock]:
    """The lines that stay the same, in order."""
    numbers: dict[bytes, int] = {}
    one, two = ([numbers.setdefault(line, len(numbers)) for line in lines] for lines in (a, b))
    match matching:
        case Matching.ANCHORS:
            blocks = by_anchors(one, two)
        case Matching.FORWARD:
            blocks = by_distance(one, two)
        case Matching.BACKWARD:
            blocks = _by_distance_up(one, two)
        case Matching.FORWARD_FROM_NEW:
            blocks = _exchanged(by_distance(two, one))
        case Matching.BACKWARD_FROM_NEW:
            blocks = _exchanged(_by_distance_up(two, one))
    return slid(one, two, blocks)


def edits(a: Sequence[bytes], b: Sequence[bytes], matching: Matching = Matching.ANCHORS) -> list[LineChange]:
    """The lines that change, in order: the gaps between the matching blocks."""
    return list(gaps(matching_blocks(a, b, matching), len(a), len(b)))


def grouped(changes: Sequence[LineChange], context: int) -> Iterator[list[LineChange]]:
    """Edits whose surrounding `context` lines touch or overlap, together."""
    group: list[LineChange] = []
    for edit in changes:
        if group and edit.a_start - group[-1].a_end > 2 * context:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_BREAK = re.compile(r"\r\n|\r")
# Bytes that no text in an 8-bit encoding has; in UTF-8 only NUL is taken as the sign of a binary file.
_BINARY = re.compile(rb"[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]")
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    lines: tuple[str, ...]
    """Without their endings."""
    endings: tuple[str, ...]
    """One for each line; the last one is empty when the file does not end with a line break."""
    encoding: str = "utf-8"
    mark: bytes = b""
    """The byte order mark."""

    @classmethod
    def decode(cls, data: bytes, path: str) -> Text:
        """UTF-8, UTF-16 with its mark, or else Latin-1; `BinaryFile` when it is none of them."""
        mark, encoding = next((pair for pair in _MARKS if data.startswith(pair[0])), (b"", "utf-8"))
        body = data[len(mark) :]
        try:
            content = body.decode(encoding)
        except UnicodeDecodeError as error:
            if mark or _BINARY.search(body):
                raise _binary(path) from error
            encoding = "latin-1"
            content = body.decode(encoding)
        if "\0" in content:
            raise _binary(path)
        lines, endings = _split(content)
        return cls(lines=lines, endings=endings, encoding=encoding, mark=mark)

    @classmethod
    def new(cls, content: str) -> Text:
        """The text of a file that is not there yet: UTF-8, with the line breaks of the content."""
        lines, endings = _split(content)
        return cls(lines=lines, endings=endings)

    def encode(self, path: str) -> bytes:
        """The bytes of the file; `BadEncoding` when its encoding has no such character."""
        content = "".join(line + ending for line, ending in zip(self.lines, self.endings, strict=True))
        if "\0" in content:
            raise BadEncoding(f"the new text for {path!r} holds a NUL character", advice="write it as an escape")
        try:
            return self.mark + content.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise BadEncoding(
                f"{path!r} is {self.encoding} and cannot hold the character {content[error.start]!r}",
                advice="use characters of that encoding, or an escape sequence",
            ) from error

    @property
    def plain(self) -> str:
        """The content with every line break as a line feed, which is how text is looked for."""
        return "".join(line + ("\n" if ending else "") for line, ending in zip(self.lines, self.endings, strict=True))

    @property
    def line_break(self) -> str:
        """The ending that most lines have."""
        common = Counter(ending for ending in self.endings if ending).most_common(1)
        return common[0][0] if common else "\n"

    @property
    def bare(self) -> bool:
        """Whether the last line has no line break."""
        return bool(self.endings) and self.endings[-1] == ""

    def line_start(self, line: int) -> int:
        """Where a line (from 0) begins in `plain`; the number of lines gives the end of the text."""
        pairs = zip(self.lines[:line], self.endings[:line], strict=True)
        return sum(len(content) + bool(ending) for content, ending in pairs)

    def spliced(self, start: int, stop: int, content: str) -> Text:
        """This text with another content from `start` to `stop`, which are offsets in `plain`.

        No byte outside of that part changes, lines within it that stay keep their endings, new lines end like those
        above them.
        """
        whole, content = self.plain, plain(content)
        top, bottom = _common_ends(whole[start:stop], content)
        start, stop, content = start + top, stop - bottom, content[top : len(content) - bottom]
        first = whole.count("\n", 0, start)
        end = min(whole.count("\n", 0, stop) + 1, len(self.lines))
        # The part is widened to whole lines, so the line break that ends it is always one that stays.
        close = whole.find("\n", stop)
        rest = whole[stop:] if close < 0 else whole[stop : close + 1]
        lines, breaks = _split(whole[self.line_start(first) : start] + content + rest)
        endings = self._endings_for(first, end, lines)
        if lines and end > first and breaks[-1]:
            endings[-1] = self.endings[end - 1]
        bare = self.bare if end < len(self.lines) else bool(lines) and not breaks[-1]
        return replace(
            self,
            lines=(*self.lines[:first], *lines, *self.lines[end:]),
            endings=_filled([*self.endings[:first], *endings, *self.endings[end:]], self.line_break, bare=bare),
        )

    def _endings_for(self, start: int, stop: int, lines: tuple[str, ...]) -> list[str]:
        """For each new line the ending of the line whose place it takes, or nothing where it takes none."""
        endings = [""] * len(lines)
        if len({ending for ending in self.endings if ending}) < 2:
            return endings
        ours, theirs = _comparable(self.lines[start:stop]), _comparable(lines)
        old = self.endings[start:stop]
        for block in matching_blocks(ours, theirs):
            endings[block.b : block.b + block.size] = old[block.a : block.a + block.size]
        for edit in edits(ours, theirs):
            replaced = min(edit.a_end - edit.a_start, edit.b_end - edit.b_start)
            endings[edit.b_start : edit.b_start + replaced] = old[edit.a_start : edit.a_start + replaced]
        return endings


def plain(content: str) -> str:
    """The content with every line break as a line feed."""
    return _BREAK.sub("\n", content)


def changed_lines(before: bytes, after: bytes) -> int:
    """How many lines differ; a line that is replaced counts once."""
    differing = edits(split_lines(before), split_lines(after))
    return sum(max(edit.a_end - edit.a_start, edit.b_end - edit.b_start) for edit in differing)


def _binary(path: str) -> BinaryFile:
    return BinaryFile(f"{path!r} is a binary file", advice="work on the text that it is made from")


def _comparable(lines: tuple[str, ...]) -> list[bytes]:
    return [line.encode("utf-8", "surrogatepass") for line in lines]


def _split(content: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    pairs = [match.groups() for match in _LINE.finditer(content)]
    # The expression also matches the nothing after the last line break.
    if pairs and pairs[-1] == ("", ""):
        pairs.pop()
    return tuple(line for line, _ in pairs), tuple(ending for _, ending in pairs)


def _filled(endings: Sequence[str], usual: str, *, bare: bool) -> tuple[str, ...]:
    """Every line gets an ending: its own, else that of the line above, else the usual one.

    With `bare` the last line is left without.
    """
    result: list[str] = []
    for ending in endings:
        result.append(ending or (result[-1] if result else usual))
    if bare and result:
        result[-1] = ""
    return tuple(result)


def _common_ends(old: str, new: str) -> tuple[int, int]:
    """How many characters two texts share at their start and at their end."""
    top = _common_start(old, new)
    shortest = min(len(old), len(new)) - top
    return top, _common_start(old[::-1][:shortest], new[::-1][:shortest])


def _common_start(old: str, new: str) -> int:
    differing = (place for place, (one, other) in enumerate(zip(old, new, strict=False)) if one != other)
    return next(differing, min(len(old), len(new)))
