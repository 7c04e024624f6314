"""Random hostile workspaces and stories of red teams: no marker, no write outside, no secret, no hang, no traceback."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import pytest
import users
from hostile import commands
from hostile.defects import DEFECTS
from hostile.redteam import ATTACKS
from hostile.redteam import STORIES as RED
from hostile.scenarios import STORIES
from hostile.site import begin

from pawl.ui.cli.overview import COMMANDS
from pawl.ui.cli.parser import parser_for

pytestmark = pytest.mark.hostile

DRIVER = Path(__file__).with_name("driver.py")
GROUPS = defaultdict(list)
for _name in STORIES:
    GROUPS["git" if _name.startswith("commit with") else "old defects"].append(_name)
for _name, _attack in RED.items():
    GROUPS[_attack.kind].append(_name)
SAMPLE = [stories[number % len(stories)] for number, stories in enumerate(GROUPS.values())]
"""One story of each group; all others are played in the slow suite."""


def drive(user: str, *words: str) -> list[str]:
    """The lines that the driver tells as that user."""
    users.become(user)
    called = [sys.executable, str(DRIVER), "--user", user, *words]
    done = subprocess.run(called, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr[-3000:] or done.returncode
    return done.stdout.splitlines()


def check(user: str, stories: Sequence[str]) -> None:
    played = [json.loads(line) for line in drive(user, "--scenarios", *stories)]
    assert played == [[name, None, []] for name in stories]


@pytest.mark.attack("A01", "A12", "A15", "A20", "A25", "A26", "A51", "A54")
@pytest.mark.parametrize("user", users.NAMES)
@pytest.mark.timeout(900)
def test_a_story_of_each_group_of_attacks_ends_without_a_finding(user: str):
    check(user, SAMPLE[users.NAMES.index(user) :: 2])


@pytest.mark.slow
@pytest.mark.parametrize("user", users.NAMES)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.timeout(900)
def test_stories_of_attacks_end_without_a_finding(user: str, group: str):
    check(user, GROUPS[group])


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_old_defect_that_is_put_back_is_noticed():
    played = map(json.loads, drive("root" if os.geteuid() == 0 else "ordinary", "--defects"))
    # A replacement that no longer fits what calls it is noticed by its traceback alone.
    noticed = {(defect, name): [one for one in found if "a defect: " not in one] for name, defect, found in played}
    assert [each for each, found in noticed.items() if not found] == []


def test_each_old_defect_can_be_put_back_and_each_of_the_findings_has_one():
    for defect in DEFECTS.values():
        defect.resolved()
    assert {defect.item for defect in DEFECTS.values()} == set(range(1, 13))


def test_each_class_of_red_teams_has_three_cases():
    kinds = [attack.kind for attack in ATTACKS]
    assert min(map(kinds.count, kinds)) >= 3


def test_every_command_is_run_on_each_workspace_and_every_action_of_it_on_some(tmp_path: Path):
    played = [[words for words, _ in commands.calls(begin(tmp_path / str(n), random.Random(n)))] for n in range(80)]
    assert [set(COMMANDS) - {words[0] for words in each} for each in played] == [set()] * len(played)
    actions = {
        (name, action)
        for name in COMMANDS
        for option in parser_for(name)._actions
        if not option.option_strings and option.choices
        for action in option.choices
    }
    assert len(actions) > 40
    usual = {(name, "list") for name in COMMANDS}
    assert actions - usual - {words[:2] for each in played for words in each} == set()


@pytest.mark.parametrize("user", users.NAMES)
@pytest.mark.timeout(900)
def test_commands_withstand_a_workspace_of_each_class(user: str):
    """Half of the classes as each user, a sixth of the commands on each workspace."""
    said = drive(user, "--each-class", "--seed", "13", "--half", str(users.NAMES.index(user)), "--parts", "6")
    assert said[-1].startswith("0 of"), said


@pytest.mark.slow
@pytest.mark.parametrize("user", users.NAMES)
@pytest.mark.timeout(4 * 3600)
def test_every_command_withstands_random_workspaces(user: str):
    """A thousand in all, half of them as each user; the seed is new each time, and told."""
    said = drive(user, "--count", "500")
    assert said[-1].startswith("0 of 500"), said
