"""The report of a test run, whatever the framework: how many, which failed and where, and whether all could be read."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import ClassVar

from pawl.core.diagnostic import Diagnostic, Location, TestCounts, TestOutcome, TestRun
from pawl.core.lazy_dataclass import dataclass

_LONGEST_MESSAGE = 4000
UNLISTED = "passing tests are not listed"
"""How a note starts when a report names failures only, so that no test counted does not mean that none ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestReport:
    __test__: ClassVar[bool] = False

    counts: TestCounts
    findings: tuple[Diagnostic, ...] = ()
    notes: tuple[str, ...] = ()
    broke_off: bool = False
    """There is no closing summary, although nothing of the output was left out."""
    stopped: bool = False
    """The runner says that it left tests out before its end."""
    complete: bool = False
    """The run came to its end by itself, and every failure it counted is among the findings."""
    ran: tuple[TestRun, ...] = ()
    """The tests by id, where the report names each that it counts."""

    @property
    def failed(self) -> bool:
        return bool(self.findings or self.counts.failed or self.counts.errors)

    def naming(self, ran: Sequence[TestRun]) -> TestReport:
        """With the tests by id, where they agree with the counts: a test may print what looks like another."""
        outcomes = [one.outcome for one in ran]
        numbers = (outcomes.count(TestOutcome.PASSED), outcomes.count(TestOutcome.SKIPPED))
        agree = self.complete and numbers == (self.counts.passed, self.counts.skipped)
        return replace(self, ran=tuple(ran)) if agree else self


def report(
    counts: TestCounts,
    findings: Iterable[Diagnostic],
    *,
    ended: bool,
    cut: bool = False,
    notes: Sequence[str] = (),
    stops: Sequence[str] = (),
) -> TestReport:
    """A report whose completeness follows from what was read; duplicates go.

    `ended` says that the closing summary was seen, `stops` why tests were left out before it.
    """
    unique = tuple(dict.fromkeys(findings))
    said = [*notes, *(f"stopped: {stop}" for stop in stops)]
    missing = counts.failed + counts.errors - len(unique)
    if cut:
        said.append("the middle of the output was left out")
    if not ended:
        said.append("the output has no summary: the run did not finish, or its end was left out")
    elif missing > 0:
        said.append(f"{missing} of {counts.failed + counts.errors} failures are not shown in the output")
    # Where part of the output is gone, only failures that were counted and all found prove that nothing is missing.
    accounted = missing <= 0 and (not cut or counts.failed + counts.errors > 0)
    complete = ended and accounted and not stops
    return TestReport(
        counts=counts,
        findings=unique,
        notes=tuple(said),
        broke_off=not ended and not cut,
        stopped=bool(stops),
        complete=complete,
    )


def failure(
    tool: str,
    message: str,
    *,
    test: str = "",
    code: str = "",
    frames: tuple[Location, ...] = (),
    at: Location | None = None,
) -> Diagnostic:
    """A failing test: `at`, or the innermost frame in the workspace, is its place."""
    place = at or (frames[-1] if frames else None)
    text = message.strip("\n")
    if len(text) > _LONGEST_MESSAGE:
        text = text[:_LONGEST_MESSAGE] + " …"
    return Diagnostic(
        tool=tool,
        message=text or "failed without a message",
        path=place.path if place else "",
        line=place.line if place else 0,
        column=place.column if place else 0,
        code=code,
        test=test,
        frames=frames,
    )


def unindented(lines: Iterable[str]) -> str:
    """A block of lines as a text without its common indentation and outer blank lines."""
    return textwrap.dedent("\n".join(line.rstrip() for line in lines)).strip("\n")
