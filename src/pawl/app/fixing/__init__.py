"""Repairing failing tests with no model: the recovery map, then the search, then the verification that decides."""

from pawl.app.fixing.fixer import fix
from pawl.app.fixing.report import ClockStarted, FixReport, FixRequest, Listener, Mended, Outcome, Repair, Rival
from pawl.repair.model import BaselineTaken, LinesSuspected, ProblemFound, Progressed, RepairEnded, StageBegun

__all__ = [
    "BaselineTaken",
    "ClockStarted",
    "FixReport",
    "FixRequest",
    "LinesSuspected",
    "Listener",
    "Mended",
    "Outcome",
    "ProblemFound",
    "Progressed",
    "Repair",
    "RepairEnded",
    "Rival",
    "StageBegun",
    "fix",
]
