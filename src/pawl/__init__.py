"""Pawl changes code with agents and never lets a change slip back.

What a program uses stands here: `from pawl import Session`. Nothing is loaded before it is used.
"""

from __future__ import annotations

import os
import sys


def _leave_out_project() -> None:
    """Takes no module of the project that Pawl is called in for one of Pawl's, though a PYTHONPATH leads there: an
    agent may have written it. What Python loads by itself has been loaded by then."""
    own = (os.path.dirname(os.path.dirname(os.path.realpath(__file__))), sys.prefix, sys.base_prefix)
    places = [place for option, place in zip(sys.argv, sys.argv[1:], strict=False) if option == "-C"]
    for place in map(os.path.realpath, places or (os.curdir,)):
        project = place
        while project != "/" and not os.path.exists(f"{project}/.git"):
            project = os.path.dirname(project)
        project = place if project == "/" else project
        sys.path[:] = [one for one in sys.path if not _is_below(one, project) or any(_is_below(one, it) for it in own)]


def _is_below(path: str, folder: str) -> bool:
    return f"{os.path.realpath(path)}/".startswith(f"{folder}/")


# Not in a program of the user's, nor where Pawl itself has given the whole path (`-I`).
if not sys.flags.isolated and (sys.flags.safe_path or os.path.basename(sys.argv[0]) == "pawl"):
    _leave_out_project()

from typing import TYPE_CHECKING  # noqa: E402

from pawl.core import __version__  # noqa: E402

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
