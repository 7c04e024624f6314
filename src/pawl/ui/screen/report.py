"""What came of a run, told to a person."""

from __future__ import annotations

from typing import Protocol

from pawl.core.change import ChangeSet
from pawl.core.diagnostic import Status, TestCounts
from pawl.core.events import AttemptEnded, ClimbBegun, ClimbEvent, EscalationWarned, IterationBegun, TierBegun, TierLeft
from pawl.core.run import DeliveryState, Intent, Report, RunState
from pawl.core.tiers import Attempt, AttemptEnd, TierMode
from pawl.ui.screen.diff import show_diff
from pawl.ui.screen.screen import Screen, brief
from pawl.ui.screen.talk import money
from pawl.workspace.project import Project

ENDED = {
    "cut_off": "the answer was cut off at its longest",
    "empty": "the model had nothing to say",
    "refused": "the model refused to go on",
    "stuck": "the model went round in circles and was stopped",
    "out_of_turns": "no turns were left (--max-turns)",
    "out_of_time": "no time was left (--seconds)",
}
_MARKS = {Status.PASS: "✓", Status.FAIL: "✗", Status.SKIPPED: "–"}


class Screens(Protocol):
    """Where a person is told things."""

    @property
    def out(self) -> Screen:
        """What was asked for."""
        ...

    @property
    def aside(self) -> Screen:
        """What Pawl says beside it."""
        ...

    def command(self, words: str) -> str:
        """How a command is written here, such as `pawl undo 3`."""
        ...


def tell(shop: Project, report: Report, screens: Screens, changes: ChangeSet) -> None:
    out = screens.out
    if report.exit_code is not None:
        _tell_errand(report, screens)
        return
    if report.before is not None or report.after is not None:
        out.say(f"before    {counted(report.before)}")
        out.say(f"after     {counted(report.after)}")
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
    _tell_end(report, screens)
    _tell_cost(report, screens)


def show_question(shop: Project, report: Report, screens: Screens, changes: ChangeSet, *, whole: bool = False) -> bool:
    """What the user is asked about, with its hunks numbered; nothing in it is obeyed by the terminal.

    Whether all of it was shown: of what is very long only the head and the tail, unless it is asked for `whole`.
    """
    out = screens.out
    question = report.question
    assert question is not None
    if question.kind == "call":
        from pawl.agent.run_hooks import whole_call

        all_lines = whole_call(question).lines
        lines = all_lines if whole else question.shown or all_lines
        out.say(f"the model wants to call {question.tool}:", "bold")
        for line in lines:
            out.say(f"  {line}")
        if question.flags:
            out.say(f"! it holds {', '.join(question.flags)}", "bold yellow")
        complete = lines == all_lines
    else:
        complete = show_diff(out, changes, shop.store.blobs, whole=whole)
    for why in question.why:
        out.say(f"! {why}", "bold yellow")
    return complete


def show_waiting(shop: Project, report: Report, screens: Screens, changes: ChangeSet, *, whole: bool = False) -> None:
    """The question where nobody can answer it now."""
    if not show_question(shop, report, screens, changes, whole=whole):
        screens.out.hint(f"! not all of it is shown; see all with: {screens.command(f'approve {report.run} --full')}")


def changes_of(shop: Project, report: Report) -> ChangeSet:
    """The change set that the report is about."""
    number = report.entry if report.entry is not None else report.kept
    if report.state is not RunState.ENDED:
        return shop.store.runs.work(report.run, "shown") or ChangeSet()
    return ChangeSet() if number is None else shop.changes(shop.entry(number))


def _tell_errand(report: Report, screens: Screens) -> None:
    """What was asked for is the answer; a talk has shown it already."""
    if report.answer.strip() and (not report.conversation or not report.ended):
        screens.out.lines(report.answer.rstrip("\n"))
    if report.kept is not None:
        screens.aside.hint(f"what it changed is kept as entry {report.kept}: {screens.command(f'diff {report.kept}')}")
    if report.entry is not None:
        screens.aside.hint(f"take it back with: {screens.command(f'undo {report.entry}')}")
    if report.ended in ENDED:
        screens.aside.say(f"! {ENDED[report.ended]}", "bold yellow")
    if report.requests:
        _tell_cost(report, screens)


def _tell_review(report: Report, out: Screen) -> None:
    review = report.review
    assert review is not None
    out.say(f"review    {brief(review.summary, 160)} (advice; confidence {review.confidence})")
    for line in (*review.findings, *(f"no test for: {one}" for one in review.missing_tests)):
        out.say(f"  · {brief(line, 160)}")


