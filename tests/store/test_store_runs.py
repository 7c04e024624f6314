"""Records of runs: what was written once stays, what was kept comes back, what an ended run needs no more goes."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import UnknownEntry
from pawl.core.run import Approval, DeliveryState, Mode, RunCursor, RunRequest, RunState
from pawl.store.store import Store

WORKSPACE = "/home/user/project"
PLACE = RunCursor("r1", "intent")
ORDER = RunRequest(
    text="fix it", approval=Approval.NEVER, mode=Mode.CHAT, test_command=("make", "test"), budget={"turns": 3}
)


@pytest.fixture
def store(state_directory: Path):
    with Store.open(state_directory) as opened:
        opened.runs.begin(WORKSPACE, PLACE, ORDER)
        yield opened


def test_a_run_comes_back_as_it_was_ordered_and_where_it_stands(store: Store):
    store.runs.stand(RunCursor("r1", "verify", 2, 3), RunState.WAITING)
    row = store.runs.get(WORKSPACE, "r1")
    assert (row.order, row.place, row.state) == (ORDER, RunCursor("r1", "verify", 2, 3), RunState.WAITING)
    assert [one.id for one in store.runs.list(WORKSPACE, state=RunState.WAITING)] == ["r1"]
    assert store.runs.list(WORKSPACE, state=RunState.ENDED) == []


def test_a_run_of_another_workspace_is_not_found_and_the_latest_are_named(store: Store):
    with pytest.raises(UnknownEntry):
        store.runs.get("/elsewhere", "r1")
    with pytest.raises(UnknownEntry) as raised:
        store.runs.get(WORKSPACE, "r9")
    assert "r1" in raised.value.advice


@pytest.mark.spec("C5")
def test_the_delivery_is_written_once_and_nothing_erases_it(store: Store):
    assert store.runs.deliver("r1", DeliveryState.NEEDS_WORK) is DeliveryState.NEEDS_WORK
    assert store.runs.deliver("r1", DeliveryState.DONE) is DeliveryState.NEEDS_WORK
    file = sqlite3.connect(store.path)
    for statement in ("UPDATE run SET delivery = 'DONE'", "UPDATE run SET delivery = NULL", "DELETE FROM run"):
        with pytest.raises(sqlite3.IntegrityError):
            file.execute(statement)
    file.close()
    assert store.runs.get(WORKSPACE, "r1").delivery is DeliveryState.NEEDS_WORK


@pytest.mark.spec("B11")
def test_the_evaluation_log_is_append_only_and_has_one_line_for_each_run(store: Store):
    store.runs.evaluate(WORKSPACE, "r1", 4, reason="no test", judge="rules")
    store.runs.evaluate(WORKSPACE, "r1", 1, reason="again", judge="model")
    assert [(one["run"], one["score"]) for one in store.runs.evaluations(WORKSPACE)] == [("r1", 4)]
    file = sqlite3.connect(store.path)
    with pytest.raises(sqlite3.IntegrityError):
        file.execute("DELETE FROM evaluation")
    file.close()


def test_values_and_steps_come_back_and_the_newest_value_counts(store: Store):
    store.runs.put("r1", "plan", [{"what": "a"}])
    store.runs.put("r1", "plan", [{"what": "b"}])
    store.runs.add_step("r1", "1.1", 0, {"kind": "answer"})
    store.runs.add_step("r1", "1.1", 1, {"kind": "call"})
    assert store.runs.value("r1", "plan") == [{"what": "b"}]
    assert store.runs.value("r1", "nothing") is None
    assert [step["kind"] for step in store.runs.steps("r1", "1.1")] == ["answer", "call"]


@pytest.mark.attack("A30")
def test_secrets_do_not_reach_the_record(store: Store):
    key = "sk-proj-" + "a1B2c3D4" * 6
    store.runs.put("r1", "answer", f"the key is {key}")
    store.runs.begin(WORKSPACE, RunCursor("r2", "intent"), RunRequest(text=f"use {key}"))
    assert key not in str(store.runs.value("r1", "answer"))
    assert key not in store.runs.get(WORKSPACE, "r2").order.text


def test_what_a_run_has_changed_is_held_in_the_store_until_it_ends(store: Store):
    blobs = [store.blobs.put(text) for text in (b"old\n", b"new\n")]
    changes = ChangeSet.of([Change("a.txt", Node.file(blobs[0]), Node.file(blobs[1]))])
    store.runs.keep_work("r1", "bench", ChangeSet())
    store.runs.keep_work("r1", "bench", changes)
    store.collect(grace_seconds=0)
    assert store.runs.work("r1", "bench") == changes
    assert store.blobs.get(blobs[1]) == b"new\n"
    store.runs.end(RunCursor("r1", "end"))
    assert store.runs.work("r1", "bench") is None
    assert store.runs.get(WORKSPACE, "r1").state is RunState.ENDED
    assert store.collect(grace_seconds=0) > 0
    assert store.integrity() == []


def test_what_is_written_together_is_there_together_or_not_at_all(store: Store):
    with pytest.raises(ZeroDivisionError), store.together():
        store.runs.put("r1", "half", 1)
        raise ZeroDivisionError
    assert store.runs.value("r1", "half") is None
