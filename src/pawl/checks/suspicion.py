"""The places that a text of a test framework speaks against."""

from __future__ import annotations

from pawl.checks.output import Origin
from pawl.checks.parsers.registry import failing
from pawl.checks.tracebacks import FADING_IN_TEXT, suspicions
from pawl.core.code import Suspicion
from pawl.workspace.project import Project


def suspected(shop: Project, text: str) -> tuple[Suspicion, ...]:
    """The places of failing tests, where the text holds what a test framework printed of them."""
    return suspicions(failing(text, Origin(workspace=shop.workspace)), fading=FADING_IN_TEXT)
