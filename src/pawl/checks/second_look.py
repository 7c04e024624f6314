"""A second look at new failures: each is run again alone, and without the change, before it counts against it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from pawl.core.diagnostic import CheckResult, Status, TestOutcome
from pawl.core.lazy_dataclass import dataclass

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
    remember: Callable[[Sequence[tuple[str, str]]], None]
    without: RunTests | None = None
    """None where there is no change to leave out."""
    suite_without: Callable[[], CheckResult] | None = None
    """Runs the suite as it was run before, once more without the change: only that shows that it is innocent."""
    known: Collection[str] = ()
    """Tests that changed their mind in earlier runs."""

    def __call__(self, result: CheckResult) -> CheckResult:
        """The result, with tests that change their mind told as flaky and not as failed.

        One that fails in the suite without the change too counts neither way; one that only passes alone leaves the
        change unverified.
        """
        tests = tuple(dict.fromkeys(one.test for one in result.findings if one.test))
        if result.standing is not Status.FAIL or result.incomplete or not 0 < len(tests) <= MOST:
            return result
        passing = self._passing(self.with_change, tests)
        left = [test for test in tests if test not in passing]
        odd = [*passing, *(self._failing(self.without(left), left) if left and self.without is not None else ())]
        shaky = self._failing(self.suite_without(), odd) if odd and self.suite_without is not None else ()
        flaky = dict.fromkeys(passing, PASSES_ALONE) | dict.fromkeys(shaky, FAILS_WITHOUT)
        if not flaky:
            return result
        self.remember(tuple(flaky.items()))
        kept = tuple(one for one in result.findings if one.test not in flaky)
        said = tuple(
            f"{test} is flaky{', as it was before' if test in self.known else ''}: {why}" for test, why in flaky.items()
        )
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
    def _failing(again: CheckResult, tests: Sequence[str]) -> list[str]:
        failed = {one.test for one in again.findings if one.frames or one.message}
        ran = again.counts is not None and not again.incomplete and again.counts.failed > 0
        return [test for test in tests if test in failed] if ran else []
