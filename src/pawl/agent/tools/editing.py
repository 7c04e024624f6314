"""`change_files`: several files as one justified chain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from pawl.agent.tools.registry import Editor, Effect, Tool, ToolPage
from pawl.code.imports import DependencyMap
from pawl.core.code import Edited, EditType, FileOperation, LineEdit, Modification
from pawl.core.typed import AtLeast


@dataclass(frozen=True, slots=True, kw_only=True)
class EditReport:
    edits: tuple[Edited, ...]

    @property
    def text(self) -> str:
        return "\n".join(_line(edit) for edit in self.edits)


def _line(edit: Edited) -> str:
    if edit.after is None:
        did = "deleted"
    elif edit.before is None:
        did = "created"
    else:
        did = "changed"
    lines = "1 line" if edit.changed_lines == 1 else f"{edit.changed_lines} lines"
    return "; ".join([f"{did} {edit.path}: {lines}", *edit.notes])


@dataclass(frozen=True, slots=True, kw_only=True)
class Modify:
    path: str
    action: FileOperation
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


def modify(editor: Editor, page: ToolPage) -> Tool[Modify]:
    def run(given: Modify) -> EditReport:
        return EditReport(edits=(editor.modify(given.modification),))

    return Tool(name="modify", page=page, input=Modify, handler=run, effect=Effect.WRITES)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFiles:
    justification: str
    changes: tuple[Modify, ...]


def change_files(editor: Editor, dependencies: Callable[[], DependencyMap], page: ToolPage) -> Tool[ChangeFiles]:
    """The map is asked for at each call, because the files it speaks of change."""

    def run(given: ChangeFiles) -> EditReport:
        steps = [change.modification for change in given.changes]
        return EditReport(edits=editor.chain(steps, justification=given.justification, dependencies=dependencies()))

    return Tool(name="change_files", page=page, input=ChangeFiles, handler=run, effect=Effect.WRITES)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    path: str
    content: str


def file_write(editor: Editor, page: ToolPage) -> Tool[FileWrite]:
    def write(given: FileWrite) -> EditReport:
        return EditReport(edits=(editor.write(given.path, given.content),))

    return Tool(name="file_write", page=page, input=FileWrite, handler=write, effect=Effect.WRITES)


@dataclass(frozen=True, slots=True, kw_only=True)
class LineInput:
    line: Annotated[int, AtLeast(1)]
    old: str
    new: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdits:
    path: str
    edits: tuple[LineInput, ...]


def line_edit(editor: Editor, page: ToolPage) -> Tool[LineEdits]:
    def edit(given: LineEdits) -> EditReport:
        edits = [LineEdit(line=one.line, old=one.old, new=one.new) for one in given.edits]
        return EditReport(edits=(editor.edit_lines(given.path, edits),))

    return Tool(name="line_edit", page=page, input=LineEdits, handler=edit, effect=Effect.WRITES)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictPatch:
    path: str
    old: str
    new: str


def strict_patch(editor: Editor, page: ToolPage) -> Tool[StrictPatch]:
    def patch(given: StrictPatch) -> EditReport:
        return EditReport(edits=(editor.patch(given.path, given.old, given.new),))

    return Tool(name="strict_patch", page=page, input=StrictPatch, handler=patch, effect=Effect.WRITES)
