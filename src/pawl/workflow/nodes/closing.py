"""After the work: a second pair of eyes, a score, the report. None of them can change what was delivered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pawl.core.errors import BudgetExceeded, ConfigError, ModelError, PolicyViolation, PromptError, SchemaUnmet
from pawl.core.run import DeliveryState, RoleName, Stage
from pawl.core.runs import Place
from pawl.workflow.routing import Outcome
from pawl.workflow.structured import MOST_TRIES, again, asked, fitted
from pawl.workflow.workbench import Line, Workbench

if TYPE_CHECKING:
    from pawl.workflow import contract_models

LARGE_FILES = 2
"""With `auto`, a change of so many files is looked at."""
_PASSED_OVER = (ModelError, BudgetExceeded, PolicyViolation, PromptError)
"""Advice is not worth failing for."""


def qa(bench: Workbench, place: Place) -> Outcome:
    """A report beside the answer. It is advice: neither the answer nor the delivery changes by it."""
    record = bench.record
    shown = record.work("shown")
    wanted = bench.review == "on" or (bench.review == "auto" and shown is not None and len(shown) >= LARGE_FILES)
    if not wanted or not bench.talks.configured or record.value("review") is not None:
        return Outcome.DONE
    paths = ", ".join(sorted(shown.paths)) if shown is not None else "nothing"
    summary = f"changed: {paths}\nthe checks: {record.value('verdicts')}"
    try:
        spoken = bench.talks.say(
            Line(talk="qa", role=RoleName.REVIEWER, text=record.order.text, stage=Stage.QA, summary=summary)
        )
    except _PASSED_OVER as error:
        record.note("review failed", {"error": error.code})
        return Outcome.DONE
    value: contract_models.Review = spoken.value  # type: ignore[assignment]
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
    return Outcome.DONE


def evaluate(bench: Workbench, place: Place) -> Outcome:
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
                Line(
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
    return Outcome.DONE


def report(bench: Workbench, place: Place) -> Outcome:
    """The record is complete; the report is composed from it. A result by a schema of the user's is asked for here."""
    order = bench.record.order
    if order.schema is not None and bench.record.value("structured") is None:
        text = asked(order.schema, order.text, str(bench.record.value("answer") or ""))
        for attempt in range(1, MOST_TRIES + 1):
            line = Line(talk=f"structured.{attempt}", role=RoleName.ARTISAN, text=text, stage=Stage.FINAL)
            said = bench.talks.say(line).text
            value, mistakes = fitted(said, order.schema)
            if not mistakes:
                bench.record.put("structured", value)
                break
            text = again(order.schema, said, mistakes)
        else:
            raise SchemaUnmet("the result does not fit the schema: " + "; ".join(mistakes), mistakes)
    bench.record.note("ended", {"delivery": bench.record.delivery, "entry": bench.record.value("entry")})
    return Outcome.DONE


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
