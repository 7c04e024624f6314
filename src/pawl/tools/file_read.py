"""`file_read`: a file as numbered lines, bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pawl.core.errors import BadArguments
from pawl.core.ports import Editor
from pawl.tools.limits import ToolLimits
from pawl.tools.page import Page
from pawl.tools.schema import AtLeast
from pawl.tools.tool import Effect, Tool

_NUMBER = 10
"""What a number and its bar add to a line, with the line break."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    path: str
    start: Annotated[int, AtLeast(1)] = 1
    end: int | None = None
    numbered: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
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


def file_read(editor: Editor, limits: ToolLimits, page: Page) -> Tool[FileRead]:
    def read(given: FileRead) -> Lines:
        lines = editor.read(given.path).lines
        end = len(lines) if given.end is None else min(given.end, len(lines))
        if (lines and given.start > len(lines)) or (given.end is not None and given.end < given.start):
            raise BadArguments(
                f"start, end: {given.start} to {given.end or 'the end'} in {given.path!r}, with {len(lines)} lines",
                advice=f"name lines between 1 and {len(lines)}",
            )
        chosen = _bounded(lines[given.start - 1 : end], limits)
        return Lines(path=given.path, start=given.start, lines=chosen, total=len(lines), numbered=given.numbered)

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
