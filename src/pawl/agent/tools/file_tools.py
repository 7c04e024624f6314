"""Tools that read and edit files: numbered lines, outlines, whole files, patches, and several files as one chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Annotated, ClassVar

from pawl.agent.skill_library import skill_named
from pawl.agent.tools.tool_registry import Ports, ToolLimits, ToolText
from pawl.code.code_model import Definition, Edited, EditType, FileOutline, LineEdit, Modification, Outline
from pawl.core.errors import BadArguments, NotFound, NothingToDo
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import AtLeast

_NUMBER = 10
"""Characters that a number and its bar add to a line, with the line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    UNSAID: ClassVar = frozenset({"numbered"})

    path: str
    start: Annotated[int, AtLeast(1)] = 1
    end: int | None = None
    numbered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLines:
    path: str
    start: int
    lines: tuple[str, ...]
    total: int
    """How many lines the file has."""
    numbered: bool

    @property
    def text(self) -> str:
        if not self.total:
            return f"[{self.path} is empty]"
        last = self.start + len(self.lines) - 1
        shown = list(self.lines)
        if self.numbered:
            shown = [f"{number:>6} | {line}" for number, line in enumerate(self.lines, self.start)]
        if self.start > 1 or last < self.total:
            more = f"; read on from line {last + 1}" if last < self.total else ""
            shown.append(f"[lines {self.start} to {last} of {self.total}{more}]")
        return "\n".join(shown)


def file_read(ports: Ports, given: FileRead) -> FileLines:
    try:
        lines = ports.editor().read(given.path).lines
    except NotFound as error:
        error.advice = _namesakes(ports, given.path) or error.advice
        raise
    end = len(lines) if given.end is None else min(given.end, len(lines))
    if (lines and given.start > len(lines)) or (given.end is not None and given.end < given.start):
        raise BadArguments(
            f"start, end: {given.start} to {given.end or 'the end'} in {given.path!r}, with {len(lines)} lines",
            advice=f"name lines between 1 and {len(lines)}",
        )
    chosen = _bounded(lines[given.start - 1 : end], ports.limits)
    return FileLines(path=given.path, start=given.start, lines=chosen, total=len(lines), numbered=given.numbered)


def _namesakes(ports: Ports, path: str) -> str:
    """The files of the same name in other folders, or spelt with other letters."""
    name = path.rpartition("/")[2].lower()
    found = [one for one in filter(ports.shows, ports.files.walk()) if one.lower().rpartition("/")[2] == name]
    return f"there is {', '.join(map(repr, found[:3]))}" if found else ""


def _bounded(lines: tuple[str, ...], limits: ToolLimits) -> tuple[str, ...]:
    """As many whole lines as a model is given at once, never none."""
    kept: list[str] = []
    room = limits.read_characters
    for line in lines[: limits.read_lines]:
        if len(line) > limits.line_characters:
            left_out = len(line) - limits.line_characters
            line = f"{line[: limits.line_characters]} [… {left_out} more characters in this line]"
        room -= len(line) + _NUMBER
        if room < 0 and kept:
            break
        kept.append(line)
    return tuple(kept)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSkill:
    name: str
    file: str = ""


def read_skill(ports: Ports, given: ReadSkill) -> ToolText:
    return ToolText(skill_named(ports.skills, given.name).read(given.file))


@dataclass(frozen=True, slots=True, kw_only=True)
class ListFiles:
    path: str = ""
    depth: Annotated[int, AtLeast(1)] = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FileList:
    lines: tuple[str, ...]
    more: int

    @property
    def text(self) -> str:
        return "\n".join((*self.lines, f"[{self.more} more; list a narrower folder]") if self.more else self.lines)


