"""`kill -9` at any moment of a run of twenty steps, then resume: same files, words and cost, and nothing done twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import pytest
from scenarios import killed
from scenarios.story import Story, call, patch, say

from pawl.core.change import EntryState
from pawl.core.run import DeliveryState, RunState

pytestmark = pytest.mark.hostile

CHILD = ("-m", "scenarios.killed")
TESTS = Path(killed.__file__).parents[1]
COST = "0.001"
NEVER = 10_000


def priced(turn: dict) -> dict:
    return {"answer": {**turn["answer"], "cost": COST, "usage": {"input": 100, "output": 10}}}


def twenty_steps() -> list[dict]:
    turns = [call("file_write", path="chronicle.txt", content="begin\n")]
    for number in range(1, 7):
        turns.append(call("run_command", command=f"echo {number} >> log.txt"))
        turns.append(call("file_read", path="chronicle.txt"))
        turns.append(patch("chronicle.txt", "begin\n", f"begin\n{number}\n"))
    turns.append(say("The chronicle is written."))
    # Nothing proves it, so that the delivery check compares request and change.
    turns.append(say('{"state": "DONE", "evidence": ["the chronicle is there"], "remaining": []}'))
    assert len(turns) == 21
    return [priced(turn) for turn in turns]


@dataclass(frozen=True)
class Ending:
    """What must be the same however often a run was interrupted."""

    files: dict[str, str]
    said: list[tuple[str, str, int]]
    requests: int
    cost: Decimal
    promoted: int
    delivery: DeliveryState | None


@pytest.fixture
def chronicle(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    (tmp_path / "config.toml").write_text('review = "off"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    shutil.rmtree(story.workspace)
    story.workspace.mkdir()
    story.user_writes({"notes.txt": "Nothing to test here.\n"})
    story.model_says(*twenty_steps())
    return story


def started(story: Story, last: int, approval: str = "never") -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *CHILD, str(story.workspace), str(story.script), str(last), approval]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120, cwd=TESTS)


def ending(story: Story) -> Ending:
    with story.shop() as shop:
        (row,) = shop.store.runs.list(shop.workspace)
        assert row.state is RunState.ENDED
        records = shop.store.requests.records(shop.workspace, run=row.id)
        (conversation,) = shop.store.transcripts.conversations(shop.workspace)
        said = [
            (one.message.speaker, one.message.text, len(one.message.calls) + len(one.message.answers))
            for one in shop.store.transcripts.messages(conversation.id)
        ]
        done = [entry for entry in shop.entries() if entry.state is EntryState.DONE]
    cost = sum((record.cost for record in records), Decimal(0))
    return Ending(story.files(), said, len(records), cost, len(done), row.delivery)


def resumed_after(story: Story, last: int) -> Ending:
    assert started(story, last).returncode == -9
    with story.shop() as shop:
        runs = shop.store.runs.list(shop.workspace)
    if runs:
        report = story.resume(runs[0].id)
    else:  # It was killed before it was recorded that there is a run: nothing has happened.
        report = story.do(killed.REQUEST, approve="never")
    assert report.state is RunState.ENDED, report.trouble
    return ending(story)


@pytest.fixture
def undisturbed(chronicle: Story, state_directory: Path) -> tuple[Ending, int]:
    """How the run ends when nobody kills it, and how many writes it takes."""
    done = started(chronicle, NEVER)
    assert done.returncode == 0, done.stderr
    reference = ending(chronicle)
    assert reference.files["log.txt"] == "1\n2\n3\n4\n5\n6\n"
    assert (reference.requests, reference.cost, reference.promoted) == (21, Decimal("0.021"), 1)
    return reference, int(done.stdout)


def anew(story: Story, state: Path) -> None:
    for path in (story.workspace, state):
        shutil.rmtree(path)
        path.mkdir(mode=0o700)
    story.user_writes({"notes.txt": "Nothing to test here.\n"})


@pytest.mark.spec("B7", "F5")
def test_a_killed_run_goes_on_as_if_nothing_had_happened(
    chronicle: Story, state_directory: Path, undisturbed: tuple[Ending, int]
):
    reference, writes = undisturbed
    for share in (0.35, 0.6, 0.86, 0.93):  # in the talk twice, after the promotion, at the end
        anew(chronicle, state_directory)
        assert resumed_after(chronicle, max(1, round(writes * share))) == reference


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_run_killed_at_every_write_goes_on_as_if_nothing_had_happened(
    chronicle: Story, state_directory: Path, undisturbed: tuple[Ending, int]
):
    reference, writes = undisturbed
    wrong = []
    for last in range(1, writes + 1):
        anew(chronicle, state_directory)
        if resumed_after(chronicle, last) != reference:
            wrong.append(last)
    assert wrong == []


def approved_after(story: Story, last: int) -> Ending:
    """Ends a run whose approval was killed there. An answer that was taken is not asked for again."""
    assert started(story, last).returncode == -9
    with story.session() as session:
        (row,) = session.runs()
        report = session.resume(row.id)
        if report.state is RunState.WAITING:
            assert last == 1, "the answer is the first thing that becomes durable"
            report = killed.approve(session, row.id)
    assert report.state is RunState.ENDED, report.trouble
    return ending(story)


@pytest.fixture
def waiting(chronicle: Story, state_directory: Path, tmp_path: Path) -> tuple[Ending, int]:
    """How an approved run ends, and how many writes that takes; the same run waits, to be put back with `again`."""
    assert started(chronicle, NEVER, "final").returncode == 0
    for name, folder in (("project", chronicle.workspace), ("state", state_directory)):
        shutil.copytree(folder, tmp_path / "waiting" / name)
    done = started(chronicle, NEVER)
    assert done.returncode == 0, done.stderr
    return ending(chronicle), int(done.stdout)


def again(story: Story, state: Path, top: Path) -> None:
    for name, folder in (("project", story.workspace), ("state", state)):
        shutil.rmtree(folder)
        shutil.copytree(top / "waiting" / name, folder)


@pytest.mark.spec("B7", "F5")
def test_an_approval_that_is_killed_goes_on_as_if_nothing_had_happened(
    chronicle: Story, state_directory: Path, tmp_path: Path, waiting: tuple[Ending, int]
):
    reference, writes = waiting
    assert reference.promoted == 1
    for last in (1, 2, 4, writes // 2):
        again(chronicle, state_directory, tmp_path)
        assert approved_after(chronicle, last) == reference


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_an_approval_killed_at_every_write_goes_on_as_if_nothing_had_happened(
    chronicle: Story, state_directory: Path, tmp_path: Path, waiting: tuple[Ending, int]
):
    reference, writes = waiting
    wrong = []
    for last in range(1, writes + 1):
        again(chronicle, state_directory, tmp_path)
        if approved_after(chronicle, last) != reference:
            wrong.append(last)
    assert wrong == []
