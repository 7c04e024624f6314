"""The checks run one after the other, and what holds back the rest."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum

from pawl.checks.baseline import Baseline
from pawl.checks.project_facts import CheckKind
from pawl.checks.steps import CheckStep, Subject, skipped
from pawl.core.diagnostic import CheckResult, Status

HOLDING = (CheckKind.SYNTAX, CheckKind.BUILD, CheckKind.SERVER, CheckKind.TESTS)
"""Checks whose failure may hold back those after them; types and lint say nothing about whether tests can run."""


class StopPolicy(StrEnum):
    AT_FIRST_FAILURE = "at first failure"
    NEVER = "never"


def climb(
    steps: Sequence[CheckStep],
    subject: Subject,
    *,
    stop: StopPolicy = StopPolicy.AT_FIRST_FAILURE,
    baseline: Baseline | None = None,
    on_verdict: Callable[[CheckResult], None] | None = None,
) -> tuple[CheckResult, ...]:
    """A verdict for every step; one not reached is skipped and says so. With a baseline only what is new fails."""
    verdicts: list[CheckResult] = []
    failure = ""
    for step in steps:
        if failure and stop is StopPolicy.AT_FIRST_FAILURE:
            verdict = skipped(step.name, f"not run: {failure} failed")
        else:
            started = time.perf_counter()
            verdict = step.run(subject)
            verdict = replace(verdict, seconds=time.perf_counter() - started)
            verdict = baseline.against(verdict) if baseline else verdict
        if verdict.standing is Status.FAIL and getattr(step, "kind", CheckKind.BUILD) in HOLDING:
            failure = failure or step.name
        verdicts.append(verdict)
        if on_verdict:
            on_verdict(verdict)
    return tuple(verdicts)
