"""Asking models: wire formats, the router, prices, the ledger, scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Generator

    from pawl.core.dialogue import ModelEvent, Request
    from pawl.sandbox.cancel import CancelToken


class Model(Protocol):
    """Whatever answers a request: a provider, a local file, a script."""

    def stream(self, request: Request, *, cancel: CancelToken | None = None) -> Generator[ModelEvent, None, None]:
        """Yield what happens while the model answers; the last event is `Answered`, or a `ModelError` is raised.

        Closing the generator aborts the request. After `cancel`, `Cancelled` is raised within a second.
        """
        ...
