"""The ladder of a loop: the usual one with what the user's flags make of it, or that of a tier file, which wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TypeVar

from pawl.agent.briefing import configured
from pawl.agent.tier_file import ITERATIONS, MOST_ITERATIONS, MOST_PARALLEL, MOST_SAMPLES, KnownModel, read_tiers
from pawl.core.errors import UnknownModel, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Approval, Mode, RunRequest, RunState
from pawl.core.tiers import (
    Attempt,
    AttemptEnd,
    Escalation,
    EscalationEnd,
    EscalationState,
    Iteration,
    Tier,
    TierMode,
)
from pawl.core.typed import plain
from pawl.models.providers import ModelName
from pawl.workspace.project import Project

T = TypeVar("T")

MOST_COST = Decimal(5)
MOST_TOKENS = 5_000_000
MOST_MINUTES = 240.0
"""The limit of a loop where nobody sets one: a loop without limits is a mistake."""
MOST_IN_ALL = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LadderWish:
    """The user's flags about the tiers; None where they say nothing."""

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


def ladder_of(wish: LadderWish, known_model: KnownModel = lambda model: "") -> tuple[Escalation, tuple[str, ...]]:
    """The ladder, and a warning for each flag that the tier file overrules."""
    _check(wish)
    if wish.tiers is None:
        return _limited(_usual(wish), wish), ()
    read = read_tiers(wish.tiers, known_model)
    return _limited(read, wish), _overruled(wish, read)


def _usual(wish: LadderWish) -> Escalation:
    """Reflex, simple, full. `--full` leaves out simple; without escalation the first that asks a model is the last."""
    parallel = wish.parallel or 1
    # Side by side there is something to choose from.
    samples = wish.samples or (parallel if parallel > 1 else 0)
    simple, full = (
        Tier(
            name=mode.value,
            mode=mode,
            iterations=ITERATIONS[mode],
            samples=samples,
            parallel=parallel,
            chaos=wish.chaos,
        )
        for mode in (TierMode.SIMPLE, TierMode.FULL)
    )
    asking = (full,) if wish.full else (replace(simple, iterations=wish.simple or simple.iterations), full)
    reflex = (Tier(name="reflex", mode=TierMode.REFLEX),) if wish.reflex else ()
    return Escalation(tiers=(*reflex, *(asking if wish.escalate else asking[:1])))


def _limited(ladder: Escalation, wish: LadderWish) -> Escalation:
    """Fill what the file leaves open: from the flag, the settings, else the usual limit.

    Money that nobody limits stays open: the order limits it together with tokens.
    """
    return replace(
        ladder,
        max_cost=next((one for one in (ladder.max_cost, wish.max_cost, wish.allowed_cost) if one is not None), None),
        max_minutes=_first(ladder.max_minutes, wish.max_minutes, wish.allowed_minutes, MOST_MINUTES),
        max_iterations=_first(ladder.max_iterations, wish.max_iterations, MOST_IN_ALL),
    )


def _overruled(wish: LadderWish, read: Escalation) -> tuple[str, ...]:
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
    return tuple(f"{flag} is overridden by the tier file {str(wish.tiers)!r}" for flag, both in given.items() if both)


def _check(wish: LadderWish) -> None:
    for flag, value, most, advice in (
        ("--simple", wish.simple, MOST_ITERATIONS, "5 suits most bugs"),
        ("--max-iterations", wish.max_iterations, MOST_ITERATIONS, "5 suits most bugs"),
        ("--samples", wish.samples, MOST_SAMPLES, "5 suits small models"),
        ("--parallel", wish.parallel, MOST_PARALLEL, "2 is a good start"),
    ):
        if value is not None and not 1 <= value <= most:
            raise UsageError(f"{flag} {value} is not between 1 and {most}", advice=advice)
    if wish.max_cost is not None and (wish.max_cost.is_nan() or not 0 <= wish.max_cost <= 1_000_000):
        raise UsageError(f"--max-cost {wish.max_cost} is not an amount in dollars", advice="give one such as 2.50")
    if wish.max_minutes is not None and not 0 < wish.max_minutes <= 10_080:
        told = f"--max-minutes {wish.max_minutes:g} is not above 0 and at most 10080"
        raise UsageError(told, advice="give minutes, such as 240")
    if wish.full and wish.simple is not None:
        raise UsageError("--simple and --full cannot be used together", advice="--simple N comes before full by itself")


