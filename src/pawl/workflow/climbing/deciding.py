"""What comes next on a ladder, from the record alone: another iteration, the next tier, or the end.

Limits are looked at before an iteration, never after: what is verified on the last one that they allow counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from pawl.core.tiers import Attempt, AttemptEnd, Climb, Iteration, StopReason, TierMode

MOST_IDLE = 2
"""Iterations in a row that bring nothing new before a tier counts as stuck."""


@dataclass(frozen=True, slots=True)
class Try:
    """Another iteration of the tier."""

    at: Iteration


@dataclass(frozen=True, slots=True)
class Escalate:
    """The next tier, and why this one is left."""

    reason: str


@dataclass(frozen=True, slots=True)
class Stop:
    why: StopReason
    reason: str


Step = Try | Escalate | Stop


def following(climb: Climb, *, seconds: float) -> Step:
    """The next step of a climb that has taken so many seconds."""
    if any(attempt.end is AttemptEnd.VERIFIED for attempt in climb.attempts):
        return Stop(StopReason.VERIFIED, "the checks accept it")
    if not climb.ladder.tiers:
        return Stop(StopReason.EXHAUSTED, "no tier can work here")
    limit = _limit(climb, seconds)
    if limit is not None:
        return limit
    stuck = is_stuck(climb.of_tier(climb.at))
    reason = stuck or _used_up(climb)
    if not reason:
        return Try(Iteration(tier=climb.at, number=climb.iteration + 1))
    if climb.at + 1 < len(climb.ladder.tiers):
        return Escalate(reason)
    return Stop(StopReason.STUCK if stuck else StopReason.EXHAUSTED, reason)


def is_limited_by_tier(climb: Climb) -> bool:
    """Whether the tier has less money left than the run."""
    whole, own = climb.ladder.max_cost, climb.tier.max_cost
    if whole is None or own is None:
        return own is not None
    return own - cost_of(climb.of_tier(climb.at)) < whole - cost_of(climb.attempts)


def is_progress(attempt: Attempt, before: Sequence[str]) -> bool:
    """Fewer tests fail, and none that did not fail before."""
    return attempt.failing is not None and set(attempt.failing) < set(before)


def is_stuck(attempts: Sequence[Attempt]) -> str:
    """Why a tier makes no progress; empty while it does.

    An iteration is idle when each of its attempts changed nothing, or what an earlier one had changed. A change nobody
    has tried yet is worth its iteration, whatever became of it.
    """
    seen: set[str] = set()
    idle = 0
    for number in sorted({attempt.at.number for attempt in attempts}):
        made = [attempt for attempt in attempts if attempt.at.number == number]
        new = any(attempt.digest and attempt.digest not in seen for attempt in made)
        seen.update(attempt.digest for attempt in made)
        idle = 0 if new or any(attempt.better for attempt in made) else idle + 1
    if idle < MOST_IDLE:
        return ""
    return f"stuck: {idle} iterations in a row changed nothing, or what had been tried before"


def cost_of(attempts: Sequence[Attempt]) -> Decimal:
    """What is known of it."""
    return sum((attempt.cost for attempt in attempts if attempt.cost is not None), Decimal(0))


def _used_up(climb: Climb) -> str:
    """Why the tier may not be tried again; empty when it may."""
    tier, made = climb.tier, climb.of_tier(climb.at)
    broke = bool(made) and made[-1].end is AttemptEnd.OUT_OF_BUDGET
    if tier.max_cost is not None and (broke or cost_of(made) >= tier.max_cost):
        return f"its budget of ${tier.max_cost} is spent"
    if tier.mode is TierMode.REFLEX and made:
        return "; ".join(made[-1].refused) or "the search found no patch"
    if climb.iteration >= tier.iterations:
        return f"{_amount(climb.iteration, 'iteration')}, none verified"
    if tier.max_minutes is not None and _seconds(made) >= tier.max_minutes * 60:
        return f"its {tier.max_minutes:g} minutes are over"
    return ""


def _limit(climb: Climb, seconds: float) -> Stop | None:
    ladder, made = climb.ladder, climb.of_tier(climb.at)
    if made and made[-1].end is AttemptEnd.OUT_OF_BUDGET and not is_limited_by_tier(climb):
        return Stop(StopReason.MONEY, made[-1].refused[-1] if made[-1].refused else "the budget is spent")
    asked = {attempt.at for attempt in climb.attempts if attempt.mode is not TierMode.REFLEX}
    if ladder.max_iterations is not None and len(asked) >= ladder.max_iterations:
        return Stop(StopReason.ITERATIONS, f"{_amount(len(asked), 'iteration')}, the most that are allowed")
    # For no money there is still what costs nothing.
    if ladder.max_cost and cost_of(climb.attempts) >= ladder.max_cost:
        return Stop(StopReason.MONEY, f"the budget of ${ladder.max_cost} is spent")
    if ladder.max_minutes is not None and seconds >= ladder.max_minutes * 60:
        return Stop(StopReason.TIME, f"{ladder.max_minutes:g} minutes are over")
    return None


def _seconds(attempts: Sequence[Attempt]) -> float:
    return sum(attempt.seconds for attempt in attempts)


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
