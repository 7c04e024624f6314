"""What a session in a terminal is opened with; the command line opens it and lends it its commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.ui.screen.screen import Screen

if TYPE_CHECKING:
    from pawl.sandbox.cancel import CancelToken
    from pawl.settings.config import Config
    from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    config: Config
    workspace: Path
    out: Screen
    aside: Screen
    run_command: Callable[[Project, Sequence[str], Screen], int]
    """Carries out the words of a command line, such as `undo 3`, and shows what comes of it there."""
    tell_recovery: Callable[[Project, Screen], None]
    """Says what a crash had interrupted."""
    stopping: Callable[[], AbstractContextManager[CancelToken]]
    """While it lasts, a signal stops what works instead of the session."""
    request: str = ""
    """What is asked for first."""
    go_on: bool = False
    """Go on with the newest conversation."""
    resume: str | None = None
    """Go on with this one; empty to be asked which."""
    fork: bool = False
    """In a copy of it."""
    model: str = ""
    mode: str = "agent"
    approval: str = "final"
