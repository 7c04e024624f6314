"""An edit of one file as data: what a tool asks for, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class LineEdit:
    """One line to be replaced, if it is still what `old` says."""

    line: int
    """From 1."""
    old: str
    new: str | None
    """May hold several lines; None takes the line out."""


class Action(StrEnum):
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
    action: Action
    edit_type: EditType | None = None
    """For an edit."""
    target: str | None = None
    """The text to replace, or next to which to insert; with `replace_line`, what that line must be."""
    content: str | None = None
    line: int | None = None
    """From 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What an edit did to a file."""

    path: str
    before: str | None
    """The name of the content; None when there was no file."""
    after: str | None
    changed_lines: int
    notes: tuple[str, ...] = ()
    """What the edit was not checked for, and why."""
