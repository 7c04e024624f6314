"""How well the words of a query fit a file: BM25 over its pieces, and over the file as a whole."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from pawl.context.query import Understood, Zone
from pawl.context.ranking.shelf import Scores, Shelf

ZONES = {Zone.TITLE: 2.0, Zone.PROSE: 1.0, Zone.CODE: 0.6, Zone.TRACE: 0.4}
_MOST_TERMS = 50
_MOST_SPREAD = 0.25
"""A token in more of the pieces than this tells little, and takes long to count."""
_SATURATION = 1.2
_FILE_LENGTH = 0.4
_PIECE_LENGTH = 0.5


@dataclass(frozen=True, slots=True)
class Lexical:
    files: Scores
    titles: Scores
    """With the words of the title alone."""
    paths: Scores
    """By the words of the path alone."""
    pieces: Mapping[int, float]
    """By the number of the piece; of all files, tests included."""
    best: Scores
    """The best piece of each file, with something for the next best."""
    title_best: Scores
    """The same with the words of the title alone."""
    telling: Mapping[int, tuple[str, ...]]
    """The tokens that speak most for a file."""


def weights(understood: Understood) -> dict[str, float]:
    """What each token of the query counts."""
    found: dict[str, float] = defaultdict(float)
    for zone, counts in understood.words.items():
        for token, count in counts.items():
            found[token] += ZONES[zone] * math.sqrt(min(count, 4))
    return found


def lexical(understood: Understood, shelf: Shelf) -> Lexical:
    wanted = weights(understood)
    total = max(1, len(shelf.piece_files))
    spread = {token: shelf.spread(token) for token in wanted}
    rarity = {token: math.log(1 + total / (1 + count)) for token, count in spread.items() if count}
    telling = [token for token in rarity if spread[token] <= _MOST_SPREAD * total] or list(rarity)
    chosen = sorted(telling, key=lambda token: (-wanted[token] * rarity[token], token))[:_MOST_TERMS]
    return _Scoring(shelf, understood, wanted, chosen).scores()


class _Scoring:
    def __init__(self, shelf: Shelf, understood: Understood, wanted: Mapping[str, float], chosen: list[str]) -> None:
        self._shelf = shelf
        self._wanted = wanted
        self._chosen = chosen
        self._title = understood.words[Zone.TITLE]
        self._files = sum(1 for number in shelf.candidates) or 1
        lengths = [shelf.lengths.get(number, 1) for number in shelf.candidates] or [1]
        self._file_average = sum(lengths) / len(lengths)
        lengths = list(shelf.piece_lengths.values()) or [1]
        self._piece_average = sum(lengths) / len(lengths)
        self._title_pieces: dict[int, float] = defaultdict(float)
        self._parts: dict[int, dict[str, float]] = defaultdict(dict)

    def scores(self) -> Lexical:
        files: Scores = defaultdict(float)
        titles: Scores = defaultdict(float)
        paths: Scores = defaultdict(float)
        pieces: dict[int, float] = defaultdict(float)
        for token in self._chosen:
            self._count(token, files, titles, paths, pieces)
        telling = {
            number: tuple(sorted(found, key=lambda token: (-found[token], token))[:4])
            for number, found in self._parts.items()
        }
        return Lexical(files, titles, paths, pieces, self._best(pieces), self._best(self._title_pieces), telling)

    def _count(self, token: str, files: Scores, titles: Scores, paths: Scores, pieces: dict[int, float]) -> None:
        shelf, weight = self._shelf, self._wanted[token]
        piece_files, piece_lengths = shelf.piece_files, shelf.piece_lengths
        postings = shelf.postings(token)
        in_files: dict[int, float] = defaultdict(float)
        in_paths: set[int] = set()
        in_title, title_pieces = token in self._title, self._title_pieces
        worth = weight * math.log(1 + len(piece_files) / (1 + len(postings)))
        fixed, growing = _SATURATION * (1 - _PIECE_LENGTH), _SATURATION * _PIECE_LENGTH / self._piece_average
        for piece, value, in_path in postings:
            file = piece_files[piece]
            in_files[file] += value
            part = worth * value / (value + fixed + growing * piece_lengths[piece])
            pieces[piece] += part
            if in_title:
                title_pieces[piece] += part
            if in_path:
                in_paths.add(file)
        candidates = [number for number in in_files if number in shelf.candidates]
        rarity = math.log(1 + self._files / (1 + len(candidates)))
        for number in candidates:
            value = in_files[number]
            length = shelf.lengths.get(number, 1) / self._file_average
            norm = _SATURATION * (1 - _FILE_LENGTH + _FILE_LENGTH * length)
            part = weight * rarity * value / (value + norm)
            files[number] += part
            self._parts[number][token] = part
            if token in self._title:
                titles[number] += rarity * value / (value + norm)
            if number in in_paths:
                paths[number] += weight * rarity

    def _best(self, pieces: Mapping[int, float]) -> Scores:
        ranked: dict[int, list[float]] = defaultdict(list)
        for number, value in pieces.items():
            file = self._shelf.piece_files[number]
            if file in self._shelf.candidates:
                ranked[file].append(value)
        best: Scores = {}
        for file, values in ranked.items():
            values.sort(reverse=True)
            best[file] = values[0] + sum(value * 0.3**place for place, value in enumerate(values[1:3], 1))
        return best
