"""A talk whose dialogue fills the context begins afresh, with what is at hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pawl.agent.context import TurnInput
from pawl.agent.context_watch import ContextWatch, afresh, later_tasks
from pawl.agent.record import RunRecord
from pawl.agent.tools.toolbox import ToolSession
from pawl.core.dialogue import Message, Speaker
from pawl.core.run import Mode, Reasoning, RoleName, RunCursor, RunRequest, RunTerms, Task
from pawl.workspace.project import Project

TASKS = (
    Task(number=1, what="say Hi", paths=("src/greeter.py",)),
    Task(number=2, what="tell of it", paths=("NEWS.md",), creates=("NEWS.md",)),
)


@pytest.fixture
def record(shop: Project) -> RunRecord:
    order = RunRequest(text="greet with Hi")
    shop.store.runs.begin(shop.workspace, RunCursor(shop.run_id, "act"), order)
    made = RunRecord(shop, order, shop.run_id)
    made.keep(replace(made.data, plan=TASKS, last_talk={"1": "1.1"}, refused=("tests: 1 failed",)))
    return made


def line(characters: int, talk: str = "2.1") -> TurnInput:
    said = Message(speaker=Speaker.USER, text="word " * (characters // 5))
    return TurnInput(talk=talk, role=RoleName.ARTISAN, text="Now task 2.", history=(said,))


@pytest.mark.spec("A9", "E1")
def test_past_the_critical_mark_a_talk_begins_with_what_is_at_hand(shop: Project, record: RunRecord):
    with ToolSession(shop) as desk:
        fresh = afresh(line(400_000), record, desk.files)
        assert fresh.history == ()
        for words in (
            "Now task 2.",
            "- greet with Hi",
            "1. say Hi (worked on)",
            "2. tell of it (to do)",
            "- tests: 1 failed",
        ):
            assert words in fresh.text
        assert "src/greeter.py as it stands now:" in fresh.text and "Hello" in fresh.text
        desk.files.write("src/greeter.py", b"changed meanwhile")
        assert afresh(line(400_000), record, desk.files) == fresh
    assert "began afresh" in [event["kind"] for event in shop.store.events.read(shop.workspace, run=shop.run_id)]


@pytest.mark.spec("E1")
@pytest.mark.parametrize("characters", [0, 100, 200_000])
def test_below_it_the_dialogue_goes_on(shop: Project, record: RunRecord, characters: int):
    with ToolSession(shop) as desk:
        assert afresh(line(characters), record, desk.files) == line(characters)


@pytest.mark.spec("C13")
def test_the_worksheet_names_the_request_and_the_tasks_that_come_later(shop: Project, record: RunRecord):
    terms = RunTerms(run=record.run, conversation="c", mode=Mode.AGENT, reasoning=Reasoning.OFF, model="here/m")
    watch = ContextWatch(shop, terms)
    watch.begin(record.order.text, later_tasks(line(10, talk="1.2"), record))
    assert watch.worksheet.text == "Task: greet with Hi\nNext:\n- tell of it"
    assert later_tasks(line(10, talk="2.1"), record) == later_tasks(line(10, talk="tier 1 artisan"), record) == []


def test_what_was_said_before_the_run_is_not_left(shop: Project, record: RunRecord):
    record.keep(replace(record.data, last_talk={}))
    with ToolSession(shop) as desk:
        assert afresh(line(400_000), record, desk.files) == line(400_000)
