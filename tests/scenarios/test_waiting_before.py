"""Runs that wait in a state folder of the version in which LangGraph kept them: the run's record decides."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from scenarios.story import Story, call, patch, say

from pawl.core.run import ApprovalAnswer, ApprovalResponse, DeliveryState, RunState

GOLDEN = Path(__file__).with_name("golden")
CHANGE, CALL = "r6af49c03", "rf9c0c026"


@pytest.fixture
def before(story: Story, state_directory: Path) -> Story:
    """Two runs wait in it: one for a yes to its change, one for a yes to a call."""
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    story.user_writes({"notes.txt": "begin\n"})
    words = {"@WORKSPACE@": str(story.workspace).encode().hex(), "@SCRIPT@": str(story.script)}
    for name, file in (("waiting", "pawl.db"), ("waiting_graph", "graph.db")):
        text = (GOLDEN / f"{name}.sql").read_text()
        for word, value in words.items():
            text = text.replace(word, value)
        connection = sqlite3.connect(state_directory / file)
        connection.executescript(text)
        connection.close()
    return story


@pytest.mark.spec("B7", "F5")
def test_a_change_that_waits_is_approved(before: Story):
    with before.session() as session:
        waiting = session.report(CHANGE)
        assert (waiting.state, waiting.question.kind) == (RunState.WAITING, "change")
        done = before.approve(waiting)
    assert (done.state, done.delivery, before.read("notes.txt")) == (
        RunState.ENDED,
        DeliveryState.DONE,
        "begin\nmiddle\n",
    )


def test_a_change_that_waits_is_rejected_and_kept(before: Story):
    with before.session() as session:
        waiting = session.report(CHANGE)
    done = before.reject(waiting, "not so")
    assert (done.delivery, done.rejected, before.read("notes.txt")) == (DeliveryState.NEEDS_WORK, "not so", "begin\n")
    assert done.kept is not None


@pytest.mark.spec("B7", "F5")
def test_a_call_that_waits_is_answered_and_the_talk_goes_on(before: Story):
    before.model_says(
        call("file_read", path="notes.txt"), patch("notes.txt", "begin\n", "begin\nend\n"), say("Written.")
    )
    with before.session() as session:
        waiting = session.report(CALL)
    asked = before.approve(waiting)
    assert (asked.state, asked.question.kind, asked.requests) == (RunState.WAITING, "change", 3)
    done = before.approve(asked)
    assert (done.delivery, before.read("notes.txt")) == (DeliveryState.DONE, "begin\nend\n")


@pytest.mark.parametrize("decided", [True, False])
def test_one_that_was_stopped_while_it_took_the_answer_goes_on(before: Story, decided: bool):
    """The question was gone by then; where the decision was not yet there, the question comes up again."""
    with before.session() as session:
        digest = session.report(CHANGE).question.digest
        runs = session.shop.store.runs
        runs.put(CHANGE, "question", None)
        if decided:
            runs.put(CHANGE, "decision", {"answer": "approve", "digest": digest})
        runs.stand(runs.get(session.shop.workspace, CHANGE).place, RunState.WORKING)
        ended = session.resume(CHANGE)
        if not decided:
            assert (ended.state, ended.question.digest) == (RunState.WAITING, digest)
            ended = session.answer(CHANGE, ApprovalResponse(answer=ApprovalAnswer.APPROVE, digest=digest))
    assert (ended.delivery, before.read("notes.txt")) == (DeliveryState.DONE, "begin\nmiddle\n")
