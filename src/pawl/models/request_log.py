"""The request log of a run: every request with what it really came to, also where an answer failed."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from decimal import Decimal

from pawl.core.dialogue import Answered, ModelEvent, ModelResponse, Request
from pawl.core.events import Metered, RequestAnswered
from pawl.core.run import RequestRecord
from pawl.models.opening import Models
from pawl.models.router import Charge, RoleModel
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.project import Project


class RequestBook:
    """Fits `Model`: the model, with an eye on what it is asked and what it answers."""

    def __init__(self, shop: Project, model: RoleModel, telemetry: Telemetry) -> None:
        self._shop = shop
        self._model = model
        self._telemetry = telemetry
        self._request: Request | None = None
        self._answer: ModelResponse | None = None

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        self._request, self._answer = request, None
        events = self._model.stream(request, cancel=cancel)
        try:
            for event in events:
                if isinstance(event, Answered):
                    self._answer = event.answer
                yield event
        finally:
            events.close()

    def record(self, record: RequestRecord) -> None:
        """Writes one line for each model that was asked; the router knows what the failed ones cost."""
        charges = self._model.charged
        for charge in charges[:-1]:
            self._write(_charged(record, charge), None)
        self._write(_charged(record, charges[-1]) if charges else record, self._answer)

    def _write(self, record: RequestRecord, answer: ModelResponse | None) -> None:
        self._shop.store.requests.record(self._shop.workspace, record)
        self._telemetry.record(record, self._request, answer)


def _charged(record: RequestRecord, charge: Charge) -> RequestRecord:
    unused = charge.usage.input == 0 and charge.usage.output == 0
    return replace(
        record,
        model=charge.model,
        input_tokens=charge.usage.input,
        output_tokens=charge.usage.output,
        cached_tokens=charge.usage.cached,
        estimated=charge.usage.estimated,
        cost=Decimal(0) if unused and charge.cost is None else charge.cost,
        attempts=charge.attempts,
        ended=charge.ended,
    )


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
