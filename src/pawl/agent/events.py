"""Everything that a session may tell its listener."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from pawl.core.diagnostic import CheckResult
from pawl.core.events import ClimbEvent, RunEvent, SessionEvent

if TYPE_CHECKING:
    from pawl.repair.model import FixEvent


Event = Union[SessionEvent, RunEvent, CheckResult, ClimbEvent, "FixEvent"]
"""Of the run, of a talk, of a check, of a ladder, of the reflex."""
