"""What failing tests say about where the fault is."""

from __future__ import annotations

import pytest

from pawl.checks.output import suspicions
from pawl.core.diagnostic import Diagnostic, Location

pytestmark = pytest.mark.spec("E2")


def failing(name: str, *frames: tuple[str, int]) -> Diagnostic:
    places = tuple(Location(path=path, line=line) for path, line in frames)
    return Diagnostic(tool="pytest", message="boom", test=name, frames=places)


def test_the_innermost_place_is_the_most_suspicious_and_tests_are_not():
    found = suspicions([failing("t::a", ("tests/test_a.py", 3), ("shop/cart.py", 9), ("shop/prices.py", 5))])
    assert [(one.path, one.line) for one in found] == [("shop/prices.py", 5), ("shop/cart.py", 9)]
    assert found[0].weight == 1.0 > found[1].weight > 0


def test_a_place_that_more_failing_tests_run_through_is_more_suspicious():
    both = [failing("t::a", ("a.py", 1)), failing("t::b", ("a.py", 1)), failing("t::c", ("b.py", 1))]
    found = suspicions(both)
    assert [one.path for one in found] == ["a.py", "b.py"]
    assert found[0].weight == pytest.approx(2 / 3)
    assert suspicions(reversed(both)) == found


def test_findings_without_a_test_say_nothing():
    assert suspicions([Diagnostic(tool="ruff", message="x", path="a.py", line=3)]) == ()


def test_a_failure_that_is_told_in_one_line_has_its_one_place():
    found = suspicions([Diagnostic(tool="pytest", message="x", test="t::a", path="shop/prices.py", line=5)])
    assert [(one.path, one.line, one.weight) for one in found] == [("shop/prices.py", 5, 1.0)]
