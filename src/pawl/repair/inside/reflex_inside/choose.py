"""The end of a search: what keeps the whole suite, how the patches differ, and which one is meant."""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from reflex_inside.amplify import Behaviour, Comparison, compare
from reflex_inside.definitions import Definitions
from reflex_inside.edits import Candidate, Reach
from reflex_inside.judge import install
from reflex_inside.limits import forked
from reflex_inside.program import Program
from reflex_inside.search import Search
from reflex_inside.suite import Baseline, Suite

if TYPE_CHECKING:
    from reflex_inside.engine import Engine


CLEAR_MARGIN = 1.5
EXAMPLE_COST = 6.0
TROUBLE_COST = 3.0
KEPT_BONUS = 0.5


@dataclass(slots=True)
class Group:
    """Candidates that did the same on every input."""

    candidates: list[Candidate]
    behaviour: Behaviour
    failed_examples: int
    score: float = 0.0


@dataclass(slots=True)
class Ranking:
    groups: list[Group] = field(default_factory=list)
    agreement: str = "sole"
    reason: str = ""
    margin: float = 0.0

    def ordered(self) -> list[tuple[int, Candidate]]:
        """Candidates with the number of their group: the best of each group first, then the rest."""
        heads = [(number, group.candidates[0]) for number, group in enumerate(self.groups)]
        tails = [(number, each) for number, group in enumerate(self.groups) for each in group.candidates[1:]]
        return heads[:1] + [(number, each) for number, each in tails if number == 0][:2] + heads[1:] + tails[2:]


def rank(candidates: list[Candidate], comparison: Comparison | None) -> Ranking:
    if comparison is None or len(comparison.behaviours) != len(candidates) + 1:
        return Ranking([Group([each], (), 0, each.cost) for each in candidates], *_unknown(candidates))
    groups = grouped(candidates, comparison)
    original = comparison.behaviours[-1]
    for group in groups:
        group.score = scored(group, groups, original)
    groups.sort(key=lambda group: group.score)
    if len(candidates) == 1:
        return Ranking(groups, "sole", "no other patch passes the tests", math.inf)
    if len(groups) == 1:
        return Ranking(groups, "alike", f"{len(candidates)} patches behave alike", math.inf)
    return decided(groups)


def _unknown(candidates: list[Candidate]) -> tuple[str, str, float]:
    if len(candidates) == 1:
        return "sole", "no other patch passes the tests", math.inf
    return "disputed", "the patches could not be compared", 0.0


def grouped(candidates: list[Candidate], comparison: Comparison) -> list[Group]:
    groups: list[Group] = []
    pairs = zip(candidates, comparison.behaviours, comparison.failed_examples, strict=False)
    for candidate, behaviour, failed in sorted(pairs, key=lambda pair: pair[0].cost):
        own = next(
            (group for group in groups if alike(group.behaviour, behaviour) and group.failed_examples == failed), None
        )
        if own is None:
            groups.append(Group([candidate], behaviour, failed))
        else:
            own.candidates.append(candidate)
    return groups


def alike(first: Behaviour, second: Behaviour) -> bool:
    """Equal wherever both were looked at."""
    return all(one == other or one is None or other is None for one, other in zip(first, second, strict=True))


def scored(group: Group, groups: list[Group], original: Behaviour) -> float:
    """The cost of the group: its cheapest members, its troubles, and how far it leaves the old behaviour."""
    cheapest: float = min(candidate.cost for candidate in group.candidates)
    # Variants of one template are one opinion.
    opinions: dict[str, float] = {}
    for candidate in group.candidates:
        opinions[candidate.template] = min(candidate.cost, opinions.get(candidate.template, math.inf))
    votes = math.log(sum(math.exp(cheapest - cost) for cost in opinions.values()))
    fewest = min(each.failed_examples for each in groups)
    looked = [(own, old) for own, old in zip(group.behaviour, original, strict=True) if own is not None]
    trouble = sum(troubled(own) and not troubled(old) for own, old in looked) / max(1, len(looked))
    kept = sum(own == old for own, old in looked) / max(1, len(looked))
    examples = EXAMPLE_COST * (group.failed_examples - fewest)
    return float(cheapest - votes + examples + TROUBLE_COST * trouble - KEPT_BONUS * kept)


def troubled(ending: object) -> bool:
    return ending == "time" or (isinstance(ending, tuple) and ending[0] == "raised")


def decided(groups: list[Group]) -> Ranking:
    first, second = groups[0], groups[1]
    margin = second.score - first.score
    if all(group.failed_examples > first.failed_examples for group in groups[1:]):
        return Ranking(groups, "decided", "only this one meets the documented examples", margin)
    if margin >= CLEAR_MARGIN:
        return Ranking(groups, "decided", f"simpler than {len(groups) - 1} others that behave differently", margin)
    return Ranking(groups, "disputed", f"{len(groups)} patches pass the tests and behave differently", margin)


