"""The way of a run as one table: from a node and how it ended to the next node. Pure, and total.

What the table does not name leads to the report, so that every path ends there, by way of the evaluator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from types import MappingProxyType

from pawl.core.run import RunCursor

RETRIES = 3
"""How often a task is tried again with what its verification said (B8)."""


class RunNode(StrEnum):
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


class NodeOutcome(StrEnum):
    """How a node ended."""

    READ = "read"
    EDIT = "edit"
    FIX = "fix"
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
    """The shown state is out of date."""
    FAILED = "failed"


_NEXT: Mapping[RunNode, Mapping[NodeOutcome, RunNode]] = {
    RunNode.INTENT: {
        NodeOutcome.READ: RunNode.READ,
        NodeOutcome.EDIT: RunNode.PLAN,
        NodeOutcome.FIX: RunNode.MEND,
        NodeOutcome.RUN: RunNode.RUN,
        NodeOutcome.UNDO: RunNode.UNDO,
        NodeOutcome.PROFILE: RunNode.PROFILE,
        NodeOutcome.LOOP: RunNode.CLIMB,
    },
    RunNode.READ: {NodeOutcome.ASK: RunNode.APPROVE},
    RunNode.MEND: {NodeOutcome.DONE: RunNode.VERIFY, NodeOutcome.EDIT: RunNode.PLAN},
    RunNode.PLAN: {NodeOutcome.DONE: RunNode.PROVE},
    RunNode.PROVE: {NodeOutcome.DONE: RunNode.ACT, NodeOutcome.GIVE_UP: RunNode.KEEP, NodeOutcome.FAILED: RunNode.KEEP},
    RunNode.ACT: {
        NodeOutcome.DONE: RunNode.VERIFY,
        NodeOutcome.ASK: RunNode.APPROVE,
        NodeOutcome.GIVE_UP: RunNode.KEEP,
        NodeOutcome.FAILED: RunNode.KEEP,
    },
    RunNode.VERIFY: {
        NodeOutcome.DONE: RunNode.QA,
        NodeOutcome.NEXT: RunNode.PROVE,
        NodeOutcome.NOTHING: RunNode.DELIVER,
        NodeOutcome.RETRY: RunNode.ACT,
        NodeOutcome.ESCALATE: RunNode.CLIMB,
        NodeOutcome.GIVE_UP: RunNode.KEEP,
        NodeOutcome.FAILED: RunNode.KEEP,
    },
    RunNode.CLIMB: {
        NodeOutcome.DONE: RunNode.QA,
        NodeOutcome.GIVE_UP: RunNode.KEEP,
        NodeOutcome.FAILED: RunNode.KEEP,
    },
    # The review is advice: it may ask for one more attempt, and whatever becomes of it the work is delivered.
    RunNode.QA: {
        NodeOutcome.DONE: RunNode.DELIVER,
        NodeOutcome.RETRY: RunNode.ACT,
        NodeOutcome.FAILED: RunNode.DELIVER,
    },
    RunNode.DELIVER: {
        NodeOutcome.ASK: RunNode.APPROVE,
        NodeOutcome.APPROVED: RunNode.APPLY,
        NodeOutcome.STALE: RunNode.VERIFY,
        NodeOutcome.GIVE_UP: RunNode.KEEP,
        NodeOutcome.FAILED: RunNode.KEEP,
    },
    RunNode.APPROVE: {
        NodeOutcome.APPROVED: RunNode.APPLY,
        NodeOutcome.ANSWERED: RunNode.ACT,
        NodeOutcome.READ: RunNode.READ,
        NodeOutcome.REJECTED: RunNode.KEEP,
        NodeOutcome.FAILED: RunNode.KEEP,
    },
    RunNode.APPLY: {NodeOutcome.STALE: RunNode.DELIVER, NodeOutcome.FAILED: RunNode.KEEP},
    RunNode.REPORT: dict.fromkeys(NodeOutcome, RunNode.END),
    RunNode.EVALUATE: dict.fromkeys(NodeOutcome, RunNode.REPORT),
    RunNode.END: dict.fromkeys(NodeOutcome, RunNode.END),
}
NEXT: Mapping[RunNode, Mapping[NodeOutcome, RunNode]] = MappingProxyType(
    {
        node: MappingProxyType(dict.fromkeys(NodeOutcome, RunNode.EVALUATE) | dict(_NEXT.get(node, {})))
        for node in RunNode
    }
)
"""For every node and every outcome."""


def drawn() -> str:
    """The table as a Mermaid diagram, for the pages; what it does not name leads to the evaluator."""
    lines = ["flowchart TD"]
    for node, ways in _NEXT.items():
        by_target: dict[RunNode, list[str]] = {}
        for outcome, following in ways.items():
            by_target.setdefault(following, []).append(outcome)
        for following, outcomes in by_target.items():
            words = ", ".join(outcomes) if len(outcomes) < len(NodeOutcome) else ""
            # `end` is a word of the language of the diagrams.
            drawn = "ended([end])" if following is RunNode.END else str(following)
            lines.append(f"    {node} -->{f'|{words}|' if words else ''} {drawn}")
    lines += [f"    {node} --> {RunNode.EVALUATE}" for node in RunNode if node not in _NEXT]
    return "\n".join(line for line in lines if not line.startswith(f"    {RunNode.END} ")) + "\n"


def after(node: RunNode, outcome: NodeOutcome) -> RunNode:
    return NEXT[node][outcome]


def moved(place: RunCursor, outcome: NodeOutcome) -> RunCursor:
    """Where the run stands after a node ended so: a retry is another attempt, and a new task begins with its first."""
    node = after(RunNode(place.at), outcome).value
    if outcome is NodeOutcome.RETRY:
        return replace(place, at=node, attempt=place.attempt + 1)
    if outcome is NodeOutcome.NEXT:
        return replace(place, at=node, task=place.task + 1, attempt=1)
    return replace(place, at=node)
