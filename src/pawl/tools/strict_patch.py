"""`strict_patch`: one text that occurs exactly once becomes another."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.ports import Editor
from pawl.tools.edit_report import EditReport
from pawl.tools.page import Page
from pawl.tools.tool import Effect, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictPatch:
    path: str
    old: str
    new: str


def strict_patch(editor: Editor, page: Page) -> Tool[StrictPatch]:
    def patch(given: StrictPatch) -> EditReport:
        return EditReport(edits=(editor.patch(given.path, given.old, given.new),))

    return Tool(name="strict_patch", page=page, input=StrictPatch, handler=patch, effect=Effect.WRITES)
