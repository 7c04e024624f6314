"""Which plausible patch is meant: patches that behave alike speak for one another, documented examples decide."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from reflex_inside.amplify import Behaviour, Comparison
from reflex_inside.edits import Candidate

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
