"""Whether models go on with what `pawl fix` leaves: by the flag, by the setting, or when the user says yes."""

from __future__ import annotations

from decimal import Decimal

from pawl.app.doing.session import Session
from pawl.app.fixing import FixRequest, Outcome
from pawl.app.workshop import Workshop
from pawl.core.runs import Order
from pawl.interfaces.cli.call import Call
from pawl.interfaces.cli.loop import after_reflex
from pawl.interfaces.screen.talk import money


def order_after(shop: Workshop, call: Call, request: FixRequest, outcome: Outcome) -> Order | None:
    """The loop that goes on, announced with its model and the most that it may cost; None where nothing does."""
    options, setting = call.options, shop.config.settings.escalate
    asks = options.escalate is None and setting == "auto"
    # Where patches disagree it is the user who chooses.
    if asks and (not call.can_ask or outcome is Outcome.DISPUTED):
        return None
    model, _ = Session(shop).offered(options.model or "")
    if options.escalate is None and (setting == "off" or not model):
        return None
    order = after_reflex(shop, call, request.targets[0] if len(request.targets) == 1 else "")
    most = money(Decimal(str(order.budget["money"])))
    if asks:
        question = f"let {model} work on what is left, for at most {most}?"
        return order if call.aside.ask(question, "ny", "y/N") == "y" else None
    if model and not options.json:
        call.aside.say(f"{model} works on what is left, for at most {most}; --no-escalate leaves it at that")
    return order
