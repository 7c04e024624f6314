"""The checks run one after the other; what holds back the rest, and what is new of what they find."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum

from pawl.checks.ladder import Placed
from pawl.checks.project_facts import CheckKind
from pawl.checks.steps import CheckStep, Subject, skipped
from pawl.core.diagnostic import INCOMPLETE, NOT_SERVING, UNFINISHED, CheckBegun, CheckResult, Diagnostic, Status
from pawl.core.lazy_dataclass import dataclass

HOLDING = (CheckKind.SYNTAX, CheckKind.BUILD, CheckKind.SERVER, CheckKind.TESTS)
"""Checks whose failure may hold back those after them; types and lint say nothing about whether tests can run."""


_NEED_BUILD = (CheckKind.SERVER, CheckKind.TESTS)


class StopPolicy(StrEnum):
    AT_FIRST_FAILURE = "at first failure"
    NEVER = "never"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The verdicts from before the change, by step."""

    verdicts: Mapping[str, CheckResult] = field(default_factory=dict)
    measure: Callable[[str], CheckResult | None] = lambda step: None
    """Asked for a step that fails and whose verdict from before is not known."""
    unchanged: Callable[[str], bool] = lambda path: False
    """Whether a file is as it was committed, and uses nothing that is not: what is found in it is old."""
    again: Callable[[CheckResult], CheckResult] = lambda result: result
    """Looks a second time at a suite with new failures."""

    @classmethod
    def of(cls, verdicts: Iterable[CheckResult]) -> Baseline:
        return cls({verdict.step: verdict for verdict in verdicts})

    def against(self, verdict: CheckResult) -> CheckResult:
        """The verdict with old findings set apart; a step whose findings are all old has passed.

        A step that was skipped before says nothing about what stood there.
        """
        return self.again(self._compared(verdict))

    def _compared(self, verdict: CheckResult) -> CheckResult:
        known = before = self.verdicts.get(verdict.step)
        if before is None and verdict.standing is Status.FAIL and verdict.findings:
            before = self.measure(verdict.step)
        asked = () if before is not known else (one for one in verdict.findings if one.path and not one.test)
        stood = [one for one in asked if self.unchanged(one.path)]
        if not stood and (before is None or before.standing is Status.SKIPPED or not verdict.findings):
            return verdict
        if before is not None and before.standing is not Status.SKIPPED:
            stood += [*before.findings, *before.old]
        new, old = separated(verdict.findings, stood)
        if new or not old:
            cut = (
                f"the run before the change is no basis for comparison: {before.incomplete}"
                if before and before.incomplete
                else ""
            )
            return replace(verdict, findings=tuple(new), old=tuple(old), incomplete=verdict.incomplete or cut)
        reason = f"nothing new; {len(old)} older: {verdict.reason}"
        return replace(verdict, standing=Status.PASS, reason=reason, findings=(), old=tuple(old))


def separated(now: Iterable[Diagnostic], before: Iterable[Diagnostic]) -> tuple[list[Diagnostic], list[Diagnostic]]:
    """New findings and old ones. Equal findings count as often as they stood there before."""
    known = Counter(_identity(finding) for finding in before)
    new, old = [], []
    for finding in now:
        identity = _identity(finding)
        if finding.code in (UNFINISHED, INCOMPLETE):
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


def _identity(finding: Diagnostic) -> tuple[str, ...]:
    """A finding's key; a test or a server that failed before is the same failure whatever it says now."""
    if finding.test:
        return (finding.tool, finding.test)
    return (finding.tool, finding.code) if finding.code == NOT_SERVING else finding.key


def climb(
    steps: Sequence[CheckStep],
    subject: Subject,
    *,
    stop: StopPolicy = StopPolicy.AT_FIRST_FAILURE,
    baseline: Baseline | None = None,
    listen: Callable[[CheckBegun | CheckResult], None] = lambda event: None,
) -> tuple[CheckResult, ...]:
    """A verdict for every step; one not reached is skipped and says so. With a baseline only what is new fails."""
    verdicts: list[CheckResult] = []
    failure = ""
    for step in steps:
        if failure and stop is StopPolicy.AT_FIRST_FAILURE:
            verdict = skipped(step.name, f"not run: {failure} failed")
        else:
            started = time.perf_counter()
            listen(CheckBegun(step.name))
            verdict = step.run(subject)
            verdict = replace(verdict, seconds=time.perf_counter() - started)
            verdict = baseline.against(verdict) if baseline else verdict
        if verdict.standing is Status.FAIL and getattr(step, "kind", CheckKind.BUILD) in HOLDING:
            failure = failure or step.name
        verdicts.append(verdict)
        listen(verdict)
    return tuple(verdicts)


@dataclass(slots=True)
class Prepared:
    """Checks that are run one by one: what tests and servers need of a build is built when they fail without it."""

    steps: Sequence[Placed]
    _is_built: bool = False

    def run(self, name: str, subject: Subject) -> CheckResult | None:
        """The result of the check of that name; None where there is none."""
        step = next((one for one in self.steps if one.name == name), None)
        if step is None:
            return None
        result = step.run(subject)
        builds = [one for one in self.steps if one.kind is CheckKind.BUILD]
        if result.standing is not Status.FAIL or step.kind not in _NEED_BUILD or not builds or self._is_built:
            return result
        self._is_built = True
        for build in builds:
            build.run(subject)
        return step.run(subject)
