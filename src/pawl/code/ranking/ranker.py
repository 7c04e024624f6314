"""From signals to an answer: files in order, each with its reasons and the definitions that may change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from pawl.code.query import QueryTerms, spellings, understand
from pawl.code.ranking.lexical import share, weights
from pawl.code.ranking.shelf import IndexReader, PieceLines
from pawl.code.ranking.signals import ABOUT_FILES, Signal, Signals, signals
from pawl.core.code import Definition, DefinitionKind, Hit, Query

MOST_SYMBOLS = 5
_NAMED = 0.6
_QUALIFIED = 0.5
_SPOKEN_OF = 1.0
_DETAIL = 0.3
_DETAILS = frozenset({DefinitionKind.FIELD, DefinitionKind.VARIABLE})
_LEAST = 0.15


def likeliest(
    definitions: Sequence[Definition],
    pieces: Mapping[PieceLines, float],
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


WEIGHTS: Mapping[Signal, float] = {
    Signal.PIECE: 1.6,
    Signal.PIECE_PLACE: 1.1,
    Signal.FILE: 0.7,
    Signal.COVER: 0.8,
    Signal.RARE: 0.45,
    Signal.PATH: 0.6,
    Signal.STEM: 0.6,
    Signal.DEFINITION: 0.9,
    Signal.DOTTED: 0.3,
    Signal.MENTION: 2.0,
    Signal.FRAME: 1.6,
    Signal.MESSAGE: 0.8,
    Signal.NEIGHBOUR: 0.4,
    Signal.CALLED: 0.5,
    Signal.FOLDER: 0.8,
    Signal.TESTED: 0.7,
    Signal.LATELY: 0.15,
    Signal.ALIKE: 0.4,
    Signal.TOGETHER: 0.3,
    Signal.SUSPICION: 4.0,
    Signal.PROSE: -2.0,
    Signal.TEST: -1.5,
    Signal.ASIDE: -1.4,
}


_MOST_REASONS = 4
_LEAST_SHARE = 0.04
"""Of a file's score, for a reason to be worth telling."""

_LEAST_NAMED = 0.2
_LEAST_COVERED = 0.35
_MOST_COVERING = 10
"""Where nothing is named, one of so many first files, or a commit, must have this share of the text: what real issues
are about has twice as much, and a text about something else has a word or two of it by chance."""

_TOLD = {
    Signal.MENTION: "its path is named",
    Signal.FRAME: "it is in the traceback",
    Signal.MESSAGE: "it holds the message",
    Signal.PATH: "its path has words of the text",
    Signal.STEM: "its path has words of the text",
    Signal.NEIGHBOUR: "files that fit import it",
    Signal.CALLED: "code that fits uses what it defines",
    Signal.FOLDER: "other files of its folder fit",
    Signal.TESTED: "tests that fit are about it",
    Signal.LATELY: "it changed lately",
    Signal.ALIKE: "commits with similar messages changed it",
    Signal.TOGETHER: "it changes together with files that fit",
    Signal.SUSPICION: "failing tests run through it",
}
_BY_NAME = (Signal.DEFINITION, Signal.DOTTED)
_NAMING = (*_BY_NAME, Signal.MENTION, Signal.FRAME, Signal.MESSAGE, Signal.STEM, Signal.SUSPICION)
_BY_WORDS = frozenset({Signal.PIECE, Signal.PIECE_PLACE, Signal.FILE, Signal.COVER})


def rank(query: Query, shelf: IndexReader, top: int) -> list[Hit]:
    """The same index and query give the same answer, ties by path."""
    understood = understand(query.text)
    found = signals(understood, query.suspicions, shelf)
    total = found.joined(WEIGHTS)
    scored = [number for number in total if number in shelf.candidates and _is_found(number, found)]
    scored.sort(key=lambda number: (-total[number], shelf.files[number].path))
    if not _fits(understood, found, scored[:_MOST_COVERING], shelf):
        return []
    spelled = spellings(query.text)
    least = min((total[number] for number in scored), default=0.0)
    pieces = _pieces(scored[:top], found, shelf)
    return [
        Hit(
            path=shelf.files[number].path,
            # Moved above 0, whatever speaks against a file.
            score=round(total[number] - min(0.0, least) + 0.0001, 4),
            reasons=_reasons(number, found, spelled),
            symbols=likeliest(
                shelf.definitions(number), pieces[number], _names(number, found), found.lines.get(number, ())
            ),
        )
        for number in scored[:top]
    ]


def _is_found(number: int, found: Signals) -> bool:
    """Whether the query itself speaks for the file, and not only its habits."""
    return any(scores.get(number) for signal, scores in found.values.items() if signal not in ABOUT_FILES)


def _fits(understood: QueryTerms, found: Signals, first: Sequence[int], shelf: IndexReader) -> bool:
    """Whether the text is about this workspace at all: it names something there, or one file has a good part of it."""
    values = [found.values[signal] for signal in _NAMING]
    files = {number for scores in values for number in scores}
    if any(sum(scores.get(number, 0.0) for scores in values) >= _LEAST_NAMED for number in files):
        return True
    wanted = weights(understood)
    words = found.lexical
    if any(share(words.everywhere.union(words.parts.get(number, ())), wanted) >= _LEAST_COVERED for number in first):
        return True
    return any(share(wanted.keys() & commit.words.split(), wanted) >= _LEAST_COVERED for commit in shelf.past)


def _pieces(numbers: list[int], found: Signals, shelf: IndexReader) -> dict[int, dict[PieceLines, float]]:
    wanted: dict[int, dict[PieceLines, float]] = {number: {} for number in numbers}
    for piece in shelf.pieces_of(numbers):
        wanted[piece.file][piece] = found.lexical.pieces.get(piece.id, 0.0)
    return wanted


def _names(number: int, found: Signals) -> Mapping[str, float]:
    return found.naming.words.get(number, {})


def _reasons(number: int, found: Signals, spelled: Mapping[str, str]) -> tuple[str, ...]:
    parts = {signal: weight * found.values[signal].get(number, 0.0) for signal, weight in WEIGHTS.items()}
    whole = sum(part for part in parts.values() if part > 0) or 1.0
    reasons: dict[str, float] = {}
    for signal, part in parts.items():
        text = _reason(signal, number, found, spelled)
        reasons[text] = reasons.get(text, 0.0) + part
    told = sorted(
        (text for text in reasons if text and reasons[text] / whole > _LEAST_SHARE), key=lambda text: -reasons[text]
    )
    return tuple(told[:_MOST_REASONS])


def _reason(signal: Signal, number: int, found: Signals, spelled: Mapping[str, str]) -> str:
    if signal in _BY_NAME:
        names = _names(number, found)
        shown = sorted(names, key=lambda name: (-names[name], name))[:3]
        return f"it defines {', '.join(shown)}" if shown else ""
    if signal in _BY_WORDS:
        words = dict.fromkeys(spelled.get(token, token) for token in found.lexical.telling(number))
        return f"it is about {', '.join(words)}" if words else ""
    if signal is Signal.RARE:
        words = dict.fromkeys(spelled.get(token, token) for token in found.rare_words.get(number, ())[:2])
        return f"hardly any other file has {' or '.join(words)}" if words else ""
    return _TOLD.get(signal, "")
