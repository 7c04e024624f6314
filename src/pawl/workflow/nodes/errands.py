"""What needs no change of ours: a question, a command, an undo, what Pawl can do. The reflex stands here too."""

from __future__ import annotations

from collections.abc import Callable

from pawl.core.run import DeliveryState
from pawl.core.runs import Place
from pawl.workflow import planning
from pawl.workflow.evidence import counts_json
from pawl.workflow.routing import Outcome
from pawl.workflow.workbench import Errand, Workbench


def read(bench: Workbench, place: Place) -> Outcome:
    return _done(bench, bench.errands.read)


def run(bench: Workbench, place: Place) -> Outcome:
    known = bench.record.value("intent")
    command = str(known["command"]) if isinstance(known, dict) else ""
    return _done(bench, lambda: bench.errands.run(command))


def undo(bench: Workbench, place: Place) -> Outcome:
    return _done(bench, bench.errands.undo)


def profile(bench: Workbench, place: Place) -> Outcome:
    return _done(bench, bench.errands.profile)


def mend(bench: Workbench, place: Place) -> Outcome:
    """The cheapest thing that works goes first: a search without a model. What it leaves goes to one."""
    record = bench.record
    if record.value("mend") is None:
        changes, reason, advice = bench.errands.mend()
        if changes:
            record.keep_work("mended", changes)
        record.put("mend", {"found": bool(changes), "reason": reason, "advice": advice})
        record.note("mend", {"found": bool(changes), "reason": reason})
    known = record.value("mend")
    assert isinstance(known, dict)
    mended = record.work("mended")
    if known["found"] and mended is not None:
        bench.works.adopt(mended)
        record.put("plan", planning.to_json(planning.as_one(record.order.text)))
        record.put("answer", "The reflex mended it; no model was asked.")
        return Outcome.DONE
    if bench.talks.configured and known["reason"] != NOTHING_FAILS:
        return Outcome.EDIT
    state = DeliveryState.DONE if known["reason"] == NOTHING_FAILS else DeliveryState.NEEDS_WORK
    record.put("answer", "\n".join(filter(None, (known["reason"], known["advice"]))))
    record.deliver(state)
    return Outcome.NOTHING


NOTHING_FAILS = "nothing fails"


def _done(bench: Workbench, errand: Callable[[], Errand]) -> Outcome:
    """An errand is run once; what came of it is the answer, and whether it succeeded the delivery."""
    record = bench.record
    if record.value("errand") is None:
        came = errand()
        record.put("answer", came.text)
        record.put(
            "errand",
            {
                "exit_code": came.exit_code,
                "ended": came.ended,
                "kept": came.kept,
                "entry": came.entry,
                "conversation": came.conversation,
                "verdicts": [[one.step, one.standing, one.reason] for one in came.verdicts],
                "after": next((counts_json(one.counts) for one in came.verdicts if one.counts), None),
            },
        )
        record.deliver(DeliveryState.DONE if came.exit_code == 0 else DeliveryState.NEEDS_WORK)
    return Outcome.DONE