def _tell_end(report: Report, screens: Screens) -> None:
    out = screens.out
    if report.stale:
        out.say(f"! the approval was not taken: {report.stale}; nothing was written", "bold yellow")
    if report.state is RunState.WAITING:
        hunks = " | --hunks 1,3" if report.question is None or report.question.kind == "change" else ""
        how = screens.command(f"approve {report.run} [--yes | --reject REASON{hunks}]")
        out.say(f"waits for your approval: {how}", "bold")
    elif report.state is RunState.WORKING:
        trouble = report.trouble
        if trouble is not None:
            out.say(f"stopped: {trouble.message}", "bold")
            if trouble.advice:
                out.hint(trouble.advice)
        what = "loop" if report.intent is Intent.LOOP else "do"
        out.hint(f"go on with: {screens.command(f'{what} --resume {report.run}')}")
    elif report.entry is not None:
        more = f"; all of it is kept as entry {report.kept}" if report.kept is not None else ""
        undo = screens.command(f"undo {report.entry}")
        done = report.delivery is DeliveryState.DONE
        word, colour = ("done", "bold green") if done else ("partly done, as you chose", "bold yellow")
        out.say(f"{word}; promoted as entry {report.entry}{more}; undo with: {undo}", colour)
        if report.commit:
            out.say(f"committed as {report.commit[:12]}")
    elif report.delivery is DeliveryState.DONE:
        out.say("done; nothing had to change")
    else:
        _tell_not_done(report, screens)


def _tell_not_done(report: Report, screens: Screens) -> None:
    out = screens.out
    why = ENDED.get(report.ended, "")
    if report.rejected is not None:
        why = f"rejected{f': {report.rejected}' if report.rejected else ''}"
    elif report.trouble is not None:
        why = report.trouble.message
    out.say(f"not done{f': {why}' if why else ''}; nothing was changed", "bold")
    if report.trouble is not None and report.trouble.advice:
        out.hint(report.trouble.advice)
    if report.kept is not None:
        see, take = (screens.command(f"{word} {report.kept}") for word in ("diff", "promote"))
        out.hint(f"what was made is kept as entry {report.kept}: {see}, {take}")


def _tell_cost(report: Report, screens: Screens) -> None:
    if not report.requests:
        screens.aside.hint(f"no model was asked · {report.seconds:.1f} s · $0.00 · run {report.run}")
        return
    requests = f"{report.requests} request{'s' if report.requests != 1 else ''}"
    screens.aside.hint(
        f"{report.model} · {requests} · {report.input_tokens:,} tokens in, {report.output_tokens:,} out · "
        f"{money(report.cost)} · {report.seconds:.1f} s · run {report.run}"
    )


def _verdict(verdict: tuple[str, str, str]) -> str:
    step, standing, reason = verdict
    mark = _MARKS[Status(standing)]
    return f"{step} {mark}" + (f" ({brief(reason, 40)})" if standing == Status.SKIPPED else "")


def counted(counts: TestCounts | None) -> str:
    if counts is None:
        return "no count"
    pairs = (
        (counts.failed, "failed"),
        (counts.errors, "error" if counts.errors == 1 else "errors"),
        (counts.passed, "passed"),
        (counts.skipped, "skipped"),
    )
    return ", ".join(f"{number} {word}" for number, word in pairs if number) or "no tests"


MARKS = {AttemptEnd.VERIFIED: "✓", AttemptEnd.REFUSED: "✗", AttemptEnd.SENT_BACK: "↩"}


def lines_of(event: ClimbEvent) -> tuple[str, ...]:
    """What a person is told: a banner at the start, a header for each tier, a line for each attempt."""
    match event:
        case ClimbBegun(ladder=ladder, failing=failing, done=done, spent=spent):
            names = " → ".join(
                tier.name if tier.mode is TierMode.REFLEX else f"{tier.name} {tier.iterations}" for tier in ladder.tiers
            )
            cost = "" if ladder.max_cost is None else f", at most {money(ladder.max_cost)}"
            time = "" if ladder.max_minutes is None else f" and {ladder.max_minutes:g} minutes"
            first = f"loop: {names or 'no tier can work here'}{cost}{time}; {failing} failing"
            gone = f"  goes on after {attempts(done)}, {money(spent)} spent"
            return (first, gone) if done else (first,)
        case TierBegun(tier=tier, number=number, of=of):
            models = ", ".join(f"{role} {model}" for role, model in tier.models)
            return (f"── tier {number} of {of}: {tier.name} ({tier.mode}{f'; {models}' if models else ''})",)
        case IterationBegun(tier=tier, number=number, of=of, samples=samples) if of > 1:
            return (f"· {tier} {number} of {of}" + (f", up to {samples} samples" if samples > 1 else ""),)
        case AttemptEnded(attempt=attempt):
            return (f"  {told(attempt)}",)
        case TierLeft(tier=tier, reason=reason):
            return (f"  {tier} is left: {brief(reason, 120)}",)
        case EscalationWarned(text=text):
            return (f"! {text}",)
    return ()


def told(attempt: Attempt) -> str:
    mark = MARKS.get(attempt.end, "–")
    failing = "" if attempt.failing is None else f", {len(attempt.failing)} failing"
    cost = (
        ""
        if attempt.mode is TierMode.REFLEX
        else f", {'price unknown' if attempt.cost is None else money(attempt.cost)}"
    )
    why = f": {brief(attempt.refused[0], 90)}" if attempt.refused and attempt.end is not AttemptEnd.VERIFIED else ""
    better = " (a step forward, kept)" if attempt.better else ""
    return f"{mark} {attempt.end}{better}{failing}{cost}, {attempt.seconds:.1f} s{why}"


def attempts(number: int) -> str:
    return f"{number} attempt{'' if number == 1 else 's'}"
