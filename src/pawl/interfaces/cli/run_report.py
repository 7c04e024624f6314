"""What came of a run as an exit code and as JSON."""

from __future__ import annotations

from dataclasses import asdict

from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.finding import TestCounts
from pawl.core.run import DeliveryState
from pawl.core.runs import Report, RunState
from pawl.interfaces.cli.shapes import changes_json

WAITING = 4
"""The exit code of a run that waits for the user's answer."""


def exit_code(report: Report) -> int:
    """0 when it is done; why not otherwise."""
    if report.state is RunState.WAITING:
        return WAITING
    if report.trouble is not None:
        return report.trouble.exit_code
    if report.exit_code:
        return report.exit_code
    if report.delivery is DeliveryState.DONE:
        return 0
    return 53 if report.ended in ("out_of_turns", "out_of_time") else 1


def as_body(shop: Workshop, report: Report, changes: ChangeSet) -> dict[str, object]:
    question = report.question
    return {
        "run": report.run,
        "state": report.state,
        "intent": report.intent,
        "delivery": report.delivery,
        "answer": report.answer,
        "before": _counts_json(report.before),
        "after": _counts_json(report.after),
        "verdicts": [
            {"step": step, "standing": standing, "reason": reason} for step, standing, reason in report.verdicts
        ],
        "refused": list(report.refused),
        "notes": list(report.notes),
        "tasks": list(report.tasks),
        "changes": changes_json(changes, shop.store.blobs),
        "entry": report.entry,
        "kept": report.kept,
        "commit": report.commit,
        "question": None if question is None else asdict(question),
        "stale": report.stale,
        "rejected": report.rejected,
        "review": None
        if report.review is None
        else {
            "summary": report.review.summary,
            "findings": list(report.review.findings),
            "missing_tests": list(report.review.missing_tests),
            "confidence": report.review.confidence,
        },
        "score": report.score,
        "trouble": None
        if report.trouble is None
        else {"error": report.trouble.code, "message": report.trouble.message, "advice": report.trouble.advice},
        "ended": report.ended,
        "model": report.model,
        "conversation": report.conversation,
        "requests": report.requests,
        "usage": {
            "input_tokens": report.input_tokens,
            "output_tokens": report.output_tokens,
            "cached_tokens": report.cached_tokens,
        },
        "cost_usd": None if report.cost is None else float(report.cost),
        "seconds": round(report.seconds, 3),
        "exit_code": exit_code(report),
    }


def _counts_json(counts: TestCounts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    return {"passed": counts.passed, "failed": counts.failed, "errors": counts.errors, "skipped": counts.skipped}
