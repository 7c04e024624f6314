"""`pawl verify`: the ladder climbed on a bench of the workspace as it stands."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pawl.app.environments import brought_along
from pawl.app.running import bench_places, open_bench
from pawl.app.verifying.ladders import steps_of
from pawl.app.verifying.packages import Provided, Wanted, provide
from pawl.app.verifying.servers import readable
from pawl.app.verifying.settings import verify_settings
from pawl.app.verifying.shelf import Baselines, VerdictShelf
from pawl.app.verifying.surroundings import surroundings
from pawl.app.workshop import Workshop
from pawl.core.finding import Standing, Verdict
from pawl.verify.baseline import Baseline
from pawl.verify.choosing import with_absent
from pawl.verify.keeping import Keeper, contents_of
from pawl.verify.kinds import ORDER, Kind
from pawl.verify.ladder import Stop, accepted, climb
from pawl.verify.steps.step import Subject
from pawl.workspace.bench import sweep


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyRequest:
    everything: bool = False
    """Go on after the first failure."""
    kinds: tuple[Kind, ...] = ORDER
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
    verdicts: tuple[Verdict, ...]
    kept: tuple[str, ...]
    """Steps that did not run, because nothing that decides about them has changed."""
    has_baseline: bool
    seconds: float
    notes: tuple[str, ...] = ()
    """What became of packages that the workspace lacks."""

    @property
    def accepted(self) -> bool:
        return accepted(self.verdicts)

    @property
    def proves_nothing(self) -> bool:
        return not any(verdict.standing is Standing.PASS for verdict in self.verdicts) and not any(
            verdict.standing is Standing.FAIL for verdict in self.verdicts
        )


def verify(
    shop: Workshop,
    request: VerifyRequest,
    listen: Callable[[Verdict], None] = lambda verdict: None,
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
        provided = provide(shop, bench, Wanted(install=request.install, say=say))
        for one in provided:
            say(one.note)
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
        if request.kinds == ORDER:
            steps = with_absent(steps, settings.wishes)
        stop = Stop.NEVER if request.everything or request.take_baseline else Stop.AT_FIRST_FAILURE
        verdicts = climb(steps, subject, stop=stop, baseline=Baseline.of(before) if before else None, on_verdict=listen)
    if request.take_baseline:
        baselines.save(shop.workspace, verdicts)
    report = VerifyReport(
        verdicts=verdicts,
        kept=tuple(keeper.kept) if keeper is not None else (),
        has_baseline=bool(before),
        seconds=time.monotonic() - started,
        notes=tuple(one.note for one in provided),
    )
    shop.note_if_possible("verified", {"accepted": report.accepted, "seconds": round(report.seconds, 2)})
    return report


def _keeper(shop: Workshop, subject: Subject, provided: Sequence[Provided]) -> Keeper | None:
    contents = contents_of(subject.files)
    environment = surroundings(subject, contents.keys())
    if environment is None:
        return None
    environment += "".join(one.key for one in provided)
    return Keeper(VerdictShelf(shop.config.state / "verdicts"), environment, contents)
