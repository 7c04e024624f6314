"""`pawl fix`: failing tests in, the smallest verified patch out."""

from __future__ import annotations

import os
import shlex
from argparse import ArgumentParser, BooleanOptionalAction
from decimal import Decimal
from typing import TYPE_CHECKING

from pawl.core.diagnostic import CheckResult, Diagnostic, Status, TestCounts, Verdict
from pawl.core.errors import OutOfTime, PathRefused, UsageError
from pawl.core.run import DeliveryState, RunRequest
from pawl.repair.model import Alternative, FixOutcome, FixReport, FixRequest
from pawl.ui.cli.call import Call, check_range
from pawl.ui.cli.do import carry
from pawl.ui.cli.encoder import EXIT_CODES, EXIT_UNVERIFIED, Json, changes_json, picked
from pawl.ui.cli.loop_command import after_reflex
from pawl.ui.cli.parser import Command, dry_run_option, install_option, test_option
from pawl.ui.screen.renderer import MARKS, NOT_COUNTED, TOLD, EventRenderer, in_words
from pawl.ui.screen.run_report import counts_text, tell_edit, verdict_line
from pawl.ui.screen.screen import Screen, brief, money

if TYPE_CHECKING:
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="sources to edit, or tests to fix (default: all)")
    test_option(parser)
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="N",
        help="overall time limit (default: 60 for the search, the setting fix_seconds)",
    )
    install_option(parser)
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="processes that try candidates (default 2)")
    parser.add_argument("--pick", type=int, metavar="N", help="take this one of several patches")
    parser.add_argument("--accept-first", action="store_true", help="take the likeliest even if patches disagree")
    parser.add_argument("--explain", action="store_true", help="show suspicious lines, steps and figures")
    dry_run_option(parser)
    parser.add_argument("--keep", action="store_true", help="promote nothing, keep the patch as an entry")
    parser.add_argument(
        "--escalate",
        action=BooleanOptionalAction,
        help="let models fix the rest, as pawl loop does, or not (default: the setting escalate)",
    )
    parser.add_argument("--model", metavar="NAME", help="the model for the rest (default: the configured one)")
    parser.add_argument("--max-cost", metavar="USD", help="the most that it may cost (default: your budget, or 5)")


DECLARED = {
    "fix": Command(
        words=words, example="pawl fix\n  pawl fix src/cart.py --test 'pytest tests/unit' --seconds 30 --explain"
    )
}


def order_after(shop: Project, call: Call, request: FixRequest, outcome: FixOutcome) -> RunRequest | None:
    """The loop that goes on, announced with its model and the most that it may cost; None where nothing does."""
    from pawl.agent.session import Session

    options, setting = call.options, shop.config.settings.escalate
    asks = options.escalate is None and setting == "auto"
    # Where patches disagree it is the user who chooses.
    if asks and (not call.can_ask or outcome is FixOutcome.DISPUTED):
        return None
    model, _ = Session(shop).offered(options.model or "")
    if options.escalate is None and (setting == "off" or not model):
        return None
    order = after_reflex(shop, call, request.targets[0] if len(request.targets) == 1 else "")
    most = money(Decimal(str(order.budget["money"])))
    if asks:
        question = f"let {model} work on what is left, for at most {most}?"
        return order if call.aside.ask(question, "ny", "y/N") == "y" else None
    if model and not options.json:
        call.aside.say(f"{model} works on what is left, for at most {most}; --no-escalate turns that off")
    return order


EXIT = {
    FixOutcome.FIXED: 0,
    FixOutcome.NOTHING_FAILS: 0,
    FixOutcome.PARTLY: EXIT_CODES[DeliveryState.PARTLY],
    FixOutcome.DISPUTED: 3,
    FixOutcome.NOT_FIXED: 1,
    FixOutcome.UNVERIFIED: EXIT_UNVERIFIED,
}
LEFT = frozenset({FixOutcome.PARTLY, FixOutcome.DISPUTED, FixOutcome.NOT_FIXED, FixOutcome.UNVERIFIED})
"""Outcomes that leave something for a model."""
MOST_SHOWN = 10
WIDTH = 120
"""Of a line that is not for a terminal."""
SHORTEST_MESSAGE = 24


def fix(shop: Project, call: Call) -> int:
    from pawl.repair import fixer as fixing
    from pawl.repair.strategy import LATE

    request = _request(shop, call)
    shop.stop = call.time_limit("60 suits most bugs", shop.stop)
    renderer = EventRenderer(call, call.meter, milestones=True)
    try:
        report = fixing.fix(shop, request, (lambda event: None) if call.options.json else renderer.hear)
    finally:
        renderer.finish()
    if not call.options.json:
        _tell(shop, report, call)
    if report.outcome in LEFT and not request.dry_run and call.options.escalate is not False:
        order = order_after(shop, call, request, report.outcome)
        if order is not None:
            return carry(shop, call, lambda session: session.do(order))
    if call.options.json:
        call.emit(_json(shop, report, call))
    late = call.options.seconds is not None and report.reason.startswith(LATE)
    return OutOfTime.exit_code if late and report.outcome is FixOutcome.NOT_FIXED else EXIT[report.outcome]


