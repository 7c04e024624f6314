"""`file_read`: a file as numbered lines, bounded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from pawl.agent.tools.registry import Editor, Effect, Tool, ToolLimits, ToolPage
from pawl.core.code import Definition, FileOutline, Outline
from pawl.core.errors import BadArguments
from pawl.core.typed import AtLeast
from pawl.workspace.bench_files import Files

if TYPE_CHECKING:
    from pawl.code.outline import Outliner

_NUMBER = 10
"""What a number and its bar add to a line, with the line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
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


def file_read(editor: Editor, limits: ToolLimits, page: ToolPage) -> Tool[FileRead]:
    def read(given: FileRead) -> FileLines:
        lines = editor.read(given.path).lines
        end = len(lines) if given.end is None else min(given.end, len(lines))
        if (lines and given.start > len(lines)) or (given.end is not None and given.end < given.start):
            raise BadArguments(
                f"start, end: {given.start} to {given.end or 'the end'} in {given.path!r}, with {len(lines)} lines",
                advice=f"name lines between 1 and {len(lines)}",
            )
        chosen = _bounded(lines[given.start - 1 : end], limits)
        return FileLines(path=given.path, start=given.start, lines=chosen, total=len(lines), numbered=given.numbered)

    return Tool(name="file_read", page=page, input=FileRead, handler=read, effect=Effect.READS)


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


def outline(outliner: Outliner, files: Files, page: ToolPage) -> Tool[OutlineOf]:
    def run(given: OutlineOf) -> Outlined:
        found = outliner.outline(files, given.path)
        return Outlined(found, folder=[file.path for file in found.files] != [found.path])

    return Tool(name="outline", page=page, input=OutlineOf, handler=run, effect=Effect.READS)


def _file(file: FileOutline, *, brief: bool) -> Iterator[str]:
    """The name of the file, then `line: signature`; for one file alone also where each ends and what it is for."""
    partly = "" if file.complete else ", parsed in part"
    yield file.path if brief and file.complete else f"{file.path} ({file.language}, {file.lines} lines{partly})"
    for definition in file.definitions:
        yield _line(definition, brief=brief)
    if file.left_out:
        yield f"  [{file.left_out} more definitions]"
    elif not file.definitions:
        yield "  [no definitions]"


def _line(definition: Definition, *, brief: bool) -> str:
    if brief:
        return f"  {definition.line}: {definition.signature}"
    lines = f"{definition.line}" if definition.end == definition.line else f"{definition.line}-{definition.end}"
    doc = f"  # {definition.doc}" if definition.doc else ""
    return f"{'  ' * (definition.depth + 1)}{lines}: {definition.signature}{doc}"
