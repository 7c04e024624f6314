"""`pawl verify`: the ladder climbed on a bench of the workspace as it stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from pawl.checks.baseline import Baseline, StopPolicy, accepted, climb
from pawl.checks.cache import Baselines, Keeper, VerdictShelf, contents_of, surroundings
from pawl.checks.catalog import detect
from pawl.checks.choosing import Placed, choose, in_order, with_absent
from pawl.checks.dev_servers import ServerAnswers, found_in
from pawl.checks.lsp.diagnosing import diagnostics_steps, host, readable
from pawl.checks.packages import PackagePolicy, Provided, provide
from pawl.checks.project import CHEAP, ORDER, CheckKind, Folder
from pawl.checks.report import UNLISTED
from pawl.checks.settings import verify_settings
from pawl.checks.steps import NONE_RAN, Subject
from pawl.core.diagnostic import Check, CheckResult, Status
from pawl.core.errors import CommandNotFound
from pawl.core.execution import Completed, Execution
from pawl.settings.config import Config
from pawl.workspace.bench_folder import sweep
from pawl.workspace.commands import bench_places, open_bench
from pawl.workspace.environments import brought_along
from pawl.workspace.hiding import hidden_note
from pawl.workspace.project import Project

CHECKS: Mapping[Check, tuple[CheckKind, ...]] = {
    Check.BUILD: (CheckKind.SYNTAX, CheckKind.BUILD),
    Check.LINT: (CheckKind.LINT,),
    Check.TYPECHECK: (CheckKind.TYPES, CheckKind.DIAGNOSTICS),
    Check.ALL: CHEAP,
}
"""Which kinds of steps a check stands for."""


def steps_of(
    config: Config, files: Folder, *, kinds: Iterable[CheckKind] = ORDER, test_command: Collection[str] = ()
) -> tuple[Placed, ...]:
    """The steps of the project, with the user's own, and with the language servers that add to them."""
    settings = verify_settings(config)
    wanted = tuple(kinds)
    steps = choose(files, settings.wishes, test_command=test_command, kinds=ORDER)
    if CheckKind.DIAGNOSTICS in wanted and CheckKind.DIAGNOSTICS not in settings.skip:
        present = {step.kind for step in steps}
        steps = in_order((*steps, *diagnostics_steps(files, present, settings.servers)), settings.wishes)
    own = settings.dev_server
    if CheckKind.SERVER in wanted and found_in(Subject(files=files, runner=NoCommands()), own) is not None:
        # Loaded by those who start a server.
        from pawl.sandbox.forwarding import Forwarder

        joining = partial(Forwarder, settings.dev_services)
        steps = in_order((*steps, Placed(ServerAnswers(host(), joining, own), CheckKind.SERVER)), settings.wishes)
    return tuple(step for step in steps if step.kind in wanted)


class NoCommands:
    """Fits `ports.CommandRunner` where a project is only looked at."""

    def run(self, execution: Execution) -> Completed:
        raise CommandNotFound(f"{execution.argv[0]!r} is not run here", advice="look at the files only")


def steps_for(config: Config, files: Folder, what: Check) -> tuple[Placed, ...]:
    """The steps that a check stands for."""
    return steps_of(config, files, kinds=CHECKS[what])


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    everything: bool = False
    """Go on after the first failure."""
    kinds: tuple[CheckKind, ...] = ORDER
    test_command: tuple[str, ...] = ()
    fresh: bool = False
    """Run every step, also where its verdict is known."""
    take_baseline: bool = False
    """What is found now is old from now on."""
    ignore_baseline: bool = False
    install: bool = False
    """Packages that are missing may be installed on the bench, with a network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    verdicts: tuple[CheckResult, ...]
    kept: tuple[str, ...]
    """Steps that did not run, because nothing that decides about them has changed."""
    has_baseline: bool
    seconds: float
    notes: tuple[str, ...] = ()
    """What became of packages that the workspace lacks, and what is hidden from the steps."""
    not_run: str = ""
    """Why the tests that there are did not run."""

    @property
    def accepted(self) -> bool:
        return accepted(self.verdicts) and not self.not_run

    @property
    def proves_nothing(self) -> bool:
        return not any(verdict.standing is Status.PASS for verdict in self.verdicts) and not any(
            verdict.standing is Status.FAIL for verdict in self.verdicts
        )


def verify(
    shop: Project,
    request: VerifyRequest,
    listen: Callable[[CheckResult], None] = lambda verdict: None,
    say: Callable[[str], None] = lambda what: None,
) -> VerifyReport:
    """Climbs the ladder; the workspace is not touched."""
    started = time.monotonic()
    for place in bench_places(shop.config):
        sweep(place)
    settings = verify_settings(shop.config)
    baselines = Baselines(shop.config.state / "baselines")
    before = () if request.ignore_baseline or request.take_baseline else baselines.load(shop.workspace)
    with open_bench(shop, extra_readonly=readable()) as bench:
        provided = provide(shop, bench, PackagePolicy(install=request.install, say=say))
        hidden = hidden_note(shop.tree, shop.guardrails)
        notes = (*(one.note for one in provided), *((hidden,) if hidden else ()))
        for note in notes:
            say(note)
        subject = Subject(
            files=bench.files,
            runner=bench,
            workspace=shop.workspace,
            test_command=request.test_command,
            spare=brought_along(),
            limits=shop.config.settings.limits(settings.seconds),
        )
        steps = steps_of(shop.config, bench.files, kinds=request.kinds, test_command=request.test_command)
        keeper = None if request.fresh else _keeper(shop, subject, provided)
        steps = keeper.around(steps) if keeper is not None else steps
        tests = {step.name for step in steps if step.kind is CheckKind.TESTS}
        has_tests = bool(request.test_command) or detect(bench.files).framework is not None
        if request.kinds == ORDER:
            steps = with_absent(steps, settings.wishes)
        stop = StopPolicy.NEVER if request.everything or request.take_baseline else StopPolicy.AT_FIRST_FAILURE
        verdicts = climb(steps, subject, stop=stop, baseline=Baseline.of(before) if before else None, on_verdict=listen)
    if request.take_baseline:
        baselines.save(shop.workspace, verdicts)
    report = VerifyReport(
        verdicts=verdicts,
        kept=tuple(keeper.kept) if keeper is not None else (),
        has_baseline=bool(before),
        seconds=time.monotonic() - started,
        notes=notes,
        not_run=tests_not_run([one for one in verdicts if one.step in tests], request) if has_tests else "",
    )
    shop.note_if_possible("verified", {"accepted": report.accepted, "seconds": round(report.seconds, 2)})
    return report


def tests_not_run(verdicts: Sequence[CheckResult], request: VerifyRequest) -> str:
    """Why no test ran although there are some; empty where one did, or the runner looked and found none."""
    reasons = []
    for verdict in verdicts:
        silent = verdict.counts is not None and not verdict.counts.total and UNLISTED not in verdict.reason
        if verdict.standing is Status.FAIL or (verdict.standing is Status.PASS and not silent):
            return ""
        if verdict.standing is Status.PASS:
            reasons.append("what their command printed shows none")
        elif verdict.reason != NONE_RAN or request.test_command:
            reasons.append(verdict.reason)
    return "; ".join(reasons)


def _keeper(shop: Project, subject: Subject, provided: Sequence[Provided]) -> Keeper | None:
    contents = contents_of(subject.files)
    environment = surroundings(subject, contents.keys())
    if environment is None:
        return None
    environment += "".join(one.key for one in provided)
    return Keeper(VerdictShelf(shop.config.state / "verdicts"), environment, contents)
