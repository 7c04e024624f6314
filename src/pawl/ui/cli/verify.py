"""`pawl verify`: every check that the project has, on a bench, with what is new told from what is old."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import replace
from typing import TYPE_CHECKING

from pawl.core.diagnostic import CheckBegun, CheckResult, Diagnostic, Status, Verdict
from pawl.core.errors import UsageError
from pawl.ui.cli.call import Call
from pawl.ui.cli.encoder import EXIT_UNVERIFIED, Json, picked
from pawl.ui.cli.parser import Command, install_option, seconds_option, test_option
from pawl.ui.screen.renderer import AS_BEFORE, MARKS
from pawl.ui.screen.run_report import verdict_line
from pawl.ui.screen.screen import Screen, brief, counted

if TYPE_CHECKING:
    from pawl.checks.project_facts import CheckKind
    from pawl.checks.verifier import Verifier
    from pawl.checks.verify_report import VerifyReport
    from pawl.workspace.project import Project


def words(parser: ArgumentParser) -> None:
    parser.add_argument("--all", action="store_true", help="run every step, also after syntax or the build has failed")
    parser.add_argument("--full", action="store_true", help="run the whole suite, however long it takes")
    parser.add_argument(
        "--entry", type=int, metavar="ID", help="run the whole suite and keep the result with this entry"
    )
    parser.add_argument(
        "--only", metavar="KINDS", default="", help="run only these kinds of steps, such as tests,types"
    )
    test_option(parser)
    parser.add_argument("--fresh", action="store_true", help="also run steps whose files have not changed since")
    install_option(parser)
    seconds_option(parser)
    parser.add_argument("--set-baseline", action="store_true", help="treat the present findings as old from now on")
    parser.add_argument("--no-baseline", action="store_true", help="count old findings too")


DECLARED = {"verify": Command(words=words, example="pawl verify\n  pawl verify --all --json", reads=True)}
MOST_SHOWN = 20
NAME_WIDTH = 22
WIDTH = 120
"""Of a line that is not for a terminal."""
EXIT_CODES = {Verdict.VERIFIED: 0, Verdict.NOTHING_TO_PROVE: 0, Verdict.FAILED: 1, Verdict.UNVERIFIED: EXIT_UNVERIFIED}


def verify(shop: Project, call: Call) -> int:
    from pawl.agent.stream_writer import StreamWriter
    from pawl.checks.climb import StopPolicy
    from pawl.checks.packages import PackagePolicy
    from pawl.checks.verifier import Verifier
    from pawl.checks.verify_report import BaselinePolicy
    from pawl.workspace.bench import sweep
    from pawl.workspace.paths import bench_places

    options = call.options
    if options.set_baseline and options.no_baseline:
        raise UsageError("--set-baseline and --no-baseline cannot be used together", advice="leave one of them out")

    shop.stop = call.time_limit("60 suits most projects", shop.stop)

    stream = StreamWriter(shop.config.state, shop.workspace)

    def listen(event: CheckBegun | CheckResult) -> None:
        stream.hear(event)
        if isinstance(event, CheckResult) and not options.json:
            _tell(call.out, event)

    def say(what: str) -> None:
        if not options.json:
            call.out.hint(what)

    kinds = _kinds(options.only)
    verifier = Verifier(
        shop=shop,
        test_command=call.test_command,
        stop=StopPolicy.NEVER if options.all or options.set_baseline else StopPolicy.AT_FIRST_FAILURE,
        full=options.full or options.set_baseline or options.entry is not None,
        kinds=kinds,
        cached=not options.fresh,
        packages=PackagePolicy(install=options.install, say=say),
        listen=listen,
    )
    policy = BaselinePolicy.SET if options.set_baseline else BaselinePolicy.STORED
    policy = BaselinePolicy.NONE if options.no_baseline else policy
    for place in bench_places(shop.config):
        sweep(place)
    if not options.set_baseline:
        verifier = verifier.of_uncommitted()
    if options.no_baseline:
        verifier = replace(verifier, present=None)
    try:
        report = verifier.verify(policy=policy) if options.entry is None else _of_entry(verifier, options.entry)
    finally:
        stream.close()
    shop.note_if_possible("verified", {"accepted": report.judgement.accepted, "seconds": round(report.seconds, 2)})
    if options.json:
        call.emit(_json(report))
    else:
        _tell_end(report, call)
    # Who leaves the tests out asks for nothing that they would prove; something has to.
    passes = "tests" not in kinds and Status.PASS in {one.standing for one in report.verdicts}
    unasked = passes and report.judgement.verdict is not Verdict.FAILED
    return 0 if options.set_baseline or unasked else EXIT_CODES[report.judgement.verdict]


def _of_entry(verifier: Verifier, entry: int) -> VerifyReport:
    from pawl.checks.whole_suite import run_whole_suite

    verifier.shop.entry(entry)
    report = run_whole_suite(verifier, entry)
    if report is None:
        raise UsageError(f"entry {entry} is not the newest", advice="pawl verify --full checks what stands")
    return report


def _kinds(said: str) -> tuple[CheckKind, ...]:
    """In the order of the checks; all where none is said."""
    from pawl.checks.project_facts import ORDER

    names = {name.strip() for name in said.split(",") if name.strip()}
    unknown = sorted(names - set(ORDER))
    if unknown:
        raise UsageError(f"{unknown[0]!r} is not a kind of step", advice=f"kinds are {', '.join(ORDER)}")
    return tuple(kind for kind in ORDER if not names or kind in names)


def _tell(out: Screen, verdict: CheckResult) -> None:
    took = f" {verdict.seconds:6.2f} s" if verdict.standing is not Status.SKIPPED else " " * 9
    mark = AS_BEFORE if verdict.old and verdict.standing is Status.PASS else MARKS[verdict.standing]
    head = f"{mark} {verdict.step:<{NAME_WIDTH}}{took}  "
    out.say(head + brief(verdict.reason, max(30, (out.width if out.is_terminal else WIDTH) - len(head) - 1)))
    for finding in verdict.findings[:MOST_SHOWN]:
        for line in _finding(finding):
            out.say(line)
    if len(verdict.findings) > MOST_SHOWN:
        out.hint(f"    and {len(verdict.findings) - MOST_SHOWN} more")


def _finding(finding: Diagnostic) -> list[str]:
    place = ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part)
    first, *rest = finding.message.splitlines() or [""]
    head = " ".join(filter(None, (finding.test or place, finding.label, first)))
    return [f"    {head}", *(f"      {line}" for line in rest[:6])]


def _tell_end(report: VerifyReport, call: Call) -> None:
    old = sum(len(verdict.old) for verdict in report.verdicts)
    if old:
        call.out.hint(f"not shown: {counted(old, 'finding')} of the baseline")
    if call.options.set_baseline:
        count = sum(len(verdict.findings) for verdict in report.verdicts)
        call.out.say(f"baseline set: {counted(count, 'finding')}, old from now on")
    else:
        judgement = report.judgement
        for line in (*verdict_line(judgement.verdict, judgement.refused or judgement.unproved), *judgement.notes):
            call.out.say(line)


def _json(report: VerifyReport) -> Json:
    return {
        "accepted": report.judgement.accepted,
        **picked(report.judgement, "verdict refused unproved"),
        "seconds": round(report.seconds, 3),
        "baseline": report.has_baseline,
        "notes": (*report.judgement.notes, *report.notes),
        "steps": [_step_json(verdict, report) for verdict in report.verdicts],
    }


def _step_json(verdict: CheckResult, report: VerifyReport) -> Json:
    return {
        **picked(verdict, "step standing reason findings counts"),
        "seconds": round(verdict.seconds, 3),
        "cached": verdict.step in report.kept,
        "old": len(verdict.old),
    }
