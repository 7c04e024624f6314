"""`outline`: what a file or a folder defines, and on which lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pawl.core.outline import Definition, FileOutline, Outline
from pawl.core.ports import Files, Outliner
from pawl.tools.page import Page
from pawl.tools.tool import Effect, Tool


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


def outline(outliner: Outliner, files: Files, page: Page) -> Tool[OutlineOf]:
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
