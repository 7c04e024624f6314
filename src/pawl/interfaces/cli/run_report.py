"""What came of a run, for a person and as JSON."""

from __future__ import annotations

from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.display import safe_text
from pawl.core.finding import Standing, TestCounts
from pawl.core.hunks import hunks
from pawl.core.run import DeliveryState
from pawl.core.runs import Report, RunState
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.screen import Screen, brief
from pawl.interfaces.cli.shapes import changes_json
from pawl.interfaces.cli.talk import money

WAITING = 4
"""The exit code of a run that waits for the user's answer."""
ENDED = {
    "cut_off": "the answer was cut off at its longest",
    "refused": "the model refused to go on",
    "stuck": "the model went round in circles and was stopped",
    "out_of_turns": "no turns were left (--max-turns)",
    "out_of_time": "no time was left (--seconds)",
}
_MARKS = {Standing.PASS: "✓", Standing.FAIL: "✗", Standing.SKIPPED: "–"}


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


def tell(shop: Workshop, report: Report, call: Call, changes: ChangeSet) -> None:
    out = call.out
    if report.exit_code is not None:
        _tell_errand(report, call)
        return
    if report.before is not None or report.after is not None:
        out.say(f"before    {_counts(report.before)}")
        out.say(f"after     {_counts(report.after)}")
    if report.verdicts:
        out.say("verified  " + "  ".join(_verdict(one) for one in report.verdicts))
    if changes:
        out.changes(changes, shop.store.blobs)
    for line in report.refused:
        out.say(f"! {brief(line, 160)}", "bold yellow")
    for line in report.notes:
        out.say(f"note: {line}", "yellow")
    if report.review is not None:
        _tell_review(report, out)
    _tell_end(report, call)
    _tell_cost(report, call)


def show_question(shop: Workshop, report: Report, call: Call, changes: ChangeSet) -> None:
    """What the user is asked about, whole, with its hunks numbered; nothing in it is obeyed by the terminal."""
    out = call.out
    question = report.question
    assert question is not None
    if question.kind == "call":
        out.say(f"the model wants to call {question.tool}:", "bold")
        for name, value in question.arguments.items():
            out.lines(f"  {name}: {value}")
        return
    number = 0
    for change in changes:
        out.say(change.path, "bold")
        for hunk in hunks(change, shop.store.blobs):
            number += 1
            out.say(f"[{number}] {hunk.header}", "cyan")
            for line in hunk.lines:
                text = safe_text(line.decode("utf-8", "replace").rstrip("\r\n")).text
                out.say(text, {"+": "green", "-": "red"}.get(text[:1], ""))
    for why in question.why:
        out.say(f"! {why}", "bold yellow")


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
        "question": None
        if question is None
        else {"kind": question.kind, "digest": question.digest, "why": list(question.why), "tool": question.tool},
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


def changes_of(shop: Workshop, report: Report) -> ChangeSet:
    """The change set that the report is about."""
    number = report.entry if report.entry is not None else report.kept
    if report.state is not RunState.ENDED:
        return shop.store.runs.work(report.run, "shown") or ChangeSet()
    return ChangeSet() if number is None else shop.changes(shop.entry(number))


def _tell_errand(report: Report, call: Call) -> None:
    """What was asked for is the answer; a talk has shown it already."""
    if not report.conversation or not report.ended:
        call.out.lines(report.answer.rstrip("\n"))
    if report.kept is not None:
        call.aside.hint(f"what it changed is kept as entry {report.kept}: pawl diff {report.kept}")
    if report.entry is not None:
        call.aside.hint(f"take it back with: pawl undo {report.entry}")
    if report.ended in ENDED:
        call.aside.say(f"! {ENDED[report.ended]}", "bold yellow")
    if report.requests:
        _tell_cost(report, call)


def _tell_review(report: Report, out: Screen) -> None:
    review = report.review
    assert review is not None
    out.say(f"review    {brief(review.summary, 160)} (advice; confidence {review.confidence})")
    for line in (*review.findings, *(f"no test for: {one}" for one in review.missing_tests)):
        out.say(f"  · {brief(line, 160)}")


def _tell_end(report: Report, call: Call) -> None:
    out = call.out
    if report.stale:
        out.say(f"! the approval was not taken: {report.stale}; nothing was written", "bold yellow")
    if report.state is RunState.WAITING:
        out.say(f"waits for your approval: pawl approve {report.run} [--yes | --reject REASON | --hunks 1,3]", "bold")
    elif report.state is RunState.WORKING:
        trouble = report.trouble
        if trouble is not None:
            out.say(f"stopped: {trouble.message}", "bold")
            if trouble.advice:
                out.hint(trouble.advice)
        out.hint(f"go on with: pawl do --resume {report.run}")
    elif report.entry is not None:
        more = f"; all of it is kept as entry {report.kept}" if report.kept is not None else ""
        out.say(f"done; promoted as entry {report.entry}{more}; undo with: pawl undo {report.entry}", "bold green")
    elif report.delivery is DeliveryState.DONE:
        out.say("done; nothing had to change")
    else:
        _tell_not_done(report, out)


def _tell_not_done(report: Report, out: Screen) -> None:
    why = ENDED.get(report.ended, "")
    if report.rejected is not None:
        why = f"rejected{f': {report.rejected}' if report.rejected else ''}"
    elif report.trouble is not None:
        why = report.trouble.message
    out.say(f"not done{f': {why}' if why else ''}; nothing was changed", "bold")
    if report.trouble is not None and report.trouble.advice:
        out.hint(report.trouble.advice)
    if report.kept is not None:
        out.hint(f"what was made is kept as entry {report.kept}: pawl diff {report.kept}, pawl promote {report.kept}")


def _tell_cost(report: Report, call: Call) -> None:
    if not report.requests:
        call.aside.hint(f"no model was asked · {report.seconds:.1f} s · $0.00 · run {report.run}")
        return
    requests = f"{report.requests} request{'s' if report.requests != 1 else ''}"
    call.aside.hint(
        f"{report.model} · {requests} · {report.input_tokens:,} tokens in, {report.output_tokens:,} out · "
        f"{money(report.cost)} · {report.seconds:.1f} s · run {report.run}"
    )


def _verdict(verdict: tuple[str, str, str]) -> str:
    step, standing, reason = verdict
    mark = _MARKS[Standing(standing)]
    return f"{step} {mark}" + (f" ({brief(reason, 40)})" if standing == Standing.SKIPPED else "")


def _counts(counts: TestCounts | None) -> str:
    if counts is None:
        return "no count"
    pairs = (
        (counts.failed, "failed"),
        (counts.errors, "error" if counts.errors == 1 else "errors"),
        (counts.passed, "passed"),
        (counts.skipped, "skipped"),
    )
    return ", ".join(f"{number} {word}" for number, word in pairs if number) or "no tests"


def _counts_json(counts: TestCounts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    return {"passed": counts.passed, "failed": counts.failed, "errors": counts.errors, "skipped": counts.skipped}
