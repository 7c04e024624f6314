"""The ladder of a run: its tiers from the cheapest up, the attempts that were made on them, and where the climb stands.

Every value is frozen. What is handed from one iteration to the next is a `Climb`, and going on makes a new one.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from enum import StrEnum

from pawl.core.lazy_dataclass import dataclass


class TierMode(StrEnum):
    """How a tier works."""

    REFLEX = "reflex"
    """A search, with no model."""
    SIMPLE = "simple"
    """Artisan, then the tests."""
    FULL = "full"
    """Librarian, artisan, critic, then the tests."""
    TEAM = "team"
    """Lead, planner, workers, fixer, then the tests."""


class AttemptEnd(StrEnum):
    VERIFIED = "verified"
    """The machine-run checks accept it."""
    REFUSED = "refused"
    """They do not."""
    SENT_BACK = "sent back"
    """The critic refused it, so that no test was run."""
    UNCHANGED = "unchanged"
    """Nothing was changed."""
    FAILED = "failed"
    """It could not be carried out."""
    CANCELLED = "cancelled"
    """Another attempt of its iteration was verified first."""
    OUT_OF_BUDGET = "out of budget"
    """The next request could have cost more than is left, and what stood there by then is not accepted."""


class EscalationEnd(StrEnum):
    """Why a climb ended."""

    VERIFIED = "verified"
    EXHAUSTED = "exhausted"
    """No tier is left."""
    STUCK = "stuck"
    """The last tier makes no progress."""
    ITERATIONS = "iterations"
    MONEY = "money"
    TIME = "time"
    NEEDLESS = "needless"
    """Somebody else has fixed it meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One rung: how it works, with which models, and how much of it there may be."""

    name: str
    mode: TierMode
    iterations: int = 1
    max_cost: Decimal | None = None
    """In US dollars, of this tier alone."""
    max_minutes: float | None = None
    models: tuple[tuple[str, str], ...] = ()
    """Roles with their models; the role `*` stands for every other."""
    temperatures: tuple[tuple[str, float], ...] = ()
    samples: int = 0
    """Attempts that one iteration draws; 0 for what suits the model."""
    parallel: int = 1
    """How many of them stand side by side, each on a bench of its own."""
    draft: bool | None = None
    """Whether the artisan answers with a whole function instead of calling tools; None for what suits the model."""
    chaos: bool = False
    """Attack a verified change before it counts."""

    def model_for(self, role: str) -> str:
        """Empty where the tier leaves it to the settings."""
        chosen = dict(self.models)
        return chosen.get(role) or chosen.get("*", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """The tiers, the cheapest first, and the limits of the whole."""

    tiers: tuple[Tier, ...]
    max_cost: Decimal | None = None
    max_iterations: int | None = None
    """Of all tiers that ask a model."""
    max_minutes: float | None = None
    summary: int = 2_000
    """Characters of what an attempt is told of those before it (E3; E4 for tiers from a file)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Iteration:
    """Where a climb works: which tier, and which of its iterations. Counted from 1, tiers from 0."""

    tier: int
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One try of one iteration, and what became of it. The bench is gone; this is what stays."""

    at: Iteration
    sample: int = 1
    mode: TierMode
    model: str = ""
    end: AttemptEnd
    said: str = ""
    """The model's own account."""
    left: tuple[str, ...] = ()
    """Planned changes that a team did not make, by its own account."""
    paths: tuple[str, ...] = ()
    digest: str = ""
    """Of its change set; empty when nothing was changed."""
    diff: tuple[str, ...] = ()
    """The first of its changed lines, with their signs."""
    failing: tuple[str, ...] | None = None
    """The tests that fail with it; None when no test was run."""
    messages: tuple[str, ...] = ()
    """The findings of the checks, one line each."""
    refused: tuple[str, ...] = ()
    """Why it is not accepted."""
    verdicts: tuple[tuple[str, str, str], ...] = ()
    """Step, standing, reason."""
    better: bool = False
    """Fewer tests fail with it and none that passed: the next attempts stand on it."""
    cost: Decimal | None = Decimal(0)
    """None when the price of a model is unknown."""
    tokens: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationStep:
    """A tier was left for the next one."""

    tier: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationState:
    """How far a run has come on its ladder: immutable, so that no iteration can change what another is given."""

    ladder: Escalation
    failing: tuple[str, ...] = ()
    """The tests that failed before the first attempt."""
    attempts: tuple[Attempt, ...] = ()
    gates: tuple[EscalationStep, ...] = ()

    @property
    def at(self) -> int:
        """The tier that it stands on."""
        return len(self.gates)

    @property
    def tier(self) -> Tier:
        return self.ladder.tiers[self.at]

    def tried(self, attempt: Attempt) -> EscalationState:
        return replace(self, attempts=(*self.attempts, attempt))

    def escalated(self, reason: str) -> EscalationState:
        return replace(self, gates=(*self.gates, EscalationStep(tier=self.at, reason=reason)))

    def of_tier(self, tier: int) -> tuple[Attempt, ...]:
        return tuple(attempt for attempt in self.attempts if attempt.at.tier == tier)

    @property
    def iteration(self) -> int:
        """The last one that was begun on this tier; 0 before the first."""
        return max((attempt.at.number for attempt in self.of_tier(self.at)), default=0)

    @property
    def best(self) -> tuple[str, ...]:
        """The tests that fail with what the next attempt stands on."""
        better = [attempt.failing for attempt in self.attempts if attempt.better and attempt.failing is not None]
        return better[-1] if better else self.failing