MOST_COMPARED = 30
MOST_OFFERED = 8
MOST_WHOLE = 12
LEAST_WHOLE = 2
WHOLE_SHARE = 0.08
"""Of the time: for running the whole suite with each of the best candidates, beyond the first few."""


@dataclass(slots=True)
class Choice:
    engine: Engine
    suite: Suite
    program: Program
    baseline: Baseline
    definitions: Definitions
    verified: set[Candidate] = field(default_factory=set)

    def finish(self, search: Search) -> None:
        """Ends the request with what the search has found."""
        engine, suite, program, baseline = self.engine, self.suite, self.program, self.baseline
        values: dict[str, Any] = {"tried": search.pool.tried, "cpu": round(search.pool.cpu, 3)}
        values["tests"] = [suite.cases[index].name for index in baseline.failing]
        if not search.plausible:
            engine.finish("out of time" if engine.left < engine.request.seconds * 0.1 else "no patch", **values)
            return
        candidates = sorted(search.plausible, key=lambda candidate: candidate.cost)[:MOST_COMPARED]
        candidates = self._mending_most(self._kept_whole(candidates))
        if not candidates:
            engine.finish("no patch", **values)
            return
        engine.wire.send("stage", name="compare")
        tests = baseline.failing[:10] + baseline.passing[:30]
        seconds = max(1.0, min(4.0, engine.request.seconds * 0.08))
        compared = forked(
            lambda: compare(program, suite, candidates, tests, seconds, engine.request.seed), seconds * 8 + 20
        )
        ranking = rank(candidates, compared if isinstance(compared, Comparison) else None)
        ordered = ranking.ordered()[:MOST_OFFERED]
        patches = [{**self._patch(candidate), "group": group} for group, candidate in ordered]
        margin = round(min(ranking.margin, 99.0), 3)
        engine.finish(
            "repaired", patches=patches, agreement=ranking.agreement, reason=ranking.reason, margin=margin, **values
        )

    def _kept_whole(self, candidates: list[Candidate]) -> list[Candidate]:
        """Without the candidates that break a passing test which no trace connected with them."""
        engine, baseline = self.engine, self.baseline
        order = sorted(baseline.failing + baseline.passing)
        seconds = max(5.0, 4 * baseline.seconds) + 5
        kept: list[Candidate] = []
        until = time.monotonic() + WHOLE_SHARE * engine.request.seconds
        for candidate in candidates:
            if len(kept) >= LEAST_WHOLE and time.monotonic() > until:
                kept.append(candidate)
                continue
            if engine.left > 0 and len(kept) < MOST_WHOLE and candidate.reach is Reach.MODULE:
                if not engine.zygotes[0].passes(replace(self.definitions.last(candidate), seconds=seconds * 2)):
                    continue
                self.verified.add(candidate)
            elif engine.left > 0 and len(kept) < MOST_WHOLE:
                limits = {index: 4 * baseline.outcomes[index].seconds + 1.0 for index in order}
                passed = forked(lambda: whole(self.suite, self.program, candidate, limits), seconds)  # noqa: B023
                if passed is False:
                    continue
                if passed and baseline.complete:
                    self.verified.add(candidate)
            kept.append(candidate)
        return kept

    def _mending_most(self, candidates: list[Candidate]) -> list[Candidate]:
        """Only those that mend the other failures too, where there are any: then one cause explains them all."""
        engine, baseline, elsewhere = self.engine, self.baseline, self.baseline.elsewhere
        if not elsewhere:
            return candidates
        limits = {index: 4 * baseline.outcomes[index].seconds + 1.0 for index in elsewhere}
        seconds = max(5.0, sum(limits.values()))
        found: list[Candidate] = []
        until = time.monotonic() + WHOLE_SHARE * engine.request.seconds
        for candidate in candidates:
            if time.monotonic() > until:
                break
            if candidate.reach is Reach.MODULE:
                names = tuple(self.suite.cases[index].name for index in elsewhere)
                task = replace(self.definitions.last(candidate), names=names, seconds=seconds, whole=False)
                mended = engine.zygotes[0].passes(task)
            else:
                mended = bool(forked(lambda: whole(self.suite, self.program, candidate, limits), seconds))  # noqa: B023
            if mended:
                found.append(candidate)
        return found or candidates

    def _patch(self, candidate: Candidate) -> dict[str, Any]:
        program = self.program
        function = program.functions[candidate.function].name if candidate.function >= 0 else ""
        return {
            "path": os.path.relpath(candidate.path, self.engine.request.root),
            "edits": [program.sources[candidate.path].trimmed(edit) for edit in sorted(candidate.edits)],
            "template": candidate.template,
            "function": function,
            "line": candidate.line,
            "cost": round(candidate.cost, 2),
            "verified": candidate in self.verified,
        }


def whole(suite: Suite, program: Program, candidate: Candidate, limits: dict[int, float]) -> bool:
    """Whether all tests pass in their own order."""
    return install(program, candidate) is not None and all(suite.run(i, limit).passed for i, limit in limits.items())
