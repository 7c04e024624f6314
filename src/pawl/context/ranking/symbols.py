"""Which definitions of a file are likeliest to change: those named, whose lines are spoken of, whose words fit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pawl.context.ranking.shelf import PieceRow
from pawl.core.outline import Definition, DefinitionKind

MOST_SYMBOLS = 5
_NAMED = 0.6
_QUALIFIED = 0.5
_SPOKEN_OF = 1.0
_DETAIL = 0.3
_DETAILS = frozenset({DefinitionKind.FIELD, DefinitionKind.VARIABLE})
_LEAST = 0.15


def likeliest(
    definitions: Sequence[Definition],
    pieces: Mapping[PieceRow, float],
    names: Mapping[str, float],
    lines: Sequence[int],
) -> tuple[Definition, ...]:
    """The best first. `pieces` are those of the file with how well their words fit, `names` what the query names."""
    by_lines = {(piece.start, piece.stop): value for piece, value in pieces.items()}
    most = max(by_lines.values(), default=0.0) or 1.0
    last = {name.rpartition(".")[2]: name for name in names}
    heaviest = max(names.values(), default=0.0) or 1.0
    scores: dict[int, float] = defaultdict(float)
    for place, one in enumerate(definitions):
        scores[place] += by_lines.get((one.start, one.end), 0.0) / most
        if one.name in last:
            said = last[one.name]
            whole = "." in said and one.qualified.endswith(".".join(said.split(".")[-2:]))
            detail = _DETAIL if one.kind in _DETAILS else 1.0
            scores[place] += detail * (_NAMED * names[said] / heaviest + (_QUALIFIED if whole else 0.0))
    for line in lines:
        around = [place for place, one in enumerate(definitions) if one.start <= line <= one.end]
        around = [place for place in around if definitions[place].kind not in _DETAILS] or around
        if around:
            scores[max(around, key=lambda place: (definitions[place].depth, place))] += _SPOKEN_OF
    chosen = sorted((place for place in scores if scores[place] > _LEAST), key=lambda place: (-scores[place], place))
    return tuple(definitions[place] for place in chosen[:MOST_SYMBOLS])
