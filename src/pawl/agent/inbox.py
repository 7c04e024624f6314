"""The traffic of a run while it works: words and requests of the user in, events out."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Union

from pawl.core.diagnostic import CheckBegun, CheckResult
from pawl.core.errors import UsageError
from pawl.core.events import ClimbEvent, RunEvent, SessionEvent
from pawl.core.run import RunRequest

if TYPE_CHECKING:
    from pawl.repair.model import FixEvent


class Inbox:
    """Safe to use from any thread. The thread of the run takes what is there, and keeps it where it is durable."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._words: list[str] = []
        self._orders: list[RunRequest] = []
        self._changed = False

    def say(self, text: str) -> None:
        if not text.strip():
            raise UsageError("there is nothing to say", advice="say what to do differently")
        with self._lock:
            self._words.append(text)
            self._changed = True

    def take_words(self) -> tuple[str, ...]:
        with self._lock:
            taken = tuple(self._words)
            self._words.clear()
            self._changed = self._changed or bool(taken)
        return taken

    @property
    def words(self) -> tuple[str, ...]:
        with self._lock:
            return tuple(self._words)

    def add(self, order: RunRequest) -> None:
        if not order.text.strip():
            raise UsageError("there is no request", advice="say what to do next")
        with self._lock:
            self._orders.append(order)
            self._changed = True

    def take_order(self) -> RunRequest | None:
        with self._lock:
            self._changed = self._changed or bool(self._orders)
            return self._orders.pop(0) if self._orders else None

    def take_orders(self) -> tuple[RunRequest, ...]:
        with self._lock:
            taken = tuple(self._orders)
            self._orders.clear()
            self._changed = self._changed or bool(taken)
        return taken

    def put_first(self, orders: Iterable[RunRequest]) -> None:
        with self._lock:
            before = len(self._orders)
            self._orders[:0] = orders
            self._changed = self._changed or len(self._orders) != before

    def restore(self, words: Iterable[str], orders: Iterable[RunRequest]) -> None:
        """Restore the words that an interrupted run had not reached; newer ones follow them."""
        with self._lock:
            self._words[:0] = [one for one in words if one not in self._words]
            self._orders[:0] = [one for one in orders if one not in self._orders]

    @property
    def waiting(self) -> tuple[RunRequest, ...]:
        with self._lock:
            return tuple(self._orders)

    def changed(self) -> tuple[tuple[str, ...], tuple[RunRequest, ...]] | None:
        """The contents, if they changed since this was last asked."""
        if not self._changed:  # Asked at every event: a lock for each would be waste.
            return None
        with self._lock:
            self._changed = False
            return tuple(self._words), tuple(self._orders)


Event = Union[SessionEvent, RunEvent, CheckBegun, CheckResult, ClimbEvent, "FixEvent"]
"""Of the run, of a talk, of a check, of a ladder, of the reflex."""
