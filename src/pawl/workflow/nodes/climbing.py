"""The ladder: attempts on tiers, each with a fresh context, until the checks accept one or a limit is reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from pawl.core.errors import BudgetExceeded, LimitReached, PawlError
from pawl.core.run import DeliveryState
from pawl.core.runs import Place, Trouble
from pawl.core.tiers import StopReason
from pawl.workflow import planning
from pawl.workflow.evidence import Checked, counts_json
from pawl.workflow.nodes.changing import wanted
from pawl.workflow.routing import Outcome
from pawl.workflow.workbench import Climbed, Workbench

_LIMITS: Mapping[StopReason, type[PawlError]] = {
    StopReason.MONEY: BudgetExceeded,
    StopReason.ITERATIONS: LimitReached,
    StopReason.TIME: LimitReached,
}
ADVICE = {
    StopReason.MONEY: "allow more with --max-cost or --max-tokens, or use a cheaper model",
    StopReason.ITERATIONS: "allow more with --max-iterations",
    StopReason.TIME: "allow more with --max-minutes",
}


def climb(bench: Workbench, place: Place) -> Outcome:
    """Climbs; what the checks accepted stands on the bench of the run then, or else the best that came of it."""
    record = bench.record
    assert bench.climber is not None
    came = bench.climber.climb(wanted(bench))
    record.put("answer", came.answer)
    record.put("notes", list(came.notes))
    if came.why is None:
        record.deliver(DeliveryState.DONE)
        return Outcome.NOTHING
    bench.works.clear()
    if came.changes:
        bench.works.adopt(came.changes)
    if not came.accepted:
        return _given_up(bench, came)
    assert came.checked is not None
    # Where the user has changed the files meanwhile, the work is verified as one task.
    record.put("plan", planning.to_json(planning.as_one(record.order.text)))
    _keep(bench, came.checked)
    return Outcome.DONE


def _keep(bench: Workbench, checked: Checked) -> None:
    record, tests = bench.record, checked.tests
    record.put("verified", checked.digest)
    record.put("verdicts", [[one.step, one.standing, one.reason] for one in checked.verdicts])
    record.put("before counts", counts_json(checked.before.counts))
    record.put("after", counts_json(tests.counts) if tests else None)
    record.put("refused", [])


def _given_up(bench: Workbench, came: Climbed) -> Outcome:
    assert came.why is not None
    bench.record.put("refused", [came.reason])
    kind = _LIMITS.get(came.why)
    if kind is not None:
        error = kind(came.reason, advice=ADVICE[came.why])
        trouble = Trouble(code=error.code, message=error.message, advice=error.advice, exit_code=error.exit_code)
        bench.record.put("trouble", asdict(trouble))
    return Outcome.GIVE_UP