def _first(*values: T | None) -> T:
    return next(value for value in values if value is not None)


USUAL = "Make the failing tests pass."


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopWish:
    """The user's wishes for a loop beside its tiers."""

    objective: str = ""
    target: str = ""
    """A file of the workspace that is to change."""
    test_command: tuple[str, ...] = ()
    generate: bool = True
    """Tests are made where the target has none."""
    approval: Approval = Approval.NEVER
    accept_unverified: bool = False
    model: str = ""
    reasoning: str = ""
    max_tokens: int | None = None
    record: str = ""


def escalation() -> dict[str, object]:
    """The escalation of an ordinary request when the checks keep refusing: the tier above its own."""
    full = Tier(name="full", mode=TierMode.FULL, iterations=ITERATIONS[TierMode.FULL])
    return {"escalate": plain(Escalation(tiers=(full,)))}


NO_ESCALATION: Mapping[str, object] = {"escalate": False}
"""The user has said that nothing climbs."""


def with_escalation(order: RunRequest, setting: str, budget: Mapping[str, object]) -> RunRequest:
    """The order with what it climbs by the user's setting, where he has said nothing for this one.

    By `auto` it climbs where money or tokens are limited, for it spends nothing beyond what the run may spend.
    """
    if order.loop or order.mode is not Mode.AGENT or setting == "off":
        return order
    limited = any(name in table for name in ("money", "tokens") for table in (order.budget, budget))
    return replace(order, loop=escalation()) if setting == "on" or limited else order


def loop_order(wish: LoopWish, ladder: Escalation) -> RunRequest:
    """The order of a run that climbs. Its time and its money are the ladder's.

    A limit in money that somebody has set stands alone, so that a model whose price is unknown is not asked: tokens
    would bound it, but not keep the limit. Where nobody has set one, the usual amount and tokens bound the run.
    """
    tokens = wish.max_tokens
    if ladder.max_cost is None:
        ladder, tokens = replace(ladder, max_cost=MOST_COST), tokens or MOST_TOKENS
    budget: dict[str, object] = {"money": str(ladder.max_cost)}
    if tokens is not None:
        budget["tokens"] = tokens
    if ladder.max_minutes is not None:
        budget["seconds"] = ladder.max_minutes * 60
    return RunRequest(
        text=wish.objective or USUAL,
        approval=wish.approval,
        accept_unverified=wish.accept_unverified,
        model=wish.model,
        test_command=wish.test_command,
        reasoning=wish.reasoning,
        budget=budget,
        record=wish.record,
        loop={
            "ladder": plain(ladder),
            "target": wish.target,
            "objective": wish.objective,
            "generate": wish.generate,
        },
    )


def loop_of(shop: Project, wish: LoopWish, ladder: LadderWish) -> tuple[RunRequest, tuple[str, ...]]:
    """The order, and a warning for each flag that a tier file overrules. Models of the file must be known.

    What neither a flag nor the file limits is limited by the user's budget, and else as usual.
    """

    def known_model(name: str) -> str:
        try:
            ModelName.parse(name, configured(shop, "").providers)
        except UnknownModel as error:
            return f"{error.message} ({error.advice})" if error.advice else error.message
        return ""

    # A wrong name is told at once, not when its tier is reached.
    allowed = configured(shop, wish.model).budget
    minutes = allowed.seconds / 60 if "seconds" in shop.config.tables.budget else None
    cost = ladder.allowed_cost if allowed.money is None else allowed.money
    within = replace(ladder, allowed_cost=cost, allowed_minutes=minutes)
    made, warnings = ladder_of(within, known_model)
    return loop_order(replace(wish, max_tokens=wish.max_tokens or allowed.tokens), made), warnings


