"""Checkpoints as rows; their changes name blobs like those of an entry do."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import count, groupby

from pawl.core.errors import StoreError
from pawl.core.history import Checkpoint, RollbackPolicy
from pawl.store.database import Database, Row
from pawl.store.rows import CHANGE_COLUMNS, change_set, insert_changes, readable


def add(database: Database, checkpoint: Checkpoint, now: str) -> Checkpoint:
    """Stores it; fills in its number, and its name and time where they are empty."""
    workspace = os.fsencode(checkpoint.workspace)
    with database.transaction():
        number = _next_number(database)
        name = readable(checkpoint.name) or _free_name(database, workspace, number)
        if _is_taken(database, workspace, name):
            raise StoreError(f"a checkpoint named {name!r} is there already", advice="choose another name")
        added = replace(checkpoint, id=number, name=name, created=checkpoint.created or now)
        database.run(
            "INSERT INTO checkpoint (id, workspace, name, created, after_entry, progress, verification, policy)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            (
                number,
                workspace,
                name,
                added.created,
                added.after_entry,
                json.dumps(dict(added.progress)),
                json.dumps(dict(added.verification)),
                json.dumps(asdict(added.policy)),
            ),
        )
        insert_changes(database, "checkpoint", number, added.changes)
    return added


def newest_first(database: Database, workspace: str) -> Sequence[Checkpoint]:
    key = os.fsencode(workspace)
    with database.reading():
        rows = database.rows(
            "SELECT id, name, created, after_entry, progress, verification, policy FROM checkpoint"
            " WHERE workspace = ? ORDER BY id DESC",
            (key,),
        )
        named = database.rows(
            f"SELECT checkpoint, {CHANGE_COLUMNS} FROM checkpoint_change"
            " WHERE checkpoint IN (SELECT id FROM checkpoint WHERE workspace = ?) ORDER BY checkpoint",
            (key,),
        )
    changes = {number: [row[1:] for row in rows] for number, rows in groupby(named, key=lambda row: row[0])}
    return [_checkpoint(workspace, row, changes.get(row[0], [])) for row in rows]


def _checkpoint(workspace: str, row: Row, changes: Sequence[Row]) -> Checkpoint:
    number, name, created, after_entry, progress, verification, policy = row
    return Checkpoint(
        id=number,
        workspace=workspace,
        name=name,
        created=created,
        after_entry=after_entry,
        changes=change_set(changes),
        progress=json.loads(progress),
        verification=json.loads(verification),
        policy=RollbackPolicy(**json.loads(policy)),
    )


def _next_number(database: Database) -> int:
    row = database.first("SELECT seq FROM sqlite_sequence WHERE name = 'checkpoint'")
    return 1 if row is None else int(row[0]) + 1


def _free_name(database: Database, workspace: bytes, number: int) -> str:
    """Named after its number, unless a person took that name."""
    names = (f"checkpoint-{n}" for n in count(number))
    return next(name for name in names if not _is_taken(database, workspace, name))


def _is_taken(database: Database, workspace: bytes, name: str) -> bool:
    return database.first("SELECT 1 FROM checkpoint WHERE workspace = ? AND name = ?", (workspace, name)) is not None