def _request(shop: Project, call: Call) -> FixRequest:
    options = call.options
    check_range("--workers", options.workers, 1, 64, "one for each core")
    if options.pick is not None and options.accept_first:
        raise UsageError(
            "--pick and --accept-first cannot be used together", advice="--accept-first takes the first one"
        )
    if options.pick is not None and options.pick < 1:
        raise UsageError(f"--pick {options.pick}: patches are counted from 1", advice="give one of their numbers")
    return FixRequest(
        targets=_targets(shop, call),
        test_command=call.test_command,
        seconds=shop.config.settings.fix_seconds if options.seconds is None else options.seconds,
        workers=options.workers,
        pick=options.pick,
        accept_first=options.accept_first,
        dry_run=options.dry_run,
        keep=options.keep,
        install=options.install,
    )


def _targets(shop: Project, call: Call) -> tuple[str, ...]:
    """The targets as the workspace calls them; the workspace itself stands for everything in it."""
    from pawl.sandbox.visibility import real_path

    here = shop.workspace if call.options.workspace is not None else os.getcwd()
    if any(real_path(os.path.join(here, target)) == shop.workspace for target in call.options.targets if target):
        return ()
    try:
        return tuple(call.inside(shop.workspace, target) for target in call.options.targets)
    except PathRefused as error:
        raise UsageError(error.message, advice=error.advice) from error


def _tell(shop: Project, report: FixReport, call: Call) -> None:
    out = call.out
    if report.outcome is FixOutcome.NOTHING_FAILS:
        fails = f"nothing fails: {counts_text(report.before)}"
        out.say(f"nothing to fix: {report.reason}" if report.reason else fails)
        _tell_notes(report, out)
        return
    _tell_tests(out, "before", report.before, report.failing_before)
    for repair in report.repairs:
        out.paragraph(f"repaired  {repair.path}:{repair.line}  {in_words(repair.what)}  ({repair.why})")
    if report.changes:
        out.patch(report.changes, shop.store.blobs)
    if report.verdicts:
        out.say("checks    " + "  ".join(f"{verdict.step} {_mark(verdict)}" for verdict in report.verdicts))
    if report.evidence is not None:
        proved = report.evidence.verdict is Verdict.VERIFIED
        for line in verdict_line(report.evidence.verdict, () if proved else report.evidence.reasons):
            out.say(line)
    if report.repairs:
        _tell_tests(out, "after", report.after, report.failing_after)
    if report.rivals:
        _tell_rivals(shop, report, call)
    _tell_notes(report, out)
    if call.options.explain:
        _explain(report, out)
    _tell_end(report, call)


def _tell_notes(report: FixReport, out: Screen) -> None:
    for note in report.notes:
        out.paragraph(f"note: {note}")


def _tell_tests(out: Screen, when: str, counts: TestCounts | None, failing: tuple[Diagnostic, ...]) -> None:
    out.say(f"{when:<9} {counts_text(counts)}")
    width = out.width - 1 if out.is_terminal else WIDTH
    for finding in failing[:MOST_SHOWN]:
        name = finding.test or f"{finding.path}:{finding.line}".strip(":0") or finding.tool
        message = finding.message.strip().splitlines()[0]
        room = max(20, width - 6 - min(len(message), SHORTEST_MESSAGE))
        # The end of a long id tells more than its start; what reads a pipe needs it whole.
        name = name if len(name) <= room or not out.is_terminal else f"…{name[1 - room :]}"
        out.say(f"  ✗ {name}  {brief(message, max(20, width - 6 - len(name)))}")
    if len(failing) > MOST_SHOWN:
        out.say(f"  … and {len(failing) - MOST_SHOWN} more")


def _tell_rivals(shop: Project, report: FixReport, call: Call) -> None:
    out = call.out
    out.paragraph(f"no patch was chosen for {'the rest' if report.repairs else 'these tests'}: {report.reason}", "bold")
    for rival in report.rivals:
        alike = " (behaves like 1)" if rival.number > 1 and rival.behaves_like_first else ""
        take = f"  take it with: {_promote(rival, call)}" if rival.entry is not None else ""
        out.say(f"  {rival.number}. {rival.path}:{rival.line}  {rival.what}{alike}{take}")
        tell_edit(rival.changes, shop.store.blobs, out)


def _promote(rival: Alternative, call: Call) -> str:
    where = ("-C", call.options.workspace) if call.options.workspace is not None else ()
    return shlex.join(("pawl", "promote", str(rival.entry), *where))


