"""How values become columns: paths and workspaces as bytes, nodes as three columns, times as ISO 8601 text in UTC."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

from pawl.core.change import Change, ChangeSet, Kind, Node
from pawl.core.errors import MissingBlob, PawlError, StoreError
from pawl.store.database import Database, Row

Clock = Callable[[], float]
Owner = Literal["entry", "checkpoint", "work"]
NodeColumns = tuple[str | None, int | None, str | None]

CHANGE_COLUMNS = "path, before_kind, before_mode, before_blob, after_kind, after_mode, after_blob"


def iso(seconds: float) -> str:
    """A moment as text that sorts like the moment."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def readable(text: str) -> str:
    """Text that UTF-8 can hold; what it cannot, such as the odd byte of a file name in a title, is escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def insert_changes(database: Database, owner: Owner, number: int, changes: Iterable[Change]) -> None:
    """Writes the rows that name blobs. `MissingBlob` when one of the blobs is not stored."""
    rows = ((number, os.fsencode(c.path), *_columns(c.before), *_columns(c.after)) for c in changes)
    sql = f"INSERT INTO {owner}_change ({owner}, {CHANGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
    try:
        database.run_many(sql, rows)
    except sqlite3.IntegrityError as error:
        raise _refused(database, changes, error) from error


def change_set(rows: Sequence[Row]) -> ChangeSet:
    """The changes of rows that hold `CHANGE_COLUMNS`."""
    return ChangeSet.of(Change(os.fsdecode(row[0]), _node(row[1:4]), _node(row[4:7])) for row in rows)


def _columns(node: Node | None) -> NodeColumns:
    return (None, None, None) if node is None else (node.kind.value, node.mode, node.blob)


def _node(columns: Row) -> Node | None:
    kind, mode, blob = columns
    return None if kind is None else Node(Kind(kind), blob, mode)


def _refused(database: Database, changes: Iterable[Change], error: sqlite3.IntegrityError) -> PawlError:
    for change in changes:
        for node in (change.before, change.after):
            name = node and node.blob
            if name and not database.first("SELECT 1 FROM blob WHERE hash = ?", (name,)):
                return MissingBlob(
                    f"the content {name[:12]} of {change.path!r} is not stored",
                    advice="store a content before the change that names it",
                )
    return StoreError(f"the changes cannot be stored: {error}")
