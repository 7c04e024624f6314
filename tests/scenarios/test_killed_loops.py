"""`kill -9` in any iteration of a loop, then resume: same attempts, files and cost, and nothing asked or done twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from scenarios import killed_loop
from scenarios.conftest import PROJECT
from scenarios.story import Story, say
from scenarios.test_loops import FULL, RIGHT, WRONG, attempt, critic, librarian

from pawl.core.change import EntryState
from pawl.core.run import Report, RunState
from pawl.core.tiers import AttemptEnd

pytestmark = pytest.mark.hostile

CHILD = ("-m", "scenarios.killed_loop")
TESTS = Path(killed_loop.__file__).parents[1]
NEVER = 100_000


def priced(turn: dict) -> dict:
    return {**turn, "answer": {**turn["answer"], "cost": "0.01", "usage": {"input": 10, "output": 1}}}


@pytest.fixture
def looping(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    (tmp_path / "config.toml").write_text('review = "off"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    turns = [
        *attempt(WRONG),
        say("I see nothing to do."),
        librarian("dates.py"),
        *attempt("year % 100 != 0"),
        critic("send_back", "2000 is a leap year"),
        say("It is fine."),
        critic("send_back", "2000 is a leap year"),
        librarian("dates.py"),
        *attempt(RIGHT),
        critic("approve"),
    ]
    story.model_says(*map(priced, turns))
    return story


def anew(story: Story, state: Path) -> None:
    for path in (story.workspace, state):
        shutil.rmtree(path)
        path.mkdir(mode=0o700)
    story.user_writes(PROJECT)


def started(story: Story, last: int) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *CHILD, str(story.workspace), str(story.script), str(last)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=TESTS)


def ending(story: Story) -> tuple[object, ...]:
    with story.shop() as shop, story.session() as session:
        (row,) = shop.store.runs.list(shop.workspace)
        report: Report = session.report(row.id)
        records = shop.store.requests.records(shop.workspace, run=row.id)
        done = [entry for entry in shop.entries() if entry.state is EntryState.DONE]
    assert report.climb is not None
    attempts = [replace(one, seconds=0.0) for one in report.climb.attempts]
    cost = sum((record.cost for record in records), Decimal(0))
    return (story.files(), attempts, report.climb.gates, len(records), cost, len(done), row.delivery)


@pytest.fixture
def undisturbed(looping: Story) -> tuple[tuple[object, ...], int]:
    done = started(looping, NEVER)
    assert done.returncode == 0, done.stderr
    reference = ending(looping)
    ends = [one.end for one in reference[1]]
    assert ends == [AttemptEnd.REFUSED, AttemptEnd.UNCHANGED, AttemptEnd.SENT_BACK, AttemptEnd.VERIFIED]
    assert (reference[3], reference[4], reference[5]) == (13, Decimal("0.13"), 1)
    assert FULL.mode is reference[1][-1].mode
    return reference, int(done.stdout)


def resumed_after(story: Story, state: Path, last: int) -> tuple[object, ...]:
    anew(story, state)
    assert started(story, last).returncode == -9
    with story.shop() as shop:
        runs = shop.store.runs.list(shop.workspace)
    if not runs:
        assert started(story, NEVER).returncode == 0
        return ending(story)
    report = story.resume(runs[0].id)
    assert report.state is RunState.ENDED, report.trouble
    return ending(story)


@pytest.mark.spec("E1", "E10")
def test_a_killed_loop_goes_on_as_if_nothing_had_happened(
    looping: Story, state_directory: Path, undisturbed: tuple[tuple[object, ...], int]
):
    reference, writes = undisturbed
    for share in (0.3, 0.6):  # in an attempt of each tier
        assert resumed_after(looping, state_directory, round(writes * share)) == reference, share


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_loop_killed_at_every_write_goes_on_as_if_nothing_had_happened(
    looping: Story, state_directory: Path, undisturbed: tuple[tuple[object, ...], int]
):
    reference, writes = undisturbed
    wrong = [last for last in range(1, writes + 1) if resumed_after(looping, state_directory, last) != reference]
    assert wrong == []
