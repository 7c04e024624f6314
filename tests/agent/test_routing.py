"""The way of a run is a table: total, ending everywhere, and as the page draws it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pawl.agent.executor import NODES
from pawl.agent.routes import NEXT, NodeOutcome, RunNode, after, drawn, moved
from pawl.core.run import RunCursor

EVERY = list(itertools.product(RunNode, NodeOutcome))


@pytest.mark.spec("B1")
@pytest.mark.parametrize(("node", "outcome"), EVERY)
def test_every_outcome_of_every_node_leads_somewhere(node: RunNode, outcome: NodeOutcome):
    following = after(node, outcome)
    assert following is RunNode.END or following in NODES


@pytest.mark.spec("B1")
def test_whatever_happens_a_run_ends_and_comes_by_the_evaluator():
    """No node can be reached from which the end cannot, and only the report leads to the end."""
    reaches = {RunNode.END}
    while more := {node for node in RunNode if node not in reaches and reaches & set(NEXT[node].values())}:
        reaches |= more
    assert reaches == set(RunNode)
    assert [node for node in NODES if RunNode.END in NEXT[node].values()] == [RunNode.REPORT]
    assert [node for node in NODES if RunNode.REPORT in NEXT[node].values()] == [RunNode.EVALUATE]


@pytest.mark.spec("A1", "B1")
def test_a_change_is_planned_proved_made_verified_delivered_approved_and_applied():
    way = [
        (RunNode.INTENT, NodeOutcome.EDIT),
        (RunNode.PLAN, NodeOutcome.DONE),
        (RunNode.PROVE, NodeOutcome.DONE),
        (RunNode.ACT, NodeOutcome.DONE),
        (RunNode.VERIFY, NodeOutcome.DONE),
        (RunNode.QA, NodeOutcome.DONE),
        (RunNode.DELIVER, NodeOutcome.ASK),
        (RunNode.APPROVE, NodeOutcome.APPROVED),
        (RunNode.APPLY, NodeOutcome.DONE),
        (RunNode.EVALUATE, NodeOutcome.DONE),
        (RunNode.REPORT, NodeOutcome.DONE),
    ]
    following = [node for node, _ in way[1:]] + [RunNode.END]
    assert [after(node, outcome) for node, outcome in way] == following


@pytest.mark.spec("A1")
@pytest.mark.parametrize(
    "node", [RunNode.PROVE, RunNode.ACT, RunNode.VERIFY, RunNode.DELIVER, RunNode.APPROVE, RunNode.APPLY]
)
def test_what_fails_on_the_way_of_a_change_is_kept_and_not_promoted(node: RunNode):
    assert after(node, NodeOutcome.FAILED) is RunNode.KEEP
    assert RunNode.APPLY not in NEXT[RunNode.KEEP].values()


@pytest.mark.spec("B8")
def test_a_retry_is_another_attempt_and_a_new_task_begins_with_its_first():
    assert moved(RunCursor("r1", "verify", 1, 2), NodeOutcome.RETRY) == RunCursor("r1", "act", 1, 3)
    assert moved(RunCursor("r1", "verify", 1, 3), NodeOutcome.NEXT) == RunCursor("r1", "prove", 2, 1)
    assert moved(RunCursor("r1", "prove", 2, 1), NodeOutcome.DONE) == RunCursor("r1", "act", 2, 1)


def test_only_what_was_approved_is_applied():
    ways = {(node, outcome) for node, outcome in EVERY if after(node, outcome) is RunNode.APPLY}
    assert ways == {(RunNode.APPROVE, NodeOutcome.APPROVED), (RunNode.DELIVER, NodeOutcome.APPROVED)}


def test_the_diagram_of_the_pages_is_drawn_from_the_table():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    assert f"<!-- graph -->\n```mermaid\n{drawn()}```\n<!-- end -->" in page
