"""`file_write`: a whole file, new or read before."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.core.ports import Editor
from pawl.tools.edit_report import EditReport
from pawl.tools.page import Page
from pawl.tools.tool import Effect, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    path: str
    content: str


def file_write(editor: Editor, page: Page) -> Tool[FileWrite]:
    def write(given: FileWrite) -> EditReport:
        return EditReport(edits=(editor.write(given.path, given.content),))

    return Tool(name="file_write", page=page, input=FileWrite, handler=write, effect=Effect.WRITES)
