"""Tests: the suite runs by the user's command or the framework's own, and its report decides."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from pawl.core.execution import Completed
from pawl.core.finding import Finding, Verdict
from pawl.verify import commands
from pawl.verify.catalog import named
from pawl.verify.detect import Detection, detect, read
from pawl.verify.installers import missing_modules
from pawl.verify.output import printed
from pawl.verify.report import UNLISTED, TestReport
from pawl.verify.runners import launched, starts_runner
from pawl.verify.steps.step import Subject, amount, failed, passed, skipped, stopped


@dataclass(frozen=True, slots=True)
class Tests:
    __test__ = False

    name: str = "tests"
    framework: str = ""
    """The one to run; empty lets the project's files decide."""
    command: tuple[str, ...] = ()
    """What runs the tests where no framework can be told."""

    def run(self, subject: Subject) -> Verdict:
        given = subject.test_command or self.command
        detection = self._detected(subject, shlex.join(given) if given else None)
        if detection.framework is None and not given:
            return skipped(self.name, detection.reason)
        argv = given or _own_command(detection, subject)
        candidates = [*_by_module(argv, subject), *_without_npx(argv, subject)]
        completed = subject.run_first(launched(subject.files, one) if starts_runner(one) else one for one in candidates)
        if completed is None:
            program = argv[2] if argv[0] in (subject.python, "npx") else argv[0]
            return skipped(self.name, missing_modules(subject.files) or f"{program!r} is not installed")
        found = read(printed(completed), detection, subject.origin)
        return verdict(self.name, completed, found)

    def _detected(self, subject: Subject, command: str | None) -> Detection:
        if self.framework:
            return Detection(framework=named(self.framework), reason=f"the project uses {self.framework}")
        return detect(subject.files, command)


def _own_command(detection: Detection, subject: Subject) -> tuple[str, ...]:
    framework = detection.framework
    return commands.all_tests(framework, python=subject.python) if framework else ()


def _by_module(argv: tuple[str, ...], subject: Subject) -> list[tuple[str, ...]]:
    """A bare `pytest` as a module of the workspace's interpreter: only so is the workspace on the import path."""
    return [(subject.python, "-m", "pytest", *argv[1:])] if argv[0] in ("pytest", "py.test") else []


def _without_npx(argv: tuple[str, ...], subject: Subject) -> list[tuple[str, ...]]:
    """The program itself in the place of `npx`, which asks the network for one that is not there."""
    if argv[:2] != ("npx", "--no-install"):
        return [argv]
    return [(program, *argv[3:]) for program in subject.node_programs(argv[2])]


def verdict(step: str, completed: Completed, found: TestReport) -> Verdict:
    """Passed only when the command says so, a test ran and none failed; what could not be read counts against it."""
    counts = found.counts
    said = ", ".join(
        amount(number, word) if word == "error" else f"{number} {word}"
        for number, word in (
            (counts.passed, "passed"),
            (counts.failed, "failed"),
            (counts.errors, "error"),
            (counts.skipped, "skipped"),
        )
        if number
    )
    notes = "; ".join(found.notes)
    reason = "; ".join(filter(None, (stopped(completed), said, notes)))
    unlisted = any(note.startswith(UNLISTED) for note in found.notes)
    if found.complete and not found.failed and not counts.total and not unlisted:
        return skipped(step, "no tests ran")
    if completed.ok and not found.failed:
        return passed(step, reason or "the command succeeded", counts)
    findings = list(found.findings)
    if not found.complete:
        findings.append(_incomplete(completed, found))
    return failed(step, reason or f"the command failed with exit code {completed.code}", findings, counts)


def _incomplete(completed: Completed, found: TestReport) -> Finding:
    """Stands for what the report does not show, so that known failures alone never excuse a run that broke off."""
    why = stopped(completed) or "; ".join(found.notes) or f"exit code {completed.code} without a report"
    return Finding(tool="tests", message=f"the report is not complete: {why}", code="incomplete")
