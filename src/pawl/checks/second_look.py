"""A second look at new failures: each is run again alone, and without the change, before it counts against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pawl.core.diagnostic import CheckResult, Status, TestOutcome

MOST = 20
"""Failures that are looked at again; more of them are no accident."""
PASSES_ALONE = "it failed, and passed when it was run again alone"
FAILS_WITHOUT = "it fails without the change too, though it had passed"

RunTests = Callable[[Sequence[str]], CheckResult]
"""Runs the tests with these ids."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """For one run of the workspace's suite."""

    with_change: RunTests
    without: RunTests | None
    """None where there is no change to leave out."""
    remember: Callable[[Sequence[tuple[str, str]]], None]

    def __call__(self, result: CheckResult) -> CheckResult:
        """The result, with tests that change their mind told as flaky and not as failed.

        One that fails without the change too counts neither way; one that only passes alone leaves it unverified.
        """
        tests = tuple(dict.fromkeys(one.test for one in result.findings if one.test))
        if result.standing is not Status.FAIL or result.incomplete or not 0 < len(tests) <= MOST:
            return result
        flaky = dict.fromkeys(self._passing(self.with_change, tests), PASSES_ALONE)
        left = [test for test in tests if test not in flaky]
        if left and self.without is not None:
            flaky |= dict.fromkeys(self._failing(self.without, left), FAILS_WITHOUT)
        if not flaky:
            return result
        self.remember(tuple(flaky.items()))
        kept = tuple(one for one in result.findings if one.test not in flaky)
        said = tuple(f"{test} is flaky: {why}" for test, why in flaky.items())
        failing = any(one.test for one in kept)
        standing = Status.FAIL if failing else Status.PASS
        reason = result.reason if failing else f"{len(flaky)} flaky: {result.reason}"
        return replace(result, standing=standing, reason=reason, findings=kept if failing else (), flaky=said)

    @staticmethod
    def _passing(run: RunTests, tests: Sequence[str]) -> list[str]:
        again = run(tests)
        failed = {one.test for one in again.findings} | {
            one.id for one in again.ran if one.outcome is not TestOutcome.PASSED
        }
        passed = again.counts is not None and again.counts.passed > 0 and not again.incomplete
        return [test for test in tests if test not in failed] if passed else []

    @staticmethod
    def _failing(run: RunTests, tests: Sequence[str]) -> list[str]:
        again = run(tests)
        failed = {one.test for one in again.findings if one.frames or one.message}
        ran = again.counts is not None and not again.incomplete and again.counts.failed > 0
        return [test for test in tests if test in failed] if ran else []
