"""The ground of one repair: the bench, what is verified on it, and what stood there before."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from pawl.app.fixing.report import FixRequest, Listener
from pawl.app.workshop import Workshop
from pawl.core.errors import CannotFix, NoTests, PawlError
from pawl.core.execution import Ending, Limits
from pawl.core.finding import Finding, Standing, Verdict
from pawl.repair.model import StageBegun
from pawl.verify.baseline import Baseline
from pawl.verify.detect import Detection, detect
from pawl.verify.ladder import Stop, climb, python_steps
from pawl.verify.steps.step import Subject
from pawl.verify.steps.suite import Tests
from pawl.workspace.bench import Bench

PYTHON = ("pytest", "unittest")
SUITE_SECONDS = 600.0
MOST_SOURCES = 5000


@dataclass(slots=True)
class Ground:
    shop: Workshop
    bench: Bench
    request: FixRequest
    listen: Listener
    started: float = field(default_factory=time.monotonic)
    notes: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Seconds of the search budget that are left."""
        return self.request.seconds - (time.monotonic() - self.started)

    @property
    def subject(self) -> Subject:
        return Subject(
            files=self.bench.files,
            runner=self.bench,
            workspace=self.shop.workspace,
            test_command=self.request.test_command,
            limits=self.limits(SUITE_SECONDS),
        )

    def limits(self, seconds: float) -> Limits:
        return self.shop.config.settings.limits(seconds)

    def detected(self) -> Detection:
        """The framework, which must be one that the reflex can work with."""
        command = shlex.join(self.request.test_command) if self.request.test_command else None
        detection = detect(self.bench.files, command)
        if detection.framework is None:
            raise NoTests(f"no tests found: {detection.reason}", advice="name the command with --test 'CMD'")
        if detection.framework.name not in PYTHON:
            raise CannotFix(
                f"the tests are {detection.framework.name} tests; the reflex repairs Python only",
                advice="a tier with a model can work on them once one is configured",
            )
        return detection

    def first_run(self) -> Verdict:
        """The suite before anything is changed."""
        self.listen(StageBegun(name="suite"))
        verdict = self.run_tests()
        if verdict.standing is Standing.SKIPPED:
            if "not installed" in verdict.reason:
                raise CannotFix(
                    f"the tests cannot run: {verdict.reason}",
                    advice="install it into the workspace's environment, or name another command with --test",
                )
            raise NoTests(f"no tests found: {verdict.reason}", advice="name the command with --test 'CMD'")
        if any(Ending.TIMED_OUT in finding.message for finding in verdict.findings if finding.code == "incomplete"):
            raise CannotFix(
                f"the suite did not end within {SUITE_SECONDS:.0f} seconds",
                advice="name a faster part of it, such as --test 'pytest tests/unit -x'",
            )
        return verdict

    def run_tests(self) -> Verdict:
        started = time.perf_counter()
        verdict = Tests().run(self.subject)
        return replace(verdict, seconds=time.perf_counter() - started)

    def verify(self, changed: tuple[str, ...], before: Baseline) -> tuple[Verdict, ...]:
        """Climbs the whole ladder; only what is new counts against the change."""
        subject = replace(self.subject, changed=changed)
        return climb(python_steps(), subject, stop=Stop.AT_FIRST_FAILURE, baseline=before, on_verdict=self.listen)

    def baseline_of(self, changed: tuple[str, ...], tests: Verdict, old: Mapping[str, bytes]) -> Baseline:
        """What the cheap steps say about these files as they were, and the first run of the suite."""
        now = {path: self.bench.files.read(path) for path in changed}
        for path, data in old.items():
            self.bench.files.write(path, data)
        try:
            subject = replace(self.subject, changed=changed)
            verdicts = climb(python_steps()[:-1], subject, stop=Stop.NEVER)
        finally:
            for path, data in now.items():
                self.bench.files.write(path, data)
        return Baseline.of((*verdicts, tests))

    def sources(self) -> dict[str, str]:
        """The Python files of the workspace, as texts."""
        found: dict[str, str] = {}
        for path in self.subject.python_files()[:MOST_SOURCES]:
            try:
                found[path] = self.bench.files.read(path).decode("utf-8")
            except (PawlError, UnicodeDecodeError):
                continue
        return found


def is_test(path: str) -> bool:
    """Whether a file belongs to the tests, which are never edited."""
    name = PurePosixPath(path).name
    folders = PurePosixPath(path).parts[:-1]
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or "tests" in folders
        or "test" in folders
    )


def failing_tests(verdict: Verdict) -> tuple[Finding, ...]:
    return tuple(finding for finding in verdict.findings if finding.test)
