"""A line of those who wait for their turn, across processes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from pawl.settings.files import place_in_line

pytestmark = pytest.mark.spec("A4", "F9")


def test_turns_come_in_the_order_of_the_places_and_who_stops_asking_is_passed_over(tmp_path: Path):
    first, others = ExitStack(), ExitStack()
    with first, others:
        one, two, three = (at.enter_context(place_in_line(tmp_path)) for at in (first, others, others))
        assert (one(), two(), three()) == (True, False, False)
        os.utime(tmp_path / "1", (0, 0))
        assert (two(), three()) == (True, False)
        # Heard of again, it is where it was.
        assert (one(), two(), three()) == (True, False, False)
        first.close()
        assert (two(), three()) == (True, False)
    assert list(tmp_path.iterdir()) == []


def test_the_place_of_one_that_died_is_nobodys(tmp_path: Path):
    if not (child := os.fork()):
        place_in_line(tmp_path).__enter__()
        os._exit(0)
    os.waitpid(child, 0)
    assert (tmp_path / "1").exists()
    with place_in_line(tmp_path) as is_next:
        assert is_next() and not (tmp_path / "1").exists()
