"""Pawl changes code with agents and never lets a change slip back.

What a program uses stands here: `from pawl import Session`. Nothing is loaded before it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pawl.core import __version__

if TYPE_CHECKING:
    from pawl.agent.inbox import Event
    from pawl.agent.session import Session
    from pawl.agent.tools.custom import Effect, OwnTool, ToolPorts
    from pawl.core.errors import PawlError
    from pawl.core.run import (
        Approval,
        ApprovalAnswer,
        ApprovalRequest,
        ApprovalResponse,
        DeliveryState,
        Intent,
        Mode,
        Report,
        RunRequest,
        RunState,
    )

_HOMES = {
    "Effect": "pawl.agent.tools.custom",
    "OwnTool": "pawl.agent.tools.custom",
    "ToolPorts": "pawl.agent.tools.custom",
    "ApprovalAnswer": "pawl.core.run",
    "Approval": "pawl.core.run",
    "ApprovalResponse": "pawl.core.run",
    "DeliveryState": "pawl.core.run",
    "Event": "pawl.agent.inbox",
    "Intent": "pawl.core.run",
    "Mode": "pawl.core.run",
    "RunRequest": "pawl.core.run",
    "PawlError": "pawl.core.errors",
    "ApprovalRequest": "pawl.core.run",
    "Report": "pawl.core.run",
    "RunState": "pawl.core.run",
    "Session": "pawl.agent.session",
}

__all__ = [
    "Approval",
    "ApprovalAnswer",
    "ApprovalRequest",
    "ApprovalResponse",
    "DeliveryState",
    "Effect",
    "Event",
    "Intent",
    "Mode",
    "OwnTool",
    "PawlError",
    "Report",
    "RunRequest",
    "RunState",
    "Session",
    "ToolPorts",
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
