"""Loops as they are started and found again: the ladder read and checked, the order made, the interrupted one named."""

from __future__ import annotations

from pawl.app.asking.asking import configured
from pawl.app.looping.ladders import LadderWish, ladder_of
from pawl.app.looping.ordering import LoopWish, loop_order
from pawl.app.workshop import Workshop
from pawl.core.errors import UnknownModel, UsageError
from pawl.core.runs import Order, RunState
from pawl.models.names import ModelName


def loop_of(shop: Workshop, wish: LoopWish, ladder: LadderWish) -> tuple[Order, tuple[str, ...]]:
    """The order, and a warning for each flag that a tier file overrules. Models of the file must be known."""

    def known_model(name: str) -> str:
        try:
            ModelName.parse(name, configured(shop, "").providers)
        except UnknownModel as error:
            return error.message
        return ""

    # A wrong name is told at once, not when its tier is reached.
    configured(shop, wish.model)
    made, warnings = ladder_of(ladder, known_model)
    return loop_order(wish, made), warnings


def interrupted_loop(shop: Workshop) -> str:
    """The newest loop that can be resumed."""
    for row in shop.store.runs.list(shop.workspace, state=RunState.WORKING):
        if row.order.loop.get("ladder"):
            return row.id
    raise UsageError("there is no interrupted loop to go on with", advice="start one: pawl loop")
