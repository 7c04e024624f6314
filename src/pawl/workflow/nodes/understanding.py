"""What the request asks for, and the tasks that it is cut into."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pawl.core.errors import SchemaUnmet
from pawl.core.run import Mode, RoleName, Stage
from pawl.core.runs import Intent, Place
from pawl.workflow import planning
from pawl.workflow.intents import Understood, own_words, understood
from pawl.workflow.routing import Outcome
from pawl.workflow.workbench import Line, Workbench

if TYPE_CHECKING:
    from pawl.workflow import contract_models


def intent(bench: Workbench, place: Place) -> Outcome:
    """Obvious requests are understood without a model; with none configured, the rest is a question for one."""
    record = bench.record
    known = record.value("intent")
    if isinstance(known, dict):
        return Outcome(known["intent"])
    chat = record.order.mode is Mode.CHAT
    if record.order.loop.get("ladder"):
        found = Understood(intent=Intent.LOOP)
    else:
        # Chat reads and answers, whatever is asked for, so that a model need not be asked what that is.
        found = understood(record.order.text, bench.phrases()) or (
            Understood(intent=Intent.READ) if chat else _asked(bench)
        )
    chosen = found.intent
    if chat and chosen in (Intent.EDIT, Intent.MEND, Intent.UNDO):
        chosen = Intent.READ
    record.put("intent", {"intent": chosen, "command": found.command, "summary": found.summary})
    record.note("intent", {"intent": chosen})
    return Outcome(chosen.value)


def _asked(bench: Workbench) -> Understood:
    order = bench.record.order
    history = bench.talks.earlier()
    line = Line(talk="intent", role=RoleName.ARTISAN, text=order.text, stage=Stage.INTENT, history=history)
    try:
        spoken = bench.talks.say(line)
    except SchemaUnmet as error:
        # Plain questions and commands are known without a model; a model that cannot say what is left may still do it.
        bench.record.note("intent unclear", {"error": error.code})
        return Understood(intent=Intent.EDIT)
    value: contract_models.Intent = spoken.value  # type: ignore[assignment]
    return Understood(intent=Intent(value.intent), command=value.command, summary=value.summary)


def plan(bench: Workbench, place: Place) -> Outcome:
    """One task where the request is small; the form's own steps; else what a planner makes of it."""
    record = bench.record
    if record.value("plan") is not None:
        return Outcome.DONE
    request = record.order.text
    tasks = planning.from_form(request)
    if not tasks and planning.is_large(own_words(request)):
        line = Line(talk="plan", role=RoleName.PLANNER, text=request, stage=Stage.PLAN, history=bench.talks.earlier())
        try:
            value: contract_models.PlannerAnswer = bench.talks.say(line).value  # type: ignore[assignment]
            tasks = planning.from_plan(request, [one.model_dump() for one in value.plan], bench.works.order)
        except SchemaUnmet as error:
            record.note("no plan", {"error": error.code})
    tasks = tasks or planning.as_one(request)
    record.put("plan", planning.to_json(tasks))
    record.note("plan", {"tasks": [task.what[:200] for task in tasks]})
    return Outcome.DONE
