"""Candidates in the order of their cost, made only when their turn comes."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable

from reflex_inside.edits import Candidate, Edit

MOST_REMEMBERED = 6000
Portion = tuple[float, Callable[[], list[Candidate]]]


class Frontier:
    """A heap of candidates and of promises to make more; nothing comes out twice."""

    def __init__(self) -> None:
        self.heap: list[tuple[float, int, Candidate | Callable[[], list[Candidate]], float]] = []
        self.serial = itertools.count()
        self.least: dict[tuple[str, tuple[Edit, ...]], float] = {}
        """By what is edited: the cheapest cost so far, or less than any once it came out."""
        self.given: list[Candidate] = []
        """What came out, cheapest first."""

    def promise(self, portions: Iterable[Portion]) -> None:
        for bound, make in portions:
            heapq.heappush(self.heap, (bound, next(self.serial), make, 0.0))

    def add(self, candidates: Iterable[Candidate]) -> None:
        for candidate in candidates:
            if candidate.cost < self.least.get(candidate.key, math.inf):
                self.least[candidate.key] = candidate.cost
                heapq.heappush(self.heap, (candidate.cost, next(self.serial), candidate, 0.0))

    def retry(self, candidate: Candidate, penalty: float, limit: float) -> None:
        """Puts a candidate back that deserves a longer limit."""
        heapq.heappush(self.heap, (candidate.cost + penalty, next(self.serial), candidate, limit))

    def next(self) -> tuple[Candidate, float] | None:
        """The cheapest candidate and the limit it asks for (0 for the usual one)."""
        while self.heap:
            _, _, item, limit = heapq.heappop(self.heap)
            if isinstance(item, Candidate):
                if not limit and item.cost > self.least[item.key]:
                    continue
                self.least[item.key] = -math.inf
                if not limit and len(self.given) < MOST_REMEMBERED:
                    self.given.append(item)
                return item, limit
            self.add(item())
        return None

    @property
    def bound(self) -> float:
        return self.heap[0][0] if self.heap else float("inf")
