"""`change_files`: several files as one justified chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pawl.core.ports import DependencyMap, Editor
from pawl.tools.edit_report import EditReport
from pawl.tools.modify import Modify
from pawl.tools.page import Page
from pawl.tools.tool import Effect, Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFiles:
    justification: str
    changes: tuple[Modify, ...]


def change_files(editor: Editor, dependencies: Callable[[], DependencyMap], page: Page) -> Tool[ChangeFiles]:
    """The map is asked for at each call, because the files it speaks of change."""

    def run(given: ChangeFiles) -> EditReport:
        steps = [change.modification for change in given.changes]
        return EditReport(edits=editor.chain(steps, justification=given.justification, dependencies=dependencies()))

    return Tool(name="change_files", page=page, input=ChangeFiles, handler=run, effect=Effect.WRITES)
