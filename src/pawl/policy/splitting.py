"""Separating the reasoning block of an answer from what the user sees, while the answer is still arriving.

A block opens with its tag at the start of a line outside of fenced code, and ends with its closing tag anywhere.
However an answer is cut into deltas, the pieces add up to the same two texts.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

OPEN = "<reasoning>"
CLOSE = "</reasoning>"
_INDENT = 3
"""Spaces that may stand before a tag or a fence, as in Markdown."""
_FENCES = ("```", "~~~")
_LONGEST_FENCE = 200
"""A longer line opens no code, so that little is held back."""


class Part(StrEnum):
    REASONING = "reasoning"
    VISIBLE = "visible"


@dataclass(frozen=True, slots=True)
class Piece:
    part: Part
    text: str
    block: int = 0
    """The number of the block, from 1; 0 for what is visible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """An answer in its two parts."""

    blocks: tuple[str, ...]
    """The inside of each block."""
    visible: str
    closed: bool
    """False when the answer ended inside a block."""


class ReasoningSplitter:
    """Takes an answer delta by delta and says of each piece which part it belongs to."""

    def __init__(self) -> None:
        self._held = ""
        """What cannot be judged before more arrives."""
        self._at_line_start = True
        self._fence = ""
        """What opened the fenced code that the visible text is in."""
        self._inside = False
        self._skipping = True
        """White space before the first visible word, and after a block, is dropped."""
        self.blocks = 0

    @property
    def inside(self) -> bool:
        return self._inside

    def feed(self, delta: str) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        # Line by line, so that the time does not grow with the square of the length.
        for line in delta.splitlines(keepends=True):
            self._held += line
            self._drain(pieces, more=True)
        return _merged(pieces)

    def finish(self) -> tuple[Piece, ...]:
        """What was held back, once nothing more arrives."""
        pieces: list[Piece] = []
        self._drain(pieces, more=False)
        return _merged(pieces)

    def _drain(self, pieces: list[Piece], *, more: bool) -> None:
        while self._held:
            before = len(self._held)
            piece = self._reasoning(more=more) if self._inside else self._visible(more=more)
            if piece is not None:
                pieces.append(piece)
            elif len(self._held) == before:
                return

    def _reasoning(self, *, more: bool) -> Piece | None:
        """The next piece of the block; the closing tag itself gives none."""
        held = self._held
        place = held.lower().find(CLOSE)
        if place == 0:
            self._held = held[len(CLOSE) :]
            self._inside, self._skipping, self._at_line_start = False, True, True
            return None
        if place > 0:
            taken = place
        else:
            taken = len(held) - (_overlap(held, CLOSE) if more else 0)
        return self._take(Part.REASONING, taken)

    def _visible(self, *, more: bool) -> Piece | None:
        if self._skipping:
            self._skip()
            if not self._held:
                return None
        if self._at_line_start:
            return self._line_start(more=more)
        end = self._held.find("\n") + 1
        if end:
            self._at_line_start = True
        return self._take(Part.VISIBLE, end or len(self._held))

    def _skip(self) -> None:
        rest = self._held.lstrip()
        if "\n" in self._held[: len(self._held) - len(rest)]:
            self._at_line_start = True
        self._held = rest
        self._skipping = not rest

    def _line_start(self, *, more: bool) -> Piece | None:
        """Decides what the line opens, once enough of it is there."""
        held = self._held
        word = held.lstrip(" ")
        indent = len(held) - len(word)
        if indent <= _INDENT:
            if not self._fence and word[: len(OPEN)].lower() == OPEN:
                self._held = word[len(OPEN) :]
                self._inside = True
                self.blocks += 1
                return None
            if more and self._undecided(word):
                return None
            self._note_fence(word)
        self._at_line_start = False
        return self._take(Part.VISIBLE, indent) if indent else self._visible(more=more)

    def _undecided(self, word: str) -> bool:
        """Whether more could make a tag or a fence of the line; a fence is known by all of its line."""
        if any(fence.startswith(word[: len(fence)]) for fence in _FENCES):
            return "\n" not in word and len(word) <= _LONGEST_FENCE
        return not self._fence and OPEN.startswith(word.lower())

    def _note_fence(self, word: str) -> None:
        line = word.partition("\n")[0]
        mark = next((fence[0] for fence in _FENCES if line.startswith(fence)), "")
        if not mark or len(line) > _LONGEST_FENCE:
            return
        run = line[: len(line) - len(line.lstrip(mark))]
        if not self._fence and "`" not in line[len(run) :]:
            self._fence = run
        elif line.rstrip() == run and run.startswith(self._fence):
            self._fence = ""

    def _take(self, part: Part, count: int) -> Piece | None:
        text, self._held = self._held[:count], self._held[count:]
        return Piece(part, text, self.blocks if part is Part.REASONING else 0) if text else None


def split(text: str) -> Split:
    """A whole answer in its two parts."""
    splitter = ReasoningSplitter()
    pieces = _merged([*splitter.feed(text), *splitter.finish()])
    blocks = {piece.block: piece.text for piece in pieces}
    return Split(
        blocks=tuple(blocks.get(number, "") for number in range(1, splitter.blocks + 1)),
        visible="".join(piece.text for piece in pieces if piece.part is Part.VISIBLE).rstrip(),
        closed=not splitter.inside,
    )


def _merged(pieces: Iterable[Piece]) -> tuple[Piece, ...]:
    """Neighbours of one part and block as one piece."""
    groups = itertools.groupby(pieces, key=lambda piece: (piece.part, piece.block))
    return tuple(Piece(part, "".join(piece.text for piece in group), block) for (part, block), group in groups)


def _overlap(text: str, tag: str) -> int:
    """How many characters at the end of the text may be the beginning of the tag."""
    tail = text[-len(tag) + 1 :].lower()
    return next((len(tail) - place for place in range(len(tail)) if tag.startswith(tail[place:])), 0)
