"""What needs no change of ours: a question, a command, an undo, what Pawl can do. The reflex stands here too."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pawl.agent import planning
from pawl.agent.context import TurnInput
from pawl.agent.errands import NOTHING_FAILS, Action
from pawl.agent.intents import IntentGuess, own_words, understood
from pawl.agent.routing import NodeOutcome
from pawl.agent.workbench import Workbench
from pawl.core.diagnostic import counts_json
from pawl.core.errors import SchemaUnmet
from pawl.core.run import DeliveryState, Intent, Mode, RoleName, RunCursor, Stage

if TYPE_CHECKING:
    from pawl.agent import contract_models


def read(bench: Workbench, place: RunCursor) -> NodeOutcome:
    return _done(bench, bench.errands.read)


def run(bench: Workbench, place: RunCursor) -> NodeOutcome:
    known = bench.record.value("intent")
    command = str(known["command"]) if isinstance(known, dict) else ""
    return _done(bench, lambda: bench.errands.run(command))


def undo(bench: Workbench, place: RunCursor) -> NodeOutcome:
    return _done(bench, bench.errands.undo)


def profile(bench: Workbench, place: RunCursor) -> NodeOutcome:
    return _done(bench, bench.errands.profile)


def mend(bench: Workbench, place: RunCursor) -> NodeOutcome:
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
        return NodeOutcome.DONE
    if bench.talks.configured and known["reason"] != NOTHING_FAILS:
        return NodeOutcome.EDIT
    state = DeliveryState.DONE if known["reason"] == NOTHING_FAILS else DeliveryState.NEEDS_WORK
    record.put("answer", "\n".join(filter(None, (known["reason"], known["advice"]))))
    record.deliver(state)
    return NodeOutcome.NOTHING


def _done(bench: Workbench, errand: Callable[[], Action]) -> NodeOutcome:
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
    return NodeOutcome.DONE


def intent(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Obvious requests are understood without a model; with none configured, the rest is a question for one."""
    record = bench.record
    known = record.value("intent")
    if isinstance(known, dict):
        return NodeOutcome(known["intent"])
    chat = record.order.mode is Mode.CHAT
    if record.order.loop.get("ladder"):
        found = IntentGuess(intent=Intent.LOOP)
    else:
        # Chat reads and answers, whatever is asked for, so that a model need not be asked what that is.
        found = understood(record.order.text, bench.phrases()) or (
            IntentGuess(intent=Intent.READ) if chat else _asked(bench)
        )
    chosen = found.intent
    if chat and chosen in (Intent.EDIT, Intent.MEND, Intent.UNDO):
        chosen = Intent.READ
    record.put("intent", {"intent": chosen, "command": found.command, "summary": found.summary})
    record.note("intent", {"intent": chosen})
    return NodeOutcome(chosen.value)


def _asked(bench: Workbench) -> IntentGuess:
    order = bench.record.order
    history = bench.talks.earlier()
    line = TurnInput(talk="intent", role=RoleName.ARTISAN, text=order.text, stage=Stage.INTENT, history=history)
    try:
        spoken = bench.talks.say(line)
    except SchemaUnmet as error:
        # Plain questions and commands are known without a model; a model that cannot say what is left may still do it.
        bench.record.note("intent unclear", {"error": error.code})
        return IntentGuess(intent=Intent.EDIT)
    value: contract_models.IntentAnswer = spoken.value  # type: ignore[assignment]
    return IntentGuess(intent=Intent(value.intent), command=value.command, summary=value.summary)


def plan(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """One task where the request is small; the form's own steps; else what a planner makes of it."""
    record = bench.record
    if record.value("plan") is not None:
        return NodeOutcome.DONE
    request = record.order.text
    tasks = planning.from_form(request)
    if not tasks and planning.is_large(own_words(request)):
        line = TurnInput(
            talk="plan", role=RoleName.PLANNER, text=request, stage=Stage.PLAN, history=bench.talks.earlier()
        )
        try:
            value: contract_models.PlannerAnswer = bench.talks.say(line).value  # type: ignore[assignment]
            tasks = planning.from_plan(request, [one.model_dump() for one in value.plan], bench.works.order)
        except SchemaUnmet as error:
            record.note("no plan", {"error": error.code})
    tasks = tasks or planning.as_one(request)
    record.put("plan", planning.to_json(tasks))
    record.note("plan", {"tasks": [task.what[:200] for task in tasks]})
    return NodeOutcome.DONE
