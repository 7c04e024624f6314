"""A second look at new failures: what is forgiven, and what leaves a change unverified."""

from __future__ import annotations

import pytest

from pawl.checks.second_look import FAILS_WITHOUT, PASSES_ALONE, SecondLook
from pawl.core.diagnostic import CheckResult, Diagnostic, Status
from pawl.core.diagnostic import TestCounts as Counts

TEST = "tests/test_a.py::test_a"


def suite(*, fails: bool) -> CheckResult:
    findings = (Diagnostic(tool="pytest", message="assert 1 == 2", test=TEST),) if fails else ()
    counts = Counts(passed=2 - fails, failed=int(fails))
    return CheckResult(step="tests", standing=Status.FAIL if fails else Status.PASS, findings=findings, counts=counts)


@pytest.mark.spec("B9")
@pytest.mark.parametrize(
    ("alone_with", "alone_without", "suite_without", "told"),
    [
        (True, False, False, None),
        (True, True, False, None),
        (True, True, True, FAILS_WITHOUT),
        (False, False, False, PASSES_ALONE),
        (False, False, True, FAILS_WITHOUT),
    ],
)
def test_only_the_same_suite_failing_without_the_change_excuses_it(alone_with, alone_without, suite_without, told):
    remembered: list[tuple[str, str]] = []
    look = SecondLook(
        lambda _: suite(fails=alone_with),
        remembered.extend,
        lambda _: suite(fails=alone_without),
        lambda: suite(fails=suite_without),
    )
    result = look(suite(fails=True))
    assert result.standing is (Status.PASS if told else Status.FAIL)
    assert remembered == ([(TEST, told)] if told else [])
    assert result.flaky == ((f"{TEST} is flaky: {told}",) if told else ())


def test_a_test_that_is_known_to_change_its_mind_is_told_as_such():
    look = SecondLook(lambda _: suite(fails=False), lambda _: None, known={TEST: PASSES_ALONE})
    assert look(suite(fails=True)).flaky == (f"{TEST} is flaky, as it was before: {PASSES_ALONE}",)