def list_files(ports: Ports, given: ListFiles) -> FileList:
    base = given.path.removeprefix("./").strip("/")
    base = f"{base}/" if base not in ("", ".") else ""
    counts: Counter[str] = Counter()
    for path in filter(ports.shows, ports.files.walk(base.rstrip("/"))):
        names = path.removeprefix(base).split("/")
        folder = "/".join(names[: given.depth]) + "/" if len(names) > given.depth else ""
        counts[f"{base}{folder}" if folder else path] += 1
    if not counts:
        raise NotFound(f"there is no file in {given.path or '.'!r}", advice="list the folder above it")
    lines = [f"{name} {count} files" if name.endswith("/") else name for name, count in sorted(counts.items())]
    most = ports.limits.matches
    return FileList(lines=tuple(lines[:most]), more=len(lines[most:]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Revert:
    path: str = ""


@dataclass(frozen=True, slots=True)
class Reverted:
    paths: tuple[str, ...]

    @property
    def text(self) -> str:
        return f"as in the workspace again: {', '.join(self.paths)}"


def revert(ports: Ports, given: Revert) -> Reverted:
    paths = tuple(ports.take_back(given.path.removeprefix("./").strip("/")))
    if not paths:
        raise NothingToDo(f"nothing of {given.path or '.'!r} was changed", advice="there is nothing to revert")
    return Reverted(paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutlineOf:
    path: str = ""


@dataclass(frozen=True, slots=True)
class Outlined:
    outline: Outline
    folder: bool

    @property
    def text(self) -> str:
        lines = [line for file in self.outline.files for line in _file(file, brief=self.folder)]
        lines += [
            f"{folder.path}/ {folder.files} source file{'s' * (folder.files > 1)}" for folder in self.outline.folders
        ]
        if self.outline.left_out:
            lines.append(f"[{self.outline.left_out} more; outline a narrower folder]")
        if self.outline.skipped:
            lines.append(f"[{self.outline.skipped} binary, large or unreadable files left out]")
        return "\n".join(lines)


def outline(ports: Ports, given: OutlineOf) -> Outlined:
    assert ports.outliner is not None
    found = ports.outliner().outline(ports.files, given.path)
    return Outlined(found, folder=[file.path for file in found.files] != [found.path])


def _file(file: FileOutline, *, brief: bool) -> Iterator[str]:
    """The name of the file, then `line: signature`; for one file alone also where each ends and what it is for."""
    partly = "" if file.complete else ", parsed in part"
    yield file.path if brief and file.complete else f"{file.path} ({file.language}, {file.lines} lines{partly})"
    for definition in file.definitions:
        yield _definition(definition, brief=brief)
    if file.left_out:
        yield f"  [{file.left_out} more definitions]"
    elif not file.definitions:
        yield "  [no definitions]"


def _definition(definition: Definition, *, brief: bool) -> str:
    if brief:
        return f"  {definition.line}: {definition.signature}"
    lines = f"{definition.line}" if definition.end == definition.line else f"{definition.line}-{definition.end}"
    doc = f"  # {definition.doc}" if definition.doc else ""
    return f"{'  ' * (definition.depth + 1)}{lines}: {definition.signature}{doc}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EditReport:
    edits: tuple[Edited, ...]

    @property
    def text(self) -> str:
        return "\n".join(_edited(edit) for edit in self.edits)


def _edited(edit: Edited) -> str:
    if edit.after is None:
        did = "deleted"
    elif edit.before is None:
        did = "created"
    else:
        did = "changed"
    lines = "1 line" if edit.changed_lines == 1 else f"{edit.changed_lines} lines"
    return "; ".join([f"{did} {edit.path}: {lines}", *edit.notes])


@dataclass(frozen=True, slots=True, kw_only=True)
class FileWrite:
    path: str
    content: str


def file_write(ports: Ports, given: FileWrite) -> EditReport:
    return EditReport(edits=(ports.editor().write(given.path, given.content),))


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictPatch:
    path: str
    old: str
    new: str
    end: int | None = None


def strict_patch(ports: Ports, given: StrictPatch) -> EditReport:
    return EditReport(edits=(ports.editor().patch(given.path, given.old, given.new, end=given.end),))


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdits:
    path: str
    edits: tuple[LineEdit, ...]


def line_edit(ports: Ports, given: LineEdits) -> EditReport:
    return EditReport(edits=(ports.editor().edit_lines(given.path, given.edits),))


def modify(ports: Ports, given: Modification) -> EditReport:
    return EditReport(edits=(ports.editor().modify(given),))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFiles:
    UNSAID: ClassVar = frozenset({"edit_type", "line"})

    changes: tuple[Modification, ...]
    justification: str = ""


def change_files(ports: Ports, given: ChangeFiles) -> EditReport:
    changes = [
        replace(one, edit_type=EditType.REPLACE) if one.target is not None and one.edit_type is None else one
        for one in given.changes
    ]
    # The map is made at each call, because the files it speaks of change.
    dependencies = ports.dependencies()
    return EditReport(edits=ports.editor().chain(changes, justification=given.justification, dependencies=dependencies))
