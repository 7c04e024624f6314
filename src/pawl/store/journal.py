"""The write-ahead record of what is done to workspaces, and the history that grows out of it."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import count
from typing import Any

from pawl.core.change import ChangeSet, Checkpoint, Entry, EntryKind, EntryState, NewEntry, Retention, RollbackPolicy
from pawl.core.errors import Conflicted, StoreError, UnknownEntry
from pawl.core.redact import redacted_value
from pawl.store.blobs import Blobs
from pawl.store.database import CHANGE_COLUMNS, StorePart, change_set, insert_changes, iso, readable
from pawl.store.jobs import Jobs, lost

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
AT_ONCE = 2000
"""Changes that are written in one step."""
_OUTCOMES = frozenset({EntryState.DONE, EntryState.ROLLED_BACK, EntryState.CONFLICT})


class Journal(StorePart):
    """The write-ahead record of what is done to a workspace, and its history."""

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
            jobs = Jobs(self._database, self._clock)
            if entry.lease is not None and not jobs.may_promote(entry.lease, entry.run):
                raise lost(entry.lease)
            number = self._insert(entry, EntryState.PREPARED, changes, modes, draft)
            if entry.lease is not None and entry.lease.queue:
                jobs.delivered(entry.lease, entry.run, number)
            _, blocked = self._flips(number)
            if blocked is not None:
                by = self._found(blocked)["reversed_by"]
                raise Conflicted(f"entry {blocked} was undone by entry {by} since", advice=f"undo entry {by} first")
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
                    nowhere = NewEntry(workspace="", run="", kind=EntryKind.EDIT, title="")
                    number = self._database.insert("entry", **self._columns(nowhere, EntryState.CAPTURED, 0))
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
            columns = self._columns(entry, state, len(changes))
            settled = ", ".join(f"{name} = excluded.{name}" for name in columns)
            added = self._database.insert("entry", conflict=f"(id) DO UPDATE SET {settled}", id=draft, **columns)
            number = draft or added
            if draft is None:
                insert_changes(self._database, "entry", number, changes)
            rows = ((number, os.fsencode(path), mode) for path, mode in modes.items())
            self._database.run_many("INSERT INTO entry_mode (entry, path, mode) VALUES (?, ?, ?)", rows)
            pairs = ((number, target) for target in entry.reverses_all)
            self._database.run_many("INSERT INTO entry_reversal (entry, reversed) VALUES (?, ?)", pairs)
            if entry.evidence is not None:
                body = json.dumps(redacted_value(entry.evidence))
                self._database.insert("entry_evidence", entry=number, body=body)
        return number

    def evidence(self, number: int) -> object:
        """The evidence that an entry keeps; None where it has none."""
        row = self._database.first("SELECT body FROM entry_evidence WHERE entry = ?", (number,))
        return None if row is None else json.loads(row[0])

    def keep_evidence(self, number: int, evidence: object) -> None:
        """In the place of what the entry kept."""
        body = json.dumps(redacted_value(evidence))
        with self._database.transaction():
            self._database.run("UPDATE entry_evidence SET body = ? WHERE entry = ?", (body, number))

    def whole_suites(self) -> dict[int, str]:
        """How the whole suite ended that ran after entries, by their numbers."""
        rows = self._database.rows(
            "SELECT entry, json_extract(body, '$.whole_suite') AS told FROM entry_evidence WHERE told > ''"
        )
        return dict(rows)

    def _columns(self, entry: NewEntry, state: EntryState, files: int) -> dict[str, Any]:
        return {
            "workspace": os.fsencode(entry.workspace),
            "run": readable(entry.run),
            "kind": entry.kind.value,
            "title": readable(entry.title),
            "reason": readable(entry.reason),
            "created": iso(self._clock()),
            "state": state.value,
            "reverses": entry.reverses,
            "files": files,
        }

    def finish(self, entry: int, state: EntryState) -> None:
        """Sets the outcome of a prepared entry; saying the same again changes nothing."""
        if state not in _OUTCOMES:
            raise ValueError(f"{state.value!r} is not how an entry ends")
        with self._database.transaction():
            if self._moved(entry, EntryState.PREPARED, state):
                if state is EntryState.DONE:
                    self._link(entry)
                return
            now = EntryState(self._found(entry)["state"])
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
            now = links[target] if target in links else self._found(target)["reversed_by"]
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
        if row["kind"] in (EntryKind.UNDO, EntryKind.REDO) and row["reverses"] is not None:
            return [row["reverses"]]
        sql = "SELECT reversed FROM entry_reversal WHERE entry = ? ORDER BY reversed"
        return [target for (target,) in self._database.rows(sql, (entry,))]

    def pending(self, workspace: str) -> Sequence[Entry]:
        """The entries that were begun and not finished, oldest first."""
        sql = "SELECT * FROM entry WHERE workspace = ? AND state = 'prepared' ORDER BY id"
        return [_entry(row) for row in self._database.records(sql, (os.fsencode(workspace),))]

    def modes(self, entry: int) -> Mapping[str, int]:
        rows = self._database.rows("SELECT path, mode FROM entry_mode WHERE entry = ?", (entry,))
        return {os.fsdecode(path): mode for path, mode in rows}

    def entry(self, workspace: str, number: int) -> Entry:
        return _entry(self._found(number, os.fsencode(workspace)))

    def entries(self, workspace: str, *, run: str | None = None, limit: int | None = None) -> Sequence[Entry]:
        """Newest first."""
        sql = "SELECT * FROM entry WHERE workspace = :workspace AND (:run IS NULL OR run = :run)"
        values = {
            "workspace": os.fsencode(workspace),
            "run": None if run is None else readable(run),
            "limit": -1 if limit is None else limit,
        }
        return [_entry(row) for row in self._database.records(f"{sql} ORDER BY id DESC LIMIT :limit", values)]

    def paths(self, entry: int) -> tuple[str, ...]:
        """The paths that the entry changed; those of a pruned one are no longer known."""
        rows = self._database.rows("SELECT path FROM entry_change WHERE entry = ? ORDER BY path", (entry,))
        return tuple(os.fsdecode(path) for (path,) in rows)

    def changes(self, entry: int) -> ChangeSet:
        """The changes of the entry; an error that says so when retention has dropped them."""
        with self._database.reading():
            row = self._found(entry)
            rows = self._database.rows(f"SELECT {CHANGE_COLUMNS} FROM entry_change WHERE entry = ?", (entry,))
        if row["pruned"]:
            raise StoreError(
                f"entry {entry} was pruned by retention; its contents are no longer stored",
                advice="keep more days or more backups of each file to reach further back",
            )
        return change_set(rows)

    def add_checkpoint(self, checkpoint: Checkpoint) -> Checkpoint:
        """Stores it and returns it with its number; an empty name becomes `checkpoint-` and a number."""
        workspace = os.fsencode(checkpoint.workspace)
        with self._database.transaction():
            name = readable(checkpoint.name) or self._free_name(workspace)
            if self._is_taken(workspace, name):
                raise StoreError(f"there is already a checkpoint named {name!r}", advice="choose another name")
            created = checkpoint.created or iso(self._clock())
            number = self._database.insert(
                "checkpoint",
                workspace=workspace,
                name=name,
                created=created,
                after_entry=checkpoint.after_entry,
                progress=json.dumps(dict(checkpoint.progress)),
                verification=json.dumps(dict(checkpoint.verification)),
                policy=json.dumps(asdict(checkpoint.policy)),
            )
            insert_changes(self._database, "checkpoint", number, checkpoint.changes)
        return replace(checkpoint, id=number, name=name, created=created)

    def _free_name(self, workspace: bytes) -> str:
        """Named after the number that it will have, unless a person took that name."""
        row = self._database.first("SELECT seq FROM sqlite_sequence WHERE name = 'checkpoint'")
        names = (f"checkpoint-{n}" for n in count(1 if row is None else int(row[0]) + 1))
        return next(name for name in names if not self._is_taken(workspace, name))

    def _is_taken(self, workspace: bytes, name: str) -> bool:
        sql = "SELECT 1 FROM checkpoint WHERE workspace = ? AND name = ?"
        return self._database.first(sql, (workspace, name)) is not None

    def checkpoints(self, workspace: str) -> Sequence[Checkpoint]:
        """Newest first."""
        sql = f"SELECT {CHANGE_COLUMNS} FROM checkpoint_change WHERE checkpoint = ?"
        with self._database.reading():
            found = self._database.records(
                "SELECT * FROM checkpoint WHERE workspace = ? ORDER BY id DESC", (os.fsencode(workspace),)
            )
            changes = {one["id"]: change_set(self._database.rows(sql, (one["id"],))) for one in found}
        return [
            Checkpoint(
                id=one["id"],
                workspace=workspace,
                name=one["name"],
                created=one["created"],
                after_entry=one["after_entry"],
                changes=changes[one["id"]],
                progress=json.loads(one["progress"]),
                verification=json.loads(one["verification"]),
                policy=RollbackPolicy(**json.loads(one["policy"])),
            )
            for one in found
        ]

    def drop_checkpoints(self, numbers: Sequence[int]) -> None:
        """Forgets them; the history stays as it is."""
        with self._database.transaction():
            for number in numbers:
                self._database.run("DELETE FROM checkpoint_change WHERE checkpoint = ?", (number,))
                self._database.run("DELETE FROM checkpoint WHERE id = ?", (number,))

    def prune(self, retention: Retention) -> tuple[int, int]:
        """Drops what retention no longer keeps; returns the entries pruned and the bytes freed.

        A conversation goes when nothing was said in it since: half of one could not be taken up again.
        """
        cutoff = iso(max(0.0, self._clock() - retention.days * _DAY))
        with self._database.transaction():
            found = self._database.rows(_PRUNABLE, {"cutoff": cutoff, "backups": retention.backups})
            self._database.run_many("DELETE FROM entry_change WHERE entry = ?", found)
            self._database.run_many("DELETE FROM entry_mode WHERE entry = ?", found)
            self._database.run_many("DELETE FROM entry_evidence WHERE entry = ?", found)
            self._database.run_many("UPDATE entry SET pruned = 1 WHERE id = ?", found)
            self._database.run(
                "DELETE FROM said WHERE conversation IN"
                " (SELECT conversation FROM said GROUP BY conversation HAVING max(time) < ?)",
                (cutoff,),
            )
            for table, moment in (("snapshot", "time"), ("answer", "created"), ("known_file", "seen")):
                self._database.run(f"DELETE FROM {table} WHERE {moment} < ?", (cutoff,))
        return len(found), Blobs(self._database, self._clock).collect()

    def _found(self, number: int, workspace: bytes | None = None) -> dict[str, Any]:
        values = {"id": number, "workspace": workspace}
        whose = "(:workspace IS NULL OR workspace = :workspace)"
        found = self._database.records(f"SELECT * FROM entry WHERE id = :id AND {whose}", values)
        if found:
            return found[0]
        newest = self._database.one(f"SELECT max(id) FROM entry WHERE {whose}", values)[0]
        if newest is None:
            raise UnknownEntry(f"there is no entry {number}: the history is empty")
        raise UnknownEntry(f"there is no entry {number}; the newest is {newest}", advice="'pawl history' lists them")


def _entry(row: dict[str, Any]) -> Entry:
    kind, state = EntryKind(row["kind"]), EntryState(row["state"])
    workspace, pruned = os.fsdecode(row["workspace"]), bool(row["pruned"])
    return Entry(**{**row, "workspace": workspace, "kind": kind, "state": state, "pruned": pruned})
