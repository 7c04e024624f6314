"""Diagnostics with a place in the code, the result of a check, and both as JSON."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar

from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import plain, typed


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Location:
    """A line of a file, relative to the workspace where it lies inside."""

    path: str
    line: int = 0
    column: int = 0


MOST_FRAMES = 3
"""Places of a traceback that are told with a failing test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One thing a check found: a failing test, a diagnostic, a syntax error."""

    tool: str
    message: str
    path: str = ""
    line: int = 0
    column: int = 0
    severity: Severity = Severity.ERROR
    code: str = ""
    """The tool's own name for it, such as `F821` or `AssertionError`."""
    test: str = ""
    """The test's id, for a failing test."""
    frames: tuple[Location, ...] = ()
    """The traceback, outermost first, inside the workspace only."""

    @property
    def place(self) -> str:
        """`path:line`, as far as they are known."""
        return ":".join(str(part) for part in (self.path, self.line) if part)

    @property
    def raised(self) -> tuple[str, ...]:
        """Of a failing test, a line with the last places of the workspace that it ran through, the innermost first."""
        places = dict.fromkeys(f"{one.path}:{one.line}" for one in reversed(self.frames[-MOST_FRAMES:]))
        return (f"at {', from '.join(places)}",) if self.test and places else ()

    @property
    def first_line(self) -> str:
        """Of the message, the first line that says something."""
        return next((line.strip() for line in self.message.splitlines() if line.strip()), "")

    @property
    def label(self) -> str:
        """Its code, where the message does not say that itself."""
        return "" if self.message.lstrip().startswith(self.code) else self.code

    @property
    def key(self) -> tuple[str, str, str, str, str]:
        """Equal for the same finding when lines move: tells old findings from new ones."""
        return (self.tool, self.path, self.test, self.code, self.message)


UNFINISHED = "unfinished"
"""The code of a finding that says that a build was stopped before it could say anything."""
INCOMPLETE = "incomplete"
"""The code of a finding that says that tests did not come to their end."""
NOT_SERVING = "server"
"""The code of a finding that says that a dev server did not start or did not answer."""


class Status(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    SKIPPED = "skipped"


class Verdict(StrEnum):
    """The verifier's word on a whole change."""

    VERIFIED = "verified"
    FAILED = "failed"
    UNVERIFIED = "unverified"
    """Nothing could prove it."""
    NOTHING_TO_PROVE = "nothing to prove"
    """Only text that no check reads was changed."""


class Check(StrEnum):
    """The checks that the `check` tool may be asked for."""

    BUILD = "build"
    LINT = "lint"
    TYPECHECK = "typecheck"
    TESTS = "tests"
    ALL = "all"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestCounts:
    passed: int = 0
    failed: int = 0
    errors: int = 0
    skipped: int = 0

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.errors + self.skipped

    def __str__(self) -> str:
        errors = "error" if self.errors == 1 else "errors"
        pairs = ((self.failed, "failed"), (self.errors, errors), (self.passed, "passed"), (self.skipped, "skipped"))
        return ", ".join(f"{number} {word}" for number, word in pairs if number) or "no tests"


class TestOutcome(StrEnum):
    __test__ = False

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TestRun:
    """One test as it was seen to end, beside what its runner printed."""

    __test__: ClassVar[bool] = False

    id: str
    outcome: TestOutcome
    seconds: float = 0.0
    checked: bool | None = None
    """Whether a check of its own was executed; None where that was not watched."""


@dataclass(frozen=True, slots=True)
class CheckBegun:
    """A check that Pawl runs itself is under way."""

    step: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """How one step of the verification ladder ended; nothing passes because its tool was missing."""

    step: str
    standing: Status
    reason: str = ""
    findings: tuple[Diagnostic, ...] = ()
    old: tuple[Diagnostic, ...] = ()
    """Findings that stood there before the change."""
    counts: TestCounts | None = None
    seconds: float = 0.0
    incomplete: str = ""
    """Why it could not begin or did not come to its end; it is never compared with another run."""
    command: tuple[str, ...] = ()
    """The command."""
    ran: tuple[TestRun, ...] = ()
    """The tests that were watched, in the order in which they ran; empty where they could not be."""
    flaky: tuple[str, ...] = ()
    """Tests that changed their mind, a line each; they count neither as failed nor as passed."""
    part: str = ""
    """How much of the suite ran, where it was not all of it."""
    left_out: tuple[str, ...] = ()
    """Tests that were found and that code of the project, such as a conftest.py, took out of the run."""
    advisory: bool = False
    """Of a checker that the project did not choose: told, and no reason to refuse what a test witnesses."""

    def to_json(self) -> dict[str, Any]:
        return plain(self)  # type: ignore[no-any-return]

    @classmethod
    def from_json(cls, body: object) -> CheckResult:
        """Also of what earlier versions wrote, with fewer fields; `ValueError` otherwise."""
        return typed(cls, body)


def counts_json(counts: TestCounts | None) -> dict[str, int] | None:
    return None if counts is None else plain(counts)
