"""The way of a run is a table: total, ending everywhere, and as the page draws it."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pytest

from pawl.core.runs import Place
from pawl.workflow.graph import NODES, Engine, graph
from pawl.workflow.routing import NEXT, Node, Outcome, after, drawn, moved

EVERY = list(itertools.product(Node, Outcome))


@pytest.mark.spec("B1")
@pytest.mark.parametrize(("node", "outcome"), EVERY)
def test_every_outcome_of_every_node_leads_somewhere(node: Node, outcome: Outcome):
    following = after(node, outcome)
    assert following is Node.END or following in NODES


@pytest.mark.spec("B1")
def test_whatever_happens_a_run_ends_and_comes_by_the_evaluator():
    """No node can be reached from which the end cannot, and only the report leads to the end."""
    reaches = {Node.END}
    while more := {node for node in Node if node not in reaches and reaches & set(NEXT[node].values())}:
        reaches |= more
    assert reaches == set(Node)
    assert [node for node in NODES if Node.END in NEXT[node].values()] == [Node.REPORT]
    assert [node for node in NODES if Node.REPORT in NEXT[node].values()] == [Node.EVALUATE]


@pytest.mark.spec("A1", "B1")
def test_a_change_is_planned_proved_made_verified_delivered_approved_and_applied():
    way = [
        (Node.INTENT, Outcome.EDIT),
        (Node.PLAN, Outcome.DONE),
        (Node.PROVE, Outcome.DONE),
        (Node.ACT, Outcome.DONE),
        (Node.VERIFY, Outcome.DONE),
        (Node.DELIVER, Outcome.ASK),
        (Node.APPROVE, Outcome.APPROVED),
        (Node.APPLY, Outcome.DONE),
        (Node.QA, Outcome.DONE),
        (Node.EVALUATE, Outcome.DONE),
        (Node.REPORT, Outcome.DONE),
    ]
    following = [node for node, _ in way[1:]] + [Node.END]
    assert [after(node, outcome) for node, outcome in way] == following


@pytest.mark.spec("A1")
@pytest.mark.parametrize("node", [Node.PROVE, Node.ACT, Node.VERIFY, Node.DELIVER, Node.APPROVE, Node.APPLY])
def test_what_fails_on_the_way_of_a_change_is_kept_and_not_promoted(node: Node):
    assert after(node, Outcome.FAILED) is Node.KEEP
    assert Node.APPLY not in NEXT[Node.KEEP].values()


@pytest.mark.spec("B8")
def test_a_retry_is_another_attempt_and_a_new_task_begins_with_its_first():
    assert moved(Place("r1", "verify", 1, 2), Outcome.RETRY) == Place("r1", "act", 1, 3)
    assert moved(Place("r1", "verify", 1, 3), Outcome.NEXT) == Place("r1", "prove", 2, 1)
    assert moved(Place("r1", "prove", 2, 1), Outcome.DONE) == Place("r1", "act", 2, 1)


def test_only_what_was_approved_is_applied():
    ways = {(node, outcome) for node, outcome in EVERY if after(node, outcome) is Node.APPLY}
    assert ways == {(Node.APPROVE, Outcome.APPROVED), (Node.DELIVER, Outcome.APPROVED)}


def test_the_diagram_of_the_pages_is_drawn_from_the_table():
    page = (Path(__file__).parents[2] / "docs" / "architecture.md").read_text()
    assert f"<!-- graph -->\n```mermaid\n{drawn()}```\n<!-- end -->" in page


@pytest.mark.spec("B1")
def test_the_graph_has_the_ways_of_the_table_and_no_other():
    drawn = graph(lambda place: place).compile().get_graph()
    edges = {(edge.source, edge.target) for edge in drawn.edges if edge.source != "__start__"}
    ends = {(source, "end" if target == "__end__" else target) for source, target in edges}
    assert ends == {(str(node), str(following)) for node in NODES for following in NEXT[node].values()}


@pytest.mark.spec("B1")
@pytest.mark.parametrize("seed", range(12))
def test_the_engine_takes_every_run_the_way_that_the_table_walks_it(seed: int, tmp_path: Path):
    """Some nodes are walked by the table before the engine is loaded: it makes no difference where it takes over."""

    def stepping(seen: list[Place]):
        chance = random.Random(seed)

        def step(place: Place) -> Place:
            seen.append(place)
            return moved(place, chance.choice(list(Outcome)) if len(seen) < 40 else Outcome.FAILED)

        return step

    walked: list[Place] = []
    step, place = stepping(walked), Place(f"r{seed}", Node.INTENT, 1, 1)
    while place.at != Node.END:
        place = step(place)
    for taken_over in (0, len(walked) // 2):
        seen: list[Place] = []
        step, at = stepping(seen), Place(f"r{seed}", Node.INTENT, 1, 1)
        for _ in range(taken_over):
            at = step(at)
        assert Engine(tmp_path).go(at, step) == place
        assert seen == walked
