"""Random hostile workspaces and stories of red teams: no marker, no write outside, no secret, no hang, no traceback."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import users
from hostile.defects import DEFECTS
from hostile.redteam import ATTACKS
from hostile.redteam import STORIES as RED
from hostile.scenarios import STORIES

DRIVER = Path(__file__).with_name("driver.py")
OPEN: dict[str, str] = {}
"""What is not mended yet: the name of a story or an expression of a finding, and why."""

as_user = pytest.mark.parametrize("user", users.NAMES)


def drive(user: str, *words: str) -> str:
    """What the driver tells as that user."""
    users.become(user)
    done = subprocess.run(
        [sys.executable, str(DRIVER), "--user", user, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1) and not done.stderr, done.stderr[-3000:] or done.returncode
    return done.stdout


ALL = [*STORIES, *RED]
PLAYED = [(users.NAMES[number % 2], story) for number, story in enumerate(ALL)]
"""Half of the stories as each user; the other way round in the slow suite."""
SWAPPED = [(users.NAMES[1 - number % 2], story) for number, story in enumerate(ALL)]


@functools.cache
def told(user: str, *, swapped: bool) -> dict[str, list[str]]:
    """The stories of a user, played once, with what must not have happened."""
    mine = [story for name, story in (SWAPPED if swapped else PLAYED) if name == user]
    return dict(json.loads(line) for line in drive(user, "--scenarios", *mine).splitlines())


def unknown(findings: list[str]) -> list[str]:
    return [each for each in findings if not any(re.search(known, each) for known in OPEN)]


def check(story: str, findings: list[str]) -> None:
    if story in OPEN:
        assert findings, f"{story} is mended: take it off the list"
    else:
        assert unknown(findings) == []


@pytest.mark.attack("A01", "A12", "A15", "A20", "A25", "A26", "A51", "A54")
@pytest.mark.parametrize(("user", "story"), PLAYED)
@pytest.mark.timeout(900)
def test_a_story_ends_without_a_finding(user: str, story: str):
    check(story, told(user, swapped=False)[story])


@pytest.mark.slow
@pytest.mark.parametrize(("user", "story"), SWAPPED)
@pytest.mark.timeout(900)
def test_a_story_ends_without_a_finding_as_the_other_user_too(user: str, story: str):
    check(story, told(user, swapped=True)[story])


@pytest.mark.parametrize("defect", DEFECTS)
def test_an_old_defect_that_is_put_back_is_noticed(defect: str):
    user = users.NAMES[0] if os.geteuid() == 0 else users.NAMES[1]
    lines = drive(user, "--defect", defect, "--scenarios", *DEFECTS[defect].noticed).splitlines()
    assert all(json.loads(line)[1] for line in lines), lines


def test_each_class_of_red_teams_has_three_cases():
    kinds = [attack.kind for attack in ATTACKS]
    assert min(map(kinds.count, kinds)) >= 3


@as_user
@pytest.mark.timeout(900)
def test_every_command_withstands_a_workspace_of_each_class(user: str):
    said = drive(user, "--each-class", "--seed", "13", "--half", str(users.NAMES.index(user)))
    assert unknown([line for line in said.splitlines() if line.startswith("seed 13 case")]) == [], said


@as_user
@pytest.mark.slow
@pytest.mark.timeout(4 * 3600)
def test_every_command_withstands_random_workspaces(user: str):
    """A thousand in all, half of them as each user; the seed is new each time, and told."""
    said = drive(user, "--count", "500")
    assert said.splitlines()[-1].startswith("0 of 500"), said
