"""The way of a run as one table: from a node and how it ended to the next node. Pure, and total.

What the table does not name leads to the report, so that every path ends there, by way of the evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from pawl.core.runs import Place

RETRIES = 3
"""How often a task is tried again with what its verification said (B8)."""


class Node(StrEnum):
    INTENT = "intent"
    READ = "read"
    RUN = "run"
    UNDO = "undo"
    PROFILE = "profile"
    MEND = "mend"
    PLAN = "plan"
    PROVE = "prove"
    ACT = "act"
    VERIFY = "verify"
    CLIMB = "climb"
    DELIVER = "deliver"
    APPROVE = "approve"
    APPLY = "apply"
    KEEP = "keep"
    QA = "qa"
    EVALUATE = "evaluate"
    REPORT = "report"
    END = "end"


class Outcome(StrEnum):
    """How a node ended."""

    READ = "read"
    EDIT = "edit"
    MEND = "mend"
    RUN = "run"
    UNDO = "undo"
    PROFILE = "profile"
    LOOP = "loop"
    DONE = "done"
    NEXT = "next"
    """Done, and another task follows."""
    RETRY = "retry"
    GIVE_UP = "give up"
    ESCALATE = "escalate"
    """The checks keep refusing, and the ladder is to be climbed."""
    NOTHING = "nothing"
    """There is no change."""
    ASK = "ask"
    """The user is to be asked."""
    APPROVED = "approved"
    ANSWERED = "answered"
    """A question about one call was answered."""
    REJECTED = "rejected"
    STALE = "stale"
    """What was shown is no longer what there is."""
    FAILED = "failed"


_NEXT: Mapping[Node, Mapping[Outcome, Node]] = {
    Node.INTENT: {
        Outcome.READ: Node.READ,
        Outcome.EDIT: Node.PLAN,
        Outcome.MEND: Node.MEND,
        Outcome.RUN: Node.RUN,
        Outcome.UNDO: Node.UNDO,
        Outcome.PROFILE: Node.PROFILE,
        Outcome.LOOP: Node.CLIMB,
    },
    Node.MEND: {Outcome.DONE: Node.VERIFY, Outcome.EDIT: Node.PLAN},
    Node.PLAN: {Outcome.DONE: Node.PROVE},
    Node.PROVE: {Outcome.DONE: Node.ACT, Outcome.GIVE_UP: Node.KEEP, Outcome.FAILED: Node.KEEP},
    Node.ACT: {
        Outcome.DONE: Node.VERIFY,
        Outcome.ASK: Node.APPROVE,
        Outcome.GIVE_UP: Node.KEEP,
        Outcome.FAILED: Node.KEEP,
    },
    Node.VERIFY: {
        Outcome.DONE: Node.DELIVER,
        Outcome.NEXT: Node.PROVE,
        Outcome.NOTHING: Node.DELIVER,
        Outcome.RETRY: Node.ACT,
        Outcome.ESCALATE: Node.CLIMB,
        Outcome.GIVE_UP: Node.KEEP,
        Outcome.FAILED: Node.KEEP,
    },
    Node.CLIMB: {Outcome.DONE: Node.DELIVER, Outcome.GIVE_UP: Node.KEEP, Outcome.FAILED: Node.KEEP},
    Node.DELIVER: {
        Outcome.ASK: Node.APPROVE,
        Outcome.APPROVED: Node.APPLY,
        Outcome.STALE: Node.VERIFY,
        Outcome.GIVE_UP: Node.KEEP,
        Outcome.FAILED: Node.KEEP,
    },
    Node.APPROVE: {
        Outcome.APPROVED: Node.APPLY,
        Outcome.ANSWERED: Node.ACT,
        Outcome.REJECTED: Node.KEEP,
        Outcome.FAILED: Node.KEEP,
    },
    Node.APPLY: {Outcome.DONE: Node.QA, Outcome.STALE: Node.DELIVER, Outcome.FAILED: Node.KEEP},
    Node.REPORT: dict.fromkeys(Outcome, Node.END),
    Node.EVALUATE: dict.fromkeys(Outcome, Node.REPORT),
    Node.END: dict.fromkeys(Outcome, Node.END),
}
NEXT: Mapping[Node, Mapping[Outcome, Node]] = MappingProxyType(
    {node: MappingProxyType(dict.fromkeys(Outcome, Node.EVALUATE) | dict(_NEXT.get(node, {}))) for node in Node}
)
"""For every node and every outcome."""


def drawn() -> str:
    """The table as a Mermaid diagram, for the pages; what it does not name leads to the evaluator."""
    lines = ["flowchart TD"]
    for node, ways in _NEXT.items():
        by_target: dict[Node, list[str]] = {}
        for outcome, following in ways.items():
            by_target.setdefault(following, []).append(outcome)
        for following, outcomes in by_target.items():
            words = ", ".join(outcomes) if len(outcomes) < len(Outcome) else ""
            lines.append(f"    {node} -->{f'|{words}|' if words else ''} {_drawn(following)}")
    lines += [f"    {node} --> {Node.EVALUATE}" for node in Node if node not in _NEXT]
    return "\n".join(line for line in lines if not line.startswith(f"    {Node.END} ")) + "\n"


def _drawn(node: Node) -> str:
    # `end` is a word of the language of the diagrams.
    return "ended([end])" if node is Node.END else str(node)


def after(node: Node, outcome: Outcome) -> Node:
    return NEXT[node][outcome]


def moved(place: Place, outcome: Outcome) -> Place:
    """Where the run stands after a node ended so: a retry is another attempt, and a new task begins with its first."""
    node = after(Node(place.at), outcome).value
    if outcome is Outcome.RETRY:
        return replace(place, at=node, attempt=place.attempt + 1)
    if outcome is Outcome.NEXT:
        return replace(place, at=node, task=place.task + 1, attempt=1)
    return replace(place, at=node)
