"""The places that a text of a test framework speaks against."""

from __future__ import annotations

from pawl.app.workshop import Workshop
from pawl.context.suspecting import FADING_IN_TEXT, suspicions
from pawl.core.locating import Suspicion
from pawl.verify.parsers.registry import failing
from pawl.verify.places import Origin


def suspected(shop: Workshop, text: str) -> tuple[Suspicion, ...]:
    """The places of failing tests, where the text holds what a test framework printed of them."""
    return suspicions(failing(text, Origin(workspace=shop.workspace)), fading=FADING_IN_TEXT)
