"""`pawl fix`: failing tests in, the smallest verified patch out."""

from __future__ import annotations

import os
import shlex
import textwrap

from pawl.app import fixing
from pawl.app.fixing import FixReport, FixRequest, Outcome, Rival
from pawl.app.workshop import Workshop
from pawl.core.errors import PathRefused, UsageError
from pawl.core.finding import Finding, Standing, TestCounts, Verdict
from pawl.core.patch import unified
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.progress import Progress, in_words
from pawl.interfaces.cli.shapes import changes_json
from pawl.interfaces.cli.suite_words import words_of
from pawl.interfaces.screen.screen import Screen, brief

EXIT = {Outcome.FIXED: 0, Outcome.NOTHING_FAILS: 0, Outcome.PARTLY: 1, Outcome.DISPUTED: 3, Outcome.NOT_FIXED: 1}
LEFT = frozenset({Outcome.PARTLY, Outcome.DISPUTED, Outcome.NOT_FIXED})
"""What leaves something for a model."""
MARKS = {Standing.PASS: "✓", Standing.FAIL: "✗", Standing.SKIPPED: "–"}
MOST_SHOWN = 10
WIDTH = 120
"""Of a line that is not for a terminal."""
SHORTEST_MESSAGE = 24


def fix(shop: Workshop, call: Call) -> int:
    request = _request(shop, call)
    with Progress(call.aside, quiet=call.options.json) as progress:
        report = fixing.fix(shop, request, progress.take)
    if not call.options.json:
        _tell(shop, report, call)
    if report.outcome in LEFT and not request.dry_run and call.options.escalate is not False:
        from pawl.interfaces.cli.escalating import order_after
        from pawl.interfaces.cli.loop import carried

        order = order_after(shop, call, request, report.outcome)
        if order is not None:
            return carried(shop, call, lambda session: session.do(order))
    if call.options.json:
        call.emit(_json(shop, report, call))
    return EXIT[report.outcome]


def _request(shop: Workshop, call: Call) -> FixRequest:
    options = call.options
    seconds = shop.config.settings.fix_seconds if options.seconds is None else options.seconds
    if not 1 <= seconds <= 86_400:
        raise UsageError(f"--seconds {seconds:g} is not between 1 and 86400", advice="60 suits most bugs")
    if not 1 <= options.workers <= 64:
        raise UsageError(f"--workers {options.workers} is not between 1 and 64", advice="one for each core")
    if options.pick is not None and options.accept_first:
        raise UsageError("--pick and --accept-first cannot both be had", advice="--accept-first takes the first one")
    if options.pick is not None and options.pick < 1:
        raise UsageError(f"--pick {options.pick}: patches are counted from 1", advice="give one of their numbers")
    return FixRequest(
        targets=_targets(shop, call),
        test_command=words_of(options.test),
        seconds=seconds,
        workers=options.workers,
        pick=options.pick,
        accept_first=options.accept_first,
        dry_run=options.dry_run,
        install=options.install,
    )


def _targets(shop: Workshop, call: Call) -> tuple[str, ...]:
    """The targets as the workspace calls them; the workspace itself stands for everything in it."""
    here = shop.workspace if call.options.workspace is not None else os.getcwd()
    if any(os.path.realpath(os.path.join(here, target)) == shop.workspace for target in call.options.targets if target):
        return ()
    try:
        return tuple(call.inside(shop.workspace, target) for target in call.options.targets)
    except PathRefused as error:
        raise UsageError(error.message, advice=error.advice) from error


def _tell(shop: Workshop, report: FixReport, call: Call) -> None:
    out = call.out
    if report.outcome is Outcome.NOTHING_FAILS:
        out.say(
            f"nothing fails: {_counts(report.before)}" if not report.reason else f"nothing to mend: {report.reason}"
        )
        _tell_notes(report, out)
        return
    _tell_tests(out, "before", report.before, report.failing_before)
    for repair in report.repairs:
        _tell_long(out, f"repaired  {repair.path}:{repair.line}  {in_words(repair.what)}  ({repair.why})")
    if report.changes:
        out.patch(report.changes, shop.store.blobs)
    if report.verdicts:
        out.say("verified  " + "  ".join(f"{verdict.step} {_mark(verdict)}" for verdict in report.verdicts))
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
        _tell_long(out, f"note: {note}")


def _tell_tests(out: Screen, when: str, counts: TestCounts | None, failing: tuple[Finding, ...]) -> None:
    out.say(f"{when:<9} {_counts(counts)}")
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