def interrupted_loop(shop: Project) -> str:
    """The newest loop that can be resumed."""
    for row in shop.store.runs.list(shop.workspace, state=RunState.WORKING):
        if row.order.loop.get("ladder"):
            return row.id
    raise UsageError("there is no interrupted loop to resume", advice="start one: pawl loop")


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
class StopEscalation:
    why: EscalationEnd
    reason: str


Step = Try | Escalate | StopEscalation


def following(climb: EscalationState, *, seconds: float) -> Step:
    """The next step of a climb that has taken so many seconds."""
    if any(attempt.end is AttemptEnd.VERIFIED for attempt in climb.attempts):
        return StopEscalation(EscalationEnd.VERIFIED, "the checks accept it")
    if not climb.ladder.tiers:
        return StopEscalation(EscalationEnd.EXHAUSTED, "no tier can work here")
    limit = _limit(climb, seconds)
    if limit is not None:
        return limit
    stuck = is_stuck(climb.of_tier(climb.at))
    reason = stuck or _used_up(climb)
    if not reason:
        return Try(Iteration(tier=climb.at, number=climb.iteration + 1))
    if climb.at + 1 < len(climb.ladder.tiers):
        return Escalate(reason)
    return StopEscalation(EscalationEnd.STUCK if stuck else EscalationEnd.EXHAUSTED, reason)


def is_limited_by_tier(climb: EscalationState) -> bool:
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
    """All that is known of it."""
    return sum((attempt.cost for attempt in attempts if attempt.cost is not None), Decimal(0))


def _used_up(climb: EscalationState) -> str:
    """Why the tier may not be tried again; empty when it may."""
    tier, made = climb.tier, climb.of_tier(climb.at)
    broke = bool(made) and made[-1].end is AttemptEnd.OUT_OF_BUDGET
    if tier.max_cost is not None and cost_of(made) >= tier.max_cost:
        return f"its budget of ${tier.max_cost} is spent"
    if tier.max_cost is not None and broke:
        return made[-1].refused[-1] if made[-1].refused else f"its budget of ${tier.max_cost} allows no more"
    if tier.mode is TierMode.REFLEX and made:
        return "; ".join(made[-1].refused) or "the search found no patch"
    if climb.iteration >= tier.iterations:
        return f"{_amount(climb.iteration, 'iteration')}, none verified"
    if tier.max_minutes is not None and _seconds(made) >= tier.max_minutes * 60:
        return f"its {tier.max_minutes:g} minutes are over"
    return ""


def _limit(climb: EscalationState, seconds: float) -> StopEscalation | None:
    ladder, made = climb.ladder, climb.of_tier(climb.at)
    if made and made[-1].end is AttemptEnd.OUT_OF_BUDGET and not is_limited_by_tier(climb):
        return StopEscalation(EscalationEnd.MONEY, made[-1].refused[-1] if made[-1].refused else "the budget is spent")
    asked = {attempt.at for attempt in climb.attempts if attempt.mode is not TierMode.REFLEX}
    if ladder.max_iterations is not None and len(asked) >= ladder.max_iterations:
        return StopEscalation(
            EscalationEnd.ITERATIONS, f"{_amount(len(asked), 'iteration')}, the most that are allowed"
        )
    # For no money there is still what costs nothing.
    if ladder.max_cost and cost_of(climb.attempts) >= ladder.max_cost:
        return StopEscalation(EscalationEnd.MONEY, f"the budget of ${ladder.max_cost} is spent")
    if ladder.max_minutes is not None and seconds >= ladder.max_minutes * 60:
        return StopEscalation(EscalationEnd.TIME, f"{ladder.max_minutes:g} minutes are over")
    return None


def _seconds(attempts: Sequence[Attempt]) -> float:
    return sum(attempt.seconds for attempt in attempts)


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
