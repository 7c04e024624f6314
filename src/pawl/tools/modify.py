"""`modify`: one file created, edited or deleted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pawl.core.edits import Action, EditType, Modification
from pawl.core.ports import Editor
from pawl.tools.edit_report import EditReport
from pawl.tools.page import Page
from pawl.tools.schema import AtLeast
from pawl.tools.tool import Effect, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Modify:
    path: str
    action: Action
    edit_type: EditType | None = None
    target: str | None = None
    content: str | None = None
    line: Annotated[int | None, AtLeast(1)] = None

    @property
    def modification(self) -> Modification:
        return Modification(
            path=self.path,
            action=self.action,
            edit_type=self.edit_type,
            target=self.target,
            content=self.content,
            line=self.line,
        )


def modify(editor: Editor, page: Page) -> Tool[Modify]:
    def run(given: Modify) -> EditReport:
        return EditReport(edits=(editor.modify(given.modification),))

    return Tool(name="modify", page=page, input=Modify, handler=run, effect=Effect.WRITES)
