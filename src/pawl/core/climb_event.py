"""What happens while a ladder is climbed, for whoever renders or records it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from pawl.core.tiers import Attempt, Ladder, StopReason, Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbBegun:
    """A ladder is climbed; `done` attempts were made before it was interrupted."""

    ladder: Ladder
    failing: int
    done: int = 0
    spent: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierBegun:
    tier: Tier
    number: int
    """From 1."""
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationBegun:
    tier: str
    number: int
    of: int
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptEnded:
    attempt: Attempt
    number: int
    """Counts the attempts of the climb, from 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierLeft:
    tier: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClimbEnded:
    why: StopReason
    reason: str


@dataclass(frozen=True, slots=True)
class Warned:
    """Something went wrong that the run goes on without."""

    text: str


ClimbEvent = ClimbBegun | TierBegun | IterationBegun | AttemptEnded | TierLeft | ClimbEnded | Warned