def _tell_long(out: Screen, text: str, style: str = "") -> None:
    """One line; in a terminal as many as it takes, broken between words and set in."""
    lines = (
        textwrap.wrap(text, out.width - 1, subsequent_indent="  ", break_on_hyphens=False)
        if out.is_terminal
        else [text]
    )
    for line in lines:
        out.say(line, style)


def _tell_rivals(shop: Workshop, report: FixReport, call: Call) -> None:
    out = call.out
    _tell_long(out, f"nothing was taken for {'the rest' if report.repairs else 'these tests'}: {report.reason}", "bold")
    for rival in report.rivals:
        alike = " (behaves like 1)" if rival.number > 1 and rival.behaves_like_first else ""
        take = f"  take it with: {_promote(rival, call)}" if rival.entry is not None else ""
        out.say(f"  {rival.number}. {rival.path}:{rival.line}  {rival.what}{alike}{take}")
        for line in unified(rival.changes, shop.store.blobs).split("\n"):
            if line[:1] in ("+", "-") and line[:3] not in ("+++", "---"):
                out.say(f"     {line}", "green" if line[0] == "+" else "red")


def _promote(rival: Rival, call: Call) -> str:
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
    """What to do next; of rivals one is taken without another search where they are kept."""
    if not report.rivals:
        return report.advice
    kept = [_promote(rival, call) for rival in report.rivals if rival.entry is not None]
    taking = f"take one with: {', or '.join(kept)}" if kept else f"choose with: {_again(call)} --pick N"
    more = "" if kept else "; --accept-first takes the likeliest"
    told = f"{taking}{more}; or write a test that tells them apart and run this again"
    return "; ".join(filter(None, (told, report.advice)))


def _explain(report: FixReport, out: Screen) -> None:
    if report.suspicious:
        out.say("suspicious lines (how much the failing tests run them and the passing ones do not):")
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
    elif report.outcome is Outcome.NOT_FIXED:
        _tell_long(out, f"not fixed in {cost}: {report.reason}; nothing was changed", "bold")
    if report.outcome is Outcome.FIXED and report.reason:
        out.say(report.reason)
    if report.outcome is Outcome.PARTLY and report.reason and not report.rivals:
        _tell_long(out, f"the rest is not fixed: {report.reason}")
    if report.kept is not None:
        out.say(f"the patch is kept as entry {report.kept}; promote it all the same with: pawl promote {report.kept}")
    advice = _advice(report, call)
    if advice:
        _tell_long(out, advice, "dim")


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


def _mark(verdict: Verdict) -> str:
    mark = MARKS[verdict.standing]
    if verdict.standing is Standing.SKIPPED:
        return f"{mark} ({brief(verdict.reason, 40)})"
    if verdict.counts is None:
        return mark
    old = f" ({len(verdict.old)} {'fails' if len(verdict.old) == 1 else 'fail'} as before)" if verdict.old else ""
    return f"{mark} {verdict.counts.passed}{old}"


def _json(shop: Workshop, report: FixReport, call: Call) -> dict[str, object]:
    return {
        "outcome": report.outcome,
        "reason": report.reason,
        "advice": _advice(report, call),
        "before": _counts_json(report.before),
        "after": _counts_json(report.after),
        "failing_before": [_finding_json(finding) for finding in report.failing_before],
        "failing_after": [_finding_json(finding) for finding in report.failing_after],
        "repairs": [
            {
                "path": one.path,
                "line": one.line,
                "what": one.what,
                "why": one.why,
                "rivals": one.rivals,
                "agreement": one.agreement,
            }
            for one in report.repairs
        ],
        "rivals": [
            {"number": one.number, "entry": one.entry, "path": one.path, "line": one.line, "what": one.what}
            for one in report.rivals
        ],
        "verdicts": [
            {"step": one.step, "standing": one.standing, "reason": one.reason, "seconds": round(one.seconds, 3)}
            for one in report.verdicts
        ],
        "suspicious": [{"path": one.path, "line": one.line, "score": one.score} for one in report.suspicious],
        "changes": changes_json(report.changes, shop.store.blobs),
        "notes": list(report.notes),
        "entry": report.promotion.entry if report.promotion else None,
        "kept": report.kept,
        "candidates": report.tried,
        "cpu_seconds": round(report.cpu_seconds, 3),
        "seconds": round(report.seconds, 3),
        "cost_usd": 0.0,
    }


def _counts_json(counts: TestCounts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    return {"passed": counts.passed, "failed": counts.failed, "errors": counts.errors, "skipped": counts.skipped}


def _finding_json(finding: Finding) -> dict[str, object]:
    return {"test": finding.test, "path": finding.path, "line": finding.line, "message": finding.message}
