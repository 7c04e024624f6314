"""The search: candidates by cost, judged in parallel, until a patch and its rivals are known or time is up."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from reflex_inside.edits import Candidate, Frontier, Reach
from reflex_inside.judge import Judge, Verdict
from reflex_inside.workers import Pool, Result

RIVAL_COST = 2.2
"""How much dearer than the first plausible patch a rival may be."""
RIVAL_CPU = 2.0
ENOUGH = 60
LONGEST_LIMIT = 8.0
RETRY_LIMITS = (0.3, 1.5, LONGEST_LIMIT)
PROGRESS_SECONDS = 0.5
WAIT_SECONDS = 0.5


@dataclass(slots=True)
class Search:
    """State of one search over a frontier."""

    frontier: Frontier
    pool: Pool
    deadline: float
    limit: float
    failing: int
    stuck: bool = False
    """The first test hung before any change too, so that a candidate which hangs there has told nothing new."""
    report: Callable[[Search], None] = lambda search: None
    arrived: Callable[[float], Iterable[Candidate]] = lambda seconds: ()
    """Candidates that come from elsewhere, waited for as long as this."""
    more: Callable[[], bool] = lambda: False
    """Whether more can still come from elsewhere."""
    plausible: list[Candidate] = field(default_factory=list)
    stop_cpu: float = float("inf")
    stop_cost: float = float("inf")

    def run(self) -> None:
        while time.monotonic() < self.deadline and not self._enough():
            self._judge_all()
            if not self.more() or self.frontier.bound > self.stop_cost:
                break
            self.frontier.add(self.arrived(WAIT_SECONDS))
        self.report(self)

    def _judge_all(self) -> None:
        reported = 0.0
        for result in self.pool.judged(self._take, self.deadline):
            self._note(result)
            now = time.monotonic()
            if now - reported > PROGRESS_SECONDS:
                reported = now
                self.report(self)
            if self._enough():
                break

    def _enough(self) -> bool:
        return self.pool.cpu > self.stop_cpu or len(self.plausible) >= ENOUGH

    def _take(self) -> tuple[Candidate, float] | None:
        self.frontier.add(self.arrived(0.0))
        if self.frontier.bound > self.stop_cost:
            return None
        return self.frontier.next()

    def _note(self, result: Result) -> None:
        candidate, judgement = result.candidate, result.judgement
        if judgement.verdict is Verdict.PLAUSIBLE:
            self.plausible.append(candidate)
            if len(self.plausible) == 1:
                self.stop_cpu = self.pool.cpu + RIVAL_CPU * self.pool.count
                self.stop_cost = candidate.cost + RIVAL_COST
        elif judgement.verdict is Verdict.SLOW:
            self._retry(result)

    def _retry(self, result: Result) -> None:
        """Slow right programs exist; one that has fixed nearly everything is looked at again at once."""
        used = result.limit or self.limit
        if used >= LONGEST_LIMIT or self.plausible:
            return
        nearly = result.judgement.fixed >= max(1, self.failing - 1)
        steps = sum(used >= step for step in RETRY_LIMITS)
        some = 1.0 if result.judgement.fixed else 6.0 if self.stuck else 3.0
        penalty = (0.3 if nearly and result.judgement.fixed else some) + 1.0 * steps
        limit = next((step for step in RETRY_LIMITS if step > used * 2), LONGEST_LIMIT)
        self.frontier.retry(result.candidate, penalty, limit)


MOST_FIRST = 8
FIRST_TRIED = 4000
SECOND_TRIED = 2500


def partial_fixes(judge: Judge, candidates: list[Candidate], seconds: float) -> list[tuple[int, Candidate]]:
    """The candidates that fix most of the failing tests while keeping the passing ones, best first."""
    deadline = time.monotonic() + seconds
    found: list[tuple[int, Candidate]] = []
    for candidate in candidates[:FIRST_TRIED]:
        if time.monotonic() > deadline:
            break
        fixed = judge.count_fixed(candidate)
        if fixed:
            found.append((fixed, candidate))
    found.sort(key=lambda pair: (-pair[0], pair[1].cost))
    return found[: MOST_FIRST * 3]


def pairs(firsts: list[tuple[int, Candidate]], candidates: list[Candidate]) -> Iterator[Candidate]:
    """Each promising first edit with every cheap second one that does not overlap it."""
    lines: dict[tuple[str, int], int] = {}
    for _, first in firsts:
        place = (first.path, first.line)
        lines[place] = lines.get(place, 0) + 1
        # Many first edits of one line are variants of one idea.
        if lines[place] > 3 or first.reach is not Reach.FUNCTION:
            continue
        for second in itertools.islice(candidates, SECOND_TRIED):
            if second.function == first.function and apart(first, second):
                yield replace(
                    first,
                    cost=first.cost + second.cost,
                    template=f"{first.template} and {second.template}",
                    edits=tuple(sorted(first.edits + second.edits)),
                )


def apart(first: Candidate, second: Candidate) -> bool:
    if second.reach is not Reach.FUNCTION:
        return False
    return all(one.end < other.start or other.end < one.start for one in first.edits for other in second.edits)
