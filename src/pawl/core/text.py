"""Lines of bytes and how two texts match. Nothing is ever decoded, so every line end, byte order mark and missing
final newline survives."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from pawl.core.errors import BadEncoding, BinaryFile
from pawl.core.text_search import MatchingBlock, by_anchors, by_distance, gaps, slid

BINARY_WINDOW = 8000
"""How far `is_binary` looks, the same as git."""


class LineChange(NamedTuple):
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


def matching_blocks(
    a: Sequence[bytes], b: Sequence[bytes], matching: Matching = Matching.ANCHORS
) -> list[MatchingBlock]:
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
            blocks = [MatchingBlock(len(a) - x - size, len(b) - y - size, size) for x, y, size in mirrored]
    return slid(one, two, blocks)


def edits(a: Sequence[bytes], b: Sequence[bytes], matching: Matching = Matching.ANCHORS) -> list[LineChange]:
    """What changes, in order: the gaps between the matching blocks."""
    return [LineChange(*gap) for gap in gaps(matching_blocks(a, b, matching), len(a), len(b))]


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
