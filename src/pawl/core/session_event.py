"""What happens to a run as a whole, beside what its talks and checks say: begun, moved on, asked, ended."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.runs import Order, Place, Question, Report


@dataclass(frozen=True, slots=True, kw_only=True)
class RunBegun:
    """A run is under way: a new one, or one that goes on."""

    run: str
    conversation: str
    order: Order
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class NodeEntered:
    """The run has come to a node of the graph."""

    place: Place


@dataclass(frozen=True, slots=True)
class QueueChanged:
    """The follow-ups that wait for the present request to end, in their order."""

    waiting: tuple[Order, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The run waits for the user."""

    run: str
    question: Question


@dataclass(frozen=True, slots=True, kw_only=True)
class HookSaid:
    """A hook has something to say to the user, or failed."""

    event: str
    text: str


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run stands still: it has ended, waits, or can be resumed. The last event of each command."""

    report: Report


SessionEvent = RunBegun | NodeEntered | QueueChanged | HookSaid | Asked | RunEnded
