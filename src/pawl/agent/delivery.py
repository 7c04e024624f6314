"""The delivery of a request: how each of its tasks ended, the one decision on what came of it, and the verdict on what
was kept, when the user promotes it."""

from __future__ import annotations

from dataclasses import replace

from pawl.agent.context import LoopEnd
from pawl.agent.demands import demanded, requirements
from pawl.agent.record import RunData, RunRecord, evidence_of
from pawl.agent.routes import NodeOutcome
from pawl.agent.works import BenchWorks
from pawl.checks.verdict import ChangeVerdict, Evidence, Requirements, decide
from pawl.core.change import ChangeSet, Checkpoint, Entry
from pawl.core.diagnostic import TestCounts, Verdict
from pawl.core.errors import Conflicted, Refused
from pawl.core.run import DeliveryState, Intent, RunCursor, TaskOutcome, TaskState
from pawl.core.typed import typed
from pawl.workspace.project import Project

UNCHANGED = "nothing was changed for it"
"""Why a task counts as failed unless the delivery check finds it fulfilled."""


def delivery_of(data: RunData, *, promoted: bool) -> DeliveryState:
    """Decide the delivery: promoted is done unless part of the request is refused; unproved work is kept."""
    if promoted:
        left = data.fulfilment is not None and data.fulfilment.open_parts
        failed = any(one.state is not TaskState.DONE for one in data.task_ends)
        # A part that the user chose or edited, which nothing proves and with which tests still fail.
        own = data.decision is not None and (bool(data.decision.hunks) or data.decision.edited)
        failed |= own and data.verdict is Verdict.UNVERIFIED and data.after is not None and bool(data.after.failed)
        return DeliveryState.PARTLY if data.refused or left or failed else DeliveryState.DONE
    unfulfilled = data.fulfilment is not None and data.fulfilment.nothing_fulfilled
    stopped = unfulfilled or data.refused or data.rejected is not None or data.trouble is not None
    unproved = data.verdict is Verdict.UNVERIFIED and not stopped
    return DeliveryState.UNVERIFIED if unproved else DeliveryState.NEEDS_WORK


def doubt_unchecked(record: RunRecord) -> None:
    """A change is not called verified of which nobody could say that it is what was asked; but of several parts those
    are that a test demands, and the rest is told."""
    data = record.data
    found = data.fulfilment
    if found is None or found.fulfilled is not None or data.verdict is not Verdict.VERIFIED:
        return
    if not (found.several and data.witnessed and not data.own_only):
        record.doubt(unchecked(found.error))


def unchecked(error: str) -> str:
    return f"whether the request is fulfilled could not be checked ({error})"


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
    entry = works.keep(own, title, str(data.verdict or "not verified"), made.digest) if own else None
    end_task(record, place.task, TaskState.FAILED, reason, entry)
    record.note("task failed", {"task": place.task, "entry": entry})
    if place.task < len(plan) and not out:
        return NodeOutcome.NEXT
    if known is None:
        record.keep(replace(record.data, kept=entry))
        return NodeOutcome.GIVE_UP
    _stand_at(record, known, is_verified=known.changes.digest == settled.digest)
    return NodeOutcome.DONE


def deliver_verified(record: RunRecord, works: BenchWorks) -> bool:
    """Nothing proves the last tasks: fall back to those before them that are verified; whether there are any."""
    whole = works.settled
    known = works.roll_back(accepted=True)
    if known is None or not known.changes or known.changes.digest == whole.digest:
        return False
    last, reason = int(str(known.progress["task"])), "; ".join(record.data.unproved)
    rest = known.changes.inverted().then(whole)
    entry = works.keep(rest, f"after task {last}: {record.order.text}", str(Verdict.UNVERIFIED), whole.digest)
    for task in record.data.plan[last:]:
        end_task(record, task.number, TaskState.FAILED, f"unverified: {reason}", entry)
    _stand_at(record, known, is_verified=True)
    return True


def keep_tasks(record: RunRecord, works: BenchWorks) -> None:
    """Nothing was promoted: each task that has ended has an entry of its own, which can be promoted alone."""
    newest = {int(str(one.progress["task"])): one for one in reversed(works.checkpoints())}
    before, ends = ChangeSet(), {one.number: one for one in record.data.task_ends}
    for task, one in sorted(newest.items()) if len(record.data.plan) > 1 else ():
        own, before = before.inverted().then(one.changes), one.changes
        if own:
            verdict = str(one.verification["verdict"])
            entry = works.keep(own, f"task {task}: {one.progress['what']}", verdict, one.changes.digest)
            state = TaskState.FAILED if verdict == Verdict.UNVERIFIED else TaskState.DONE
            known = ends.get(task, TaskOutcome(number=task, what="", state=state))
            end_task(record, task, known.state, known.reason or f"{verdict}, not promoted", entry)


def _stand_at(record: RunRecord, known: Checkpoint, *, is_verified: bool) -> None:
    """The run stands where the checkpoint was made, and so does what the checks said."""
    verified = known.verification
    record.keep(
        replace(
            record.data,
            verified=known.changes.digest if is_verified else "",
            verdict=Verdict(str(verified["verdict"])),
            refused=(),
            unproved=(),
            after=typed(TestCounts, verified["tests"]) if verified["tests"] else None,
            verdicts=tuple((step, str(standing), "") for step, standing in dict(verified["checks"]).items()),  # type: ignore[call-overload]
        )
    )


def demands_of(record: RunRecord) -> Requirements:
    """The demands of a run's request on the checks."""
    intent, text = record.data.intent, record.order.text
    wanted = requirements(text, mends=intent is not None and intent.intent in (Intent.FIX, Intent.LOOP))
    # A loop that is to fix something needs a witness also where all tests pass.
    fixes = intent is not None and intent.intent is Intent.LOOP and demanded(text).fixes
    return replace(wanted, witness=True) if fixes else wanted


def proved_entry(shop: Project, entry: Entry, changes: ChangeSet) -> tuple[ChangeVerdict, Evidence]:
    """Verify what an agent made and the user promotes; `Refused` where it makes something worse.

    The request of its run says what must pass; what it does not reach by itself is told, and is the user's choice.
    """
    rows = [row for row in shop.store.runs.list(shop.workspace) if row.id == entry.run]
    # Loaded where something is verified.
    from pawl.checks.verifier import Verifier

    wanted, command = Requirements(fixes=True), tuple[str, ...]()
    if rows:
        wanted, command = demands_of(RunRecord(shop, rows[0].order, entry.run)), rows[0].order.test_command
    checked, judgement = Verifier(shop=shop, test_command=command, mends=wanted.witness).proved(changes, wanted)
    worse = decide(checked, wanted.least)
    if worse.verdict is Verdict.FAILED:
        raise Refused(
            f"entry {entry.id} does not pass: {'; '.join(worse.refused)}",
            advice="promote a part of it with --file F, or all of it as it is with --unchecked",
        )
    kept = evidence_of(shop, entry)
    if kept is not None and kept.checked.digest == checked.digest and judgement.verdict is Verdict.VERIFIED:
        # Its run could not tell whether it is what was asked for, and no check can.
        doubted = kept.verdict is Verdict.UNVERIFIED and decide(kept.checked, wanted).verdict is Verdict.VERIFIED
        judgement = replace(judgement, verdict=kept.verdict, unproved=kept.reasons) if doubted else judgement
    return judgement, Evidence.of(checked, judgement)
