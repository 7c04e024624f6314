"""A task: what it needs is there, a role works on it, and machine-run checks say whether that is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from pawl.agent import planning
from pawl.agent.context import LoopEnd, TurnInput, Unanswered
from pawl.agent.evidence import ChangeVerdict, Climbed, Requirements, Verification, failing, judged, to_pass, told
from pawl.agent.intents import tests_may_change
from pawl.agent.routing import RETRIES, NodeOutcome
from pawl.agent.workbench import Workbench
from pawl.core.diagnostic import Status, counts_json
from pawl.core.errors import (
    BudgetExceeded,
    ConfigError,
    Conflicted,
    LimitReached,
    ModelError,
    PawlError,
    PolicyViolation,
    PromptError,
    SchemaUnmet,
    TaskValidationError,
)
from pawl.core.run import DeliveryState, Intent, RoleName, RunCursor, Stage, Task, Trouble
from pawl.core.tiers import EscalationEnd

if TYPE_CHECKING:
    from pawl.agent import contract_models


def prove(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Checks what the task needs, all of it, and takes the baseline that the change will be held against."""
    task = _task(bench, place)
    unmet = bench.works.unmet(task)
    if unmet:
        raise TaskValidationError(
            f"task {task.number} cannot be done: " + "; ".join(unmet), unmet, advice="mend the request or the workspace"
        )
    record = bench.record
    if record.value("before") is None:
        before = bench.works.before()
        record.put(
            "before",
            {
                "counts": counts_json(before.counts),
                "standing": before.standing,
                "reason": before.reason,
                "failing": list(failing(before.findings)),
            },
        )
        record.note("baseline", {"standing": before.standing, "counts": counts_json(before.counts)})
    return NodeOutcome.DONE


