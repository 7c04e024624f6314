"""How full the context is and what was spent by now, after each answer."""

from __future__ import annotations

from pawl.app.asking.opening import Models
from pawl.core.run_event import Metered, RequestAnswered


def metered(models: Models, answered: RequestAnswered) -> Metered:
    """The figures of the whole run, of which this is the latest answer."""
    spent = models.router.ledger.spent
    return Metered(
        context_tokens=answered.usage.input + answered.usage.output,
        context_window=models.can(answered.model).context,
        requests=spent.requests,
        input_tokens=spent.input,
        output_tokens=spent.output,
        cached_tokens=spent.cached,
        cost=None if spent.unpriced_tokens else spent.money,
    )
