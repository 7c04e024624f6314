"""`line_edit`: lines by their numbers, each compared with what is there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pawl.core.edits import LineEdit
from pawl.core.ports import Editor
from pawl.tools.edit_report import EditReport
from pawl.tools.page import Page
from pawl.tools.schema import AtLeast
from pawl.tools.tool import Effect, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    line: Annotated[int, AtLeast(1)]
    old: str
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdits:
    path: str
    edits: tuple[Line, ...]


def line_edit(editor: Editor, page: Page) -> Tool[LineEdits]:
    def edit(given: LineEdits) -> EditReport:
        edits = [LineEdit(line=one.line, old=one.old, new=one.new) for one in given.edits]
        return EditReport(edits=(editor.edit_lines(given.path, edits),))

    return Tool(name="line_edit", page=page, input=LineEdits, handler=edit, effect=Effect.WRITES)
