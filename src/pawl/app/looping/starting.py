"""Loops as they are started and found again: the ladder read and checked, the order made, the interrupted one named."""

from __future__ import annotations

from dataclasses import replace

from pawl.app.asking.asking import configured
from pawl.app.looping.ladders import LadderWish, ladder_of
from pawl.app.looping.ordering import LoopWish, loop_order
from pawl.app.workshop import Workshop
from pawl.core.errors import UnknownModel, UsageError
from pawl.core.runs import Order, RunState
from pawl.models.names import ModelName


def loop_of(shop: Workshop, wish: LoopWish, ladder: LadderWish) -> tuple[Order, tuple[str, ...]]:
    """The order, and a warning for each flag that a tier file overrules. Models of the file must be known.

    What neither a flag nor the file limits is limited by the user's budget, and else as usual.
    """

    def known_model(name: str) -> str:
        try:
            ModelName.parse(name, configured(shop, "").providers)
        except UnknownModel as error:
            return error.message
        return ""

    # A wrong name is told at once, not when its tier is reached.
    allowed = configured(shop, wish.model).budget
    minutes = allowed.seconds / 60 if "seconds" in shop.config.tables.budget else None
    cost = ladder.allowed_cost if allowed.money is None else allowed.money
    within = replace(ladder, allowed_cost=cost, allowed_minutes=minutes)
    made, warnings = ladder_of(within, known_model)
    return loop_order(replace(wish, max_tokens=wish.max_tokens or allowed.tokens), made), warnings


def interrupted_loop(shop: Workshop) -> str:
    """The newest loop that can be resumed."""
    for row in shop.store.runs.list(shop.workspace, state=RunState.WORKING):
        if row.order.loop.get("ladder"):
            return row.id
    raise UsageError("there is no interrupted loop to go on with", advice="start one: pawl loop")