def act(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """A role works on the task with the tools, on the bench, within its limits."""
    record = bench.record
    tasks = planning.from_json(record.value("plan"))
    name = f"{place.task}.{place.attempt}"
    if place.attempt == 1:
        text = planning.task_text(tasks[place.task - 1], record.order.text, len(tasks)) + _failing_now(bench)
        first = place.task == 1
        history = bench.talks.earlier() if first else bench.talks.history(_last_talk(bench, place.task - 1))
    else:
        refused = record.value(f"refused {place.task}.{place.attempt - 1}")
        text = str(refused)
        history = bench.talks.history(f"{place.task}.{place.attempt - 1}")
    try:
        spoken = bench.talks.say(TurnInput(talk=name, role=RoleName.ARTISAN, text=text, history=history))
    except Unanswered as waiting:
        record.ask(asdict(waiting.question))
        return NodeOutcome.ASK
    record.put("answer", spoken.text)
    record.put("ended", spoken.ended)
    record.put("last talk", {**_talks(bench), str(place.task): name})
    return NodeOutcome.DONE


def verify(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """The checks decide. What they say is recorded, and told to the role if it is to try again."""
    record = bench.record
    try:
        work = bench.works.now()
    except Conflicted as error:
        record.put("refused", [error.message])
        return NodeOutcome.GIVE_UP
    record.keep_work("shown", work.changes)
    record.put("held", [[one.path, one.reason] for one in work.held])
    if not work.changes:
        return _unchanged(bench, place)
    checked = bench.works.verify(work.changes)
    judgement = judged(checked, wanted(bench))
    _keep(bench, checked, judgement)
    if judgement.accepted:
        if record.value("ended") in (LoopEnd.OUT_OF_TIME, LoopEnd.OUT_OF_TURNS, LoopEnd.STUCK):
            # What is there holds, but the role says itself that it is not all.
            return NodeOutcome.GIVE_UP
        bench.works.settle(place.task)
        return NodeOutcome.NEXT if place.task < len(planning.from_json(record.value("plan"))) else NodeOutcome.DONE
    return _again(bench, place, told(judgement))


def _unchanged(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Nothing was changed: fine where nothing had to be, and no success where something fails that should pass."""
    record = bench.record
    wishes, before = wanted(bench), bench.works.before()
    checked = Verification(digest="", before=before, verdicts=())
    left = to_pass(before.findings, wishes)
    if left and before.standing is Status.FAIL:
        reason = f"tests: {before.reason}; nothing was changed"
        _keep(bench, checked, ChangeVerdict(refused=(reason,), findings=tuple(left)))
        return _again(bench, place, told(ChangeVerdict(refused=(reason,), findings=tuple(left))))
    if place.task < len(planning.from_json(record.value("plan"))):
        return NodeOutcome.NEXT
    return NodeOutcome.NOTHING


def _again(bench: Workbench, place: RunCursor, words: str) -> NodeOutcome:
    """Another attempt with the errors as context, as long as attempts, time and a model are left."""
    record = bench.record
    record.put(f"refused {place.task}.{place.attempt}", words)
    out = record.value("ended") in (LoopEnd.OUT_OF_TIME, LoopEnd.OUT_OF_TURNS, LoopEnd.REFUSED)
    if place.attempt > RETRIES and not out and bench.climb is not None and record.order.loop.get("escalate"):
        return NodeOutcome.ESCALATE
    if place.attempt > RETRIES or out or not bench.talks.configured:
        return NodeOutcome.GIVE_UP
    return NodeOutcome.RETRY


def _keep(bench: Workbench, checked: Verification, judgement: ChangeVerdict) -> None:
    record, tests = bench.record, checked.tests
    record.put("verified", checked.digest)
    record.put("verdicts", [[one.step, one.standing, one.reason] for one in checked.verdicts])
    record.put("after", counts_json(tests.counts) if tests else None)
    record.put("before counts", counts_json(checked.before.counts))
    record.put("refused", list(judgement.refused))
    record.put("notes", list(judgement.notes))
    record.note(
        "verified",
        {
            "accepted": judgement.accepted,
            "verdicts": {one.step: one.standing for one in checked.verdicts},
            "refused": list(judgement.refused),
        },
    )


def _task(bench: Workbench, place: RunCursor) -> Task:
    return planning.from_json(bench.record.value("plan"))[place.task - 1]


def wanted(bench: Workbench) -> Requirements:
    """What the request wants of the checks."""
    order = bench.record.order
    known = bench.record.value("intent")
    mends = isinstance(known, dict) and known["intent"] in (Intent.MEND, Intent.LOOP)
    return Requirements(
        all_tests=mends,
        named=order.text,
        tests_may_change=tests_may_change(order.text),
        tests_must_run=bool(order.test_command),
    )


def _failing_now(bench: Workbench) -> str:
    """What the baseline already knows, so that the role need not run the tests to learn it."""
    before = bench.record.value("before")
    names = before.get("failing") if isinstance(before, dict) else None
    if not names:
        return ""
    shown = "\n".join(f"- {name}" for name in names[:10])
    more = f"\n- and {len(names) - 10} more" if len(names) > 10 else ""
    return f"\n\n[tests that fail now, before any change:\n{shown}{more}]"


def _talks(bench: Workbench) -> dict[str, str]:
    known = bench.record.value("last talk")
    return {str(key): str(value) for key, value in known.items()} if isinstance(known, dict) else {}


def _last_talk(bench: Workbench, task: int) -> str:
    return _talks(bench).get(str(task), f"{task}.1")


_LIMITS: Mapping[EscalationEnd, type[PawlError]] = {
    EscalationEnd.MONEY: BudgetExceeded,
    EscalationEnd.ITERATIONS: LimitReached,
    EscalationEnd.TIME: LimitReached,
}
ADVICE = {
    EscalationEnd.MONEY: "allow more with --max-cost or --max-tokens, or use a cheaper model",
    EscalationEnd.ITERATIONS: "allow more with --max-iterations",
    EscalationEnd.TIME: "allow more with --max-minutes",
}


def climb(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Climbs; what the checks accepted stands on the bench of the run then, or else the best that came of it."""
    record = bench.record
    assert bench.climb is not None
    came = bench.climb(wanted(bench))
    record.put("answer", came.answer)
    record.put("notes", list(came.notes))
    if came.why is None:
        record.deliver(DeliveryState.DONE)
        return NodeOutcome.NOTHING
    bench.works.clear()
    if came.changes:
        bench.works.adopt(came.changes)
    if not came.accepted:
        return _given_up(bench, came)
    assert came.checked is not None
    # Where the user has changed the files meanwhile, the work is verified as one task.
    record.put("plan", planning.to_json(planning.as_one(record.order.text)))
    _keep_best(bench, came.checked)
    return NodeOutcome.DONE


def _keep_best(bench: Workbench, checked: Verification) -> None:
    record, tests = bench.record, checked.tests
    record.put("verified", checked.digest)
    record.put("verdicts", [[one.step, one.standing, one.reason] for one in checked.verdicts])
    record.put("before counts", counts_json(checked.before.counts))
    record.put("after", counts_json(tests.counts) if tests else None)
    record.put("refused", [])


def _given_up(bench: Workbench, came: Climbed) -> NodeOutcome:
    assert came.why is not None
    bench.record.put("refused", [came.reason])
    kind = _LIMITS.get(came.why)
    if kind is not None:
        error = kind(came.reason, advice=ADVICE[came.why])
        trouble = Trouble(code=error.code, message=error.message, advice=error.advice, exit_code=error.exit_code)
        bench.record.put("trouble", asdict(trouble))
    return NodeOutcome.GIVE_UP


LARGE_FILES = 2
"""With `auto`, a change of so many files is looked at."""
_PASSED_OVER = (ModelError, BudgetExceeded, PolicyViolation, PromptError)
"""Advice is not worth failing for."""


def qa(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """A report beside the answer. It is advice: neither the answer nor the delivery changes by it."""
    record = bench.record
    shown = record.work("shown")
    wanted = bench.review == "on" or (bench.review == "auto" and shown is not None and len(shown) >= LARGE_FILES)
    if not wanted or not bench.talks.configured or record.value("review") is not None:
        return NodeOutcome.DONE
    paths = ", ".join(sorted(shown.paths)) if shown is not None else "nothing"
    summary = f"changed: {paths}\nthe checks: {record.value('verdicts')}"
    try:
        spoken = bench.talks.say(
            TurnInput(talk="qa", role=RoleName.REVIEWER, text=record.order.text, stage=Stage.QA, summary=summary)
        )
    except _PASSED_OVER as error:
        record.note("review failed", {"error": error.code})
        return NodeOutcome.DONE
    value: contract_models.ReviewAnswer = spoken.value  # type: ignore[assignment]
    if value is not None:
        record.put(
            "review",
            {
                "summary": value.summary,
                "findings": [f"{one.path}:{one.line} {one.severity}: {one.problem}" for one in value.findings],
                "missing_tests": list(value.missing_tests),
                "confidence": value.confidence,
            },
        )
    return NodeOutcome.DONE


def evaluate(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Every path comes by here: a score from 1 to 5 for the evaluation log."""
    record = bench.record
    score, reason = _by_rules(bench)
    judge = "rules"
    if bench.judge is not None:
        try:
            (score, reason), judge = bench.judge(), "extension"
        except ConfigError as error:
            record.note("evaluation failed", {"error": error.code, "message": error.message})
    elif bench.evaluator == "model" and bench.talks.configured:
        try:
            spoken = bench.talks.say(
                TurnInput(
                    talk="evaluate",
                    role=RoleName.REVIEWER,
                    text=record.order.text,
                    stage=Stage.EVALUATE,
                    outcome=str(record.value("answer") or ""),
                )
            )
            value: contract_models.Score = spoken.value  # type: ignore[assignment]
            score, reason, judge = value.score, value.reason, "model"
        except _PASSED_OVER as error:
            record.note("evaluation failed", {"error": error.code})
    record.put("score", score)
    record.evaluate(score, reason=reason, judge=judge)
    return NodeOutcome.DONE


def report(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """The record is complete; the report is composed from it. A result by a schema of the user's is asked for here."""
    order = bench.record.order
    if order.schema is not None and bench.record.value("structured") is None:
        # Loaded where an answer in JSON is asked for.
        from pawl.agent.contracts import MOST_TRIES, again, asked, fitted

        text = asked(order.schema, order.text, str(bench.record.value("answer") or ""))
        for attempt in range(1, MOST_TRIES + 1):
            line = TurnInput(talk=f"structured.{attempt}", role=RoleName.ARTISAN, text=text, stage=Stage.FINAL)
            said = bench.talks.say(line).text
            value, mistakes = fitted(said, order.schema)
            if not mistakes:
                bench.record.put("structured", value)
                break
            text = again(order.schema, said, mistakes)
        else:
            raise SchemaUnmet("the result does not fit the schema: " + "; ".join(mistakes), mistakes)
    bench.record.note("ended", {"delivery": bench.record.delivery, "entry": bench.record.value("entry")})
    return NodeOutcome.DONE


def _by_rules(bench: Workbench) -> tuple[int, str]:
    """From the record alone: what was proved, not what was said."""
    record = bench.record
    if record.value("trouble") is not None:
        return 1, "the run failed"
    if record.delivery is not DeliveryState.DONE:
        return 2, "not delivered: " + ("rejected" if record.value("rejected") is not None else "not verified")
    verdicts = record.value("verdicts")
    tested = isinstance(verdicts, list) and any(
        step == "tests" and standing == "pass" for step, standing, _ in verdicts
    )
    if record.value("entry") is None or tested:
        return 5, "done, and the tests pass with it" if tested else "done"
    return 4, "done; no test proves it"
