"""The one decision on what came of a request: from its tasks, the verdict on its change and whether it was promoted."""

from __future__ import annotations

from pawl.agent.record import RunData
from pawl.core.diagnostic import Verdict
from pawl.core.run import DeliveryState, TaskState


def delivery_of(data: RunData, *, promoted: bool) -> DeliveryState:
    """Decide the delivery: promoted is done unless part of the request is refused; unproved work is kept."""
    if promoted:
        left = data.fulfilment is not None and data.fulfilment.open_parts
        failed = any(one.state is not TaskState.DONE for one in data.task_ends)
        return DeliveryState.PARTLY if data.refused or left or failed else DeliveryState.DONE
    unfulfilled = data.fulfilment is not None and data.fulfilment.nothing_fulfilled
    stopped = unfulfilled or data.refused or data.rejected is not None or data.trouble is not None
    unproved = data.verdict is Verdict.UNVERIFIED and not stopped
    return DeliveryState.UNVERIFIED if unproved else DeliveryState.NEEDS_WORK
