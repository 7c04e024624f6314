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
    path: Annotated[str, "relative to the workspace"]
    action: Action
    edit_type: Annotated[EditType | None, "how to edit"] = None
    target: Annotated[str | None, "the text to replace or to insert at"] = None
    content: Annotated[str | None, "the new text"] = None
    line: Annotated[int | None, "a line number, from 1", AtLeast(1)] = None

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
