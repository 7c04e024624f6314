"""Requests to the reflex, its events, and its reports."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING

from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import CheckBegun, CheckResult, Diagnostic, TestCounts
from pawl.core.errors import ParseFailed
from pawl.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pawl.checks.verdict import Evidence
    from pawl.workspace.promotion import Promotion


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairRequest:
    root: str
    """The folder as the engine sees it; on a bench, the workspace's own path."""
    targets: tuple[str, ...] = ()
    """Sources that may be edited, relative to the root; empty means every source that the tests import."""
    tests: tuple[str, ...] = ()
    """Words for the framework: files, folders, ids, options."""
    script: tuple[str, ...] = ()
    """A script of the project's that sets up and runs unittest's tests, with its words."""
    seconds: float = 60.0
    workers: int = 2
    memory_bytes: int = 3 << 30
    framework: str = "pytest"
    mend: tuple[str, ...] = ()
    """The failing tests to be mended, by their ids; other failures are left alone. Empty means all of them."""
    words: tuple[str, ...] = ()
    """What is asked for, in the user's words."""

    def to_json(self) -> str:
        from pawl.code.languages import pattern_of_tests  # Renderers load this module, and need no tables.

        return json.dumps({**asdict(self), "test_paths": pattern_of_tests("py").pattern}, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class TextEdit:
    """The bytes from `start` to `end` of a file become `text`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPatch:
    """One file's edits that turn every failing test green and break none that was looked at."""

    path: str
    edits: tuple[TextEdit, ...]
    template: str
    function: str
    line: int
    cost: float
    """How far-fetched the edit is; clues make it no less so."""
    group: int = 0
    """Patches of one group behaved alike on all inputs that were tried."""
    verified: bool = False
    """Whether the whole suite was run with it."""
    support: int | None = None
    """How many different examples of tests and docstrings speak for it; 0 where a documented one speaks against it."""

    def applied(self, data: bytes) -> bytes:
        """The file's new content."""
        parts: list[bytes] = []
        position = 0
        for edit in sorted(self.edits, key=lambda edit: (edit.start, edit.end)):
            if edit.start < position or edit.end > len(data):
                raise ParseFailed(f"the edits do not fit {self.path!r}", advice="the file has changed; run again")
            parts += [data[position : edit.start], edit.text.encode()]
            position = edit.end
        return b"".join([*parts, data[position:]])


class Agreement(StrEnum):
    """How sure it is that the first patch is the one that is meant."""

    SOLE = "sole"
    """Nothing else was found."""
    ALIKE = "alike"
    """All that was found behaves the same on every input that was tried."""
    DECIDED = "decided"
    """Rivals behave differently, and something speaks for the first."""
    DISPUTED = "disputed"
    """Rivals behave differently, and nothing decides: ask."""


class RepairStatus(StrEnum):
    REPAIRED = "repaired"
    NO_PATCH = "no patch"
    OUT_OF_TIME = "out of time"
    NOTHING_FAILS = "nothing fails"
    FLAKY_ONLY = "flaky only"
    NO_TESTS = "no tests"
    NOT_COLLECTED = "not collected"
    NO_SOURCES = "no sources"
    NOTHING_TO_EDIT = "nothing to edit"
    SUITE_DIED = "suite died"
    ENGINE_FAILED = "engine failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class StageBegun:
    name: str
    tests: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemFound:
    """Something that could not be collected."""

    place: str
    kind: str
    message: str

    @property
    def package(self) -> str:
        """The package that is missing, if that is the reason."""
        missing = re.search(r"No module named '(\w+)", self.message)
        return missing.group(1) if missing else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineTaken:
    failing: tuple[str, ...]
    passed: int
    flaky: tuple[str, ...] = ()
    ordered: tuple[str, ...] = ()
    hanging: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    """The words of each that fails."""
    ending: tuple[str, ...] = ()
    """Tests that end the interpreter."""


@dataclass(frozen=True, slots=True)
class SuspiciousLine:
    path: str
    line: int
    score: float


@dataclass(frozen=True, slots=True)
class LinesSuspected:
    lines: tuple[SuspiciousLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Progressed:
    tried: int
    cpu: float
    plausible: int
    left: float

    @property
    def rate(self) -> float:
        """Candidates per CPU second."""
        return self.tried / self.cpu if self.cpu else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RepairEnded:
    """The last event. The first patch is the chosen one, the others are its alternatives."""

    status: RepairStatus
    seconds: float
    patches: tuple[FoundPatch, ...] = ()
    agreement: Agreement = Agreement.SOLE
    reason: str = ""
    """The fact that decided between rivals, or the one that is unclear."""
    doubt: str = ""
    """Why the first patch is offered and not taken, though nothing disputes it."""
    margin: float = 0.0
    """How much more is thought against the next group of patches than against the first."""
    tests: tuple[str, ...] = ()
    """The failing tests that the search was for."""
    tried: int = 0
    cpu: float = 0.0
    error: str = ""

    @property
    def chosen(self) -> FoundPatch | None:
        return self.patches[0] if self.patches else None


RepairEvent = StageBegun | ProblemFound | BaselineTaken | LinesSuspected | Progressed | RepairEnded


@dataclass(frozen=True, slots=True, kw_only=True)
class FixRequest:
    targets: tuple[str, ...] = ()
    """Sources that may be edited, or tests to be mended; empty for all."""
    test_command: tuple[str, ...] = ()
    seconds: float = 60.0
    workers: int = 2
    pick: int | None = None
    """Which of the rivals to take, counted from 1."""
    accept_first: bool = False
    """Take the likeliest patch even where rivals disagree and nothing decides."""
    dry_run: bool = False
    keep: bool = False
    """Keep what was found as an entry instead of promoting it."""
    install: bool = False
    """Packages that are missing may be installed on the bench, with a network."""
    ground: ChangeSet = EMPTY
    """The changes that the search stands on, over the workspace; not part of the report."""
    objective: str = ""
    """What is asked for, in the user's words: they speak for a patch that does what they say."""


class FixOutcome(StrEnum):
    FIXED = "fixed"
    PARTLY = "partly fixed"
    NOTHING_FAILS = "nothing fails"
    DISPUTED = "disputed"
    """Patches were found that behave differently, and nothing decides between them."""
    NOT_FIXED = "not fixed"
    UNVERIFIED = "unverified"
    """A patch was found, and nothing proves it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One thing that was mended, and why this way."""

    path: str
    line: int
    what: str
    """The template of the search, or the entry of the recovery map."""
    why: str
    rivals: int = 0
    """How many other patches were found."""
    agreement: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mended:
    """Something was mended on the bench, and so many tests still fail."""

    repair: Repair
    failing: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStarted:
    """The suite has been run once; from now on the budget is spent."""

    seconds: float
    failing: int


FixEvent = RepairEvent | CheckBegun | CheckResult | Mended | ClockStarted
Listener = Callable[[FixEvent], None]
"""Is told of every step as it happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """A patch that also makes the tests pass; kept as an entry, so that it can be looked at and promoted."""

    number: int
    entry: int | None
    path: str
    line: int
    what: str
    changes: ChangeSet
    behaves_like_first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FixReport:
    outcome: FixOutcome
    reason: str = ""
    advice: str = ""
    before: TestCounts | None = None
    after: TestCounts | None = None
    failing_before: tuple[Diagnostic, ...] = ()
    failing_after: tuple[Diagnostic, ...] = ()
    repairs: tuple[Repair, ...] = ()
    rivals: tuple[Alternative, ...] = ()
    suspicious: tuple[SuspiciousLine, ...] = ()
    verdicts: tuple[CheckResult, ...] = ()
    evidence: Evidence | None = None
    """The word on the patch, and what it rests on; None where none was found."""
    notes: tuple[str, ...] = ()
    changes: ChangeSet = EMPTY
    promotion: Promotion | None = None
    kept: int | None = None
    """The entry that keeps a patch which was found and not accepted."""
    tried: int = 0
    cpu_seconds: float = 0.0
    seconds: float = 0.0
