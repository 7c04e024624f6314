"""Code as data: edits of a file, definitions and outlines, queries with their hits, bundles of excerpts."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import tokens_of
from pawl.core.typed import AtLeast


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """One line, or a range of lines, to be replaced, if the first is still what `old` says."""

    line: Annotated[int, AtLeast(1)]
    """From 1."""
    old: str
    new: str | None = None
    """May hold several lines; None takes the lines out."""
    end: int | None = None
    """The last line of the range; None for one line."""


class FileOperation(StrEnum):
    CREATE = "create"
    EDIT = "edit"
    DELETE = "delete"


class EditType(StrEnum):
    REPLACE = "replace"
    INSERT_BEFORE = "insert_before"
    INSERT_AFTER = "insert_after"
    APPEND = "append"
    PREPEND = "prepend"
    FULL_REPLACE = "full_replace"
    REPLACE_LINE = "replace_line"
    INSERT_AT_LINE = "insert_at_line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Modification:
    """One file to be created, edited or deleted."""

    path: str
    action: FileOperation
    edit_type: EditType | None = None
    """For an edit."""
    target: str | None = None
    """The text to replace, or next to which to insert; with `replace_line`, what that line must be."""
    content: str | None = None
    line: Annotated[int | None, AtLeast(1)] = None
    """From 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """The effect of an edit on a file."""

    path: str
    before: str | None
    """The name of the content; None when there was no file."""
    after: str | None
    changed_lines: int
    notes: tuple[str, ...] = ()
    """The checks that were not made, and why."""


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
    TEST = "test"
    """A test that is no function but a call with a title, which is its name."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """How much failing tests speak against a place, from 0 to 1."""

    path: str
    line: int = 0
    """0 for the file as a whole."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    text: str
    """An issue with its title as the first line, a question, the output of failing tests."""
    suspicions: tuple[Suspicion, ...] = ()
    tests: bool = True
    """Whether files of tests may be among the answers."""
    history: bool = True
    """Whether the commits that HEAD reaches may be asked, where there is git."""
    first: tuple[str, ...] = ()
    """Files that come first, once they are found at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    path: str
    score: float
    """Above 0; comparable only within one answer."""
    reasons: tuple[str, ...] = ()
    """In words, the weightiest first."""
    symbols: tuple[Definition, ...] = ()
    """The definitions of the file that are likeliest to change, the likeliest first."""


LEAST_BUDGET = 200
"""Tokens below which there is no room for anything of use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackFile:
    """A file as it may be shown: without secrets, with what it defines."""

    path: str
    lines: tuple[str, ...]
    definitions: tuple[Definition, ...] = ()
    """In the order of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackRequest:
    """The material of a pack. The same request gives the same bytes."""

    budget: int
    """Tokens."""
    hits: tuple[Hit, ...]
    """The files that matter, the likeliest first."""
    files: tuple[PackFile, ...]
    """Those of the hits that could be read, in any order."""
    attempts: tuple[str, ...] = ()
    """Earlier attempts and how they failed, the most useful first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    path: str
    start: int
    end: int
    """The last line, from 1 as the first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextBundle:
    text: str
    excerpts: tuple[Excerpt, ...] = ()
    """Whose bodies are shown, in the order of the text."""
    listed: tuple[str, ...] = ()
    """Files that are named with some of their signatures."""
    left_out: int = 0
    """Files of the request that are not named at all."""

    @property
    def tokens(self) -> int:
        return tokens_of(self.text)
