"""Old state files must always load, and what a released migration made never changes."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from pawl.core.change import Change, ChangeSet, Checkpoint, EntryKind, EntryState, Node, RollbackPolicy, blob_digest
from pawl.store import database as schema
from pawl.store.database import Database
from pawl.store.store import Store

GOLDEN = Path(__file__).with_name("golden") / "v1.sql"
WORKSPACE = "/home/user/project"
LONG = b"the same words again and again " * 20

HELLO = Node.file(blob_digest(b"hello\n"))
CHANGES = ChangeSet.of(
    [
        Change("README.md", None, HELLO),
        Change(os.fsdecode("café ".encode() + b"\xff"), HELLO, Node.file(blob_digest(LONG), 0o755)),
        Change("docs", None, Node.directory()),
        Change("latest", None, Node.link(blob_digest(b"README.md"))),
    ]
)


@pytest.fixture
def golden(state_directory: Path) -> Path:
    connection = sqlite3.connect(state_directory / "pawl.db")
    connection.executescript(GOLDEN.read_text(encoding="utf-8"))
    connection.close()
    return state_directory


def described(connection: Database) -> dict[str, str]:
    rows = connection.rows("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'")
    return {name: "".join(sql.split()) for name, sql in rows}


@pytest.mark.spec("B9")
def test_a_history_of_version_1_loads_whole(golden):
    with Store.open(golden) as store:
        journal = store.journal
        assert store.set_aside is None
        assert store.integrity() == []
        assert [(entry.id, entry.kind, entry.state) for entry in journal.entries(WORKSPACE)] == [
            (4, EntryKind.EDIT, EntryState.PREPARED),
            (3, EntryKind.EDIT, EntryState.CAPTURED),
            (2, EntryKind.UNDO, EntryState.DONE),
            (1, EntryKind.RUN, EntryState.DONE),
        ]
        assert (journal.entry(WORKSPACE, 1).reversed_by, journal.entry(WORKSPACE, 2).reverses) == (2, 1)
        assert journal.changes(1) == CHANGES
        assert journal.changes(2) == CHANGES.inverted()
        assert [entry.id for entry in journal.pending(WORKSPACE)] == [4]
        assert journal.modes(1) == {"docs": 0o555}


def test_contents_events_and_checkpoints_of_version_1_load_whole(golden):
    with Store.open(golden) as store:
        assert [store.blobs.get(blob_digest(data)) for data in (b"hello\n", LONG)] == [b"hello\n", LONG]
        assert store.journal.checkpoints(WORKSPACE) == [
            Checkpoint(
                id=1,
                workspace=WORKSPACE,
                name="green",
                created="2027-01-15T08:00:00+00:00",
                after_entry=2,
                changes=CHANGES.only(["README.md"]),
                progress={"step": 2},
                verification={"tests": "passed"},
                policy=RollbackPolicy(depth=3),
            )
        ]
        assert [(event["kind"], event["body"]) for event in store.events.read(WORKSPACE)] == [("started", {"n": 1})]


def test_a_history_of_version_1_can_be_continued(golden):
    with Store.open(golden) as store:
        store.journal.finish(4, EntryState.DONE)
        assert store.journal.entry(WORKSPACE, 4).active
        assert store.schema_version == schema.NEWEST


def test_the_first_migration_makes_what_it_made_when_it_was_released(golden, tmp_path):
    fresh = Database(tmp_path / "fresh.db", busy_seconds=1)
    schema.MIGRATIONS[0](fresh)
    released = Database(golden / "pawl.db", busy_seconds=1)
    assert described(fresh) == described(released)
    fresh.close()
    released.close()


def test_a_migration_that_fails_leaves_the_file_at_the_version_before(golden, monkeypatch):
    def breaks(database: Database) -> None:
        database.run("CREATE TABLE half (id INTEGER)")
        raise KeyError("broken")

    def adds(database: Database) -> None:
        database.run("CREATE TABLE more (id INTEGER)")

    monkeypatch.setattr(schema, "NEWEST", 3)
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:1], adds, breaks))
    with pytest.raises(KeyError):
        Store.open(golden)
    connection = sqlite3.connect(golden / "pawl.db")
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}
    assert connection.execute("PRAGMA user_version").fetchone() == (2,)
    assert ("more" in tables, "half" in tables) == (True, False)
    connection.close()
    monkeypatch.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS[:2], adds_nothing))
    with Store.open(golden) as store:
        assert store.schema_version == 3
        assert store.journal.changes(1) == CHANGES


def adds_nothing(database: Database) -> None:
    """A migration that only counts."""
