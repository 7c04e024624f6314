"""The report of a run, for a person."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.change import BlobReader, ChangeSet
from pawl.core.diagnostic import Status, TestCounts, Verdict
from pawl.core.patch import hunks, unified
from pawl.core.run import DeliveryState, Intent, Report, Review, RunState
from pawl.core.tiers import AttemptEnd, EscalationState
from pawl.ui.screen.diff import show_diff
from pawl.ui.screen.renderer import AS_BEFORE, MARKS, NOT_COUNTED, TOLD
from pawl.ui.screen.screen import Face, Screen, brief, counted, money, short_model

if TYPE_CHECKING:
    from pawl.workspace.project import Project

OLD_ONLY = "nothing new"
"""How the reason of a check begins that finds only what stood there before."""
ENDED = {
    "cut_off": "the answer was cut off at the length limit",
    "empty": "the model gave no answer",
    "refused": "the model refused to answer",
    "stuck": "the model repeated itself and was stopped",
    "out_of_turns": "no turns were left (--max-turns)",
    "out_of_time": "no time was left (--seconds)",
}
ASK_ANEW = "say it in other words, or ask another model with --model NAME"
LESS = "ask for less at once, or allow more with {}"
NEXT = {
    "cut_off": LESS.format("max_output (settings, [sampling])"),
    "out_of_turns": LESS.format("--max-turns N"),
    "out_of_time": LESS.format("--seconds N"),
}
"""What to do after such an end; after any other `ASK_ANEW`."""
CLIMB_ON = "be more precise, or name a stronger model: pawl loop --model MODEL REQUEST; what was tried: pawl audit"
CONTINUE = "say what to do differently, and continue with: pawl do -c REQUEST"


def tell(shop: Project, report: Report, face: Face, changes: ChangeSet) -> None:
    out = face.out
    if report.exit_code is not None:
        _tell_errand(report, face)
        return
    if report.climb is not None:
        _tell_tiers(report.climb, out)
    if report.before is not None or report.after is not None:
        after = [f"after     {counts_text(report.after)}"] if changes or report.after is not None else []
        out.lines("\n".join([f"before    {counts_text(report.before)}", *after]))
    for line in verdict_lines(report, reasons=False):
        out.say(line, "bold yellow" if line.startswith("!") else "")
    if changes:
        out.changes(changes, shop.store.blobs)
    for line in () if report.verdict is Verdict.FAILED else report.refused:
        out.say(f"! {brief(line, 160)}", "bold yellow")
    out.notes(report.notes, "yellow")
    if report.review is not None and report.state is not RunState.WAITING:
        _tell_review(report.review, out)
    if report.answer.strip() and report.delivery is DeliveryState.NEEDS_WORK and not report.requests:
        # No talk with a model has shown it.
        out.lines(report.answer.rstrip("\n"))
    _tell_end(report, out, ways_to_answer(shop, report, changes))
    if report.alternatives and report.delivery is DeliveryState.NEEDS_WORK:
        tell_alternatives(shop, report.alternatives, out)
    _tell_cost(report, face)


def tell_alternatives(shop: Project, kept: Iterable[tuple[int, str]], out: Screen) -> None:
    """Patches that pass and disagree, each with the command that takes it."""
    for number, (entry, what) in enumerate(kept, 1):
        out.say(f"  {number}. {what}  take it with: {out.reword(f'pawl promote {entry}')}")
        tell_edit(shop.changes(shop.entry(entry)), shop.store.blobs, out)


def tell_edit(changes: ChangeSet, blobs: BlobReader, out: Screen) -> None:
    """The lines that a patch takes away and adds."""
    for line in unified(changes, blobs).split("\n"):
        if line[:1] in ("+", "-") and line[:3] not in ("+++", "---"):
            out.say(f"     {line}", "green" if line[0] == "+" else "red")


def show_question(shop: Project, report: Report, face: Face, changes: ChangeSet, *, whole: bool = False) -> bool:
    """Shows what the user is asked about, with its hunks numbered; nothing in it is obeyed by the terminal.

    Whether all of it was shown: of what is very long only the head and the tail, unless it is asked for `whole`.
    """
    out = face.out
    question = report.question
    assert question is not None
    if question.kind == "call":
        from pawl.agent.run_hooks import whole_call

        all_lines = whole_call(question).lines
        lines = all_lines if whole else question.shown or all_lines
        out.say(f"the model wants to call {question.tool}:", "bold")
        edit = () if whole else question.patch
        for line in edit or lines:
            out.say(f"  {line}", {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "") if edit else "")
        if not question.why:
            out.hint("  asked because approval is 'each' (--approve, /approval)")
        if question.flags:
            out.say(f"! it holds {', '.join(question.flags)}", "bold yellow")
        complete = bool(edit) or lines == all_lines
    else:
        complete = show_diff(out, changes, shop.store.blobs, whole=whole)
        if report.review is not None:
            _tell_review(report.review, out)
    for why in question.why:
        out.say(f"! {why}", "bold yellow")
    return complete


def show_waiting(shop: Project, report: Report, face: Face, changes: ChangeSet, *, whole: bool = False) -> None:
    """The question where nobody can answer it now."""
    if not show_question(shop, report, face, changes, whole=whole):
        face.out.hint(f"! this is not all of it; see all with: pawl approve {report.run} --full")


def changes_of(shop: Project, report: Report) -> ChangeSet:
    """The change set that the report is about."""
    number = report.entry if report.entry is not None else report.kept
    if report.state is not RunState.ENDED:
        return shop.store.runs.work(report.run, "shown") or ChangeSet()
    return ChangeSet() if number is None else shop.changes(shop.entry(number))


def _tell_tiers(climb: EscalationState, out: Screen) -> None:
    left = {gate.tier: gate.reason for gate in climb.gates}
    for number, tier in enumerate(climb.ladder.tiers):
        made = climb.of_tier(number)
        if not made and number not in left:
            continue
        cost = sum((one.cost for one in made if one.cost is not None), Decimal(0))
        ended = "verified" if any(one.end is AttemptEnd.VERIFIED for one in made) else left.get(number, "not verified")
        out.say(f"tier      {tier.name}: {counted(len(made), 'attempt')}, {money(cost)}, {ended}")


def _tell_errand(report: Report, face: Face) -> None:
    """The answer is what was asked for; a talk has shown it already."""
    if report.answer.strip() and (not report.conversation or not report.ended):
        face.out.lines(report.answer.rstrip("\n"))
    if report.kept is not None:
        face.aside.hint(f"its changes are kept as entry {report.kept}: pawl diff {report.kept}")
    if report.entry is not None:
        face.aside.hint(f"undo with: pawl undo {report.entry}")
    tell_ended(report.ended, face.aside)
    if report.requests:
        _tell_cost(report, face)


def tell_ended(ended: str, out: Screen) -> None:
    """Why a question got no whole answer, and what to do next."""
    if ended in ENDED:
        out.say(f"! {ENDED[ended]}", "bold yellow")
        out.hint(f"  {NEXT.get(ended, ASK_ANEW)}")


def _tell_review(review: Review, out: Screen) -> None:
    out.say(f"review    {brief(review.summary, 160)} (advice only; confidence: {review.confidence})")
    for line in review.findings[: review.blocking]:
        out.say(f"  ! {brief(line, 160)}", "bold yellow")
    for line in (*review.findings[review.blocking :], *(f"no test for: {one}" for one in review.missing_tests)):
        out.say(f"  · {brief(line, 160)}")


def ways_to_answer(shop: Project, report: Report, changes: ChangeSet) -> tuple[str, ...]:
    """The options of `pawl approve`; a part can be chosen where there are parts."""
    whole = report.question is not None and report.question.kind == "call"
    several = not whole and sum(len(hunks(change, shop.store.blobs)) for change in changes) > 1
    return ("--yes", "--reject REASON", *(("--hunks N,…",) if several else ()))


def _tell_end(report: Report, out: Screen, ways: Sequence[str]) -> None:
    if report.stale:
        out.say(f"! the approval was not accepted: {report.stale}; nothing was written", "bold yellow")
    if report.state is RunState.WAITING:
        out.say(out.reword(f"waits for your approval: pawl approve {report.run} [{' | '.join(ways)}]"), "bold")
    elif report.state is RunState.WORKING:
        trouble = report.trouble
        if trouble is not None:
            out.say(f"stopped: {trouble.message}".replace("stopped: stopped", "stopped"), "bold")
            if trouble.advice:
                out.hint(trouble.advice)
        what = "loop" if report.intent is Intent.LOOP else "do"
        stands = "" if report.entry is not None else "nothing of it was promoted; "
        out.hint(f"{stands}resume it with: pawl {what} --resume {report.run}")
    elif report.entry is not None:
        more = f"; all of it is kept as entry {report.kept}" if report.kept is not None else ""
        undo = out.reword(f"pawl undo {report.entry}")
        done = report.delivery is DeliveryState.DONE
        word, colour = ("done", "bold green") if done else ("partly done", "bold yellow")
        if report.verdict is Verdict.UNVERIFIED:
            word, colour = f"{word}, unverified", "bold yellow"
        out.say(f"{word}; promoted as entry {report.entry}{more}; undo with: {undo}", colour)
        if report.commit:
            out.say(f"committed as {report.commit[:12]}")
    elif report.delivery is DeliveryState.DONE:
        out.say("done; no change was needed")
    else:
        _tell_not_done(report, out)


def _tell_not_done(report: Report, out: Screen) -> None:
    why = ENDED.get(report.ended, "")
    if report.rejected is not None:
        why = f"rejected{f': {report.rejected}' if report.rejected else ''}"
    elif report.trouble is not None:
        why = report.trouble.message
    word = "made but unverified" if report.delivery is DeliveryState.UNVERIFIED else "not done"
    stands = "nothing was changed" if report.kept is None else "nothing was promoted"
    out.say(f"{word}{f': {why}' if why else ''}; {stands}", "bold")
    advice = report.trouble.advice if report.trouble is not None else ""
    if advice:
        out.hint(advice)
    if report.kept is not None:
        out.hint(f"the change is kept as entry {report.kept}: pawl diff {report.kept}, pawl promote {report.kept}")
    if not advice and report.climb is not None:
        out.hint(CLIMB_ON)
    elif not advice and (report.requests or report.trouble is not None):
        out.hint(f"{NEXT[report.ended]}; or {CONTINUE}" if report.ended in NEXT else CONTINUE)


def _tell_cost(report: Report, face: Face) -> None:
    if not report.requests:
        face.aside.hint(f"no model was asked · {report.seconds:.1f} s · $0.00 · run {report.run}")
        return
    face.aside.hint(
        f"{short_model(report.model)} · {counted(report.requests, 'request')} · {report.input_tokens:,} tokens in, "
        f"{report.output_tokens:,} out · {money(report.cost)} · {report.seconds:.1f} s · run {report.run}"
    )


def verdict_lines(report: Report, *, reasons: bool = True) -> list[str]:
    """The checks, with reasons where nobody has seen each as it ended; the verdict, and the state of each task."""
    checks = "checks    " + "  ".join(_verdict(one, report.verdict, reasons=reasons) for one in report.verdicts)
    lines = [checks] if report.verdicts else []
    if report.verdict is not None:
        why = report.refused if report.verdict is Verdict.FAILED else report.unproved
        lines += verdict_line(report.verdict, why)
    for one in report.task_states if len(report.task_states) > 1 else ():
        reason = f": {brief(one.reason, 80)}" if one.reason else ""
        kept = f" (kept as entry {one.entry})" if one.entry is not None else ""
        lines.append(f"task {one.number:<5}{one.state}: {brief(one.what, 60)}{reason}{kept}")
    return lines


def verdict_line(verdict: Verdict, why: Sequence[str]) -> list[str]:
    """The word on a change as every command shows it, and the reasons."""
    return [f"verdict   {verdict}", *(f"! {brief(one, 160)}" for one in why)]


def _verdict(verdict: tuple[str, str, str], word: Verdict | None, *, reasons: bool) -> str:
    step, standing, reason = verdict
    if standing == Status.FAIL and word is Verdict.VERIFIED:
        return f"{step} {TOLD} ({'fails, as it should' if step.startswith('tests') else NOT_COUNTED})"
    mark = AS_BEFORE if reason.startswith(OLD_ONLY) else MARKS[Status(standing)]
    told = reasons and (standing == Status.SKIPPED or mark == AS_BEFORE)
    return f"{step} {mark}" + (f" ({brief(reason, 40)})" if told else "")


def counts_text(counts: TestCounts | None) -> str:
    return "not counted" if counts is None else str(counts)
