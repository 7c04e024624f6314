"""The delivery of a request: how each of its tasks ended, and the one decision on what came of it."""

from __future__ import annotations

from dataclasses import replace

from pawl.agent.context import LoopEnd
from pawl.agent.record import RunData, RunRecord
from pawl.agent.routes import NodeOutcome
from pawl.agent.works import BenchWorks
from pawl.core.diagnostic import TestCounts, Verdict
from pawl.core.errors import Conflicted
from pawl.core.run import DeliveryState, RunCursor, TaskOutcome, TaskState
from pawl.core.typed import typed

UNCHANGED = "nothing was changed for it"
"""Why a task counts as failed unless the delivery check finds it fulfilled."""


def delivery_of(data: RunData, *, promoted: bool) -> DeliveryState:
    """Decide the delivery: promoted is done unless part of the request is refused; unproved work is kept."""
    if promoted:
        left = data.fulfilment is not None and data.fulfilment.open_parts
        failed = any(one.state is not TaskState.DONE for one in data.task_ends)
        return DeliveryState.PARTLY if data.refused or left or failed else DeliveryState.DONE
    unfulfilled = data.fulfilment is not None and data.fulfilment.nothing_fulfilled
    stopped = unfulfilled or data.refused or data.rejected is not None or data.trouble is not None
    unproved = data.verdict is Verdict.UNVERIFIED and not stopped
    return DeliveryState.UNVERIFIED if unproved else DeliveryState.NEEDS_WORK


def end_task(record: RunRecord, number: int, state: TaskState, reason: str = "", entry: int | None = None) -> None:
    """Keep what became of a task."""
    what = record.data.plan[number - 1].what.partition("\n\n")[0]
    end = TaskOutcome(number=number, what=what, state=state, reason=reason, entry=entry)
    others = (one for one in record.data.task_ends if one.number != number)
    record.keep(replace(record.data, task_ends=(*others, end)))


def give_up_task(record: RunRecord, works: BenchWorks, place: RunCursor) -> NodeOutcome:
    """One of several tasks failed: its work is kept by itself, the bench falls back to what was verified, and the next
    task is begun, as long as there is time."""
    data, plan = record.data, record.data.plan
    out = data.ended in (LoopEnd.OUT_OF_TIME, LoopEnd.OUT_OF_TURNS)
    reason = "; ".join(data.refused) or str(data.ended).replace("_", " ")
    if len(plan) < 2:
        end_task(record, place.task, TaskState.FAILED, reason)
        return NodeOutcome.GIVE_UP
    try:
        made = works.now().changes
    except Conflicted:
        return NodeOutcome.GIVE_UP
    settled = works.settled
    known = works.roll_back()
    if known is None and settled:
        return NodeOutcome.GIVE_UP
    if known is None:
        works.clear()
    own = settled.inverted().then(made)
    title = f"task {place.task}: {plan[place.task - 1].what}"
    entry = works.keep(own, title, str(data.verdict or "not verified")) if own else None
    end_task(record, place.task, TaskState.FAILED, reason, entry)
    record.note("task failed", {"task": place.task, "entry": entry})
    if place.task < len(plan) and not out:
        return NodeOutcome.NEXT
    if known is None:
        record.keep(replace(record.data, kept=entry))
        return NodeOutcome.GIVE_UP
    verified = known.verification
    record.keep(
        replace(
            record.data,
            verified=known.changes.digest if known.changes.digest == settled.digest else "",
            verdict=Verdict(str(verified["verdict"])),
            refused=(),
            after=typed(TestCounts, verified["tests"]) if verified["tests"] else None,
            verdicts=tuple((step, str(standing), "") for step, standing in dict(verified["checks"]).items()),  # type: ignore[call-overload]
        )
    )
    return NodeOutcome.DONE
