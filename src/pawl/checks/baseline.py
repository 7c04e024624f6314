"""The state before a change, so that it is judged by what it broke and not by what was broken."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pawl.checks.steps import CheckStep, Subject, skipped
from pawl.core.diagnostic import NOT_SERVING, UNFINISHED, CheckResult, Diagnostic, Status

Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The verdicts from before the change, by step."""

    verdicts: Mapping[str, CheckResult] = field(default_factory=dict)
    measure: Callable[[str], CheckResult | None] = lambda step: None
    """Asked for a step that fails and whose verdict from before is not known."""

    @classmethod
    def of(cls, verdicts: Iterable[CheckResult]) -> Baseline:
        return cls({verdict.step: verdict for verdict in verdicts})

    def against(self, verdict: CheckResult) -> CheckResult:
        """The verdict with old findings set apart; a step whose findings are all old has passed.

        A step that was skipped before says nothing about what stood there.
        """
        before = self.verdicts.get(verdict.step)
        if before is None and verdict.standing is Status.FAIL and verdict.findings:
            before = self.measure(verdict.step)
        if before is None or before.standing is Status.SKIPPED or not verdict.findings:
            return verdict
        new, old = separated(verdict.findings, (*before.findings, *before.old))
        if new or not old:
            return dataclasses.replace(verdict, findings=tuple(new), old=tuple(old))
        reason = f"nothing new; {len(old)} of before: {verdict.reason}"
        return dataclasses.replace(verdict, standing=Status.PASS, reason=reason, findings=(), old=tuple(old))


def separated(now: Iterable[Diagnostic], before: Iterable[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """New findings and old ones. Equal findings count as often as they stood there before."""
    known = Counter(_identity(finding) for finding in before)
    new, old = [], []
    for finding in now:
        identity = _identity(finding)
        if finding.code == UNFINISHED:
            # What did not come to its end before proves nothing about what it would have found (A11).
            new.append(finding)
        elif finding.test and identity in known:
            old.append(finding)
        elif known[identity] > 0:
            known[identity] -= 1
            old.append(finding)
        else:
            new.append(finding)
    return new, old


def _identity(finding: Diagnostic) -> Identity:
    """A finding's key; a test or a server that failed before is the same failure whatever it says now."""
    if finding.test:
        return (finding.tool, finding.test)
    return (finding.tool, finding.code) if finding.code == NOT_SERVING else finding.key


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
            verdict = dataclasses.replace(verdict, seconds=time.perf_counter() - started)
            verdict = baseline.against(verdict) if baseline else verdict
        if verdict.standing is Status.FAIL:
            failure = failure or step.name
        verdicts.append(verdict)
        if on_verdict:
            on_verdict(verdict)
    return tuple(verdicts)


def accepted(verdicts: Sequence[CheckResult]) -> bool:
    """Nothing failed, and at least one step has passed: a ladder of skipped steps proves nothing."""
    standings = [verdict.standing for verdict in verdicts]
    return Status.FAIL not in standings and Status.PASS in standings
