"""What a source file defines, as values: definitions with their lines, and the outline of a file or a folder."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class DefinitionKind(StrEnum):
    MODULE = "module"
    CLASS = "class"
    INTERFACE = "interface"
    STRUCT = "struct"
    ENUM = "enum"
    TYPE = "type"
    IMPLEMENTATION = "implementation"
    """A block that adds to a type defined elsewhere; it bears that type's name."""
    FUNCTION = "function"
    METHOD = "method"
    VARIABLE = "variable"
    """A variable or constant outside of any function."""
    FIELD = "field"
    MACRO = "macro"


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    kind: DefinitionKind
    name: str
    qualified: str
    """The name with those of the definitions around it, joined by dots in every language."""
    start: int
    """The first line, from 1, with decorators and annotations."""
    line: int
    """The line of the name."""
    end: int
    """The last line."""
    depth: int
    """How many definitions stand around it."""
    signature: str
    """How it reads up to its body, on one line."""
    doc: str = ""
    """The first line of its docstring or of the comment above it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileOutline:
    path: str
    language: str
    lines: int
    """How many the file has."""
    definitions: tuple[Definition, ...]
    """In the order of the file."""
    left_out: int = 0
    """Definitions that did not fit."""
    complete: bool = True
    """False when a part of the file could not be parsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSize:
    """A folder too large to show: only how many source files are in it."""

    path: str
    files: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outline:
    path: str
    files: tuple[FileOutline, ...] = ()
    folders: tuple[FolderSize, ...] = ()
    left_out: int = 0
    """Source files that did not fit."""
    skipped: int = 0
    """Source files that are binary, too large or unreadable."""
