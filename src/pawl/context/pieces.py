"""A parsed file in pieces that are ranked for themselves: each function, the rest of each class and of the file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pawl.context.parsing import Parsed, Use
from pawl.context.tokens import NUMBER, Tokens, words_of
from pawl.core.outline import Definition, DefinitionKind

_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD, DefinitionKind.MACRO})
_HOLDERS = frozenset(
    {
        DefinitionKind.CLASS,
        DefinitionKind.INTERFACE,
        DefinitionKind.STRUCT,
        DefinitionKind.ENUM,
        DefinitionKind.IMPLEMENTATION,
    }
)
_MOST_PIECES = 2000
_MOST_PROSE = 1 << 16


@dataclass(slots=True)
class Piece:
    start: int
    """The first line, from 1."""
    stop: int
    names: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Its lines: those between them belong to other pieces."""
    calls: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)


def pieces(parsed: Parsed, lines: int) -> list[Piece]:
    """In the order of the file; the first is what is outside of everything."""
    rest = Piece(1, lines)
    found = [rest]
    around: list[tuple[int, Piece]] = []
    """Pieces that are open, with the depth of the definition that opened them."""
    borders: list[tuple[int, Piece]] = [(1, rest)]
    for definition in parsed.definitions:
        _close(around, borders, rest, definition.start)
        inner = around[-1][1] if around else rest
        inner.names.append(definition.name)
        if not _opens(definition, around) or len(found) >= _MOST_PIECES:
            continue
        piece = Piece(definition.start, definition.end, [definition.qualified])
        found.append(piece)
        around.append((definition.end, piece))
        borders.append((definition.start, piece))
    _close(around, borders, rest, lines + 1)
    _spans(borders, lines)
    _references(parsed, borders)
    return found


def _opens(definition: Definition, around: Sequence[tuple[int, Piece]]) -> bool:
    """Whether it is a piece of its own: a class, or a function that is not within another."""
    if definition.kind in _HOLDERS:
        return definition.end > definition.start
    return definition.kind in _FUNCTIONS and definition.end > definition.start


def _close(around: list[tuple[int, Piece]], borders: list[tuple[int, Piece]], rest: Piece, line: int) -> None:
    """Everything that ends before the line; what is around it goes on there."""
    while around and around[-1][0] < line:
        end, _ = around.pop()
        borders.append((end + 1, around[-1][1] if around else rest))


def _spans(borders: Sequence[tuple[int, Piece]], lines: int) -> None:
    for number, (start, piece) in enumerate(borders):
        stop = borders[number + 1][0] - 1 if number + 1 < len(borders) else lines
        if start <= stop:
            piece.spans.append((start, stop))


def _references(parsed: Parsed, borders: Sequence[tuple[int, Piece]]) -> None:
    starts = [start for start, _ in borders]
    for name, line, use in parsed.references:
        piece = borders[max(0, bisect_right(starts, line) - 1)][1]
        (piece.calls if use is Use.CALL else piece.uses).add(name)


def piece_tokens(found: Sequence[Piece], text: str, tokens: Tokens) -> Iterator[tuple[Piece, str, str]]:
    """Each piece with the tokens of its names and of its lines."""
    lines = text.split("\n")
    for piece in found:
        body = "\n".join("\n".join(lines[start - 1 : stop]) for start, stop in piece.spans)
        yield piece, tokens.of(" ".join(piece.names)), tokens.of(body)


def prose_tokens(text: str, tokens: Tokens) -> str:
    """Each word of a text once: enough to find it by, and small."""
    words = dict.fromkeys(words_of(text[:_MOST_PROSE]))
    found = dict.fromkeys(" ".join(map(tokens.__getitem__, words)).split())
    found.pop(NUMBER, None)
    return " ".join(found)
