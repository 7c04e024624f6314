"""Everything that a session may tell its listener."""

from __future__ import annotations

from typing import TYPE_CHECKING, Union

from pawl.core.climb_event import ClimbEvent
from pawl.core.finding import Verdict
from pawl.core.run_event import RunEvent
from pawl.core.session_event import SessionEvent

if TYPE_CHECKING:
    # The reflex is loaded by the runs that use it.
    from pawl.app.fixing.report import FixEvent

Event = Union[SessionEvent, RunEvent, Verdict, ClimbEvent, "FixEvent"]
"""Of the run, of a talk, of a check, of a ladder, of the reflex."""
