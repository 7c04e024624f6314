"""What is asked of `fix`, and what came of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from pawl.core.change import EMPTY, ChangeSet
from pawl.core.finding import Finding, TestCounts, Verdict
from pawl.repair.model import RepairEvent, SuspiciousLine
from pawl.workspace.promote import Promotion


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
    install: bool = False
    """Packages that are missing may be installed on the bench, with a network."""
    ground: ChangeSet = EMPTY
    """What the search stands on, over the workspace; not part of what is reported."""


class Outcome(StrEnum):
    FIXED = "fixed"
    PARTLY = "partly fixed"
    NOTHING_FAILS = "nothing fails"
    DISPUTED = "disputed"
    """Patches were found that behave differently, and nothing decides between them."""
    NOT_FIXED = "not fixed"


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


FixEvent = RepairEvent | Verdict | Mended | ClockStarted
Listener = Callable[[FixEvent], None]
"""Is told of every step as it happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rival:
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
    outcome: Outcome
    reason: str = ""
    advice: str = ""
    before: TestCounts | None = None
    after: TestCounts | None = None
    failing_before: tuple[Finding, ...] = ()
    failing_after: tuple[Finding, ...] = ()
    repairs: tuple[Repair, ...] = ()
    rivals: tuple[Rival, ...] = ()
    suspicious: tuple[SuspiciousLine, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    notes: tuple[str, ...] = ()
    changes: ChangeSet = EMPTY
    promotion: Promotion | None = None
    kept: int | None = None
    """The entry that keeps a patch which was found and not accepted."""
    tried: int = 0
    cpu_seconds: float = 0.0
    seconds: float = 0.0