def _again(call: Call) -> str:
    """The command that was given, as far as it matters for the search."""
    options = call.options
    words = ["pawl", "fix", *options.targets]
    given = (
        ("-C", options.workspace, None),
        ("--test", options.test, None),
        ("--seconds", None if options.seconds is None else f"{options.seconds:g}", None),
        ("--workers", str(options.workers), "2"),
    )
    for option, value, usual in given:
        words += [option, value] if value != usual else []
    return shlex.join(words)


def _advice(report: FixReport, call: Call) -> str:
    """The next step; of rivals one is taken without another search where they are kept."""
    if not report.rivals:
        return report.advice
    kept = [_promote(rival, call) for rival in report.rivals if rival.entry is not None]
    taking = f"take one with: {', or '.join(kept)}" if kept else f"choose with: {_again(call)} --pick N"
    more = "" if kept else "; --accept-first takes the likeliest"
    told = f"{taking}{more}; or write a test that tells them apart and run this again"
    return "; ".join(filter(None, (told, report.advice)))


def _explain(report: FixReport, out: Screen) -> None:
    if report.suspicious:
        out.say("suspicious lines (run by failing tests more than by passing ones):")
        for line in report.suspicious:
            out.say(f"  {line.score:.2f}  {line.path}:{line.line}")
    for verdict in report.verdicts:
        reason = f", {brief(verdict.reason, WIDTH)}" if verdict.reason else ""
        out.say(f"  {verdict.step}: {verdict.standing}{reason} ({verdict.seconds:.1f} s)")
    rate = report.tried / report.cpu_seconds if report.cpu_seconds else 0
    out.say(f"  {report.tried:,} candidates in {report.cpu_seconds:.1f} CPU seconds ({rate:,.0f} a second)")


def _tell_end(report: FixReport, call: Call) -> None:
    out = call.out
    cost = f"{report.seconds:.1f} s, $0.00"
    if report.promotion is not None:
        number = report.promotion.entry
        out.say(f"{report.outcome} in {cost}; promoted as entry {number}; undo with: pawl undo {number}", "bold green")
    elif call.options.dry_run and report.repairs:
        out.say(f"would be {report.outcome} ({cost}); nothing was changed")
    elif report.outcome in (FixOutcome.NOT_FIXED, FixOutcome.UNVERIFIED):
        out.paragraph(f"not fixed in {cost}: {report.reason}; nothing was changed", "bold")
    if report.outcome is FixOutcome.FIXED and report.reason:
        out.say(report.reason)
    if report.outcome is FixOutcome.PARTLY and report.reason and not report.rivals:
        out.paragraph(f"the rest is not fixed: {report.reason}")
    if report.kept is not None:
        how = f"pawl promote {report.kept}" + (" --unchecked" if report.outcome is FixOutcome.NOT_FIXED else "")
        out.say(f"the patch is kept as entry {report.kept}; promote it anyway with: {how}")
    advice = _advice(report, call)
    if advice:
        out.paragraph(advice, "dim")


def _mark(verdict: CheckResult) -> str:
    mark = MARKS[verdict.standing]
    if verdict.standing is Status.SKIPPED:
        return f"{mark} ({brief(verdict.reason, 40)})"
    if verdict.standing is Status.FAIL and verdict.advisory:
        return f"{TOLD} ({NOT_COUNTED})"
    if verdict.counts is None:
        return mark
    old = f" ({len(verdict.old)} {'fails' if len(verdict.old) == 1 else 'fail'} as before)" if verdict.old else ""
    return f"{mark} {verdict.counts.passed}{old}"


def _json(shop: Project, report: FixReport, call: Call) -> Json:
    finding = "test path line message"
    verdicts = [{**picked(one, "step standing reason"), "seconds": round(one.seconds, 3)} for one in report.verdicts]
    return {
        **picked(report, "outcome reason"),
        "advice": _advice(report, call),
        **picked(report, "before after"),
        "failing_before": [picked(one, finding) for one in report.failing_before],
        "failing_after": [picked(one, finding) for one in report.failing_after],
        "repairs": [
            {**picked(one, "path line what why agreement"), "alternatives": one.rivals} for one in report.repairs
        ],
        "alternatives": [picked(one, "number entry path line what") for one in report.rivals],
        "verdict": report.evidence.verdict if report.evidence is not None else None,
        "verdicts": verdicts,
        "suspicious": report.suspicious,
        "changes": changes_json(report.changes, shop.store.blobs),
        "notes": report.notes,
        "entry": report.promotion.entry if report.promotion else None,
        "kept": report.kept,
        "candidates": report.tried,
        "cpu_seconds": round(report.cpu_seconds, 3),
        "seconds": round(report.seconds, 3),
        "cost_usd": 0.0,
    }
