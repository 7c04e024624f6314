"""What speaks for a file besides its own words: its neighbours, the code that was found, the commits of the past."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pawl.context.query import Understood, phrase
from pawl.context.ranking.lexical import weights
from pawl.context.ranking.shelf import Scores, Shelf
from pawl.context.sorting import Kind

_MOST_SEEDS = 20
_MOST_PIECES = 25
_MOST_DEFINERS = 4
_LONGEST_RUN = 8


def neighbours(base: Mapping[int, float], shelf: Shelf) -> Scores:
    """What the best files import, and what imports them; a file with many neighbours gives each less."""
    found: Scores = defaultdict(float)
    seeds = sorted(base, key=lambda number: (-base[number], shelf.files[number].path))[:_MOST_SEEDS]
    for number in seeds:
        for targets, share in ((shelf.imported.get(number, ()), 1.0), (shelf.importers.get(number, ()), 0.5)):
            for target in targets:
                if target in shelf.candidates:
                    found[target] += share * base[number] / math.sqrt(len(targets))
    return found


def called(pieces: Mapping[int, float], shelf: Shelf) -> Scores:
    """Where the names are defined that the best pieces use, tests among them: they show what is at work."""
    best = sorted(pieces, key=lambda number: (-pieces[number], number))[:_MOST_PIECES]
    if not best:
        return {}
    top = pieces[best[0]]
    votes: dict[str, float] = defaultdict(float)
    for number, (calls, uses) in shelf.references(best).items():
        for name in {*calls, *uses}:
            votes[name] += (pieces[number] / top) ** 2
    found: Scores = defaultdict(float)
    named = shelf.named(votes)
    for name in sorted(named):
        files = {row.file for row in named[name]}
        files = {number for number in files if number in shelf.candidates and not shelf.files[number].test}
        if 0 < len(files) <= _MOST_DEFINERS:
            for number in files:
                found[number] += math.sqrt(votes[name]) / len(files)
    return found


def messages(understood: Understood, shelf: Shelf) -> tuple[Scores, dict[int, list[int]]]:
    """Files whose text holds a message of the query, with the lines of the pieces; the longer and rarer the better."""
    found: Scores = defaultdict(float)
    lines: dict[int, list[int]] = defaultdict(list)
    for message in understood.messages[:12]:
        for run in phrase(message)[:4]:
            for part in _windows(run[:_LONGEST_RUN]):
                pieces = [piece for piece in shelf.together(part) if piece.file in shelf.candidates]
                files = {piece.file for piece in pieces if shelf.files[piece.file].kind is Kind.CODE}
                if not files:
                    continue
                if len(files) <= 8:
                    for number in files:
                        found[number] = max(found[number], len(part) / _LONGEST_RUN / len(files) ** 0.5)
                    for piece in pieces:
                        lines[piece.file].append(piece.start)
                break
    return found, lines


def _windows(run: Sequence[str]) -> list[list[str]]:
    """The whole run, then ever shorter parts of it."""
    least = min(3, len(run))
    return [
        list(run[start : start + length])
        for length in range(len(run), least - 1, -1)
        for start in range(len(run) - length + 1)
    ]


class Commits:
    """The commits that HEAD reaches, as evidence."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._past = shelf.past

    def habits(self) -> tuple[Scores, Scores]:
        """How often files change, and how lately, both from 0 to 1; a commit of many files counts less."""
        often: Scores = defaultdict(float)
        lately: Scores = {}
        total = len(self._past)
        for place, commit in enumerate(self._past):
            for path in commit.paths:
                number = self._shelf.by_path.get(path)
                if number is not None:
                    often[number] += 1 / math.sqrt(len(commit.paths))
                    lately.setdefault(number, 1 - place / total)
        most = math.log1p(max(often.values(), default=1))
        return {number: math.log1p(value) / most for number, value in often.items()}, lately

    def alike(self, understood: Understood) -> Scores:
        """Files that commits changed whose messages speak of the same."""
        wanted = weights(understood)
        spread: Counter[str] = Counter()
        words = [set(commit.words.split()) & wanted.keys() for commit in self._past]
        for found in words:
            spread.update(found)
        total = len(self._past)
        rarity = {token: math.log(1 + total / (1 + count)) for token, count in spread.items()}
        scored = []
        for commit, found in zip(self._past, words, strict=True):
            if found:
                value = sum(wanted[token] * rarity[token] for token in sorted(found))
                scored.append((value / math.sqrt(8 + commit.words.count(" ")), commit))
        scored.sort(key=lambda pair: -pair[0])
        result: Scores = defaultdict(float)
        for value, commit in scored[:60]:
            numbers = [number for path in commit.paths if (number := self._shelf.by_path.get(path)) is not None]
            numbers = [number for number in numbers if number in self._shelf.candidates]
            for number in numbers:
                result[number] += (value / scored[0][0]) ** 3 / len(numbers)
        return result

    def told(self, understood: Understood) -> Scores:
        """BM25 of the query over the messages of all commits that changed a file, taken as one text about it."""
        wanted = weights(understood)
        counts: dict[int, dict[str, float]] = defaultdict(lambda: defaultdict(float))
        lengths: Scores = defaultdict(float)
        for commit in self._past:
            words = commit.words.split()
            found = wanted.keys() & set(words)
            share = 1 / math.sqrt(len(commit.paths))
            for path in commit.paths:
                number = self._shelf.by_path.get(path)
                if number is not None and number in self._shelf.candidates:
                    lengths[number] += share * len(words)
                    own = counts[number]
                    for token in found:
                        own[token] += share
        spread: Counter[str] = Counter(token for own in counts.values() for token in own)
        average = sum(lengths.values()) / max(1, len(lengths))
        result: Scores = {}
        for number, own in counts.items():
            norm = 0.6 + 0.6 * lengths[number] / average
            result[number] = sum(
                wanted[token] * math.log(1 + len(lengths) / (1 + spread[token])) * value / (value + norm)
                for token, value in sorted(own.items())
            )
        return result

    def together(self, base: Mapping[int, float]) -> Scores:
        """Files that changed in the same commits as the best ones."""
        seeds = sorted(base, key=lambda number: (-base[number], self._shelf.files[number].path))[:8]
        chosen = {self._shelf.files[number].path: base[number] for number in seeds}
        times: Counter[str] = Counter()
        result: Scores = defaultdict(float)
        shared: list[tuple[str, str, float]] = []
        for commit in self._past:
            if len(commit.paths) > 8:
                continue
            for path in commit.paths:
                if path in chosen:
                    times[path] += 1
                    shared.extend((path, other, 1 / len(commit.paths)) for other in commit.paths if other != path)
        for path, other, value in shared:
            number = self._shelf.by_path.get(other)
            if number is not None and number in self._shelf.candidates:
                result[number] += chosen[path] * value / (2 + times[path])
        return result
