"""Pawl changes code with agents and never lets a change slip back.

What a program uses stands here: `from pawl import Session`. Nothing is loaded before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pawl.core.version import __version__

if TYPE_CHECKING:
    from pawl.app.doing.events import Event
    from pawl.app.doing.session import Session
    from pawl.core.errors import PawlError
    from pawl.core.run import Approval, DeliveryState, Mode
    from pawl.core.runs import Answer, Approved, Intent, Order, Question, Report, RunState

_HOMES = {
    "Answer": "pawl.core.runs",
    "Approval": "pawl.core.run",
    "Approved": "pawl.core.runs",
    "DeliveryState": "pawl.core.run",
    "Event": "pawl.app.doing.events",
    "Intent": "pawl.core.runs",
    "Mode": "pawl.core.run",
    "Order": "pawl.core.runs",
    "PawlError": "pawl.core.errors",
    "Question": "pawl.core.runs",
    "Report": "pawl.core.runs",
    "RunState": "pawl.core.runs",
    "Session": "pawl.app.doing.session",
}

__all__ = [
    "Answer",
    "Approval",
    "Approved",
    "DeliveryState",
    "Event",
    "Intent",
    "Mode",
    "Order",
    "PawlError",
    "Question",
    "Report",
    "RunState",
    "Session",
    "__version__",
]


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'pawl' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
