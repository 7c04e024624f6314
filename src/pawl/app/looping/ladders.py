"""The ladder of a loop: the usual one with what the user's flags make of it, or that of a tier file, which wins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from pawl.app.looping.tier_file import ITERATIONS, MOST_ITERATIONS, MOST_PARALLEL, MOST_SAMPLES, KnownModel, read_tiers
from pawl.core.errors import UsageError
from pawl.core.tiers import Ladder, Tier, TierMode

T = TypeVar("T")

MOST_COST = Decimal(5)
MOST_TOKENS = 5_000_000
MOST_MINUTES = 240.0
"""What a loop may spend where nobody says otherwise: a loop without limits is a mistake."""
MOST_IN_ALL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderWish:
    """What the user's flags say about the ladder; None where they say nothing."""

    simple: int | None = None
    full: bool = False
    escalate: bool = True
    reflex: bool = True
    tiers: Path | None = None
    max_cost: Decimal | None = None
    max_minutes: float | None = None
    max_iterations: int | None = None
    samples: int | None = None
    parallel: int | None = None
    chaos: bool = False
    allowed_cost: Decimal | None = None
    """By the user's settings, where neither flag nor file says it; so are the minutes. None leaves it to the order."""
    allowed_minutes: float | None = None


def ladder_of(wish: LadderWish, known_model: KnownModel = lambda model: "") -> tuple[Ladder, tuple[str, ...]]:
    """The ladder, and a warning for each flag that the tier file overrules."""
    _check(wish)
    if wish.tiers is None:
        return _limited(_usual(wish), wish), ()
    read = read_tiers(wish.tiers, known_model)
    return _limited(read, wish), _overruled(wish, read)


def _usual(wish: LadderWish) -> Ladder:
    """Reflex, simple, full. `--full` leaves out simple; without escalation the first that asks a model is the last."""
    parallel = wish.parallel or 1
    # Side by side there is something to choose from.
    samples = wish.samples or (parallel if parallel > 1 else 0)
    simple = Tier(
        name="simple",
        mode=TierMode.SIMPLE,
        iterations=wish.simple or ITERATIONS[TierMode.SIMPLE],
        samples=samples,
        parallel=parallel,
        chaos=wish.chaos,
    )
    full = Tier(
        name="full",
        mode=TierMode.FULL,
        iterations=ITERATIONS[TierMode.FULL],
        samples=samples,
        parallel=parallel,
        chaos=wish.chaos,
    )
    asking = (full,) if wish.full else (simple, full)
    reflex = (Tier(name="reflex", mode=TierMode.REFLEX),) if wish.reflex else ()
    return Ladder(tiers=(*reflex, *(asking if wish.escalate else asking[:1])))


def _limited(ladder: Ladder, wish: LadderWish) -> Ladder:
    """What the file leaves open is the flag's, then that of the settings, and else the usual limit.

    Money that nobody limits stays open: the order limits it together with tokens.
    """
    return replace(
        ladder,
        max_cost=next((one for one in (ladder.max_cost, wish.max_cost, wish.allowed_cost) if one is not None), None),
        max_minutes=_first(ladder.max_minutes, wish.max_minutes, wish.allowed_minutes, MOST_MINUTES),
        max_iterations=_first(ladder.max_iterations, wish.max_iterations, MOST_IN_ALL),
    )


def _overruled(wish: LadderWish, read: Ladder) -> tuple[str, ...]:
    given = {
        "--simple": wish.simple is not None,
        "--full": wish.full,
        "--no-escalate": not wish.escalate,
        "--no-reflex": not wish.reflex,
        "--samples": wish.samples is not None,
        "--parallel": wish.parallel is not None,
        "--chaos": wish.chaos,
        "--max-cost": wish.max_cost is not None and read.max_cost is not None,
        "--max-minutes": wish.max_minutes is not None and read.max_minutes is not None,
        "--max-iterations": wish.max_iterations is not None and read.max_iterations is not None,
    }
    return tuple(f"{flag} is overruled by the tier file {str(wish.tiers)!r}" for flag, both in given.items() if both)


def _check(wish: LadderWish) -> None:
    for flag, value in (("--simple", wish.simple), ("--max-iterations", wish.max_iterations)):
        if value is not None and not 1 <= value <= MOST_ITERATIONS:
            raise UsageError(f"{flag} {value} is not between 1 and {MOST_ITERATIONS}", advice="5 suits most bugs")
    if wish.samples is not None and not 1 <= wish.samples <= MOST_SAMPLES:
        raise UsageError(f"--samples {wish.samples} is not between 1 and {MOST_SAMPLES}", advice="5 suits small models")
    if wish.parallel is not None and not 1 <= wish.parallel <= MOST_PARALLEL:
        raise UsageError(f"--parallel {wish.parallel} is not between 1 and {MOST_PARALLEL}", advice="2 is a beginning")
    if wish.max_cost is not None and (wish.max_cost.is_nan() or not 0 <= wish.max_cost <= 1_000_000):
        raise UsageError(f"--max-cost {wish.max_cost} is no amount of dollars", advice="give one such as 2.50")
    if wish.max_minutes is not None and not 0 < wish.max_minutes <= 10_080:
        raise UsageError(f"--max-minutes {wish.max_minutes:g} is not between 0 and 10080", advice="240 is usual")
    if wish.full and wish.simple is not None:
        raise UsageError("--simple and --full cannot both be had", advice="--simple N comes before full by itself")


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)
