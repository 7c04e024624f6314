"""The verification ladder: steps from cheap to dear, until the first failure or all of them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from enum import StrEnum

from pawl.core.finding import Standing, Verdict
from pawl.verify.baseline import Baseline
from pawl.verify.steps.step import Step, Subject, skipped


class Stop(StrEnum):
    AT_FIRST_FAILURE = "at first failure"
    NEVER = "never"


def climb(
    steps: Sequence[Step],
    subject: Subject,
    *,
    stop: Stop = Stop.AT_FIRST_FAILURE,
    baseline: Baseline | None = None,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> tuple[Verdict, ...]:
    """A verdict for every step; one not reached is skipped and says so. With a baseline only what is new fails."""
    verdicts: list[Verdict] = []
    failure = ""
    for step in steps:
        if failure and stop is Stop.AT_FIRST_FAILURE:
            verdict = skipped(step.name, f"not run: {failure} failed")
        else:
            started = time.perf_counter()
            verdict = step.run(subject)
            verdict = dataclasses.replace(verdict, seconds=time.perf_counter() - started)
            verdict = baseline.against(verdict) if baseline else verdict
        if verdict.standing is Standing.FAIL:
            failure = failure or step.name
        verdicts.append(verdict)
        if on_verdict:
            on_verdict(verdict)
    return tuple(verdicts)


def accepted(verdicts: Sequence[Verdict]) -> bool:
    """Nothing failed, and at least one step has passed: a ladder of skipped steps proves nothing."""
    standings = [verdict.standing for verdict in verdicts]
    return Standing.FAIL not in standings and Standing.PASS in standings
