"""Two edits: one that fixes a part of the failures and breaks nothing, and another beside it."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

from reflex_inside.edits import Candidate, Reach
from reflex_inside.judge import Judge

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
