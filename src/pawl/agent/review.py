"""The second look at the work of a run: a review of the verified change before anyone is asked, a score at the end."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pawl.agent.briefing import results_told, shown_diff
from pawl.agent.context import TurnInput
from pawl.agent.delivery_check import answered, check_delivery
from pawl.agent.nodes import PASSED_OVER, Workbench
from pawl.agent.own_extensions import own_evaluator
from pawl.agent.record import composed
from pawl.agent.routes import NodeOutcome
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import Verdict
from pawl.core.errors import ConfigError, Conflicted
from pawl.core.events import Warned
from pawl.core.run import Approval, DeliveryState, Review, RoleName, RunCursor, Stage

if TYPE_CHECKING:
    from pawl.agent import contract_models


LARGE_FILES = 2
"""With `auto`, a change of so many files is looked at."""


def qa(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """A report on the verified change, before anyone is asked about it. It is advice: neither the answer nor the
    delivery changes by it. Where nobody is there to read that something blocks, the artisan has one more attempt."""
    record = bench.record
    if record.data.entry is not None:
        # A run of an earlier version, interrupted here after its change was promoted.
        return NodeOutcome.NOTHING
    try:
        changes = bench.works.now().changes
    except Conflicted:
        return NodeOutcome.DONE
    if not changes and record.data.intent is not None and record.data.intent.unsaid:
        return answered(bench)
    if changes and check_delivery(bench, place, changes) is NodeOutcome.RETRY:
        return NodeOutcome.RETRY
    first, review = record.data.review is None, bench.shop.config.settings.review
    wanted = review == "on" or (review == "auto" and len(changes) >= LARGE_FILES)
    known = record.data.reviewed == changes.digest or not (first or record.data.amends)
    if not wanted or known or not changes or not bench.talks.configured:
        return NodeOutcome.DONE
    found = _reviewed(bench, changes)
    if found is None:
        return NodeOutcome.DONE
    unseen = record.order.approval is Approval.NEVER and found.blocking > 0
    record.keep(replace(record.data, review=found, reviewed=changes.digest, amends=record.data.amends or unseen))
    if not (unseen and first):
        return NodeOutcome.DONE
    talk = f"{place.task}.{place.attempt}"
    words = [
        "A reviewer calls this blocking in your change:",
        *(f"- {one}" for one in found.findings[: found.blocking]),
    ]
    words += ["Fix what it is right about, or say why it is wrong. It is delivered after this."]
    text = "\n".join(words if bench.talks.history(talk) else [record.order.text, "", *words])
    record.keep_talk(talk, replace(record.talk(talk), refused=text))
    return NodeOutcome.RETRY


def _reviewed(bench: Workbench, changes: ChangeSet) -> Review | None:
    """None where the reviewer could not be asked or said nothing of use."""
    record = bench.record
    summary = "\n".join((*results_told(record.data), "the change:", shown_diff(bench.shop, changes)))
    talk = f"qa {changes.digest[:12]}"
    line = TurnInput(talk=talk, role=RoleName.REVIEWER, text="Review the change.", stage=Stage.QA, summary=summary)
    try:
        value: contract_models.ReviewAnswer = bench.talks.say(line).value  # type: ignore[assignment]
    except PASSED_OVER as error:
        record.note("review failed", {"error": error.code})
        bench.listen(Warned(f"the change was not reviewed: {error.message.partition(chr(10))[0].rstrip(':')}"))
        return None
    findings = sorted(value.findings, key=lambda one: one.severity != "blocking")
    return Review(
        summary=value.summary,
        findings=tuple(f"{one.path}:{one.line} {one.severity}: {one.problem}" for one in findings),
        blocking=sum(one.severity == "blocking" for one in findings),
        missing_tests=tuple(value.missing_tests),
        confidence=value.confidence,
    )


def evaluate(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Every path comes by here: a score from 1 to 5 for the evaluation log."""
    record, shop = bench.record, bench.shop
    score, reason = _by_rules(bench)
    judge, own = "rules", own_evaluator(shop.config)
    if own is not None:
        # A score is never in the way: an evaluator that fails is told, and the rules score instead.
        try:
            (score, reason), judge = own(composed(shop, record.run)), "extension"
        except ConfigError as error:
            bench.listen(Warned(f"{error.message}; {error.advice}"))
            record.note("evaluation failed", {"error": error.code, "message": error.message})
    elif shop.config.settings.evaluator == "model" and bench.talks.configured:
        try:
            spoken = bench.talks.say(
                TurnInput(
                    talk="evaluate",
                    role=RoleName.REVIEWER,
                    text="Score the answer.",
                    stage=Stage.EVALUATE,
                    summary=f"delivery: {record.delivery}; by the checks {reason}",
                    outcome=record.data.answer,
                )
            )
            value: contract_models.Score = spoken.value  # type: ignore[assignment]
            # What is not done has no better score because it is told well.
            most = 5 if record.delivery is DeliveryState.DONE else score
            score, reason, judge = min(most, value.score), value.reason, "model"
        except PASSED_OVER as error:
            record.note("evaluation failed", {"error": error.code})
    record.keep(replace(record.data, score=score))
    shop.store.runs.evaluate(shop.workspace, record.run, score, reason=reason, judge=judge)
    return NodeOutcome.DONE


def _by_rules(bench: Workbench) -> tuple[int, str]:
    """From the record alone: what was proved, not what was said."""
    data, delivery = bench.record.data, bench.record.delivery
    if data.trouble is not None:
        return 1, "the run failed"
    if delivery is DeliveryState.PARTLY:
        return 3, "partly done: " + "; ".join(data.refused)
    if delivery is DeliveryState.UNVERIFIED:
        return 3, "made, and nothing proves it: " + "; ".join(data.unproved)
    if delivery is not DeliveryState.DONE:
        return 2, "not delivered: " + ("rejected" if data.rejected is not None else str(data.verdict or "not verified"))
    if data.entry is None:
        return 5, "done"
    if data.verdict is Verdict.UNVERIFIED:
        return 3, "done, and nothing proves it: " + "; ".join(data.unproved)
    failing = data.after.failed + data.after.errors if data.after is not None else 0
    blocked = data.review.blocking if data.review is not None else 0
    less = [f"{failing} failing as before"] if failing else []
    less += [f"the review calls {blocked} of its findings blocking"] if blocked else []
    less += [] if data.verdict is Verdict.VERIFIED else ["no test proves it"]
    return (4 if less else 5), "; ".join((f"done, {data.verdict or 'not verified'}", *less))
