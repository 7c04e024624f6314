"""What the commits that HEAD reaches say of a file: when it changed, with what, and what was said then."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping

from pawl.context.query import Understood
from pawl.context.ranking.lexical import weights
from pawl.context.ranking.shelf import Scores, Shelf

_MOST_ALIKE = 60
_MOST_SEEDS = 8
_MOST_TOGETHER = 8
"""A commit of more files says little about what belongs together."""


class Commits:
    """The commits that HEAD reaches, as evidence."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._past = shelf.past

    def lately(self) -> Scores:
        """From 1 for what the newest commit changed to 0 for what none did."""
        found: Scores = {}
        for place, commit in enumerate(self._past):
            for path in commit.paths:
                number = self._shelf.by_path.get(path)
                if number is not None:
                    found.setdefault(number, 1 - place / len(self._past))
        return found

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
        for value, commit in scored[:_MOST_ALIKE]:
            numbers = [number for path in commit.paths if (number := self._shelf.by_path.get(path)) is not None]
            numbers = [number for number in numbers if number in self._shelf.candidates]
            for number in numbers:
                result[number] += (value / scored[0][0]) ** 3 / len(numbers)
        return result

    def together(self, base: Mapping[int, float]) -> Scores:
        """Files that changed in the same commits as the best ones."""
        seeds = sorted(base, key=lambda number: (-base[number], self._shelf.files[number].path))[:_MOST_SEEDS]
        chosen = {self._shelf.files[number].path: base[number] for number in seeds}
        times: Counter[str] = Counter()
        result: Scores = defaultdict(float)
        shared: list[tuple[str, str, float]] = []
        for commit in self._past:
            if len(commit.paths) > _MOST_TOGETHER:
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
