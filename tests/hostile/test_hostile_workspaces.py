"""Random hostile workspaces and stories of red teams: no marker, no write outside, no secret, no hang, no traceback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest
import users
from hostile.defects import DEFECTS
from hostile.redteam import ATTACKS
from hostile.redteam import STORIES as RED
from hostile.scenarios import STORIES

DRIVER = Path(__file__).with_name("driver.py")
OPEN = {
    r"commit with": "git runs what a repository configures",
    r"rewritten hook|linked settings": "hooks run outside of the sandbox",
    r"secrets (in number|planted)|the secret .* was": "secrets are hidden up to a number",
    r"denied path|migrations": "rules do not hold at promotion",
    r"two links|planted staging": "links and names of staging",
    r"hidden middle|a raw ": "what is shown of questions and answers",
    r"odd files|hung for": "files that never end or begin",
    r"netlink|dev server": "the network",
    r"shadowed runner|pytest\.py|json\.py": "modules in the place of the runner",
}
"""What is not mended yet, as expressions of a story's name or a finding."""

GROUPS = defaultdict(list)
for _name in STORIES:
    GROUPS["git" if _name.startswith("commit with") else "old defects"].append(_name)
for _name, _attack in RED.items():
    GROUPS[_attack.kind].append(_name)
PLAYED = [(users.NAMES[1 - number % 2], group) for number, group in enumerate(GROUPS)]
"""Each group as one user; as the other one in the slow suite."""
SWAPPED = [(users.NAMES[number % 2], group) for number, group in enumerate(GROUPS)]


@pytest.fixture
def environment(project_environment: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interpreter with pytest for the stories that need one."""
    monkeypatch.setenv("PAWL_HOSTILE_ENVIRONMENT", str(project_environment))


def drive(user: str, *words: str) -> str:
    """What the driver tells as that user."""
    users.become(user)
    called = [sys.executable, str(DRIVER), "--user", user, *words]
    done = subprocess.run(called, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1) and not done.stderr, done.stderr[-3000:] or done.returncode
    return done.stdout


def told(user: str, *words: str) -> dict[str, list[str]]:
    """Stories with what must not have happened and is not known."""
    lines = map(json.loads, drive(user, *words).splitlines())
    return {name: found for name, findings in lines if (found := findings)}


def unknown(text: str) -> bool:
    return not any(re.search(known, text) for known in OPEN)


def check(user: str, group: str) -> None:
    found = told(user, "--scenarios", *GROUPS[group])
    assert {name: each for name, each in found.items() if unknown(f"{name} {each}")} == {}


@pytest.mark.attack("A01", "A12", "A15", "A20", "A25", "A26", "A51", "A54")
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(("user", "group"), PLAYED)
@pytest.mark.timeout(900)
def test_stories_of_attacks_end_without_a_finding(user: str, group: str):
    check(user, group)


@pytest.mark.slow
@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(("user", "group"), SWAPPED)
@pytest.mark.timeout(900)
def test_stories_of_attacks_end_without_a_finding_as_the_other_user_too(user: str, group: str):
    check(user, group)


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("defect", DEFECTS)
@pytest.mark.timeout(900)
def test_an_old_defect_that_is_put_back_is_noticed(defect: str):
    user = users.NAMES[0] if os.geteuid() == 0 else users.NAMES[1]
    found = told(user, "--defect", defect, "--scenarios", *DEFECTS[defect].noticed)
    assert set(found) == set(DEFECTS[defect].noticed)


def test_each_class_of_red_teams_has_three_cases():
    kinds = [attack.kind for attack in ATTACKS]
    assert min(map(kinds.count, kinds)) >= 3


@pytest.mark.parametrize("user", users.NAMES)
@pytest.mark.timeout(900)
def test_commands_withstand_a_workspace_of_each_class(user: str):
    """Half of the classes as each user, a third of the commands on each workspace."""
    said = drive(user, "--each-class", "--seed", "13", "--half", str(users.NAMES.index(user)), "--third")
    assert [line for line in said.splitlines() if line.startswith("seed 13 case") and unknown(line)] == []


@pytest.mark.slow
@pytest.mark.parametrize("user", users.NAMES)
@pytest.mark.timeout(4 * 3600)
def test_every_command_withstands_random_workspaces(user: str):
    """A thousand in all, half of them as each user; the seed is new each time, and told."""
    said = drive(user, "--count", "500")
    assert said.splitlines()[-1].startswith("0 of 500"), said
