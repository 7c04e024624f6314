"""The record of one run over the store: what the nodes put there is durable, without secrets, and read back alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.run import DeliveryState
from pawl.core.runs import Order, Place, RunState


@dataclass(slots=True)
class RunRecord:
    """Fits `workbench.Record`."""

    shop: Workshop
    order: Order
    run: str
    _known: dict[str, object] = field(default_factory=dict)

    def value(self, name: str) -> object:
        if name not in self._known:
            self._known[name] = self.shop.store.runs.value(self.run, name)
        return self._known[name]

    def put(self, name: str, body: object) -> None:
        self.shop.store.runs.put(self.run, name, body)
        self._known.pop(name, None)

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        self.shop.note(kind, body)

    def deliver(self, state: DeliveryState) -> DeliveryState:
        return self.shop.store.runs.deliver(self.run, state)

    @property
    def delivery(self) -> DeliveryState | None:
        return self.shop.store.runs.get(self.shop.workspace, self.run).delivery

    def work(self, name: str) -> ChangeSet | None:
        return self.shop.store.runs.work(self.run, name)

    def keep_work(self, name: str, changes: ChangeSet) -> None:
        self.shop.store.runs.keep_work(self.run, name, changes)

    def evaluate(self, score: int, *, reason: str, judge: str) -> None:
        self.shop.store.runs.evaluate(self.shop.workspace, self.run, score, reason=reason, judge=judge)

    def stand(self, place: Place, state: RunState) -> None:
        self.shop.store.runs.stand(place, state)
