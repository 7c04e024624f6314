"""The one decision on what came of a request: from its tasks, the verdict on its change and whether it was promoted."""

from __future__ import annotations

from pawl.agent.record import RunData
from pawl.core.diagnostic import Verdict
from pawl.core.run import DeliveryState


def delivery_of(data: RunData, *, promoted: bool) -> DeliveryState:
    """What is promoted is done unless something of the request is still refused; what nothing proves is kept."""
    if promoted:
        return DeliveryState.PARTLY if data.refused else DeliveryState.DONE
    stopped = data.refused or data.rejected is not None or data.trouble is not None
    unproved = data.verdict is Verdict.UNVERIFIED and not stopped
    return DeliveryState.UNVERIFIED if unproved else DeliveryState.NEEDS_WORK
