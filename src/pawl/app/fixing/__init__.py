"""Repairing failing tests with no model: the recovery map, then the search, then the verification that decides."""

from pawl.app.fixing.fixer import fix
from pawl.app.fixing.report import FixReport, FixRequest, Listener, Outcome, Repair, Rival
from pawl.repair.model import BaselineTaken, LinesSuspected, ProblemFound, Progressed, RepairEnded, StageBegun

__all__ = [
    "BaselineTaken",
    "FixReport",
    "FixRequest",
    "LinesSuspected",
    "Listener",
    "Outcome",
    "ProblemFound",
    "Progressed",
    "Repair",
    "RepairEnded",
    "Rival",
    "StageBegun",
    "fix",
]
