"""The ladder climbs from cheap to dear, and a change is judged by what it broke."""

import dataclasses

import pytest

from pawl.checks.climb import Baseline, StopPolicy, climb, separated
from pawl.checks.language_steps import Ruff, Syntax, Types
from pawl.checks.steps import Tests
from pawl.core.diagnostic import CheckResult, Diagnostic, Status

GOOD = {
    "shop.py": "def total(prices: list[int]) -> int:\n    return sum(prices)\n",
    "test_shop.py": "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n",
}
OLD_FAILURE = {"test_old.py": "def test_old():\n    assert 1 == 2\n"}


def python_steps():
    return (Syntax(), Types(), Ruff(), Tests())


def standings(verdicts):
    return {verdict.step: verdict.standing for verdict in verdicts}


@pytest.mark.spec("A8")
def test_a_sound_project_climbs_to_the_top(subject):
    verdicts = climb(python_steps(), subject(GOOD))
    assert [verdict.step for verdict in verdicts] == ["syntax", "types", "lint", "tests"]
    assert standings(verdicts)["tests"] is Status.PASS
    assert all(verdict.seconds > 0 for verdict in verdicts)


@pytest.mark.spec("A8")
def test_the_first_failure_ends_the_climb_and_the_rest_says_why(subject):
    verdicts = climb(python_steps(), subject({**GOOD, "broken.py": "def f(:\n"}))
    assert [verdict.standing for verdict in verdicts] == [Status.FAIL, *[Status.SKIPPED] * 3]
    assert {verdict.reason for verdict in verdicts[1:]} == {"not run: syntax failed"}


@pytest.mark.spec("A8")
def test_all_steps_run_when_asked(subject):
    seen = []
    files = {**GOOD, "broken.py": "def f(:\n"}
    verdicts = climb(python_steps(), subject(files), stop=StopPolicy.NEVER, listen=seen.append)
    assert standings(verdicts)["tests"] is Status.PASS
    assert standings(verdicts)["lint"] is Status.FAIL
    assert [one.step for one in seen[::2]] == [one.step for one in verdicts] and tuple(seen[1::2]) == verdicts


@pytest.mark.spec("A8")
def test_steps_with_nothing_to_look_at_are_skipped(subject):
    verdicts = climb(python_steps(), subject({"readme.md": "nothing"}))
    assert {verdict.standing for verdict in verdicts} == {Status.SKIPPED}


@pytest.mark.spec("A8")
def test_what_failed_before_does_not_fail_the_change(subject):
    before = climb(python_steps(), subject({**GOOD, **OLD_FAILURE}), stop=StopPolicy.NEVER)
    changed = {**GOOD, **OLD_FAILURE, "shop.py": GOOD["shop.py"] + "\n\nWORD = 1\n"}
    after = climb(python_steps(), subject(changed), baseline=Baseline.of(before))
    tests = after[-1]
    assert (tests.standing, len(tests.old), tests.findings) == (Status.PASS, 1, ())
    assert "nothing new" in tests.reason


@pytest.mark.spec("A8")
def test_what_the_change_broke_fails_beside_what_was_broken(subject):
    before = climb(python_steps(), subject({**GOOD, **OLD_FAILURE}), stop=StopPolicy.NEVER)
    broken = {**GOOD, **OLD_FAILURE, "shop.py": "def total(prices):\n    return 0\n"}
    tests = climb(python_steps(), subject(broken), baseline=Baseline.of(before))[-1]
    assert tests.standing is Status.FAIL
    assert [finding.test for finding in tests.findings] == ["test_shop.py::test_total"]
    assert [finding.test for finding in tests.old] == ["test_old.py::test_old"]


@pytest.mark.spec("A8")
def test_a_run_that_breaks_off_is_not_excused_by_old_failures(subject):
    before = climb(python_steps(), subject({**GOOD, **OLD_FAILURE}), stop=StopPolicy.NEVER)
    dead = {**GOOD, **OLD_FAILURE, "shop.py": "import os\n\nos._exit(3)\n"}
    tests = climb(python_steps(), subject(dead), stop=StopPolicy.NEVER, baseline=Baseline.of(before))[-1]
    assert tests.standing is Status.FAIL


@pytest.mark.spec("A8")
def test_old_findings_are_known_when_lines_move_and_new_equals_are_counted():
    old = Diagnostic(tool="ruff", message="Undefined name `x`", path="a.py", line=3, code="F821")
    moved = dataclasses.replace(old, line=30)
    another = dataclasses.replace(old, line=40)
    new, known = separated([moved, another], [old])
    assert (new, known) == ([another], [moved])


@pytest.mark.spec("A8")
def test_a_test_that_fails_otherwise_is_still_the_old_failure():
    old = Diagnostic(tool="pytest", message="assert 1 == 2", path="test_a.py", test="test_a.py::test_a")
    now = dataclasses.replace(old, message="assert 1 == 3", path="a.py")
    assert separated([now], [old]) == ([], [now])


@pytest.mark.spec("A8")
def test_a_step_that_was_skipped_before_excuses_nothing():
    finding = Diagnostic(tool="ruff", message="Undefined name `x`", path="a.py", code="F821")
    failed = CheckResult(step="lint", standing=Status.FAIL, findings=(finding,))
    baseline = Baseline.of([CheckResult(step="lint", standing=Status.SKIPPED, reason="not run")])
    assert baseline.against(failed) == failed
