"""A state file from before requests and transcripts loads whole and takes them up."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pawl.core.change import EntryKind
from pawl.core.dialogue import user
from pawl.store import database as schema
from pawl.store.database import Database
from pawl.store.store import Store

GOLDEN = Path(__file__).with_name("golden") / "v2.sql"
WORKSPACE = "/home/user/project"


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
def test_a_history_of_version_2_loads_whole(golden):
    with Store.open(golden) as store:
        assert store.set_aside is None
        assert store.integrity() == []
        assert store.schema_version == schema.NEWEST
        assert [(entry.id, entry.kind, entry.reversed_by) for entry in store.journal.entries(WORKSPACE)] == [
            (3, EntryKind.RESTORE, None),
            (2, EntryKind.EDIT, 3),
            (1, EntryKind.EDIT, 3),
        ]
        assert [event["kind"] for event in store.events.read(WORKSPACE)] == ["started"]


def test_a_file_of_version_2_takes_requests_and_transcripts(golden):
    with Store.open(golden) as store:
        assert store.requests.records(WORKSPACE) == []
        store.transcripts.append(WORKSPACE, "c1", user("Hello."))
    with Store.open(golden) as store:
        assert [one.message for one in store.transcripts.messages("c1")] == [user("Hello.")]


def test_the_second_migration_makes_what_it_made_when_it_was_released(golden, tmp_path):
    fresh = Database(tmp_path / "fresh.db", busy_seconds=1)
    for migration in schema.MIGRATIONS[:2]:
        migration(fresh)
    released = Database(golden / "pawl.db", busy_seconds=1)
    assert described(fresh) == described(released)
    fresh.close()
    released.close()
