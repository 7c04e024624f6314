"""A loop as an order: what is asked for, for which target, on which ladder and within which limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pawl.app.looping.ladders import MOST_COST, MOST_TOKENS
from pawl.app.looping.tier_file import ITERATIONS
from pawl.core.run import Approval, Mode
from pawl.core.runs import Order
from pawl.core.tiers import Ladder, Tier, TierMode, ladder_body

USUAL = "Make the failing tests pass."


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopWish:
    """What the user asks of a loop beside its ladder."""

    objective: str = ""
    target: str = ""
    """A file of the workspace that is to change."""
    test_command: tuple[str, ...] = ()
    generate: bool = True
    """Tests are made where the target has none."""
    approval: Approval = Approval.NEVER
    model: str = ""
    reasoning: str = ""
    max_tokens: int | None = None
    record: str = ""


def escalation() -> dict[str, object]:
    """What an ordinary request climbs when the checks keep refusing: the tier above what it has tried by itself."""
    full = Tier(name="full", mode=TierMode.FULL, iterations=ITERATIONS[TierMode.FULL])
    return {"escalate": ladder_body(Ladder(tiers=(full,)))}


NO_ESCALATION: Mapping[str, object] = {"escalate": False}
"""The user has said that nothing climbs."""


def with_escalation(order: Order, setting: str, budget: Mapping[str, object]) -> Order:
    """The order with what it climbs by the user's setting, where he has said nothing for this one.

    By `auto` it climbs where money or tokens are limited, for it spends nothing beyond what the run may spend.
    """
    if order.loop or order.mode is not Mode.AGENT or setting == "off":
        return order
    limited = any(name in table for name in ("money", "tokens") for table in (order.budget, budget))
    return replace(order, loop=escalation()) if setting == "on" or limited else order


def loop_order(wish: LoopWish, ladder: Ladder) -> Order:
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
    return Order(
        text=wish.objective or USUAL,
        approval=wish.approval,
        model=wish.model,
        test_command=wish.test_command,
        reasoning=wish.reasoning,
        budget=budget,
        record=wish.record,
        loop={
            "ladder": ladder_body(ladder),
            "target": wish.target,
            "objective": wish.objective,
            "generate": wish.generate,
        },
    )
