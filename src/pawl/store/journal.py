"""The write-ahead record of what is done to workspaces, and the history that grows out of it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count, groupby

from pawl.core.change import ChangeSet
from pawl.core.errors import Conflicted, StoreError, UnknownEntry
from pawl.core.history import Checkpoint, Entry, EntryKind, EntryState, NewEntry, Retention, RollbackPolicy
from pawl.store.blobs import Blobs
from pawl.store.database import CHANGE_COLUMNS, Clock, Database, Row, change_set, insert_changes, iso, readable


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


_DAY = 86_400

# `later` counts, for each path of an entry, the finished entries of its workspace that touch the path after it.
# A young checkpoint needs every entry after its own place in the history.
_PRUNABLE = """
WITH later AS (
    SELECT
        entry_change.entry AS entry,
        coalesce(
            sum(entry.state = 'done') OVER (
                PARTITION BY entry.workspace, entry_change.path ORDER BY entry_change.entry DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ), 0
        ) AS touched
    FROM entry_change JOIN entry ON entry.id = entry_change.entry
)
SELECT id FROM entry
WHERE pruned = 0 AND created < :cutoff AND (
    state = 'captured'
    OR (
        state <> 'prepared'
        AND id NOT IN (SELECT entry FROM later WHERE touched < :backups)
        AND NOT EXISTS (
            SELECT 1 FROM checkpoint
            WHERE checkpoint.workspace = entry.workspace AND checkpoint.created >= :cutoff
                AND checkpoint.after_entry < entry.id
        )
    )
)
"""


def drop_expired(database: Database, retention: Retention, now: float) -> int:
    """Drops what may go; returns how many entries lost their changes.

    A conversation goes when nothing was said in it since: half of one could not be taken up again.
    """
    cutoff = iso(max(0.0, now - retention.days * _DAY))
    with database.transaction():
        found = database.rows(_PRUNABLE, {"cutoff": cutoff, "backups": retention.backups})
        database.run_many("DELETE FROM entry_change WHERE entry = ?", found)
        database.run_many("DELETE FROM entry_mode WHERE entry = ?", found)
        database.run_many("UPDATE entry SET pruned = 1 WHERE id = ?", found)
        database.run(
            "DELETE FROM said WHERE conversation IN"
            " (SELECT conversation FROM said GROUP BY conversation HAVING max(time) < ?)",
            (cutoff,),
        )
        for table, moment in (("snapshot", "time"), ("answer", "created"), ("known_file", "seen")):
            database.run(f"DELETE FROM {table} WHERE {moment} < ?", (cutoff,))
    return len(found)


_ENTRY = (
    "SELECT id, workspace, run, kind, title, reason, created, state, reverses, reversed_by, pruned, files FROM entry"
)
AT_ONCE = 2000
"""Changes that are written in one step."""
_OUTCOMES = frozenset({EntryState.DONE, EntryState.ROLLED_BACK, EntryState.CONFLICT})


class Journal:
    """The write-ahead record of what is done to a workspace, and its history."""

    __slots__ = ("_blobs", "_clock", "_database")

    def __init__(self, database: Database, blobs: Blobs, clock: Clock) -> None:
        self._database = database
        self._blobs = blobs
        self._clock = clock

    def record(self, entry: NewEntry, changes: ChangeSet) -> int:
        """Keeps a change set that is not in the workspace; returns its number."""
        draft = self._drafted(changes)
        return self._insert(entry, EntryState.CAPTURED, changes, {}, draft)

    def begin(self, entry: NewEntry, changes: ChangeSet, modes: Mapping[str, int]) -> int:
        """Writes the intent; it is durable when this returns, which is the point of no return."""
        if self._database.in_transaction:
            raise StoreError(
                "an entry cannot begin inside a batch, where its intent is not yet durable",
                advice="leave the batch of contents first",
            )
        draft = self._drafted(changes)
        with self._database.transaction():
            number = self._insert(entry, EntryState.PREPARED, changes, modes, draft)
            _, blocked = self._flips(number)
            if blocked is not None:
                by = self._found(blocked)[9]
                raise Conflicted(
                    f"entry {blocked} was taken back by entry {by} since", advice=f"take back entry {by} first"
                )
        return number

    def _drafted(self, changes: ChangeSet) -> int | None:
        """Writes many changes in steps, between which others can write; the number of the entry they will be of.

        No workspace has the entry until `_insert` gives it to one, and one that never gets there goes with retention.
        """
        if len(changes) <= AT_ONCE or self._database.in_transaction:
            return None
        every = tuple(changes)
        number = 0
        for start in range(0, len(every), AT_ONCE):
            began = time.monotonic()
            with self._database.transaction():
                if not number:
                    cursor = self._database.run(
                        "INSERT INTO entry (workspace, run, kind, title, reason, created, state, files)"
                        " VALUES (x'', '', ?, '', '', ?, ?, 0)",
                        (EntryKind.EDIT.value, iso(self._clock()), EntryState.CAPTURED.value),
                    )
                    number = int(cursor.lastrowid or 0)
                insert_changes(self._database, "entry", number, every[start : start + AT_ONCE])
            # Who waits looks only now and then whether it may write.
            threading.Event().wait((time.monotonic() - began) / 4)
        return number

    def _insert(
        self, entry: NewEntry, state: EntryState, changes: ChangeSet, modes: Mapping[str, int], draft: int | None
    ) -> int:
        workspace = os.fsencode(entry.workspace)
        with self._database.transaction():
            for target in (*entry.reverses_all, *(() if entry.reverses is None else (entry.reverses,))):
                self._found(target, workspace)
            cursor = self._database.run(
                "INSERT INTO entry (id, workspace, run, kind, title, reason, created, state, reverses, files)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET workspace = excluded.workspace,"
                " run = excluded.run, kind = excluded.kind, title = excluded.title, reason = excluded.reason,"
                " state = excluded.state, reverses = excluded.reverses, files = excluded.files",
                (
                    draft,
                    workspace,
                    readable(entry.run),
                    entry.kind.value,
                    readable(entry.title),
                    readable(entry.reason),
                    iso(self._clock()),
                    state.value,
                    entry.reverses,
                    len(changes),
                ),
            )
            number = draft or int(cursor.lastrowid or 0)
            if draft is None:
                insert_changes(self._database, "entry", number, changes)
            rows = ((number, os.fsencode(path), mode) for path, mode in modes.items())
            self._database.run_many("INSERT INTO entry_mode (entry, path, mode) VALUES (?, ?, ?)", rows)
            pairs = ((number, target) for target in entry.reverses_all)
            self._database.run_many("INSERT INTO entry_reversal (entry, reversed) VALUES (?, ?)", pairs)
        return number

    def finish(self, entry: int, state: EntryState) -> None:
        """Sets the outcome of a prepared entry; saying the same again changes nothing."""
        if state not in _OUTCOMES:
            raise ValueError(f"{state.value!r} is not how an entry ends")
        with self._database.transaction():
            if self._moved(entry, EntryState.PREPARED, state):
                if state is EntryState.DONE:
                    self._link(entry)
                return
            now = EntryState(self._found(entry)[7])
        if now is not state:
            raise StoreError(
                f"entry {entry} is {now.value!r} already and cannot become {state.value!r}",
                advice="another process has finished it; see 'pawl history'",
            )

    def _moved(self, entry: int, before: EntryState, after: EntryState) -> bool:
        sql = "UPDATE entry SET state = ? WHERE id = ? AND state = ?"
        return self._database.run(sql, (after.value, entry, before.value)).rowcount == 1

    def _link(self, entry: int) -> None:
        for target, by in self._flips(entry)[0].items():
            self._database.run("UPDATE entry SET reversed_by = ? WHERE id = ?", (by, target))

    def _flips(self, entry: int) -> tuple[dict[int, int | None], int | None]:
        """Who will have taken back which entry once this one is done: what it takes back itself, what that one had
        taken back and holds again, and so on down.

        Entries are taken back newest first and brought back oldest first, because one of them may have taken back
        another. A link changes only from the value it must have; the second result is one that has another.
        """
        links: dict[int, int | None] = {}
        blocked: int | None = None
        todo = [(target, entry, True) for target in self._targets(entry)]
        while todo:
            target, by, takes_back = todo.pop()
            now = links[target] if target in links else self._found(target)[9]
            if now != (None if takes_back else by):
                blocked = target if blocked is None else blocked
                continue
            links[target] = by if takes_back else None
            earlier = self._targets(target)
            todo += [(one, target, not takes_back) for one in (reversed(earlier) if takes_back else earlier)]
        return links, blocked

    def _targets(self, entry: int) -> list[int]:
        """The entries that this one takes back, oldest first."""
        row = self._found(entry)
        if EntryKind(row[3]) in (EntryKind.UNDO, EntryKind.REDO) and row[8] is not None:
            return [row[8]]
        sql = "SELECT reversed FROM entry_reversal WHERE entry = ? ORDER BY reversed"
        return [target for (target,) in self._database.rows(sql, (entry,))]

    def pending(self, workspace: str) -> Sequence[Entry]:
        """The entries that were begun and not finished, oldest first."""
        sql = f"{_ENTRY} WHERE workspace = ? AND state = 'prepared' ORDER BY id"
        return [_entry(row) for row in self._database.rows(sql, (os.fsencode(workspace),))]

    def modes(self, entry: int) -> Mapping[str, int]:
        rows = self._database.rows("SELECT path, mode FROM entry_mode WHERE entry = ?", (entry,))
        return {os.fsdecode(path): mode for path, mode in rows}

    def entry(self, workspace: str, number: int) -> Entry:
        return _entry(self._found(number, os.fsencode(workspace)))

    def entries(self, workspace: str, *, run: str | None = None, limit: int | None = None) -> Sequence[Entry]:
        """Newest first."""
        sql = f"{_ENTRY} WHERE workspace = :workspace AND (:run IS NULL OR run = :run) ORDER BY id DESC LIMIT :limit"
        values = {
            "workspace": os.fsencode(workspace),
            "run": None if run is None else readable(run),
            "limit": -1 if limit is None else limit,
        }
        return [_entry(row) for row in self._database.rows(sql, values)]

    def changes(self, entry: int) -> ChangeSet:
        """The changes of the entry; an error that says so when retention has dropped them."""
        with self._database.reading():
            row = self._found(entry)
            rows = self._database.rows(f"SELECT {CHANGE_COLUMNS} FROM entry_change WHERE entry = ?", (entry,))
        if row[10]:
            raise StoreError(
                f"entry {entry} was pruned by retention; its contents are no longer stored",
                advice="keep more days or more backups of each file to reach further back",
            )
        return change_set(rows)

    def add_checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Stores it and returns it with its number; an empty name becomes `checkpoint-` and the number."""
        return add(self._database, checkpoint, iso(self._clock()))

    def checkpoints(self, workspace: str) -> Sequence[Checkpoint]:
        """Newest first."""
        return newest_first(self._database, workspace)

    def prune(self, retention: Retention) -> tuple[int, int]:
        """Drops what retention no longer keeps; returns the entries pruned and the bytes freed."""
        pruned = drop_expired(self._database, retention, self._clock())
        return pruned, self._blobs.collect()

    def _found(self, number: int, workspace: bytes | None = None) -> Row:
        sql = f"{_ENTRY} WHERE id = :id AND (:workspace IS NULL OR workspace = :workspace)"
        row = self._database.first(sql, {"id": number, "workspace": workspace})
        if row is None:
            raise self._unknown(number, workspace)
        return row

    def _unknown(self, number: int, workspace: bytes | None) -> UnknownEntry:
        sql = "SELECT max(id) FROM entry WHERE (:workspace IS NULL OR workspace = :workspace)"
        newest = self._database.one(sql, {"workspace": workspace})[0]
        if newest is None:
            return UnknownEntry(f"there is no entry {number}: the history is empty")
        return UnknownEntry(f"there is no entry {number}; the newest is {newest}", advice="'pawl history' lists them")


def _entry(row: Row) -> Entry:
    return Entry(
        id=row[0],
        workspace=os.fsdecode(row[1]),
        run=row[2],
        kind=EntryKind(row[3]),
        title=row[4],
        reason=row[5],
        created=row[6],
        state=EntryState(row[7]),
        reverses=row[8],
        reversed_by=row[9],
        pruned=bool(row[10]),
        files=row[11],
    )
