"""Runs in a state file of the version before their state had types: they are read, gone on with and reported."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from scenarios.story import Story, patch, say

from pawl.agent.record import RunRecord, migrated
from pawl.core.run import DeliveryState, Intent, RunState

GOLDEN = Path(__file__).with_name("golden") / "untyped.sql"
CHANGE, CALL, ENDED, LOOP, STOPPED = "r4f8b027e", "r26325f86", "r5b4e9d37", "r5d1bfe94", "raf84f162"
OLD, RIGHT = "year % 4 == 0", "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
WRONG = "year % 4 == 0 and year % 100 != 0"


@pytest.fixture
def before(story: Story, state_directory: Path) -> Story:
    """Its runs wait for a yes to a change, to a call and to the work of a loop; one has ended, one was stopped."""
    with story.shop():
        pass
    text = GOLDEN.read_text()
    for word, value in {"@WORKSPACE@": str(story.workspace).encode().hex(), "@SCRIPT@": str(story.script)}.items():
        text = text.replace(word, value)
    connection = sqlite3.connect(state_directory / "pawl.db")
    connection.executescript(text)
    connection.close()
    return story


@pytest.mark.spec("B7", "F5")
def test_a_change_that_waits_is_approved(before: Story):
    with before.session() as session:
        waiting = session.report(CHANGE)
    assert (waiting.state, waiting.question.kind, waiting.intent) == (RunState.WAITING, "change", Intent.EDIT)
    assert (waiting.before.failed, waiting.after.failed, waiting.requests) == (1, 0, 4)
    done = before.approve(waiting)
    assert (done.state, done.delivery) == (RunState.ENDED, DeliveryState.DONE)
    assert before.read("dates.py").startswith(f"def is_leap(year):\n    return {RIGHT}\n")


@pytest.mark.spec("B7", "F5")
def test_a_call_that_waits_is_answered_and_the_talk_goes_on(before: Story):
    before.model_says(say("read"), patch("dates.py", OLD, RIGHT), say("Done."))
    with before.session() as session:
        waiting = session.report(CALL)
    assert (waiting.question.kind, waiting.question.tool) == ("call", "strict_patch")
    asked = before.approve(waiting)
    assert (asked.state, asked.question.kind, asked.answer) == (RunState.WAITING, "change", "Done.")
    assert before.approve(asked).delivery is DeliveryState.DONE


def test_what_has_ended_is_reported_as_before(before: Story):
    with before.session() as session:
        ended = session.report(ENDED)
    assert (ended.state, ended.exit_code, ended.after.failed, ended.score) == (RunState.ENDED, 1, 1, 2)
    assert [step for step, _, _ in ended.verdicts] == ["tests"] and "test_century" in ended.answer


@pytest.mark.spec("E1")
def test_the_work_of_a_loop_that_waits_is_approved(before: Story):
    with before.session() as session:
        waiting = session.report(LOOP)
    assert [str(one.end) for one in waiting.climb.attempts] == ["refused", "verified"]
    assert before.approve(waiting).delivery is DeliveryState.DONE


@pytest.mark.spec("E1", "F5")
def test_a_loop_that_was_stopped_in_an_attempt_goes_on_with_it(before: Story):
    before.model_says(
        patch("dates.py", OLD, WRONG), say("Centuries."), patch("dates.py", OLD, RIGHT), say("With what was said.")
    )
    waiting = before.resume(STOPPED)
    assert (waiting.state, waiting.answer, waiting.requests) == (RunState.WAITING, "With what was said.", 5)
    assert before.approve(waiting).delivery is DeliveryState.DONE


def test_every_value_has_a_place_and_is_written_in_the_new_form_with_the_next_one(before: Story):
    unread = {"errand", "climb ladder", "climb under way", "before counts"}
    with before.shop() as shop:
        runs = shop.store.runs
        for row in runs.list(shop.workspace):
            rows = runs.values(row.id, every=True)
            data = RunRecord(shop, row.order, row.id).data
            named = {name for name, body in rows.items() if body and " " not in name} - unread - {"before"}
            assert all(getattr(data, name) for name in named)
        record = RunRecord(shop, runs.get(shop.workspace, CHANGE).order, CHANGE)
        refused = record.talk("1.1").refused
        record.keep(record.data)
        again = RunRecord(shop, record.order, CHANGE)
        assert runs.values(CHANGE)["version"] == 2 and again.data == record.data
        assert again.talk("1.1").refused == refused != "" and again.talk("1.2").dialogue


def test_what_is_not_of_the_record_is_left_out():
    assert migrated({}) == {}
    made = migrated({"in graph": True, "steered": ["and the docs"], "said meanwhile": {"words": ["x"], "orders": []}})
    assert made["said"]["words"] == ["and the docs", "x"] and "in graph" not in made
