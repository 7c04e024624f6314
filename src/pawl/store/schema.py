"""The tables, as an ordered list of migrations; the `user_version` of the file says how many it has seen.

A migration that was released never changes: old files must always load.
"""

from __future__ import annotations

from collections.abc import Callable

from pawl.core.errors import StoreError, StoreTooNew
from pawl.store.database import Database

OWNERS = ("entry", "checkpoint", "work")
"""Who has a table of changes."""


def _migration(script: str, *owners: str) -> Callable[[Database], None]:
    """Runs a script, then makes the tables of changes of these owners."""

    def migrate(database: Database) -> None:
        database.run_script(f"migrations/{script}")
        for owner in owners:
            database.run_script("migrations/changes", owner=owner)

    return migrate


MIGRATIONS = (
    _migration("001_blobs_history_events", "entry", "checkpoint"),
    _migration("002_entries_taken_back_together"),
    _migration("003_requests_and_transcripts"),
    _migration("004_memories_answers_snapshots"),
    _migration("005_runs", "work"),
    _migration("006_partly_and_unverified_runs"),
    _migration("007_evidence_of_entries"),
)
NEWEST = len(MIGRATIONS)


def check(database: Database) -> int:
    """Reads the schema and returns its version; refuses a file that a newer Pawl or another program wrote."""
    version = database.version
    tables = database.one("SELECT count(*) FROM sqlite_master")[0]
    if version > NEWEST:
        raise StoreTooNew(
            f"the state file {str(database.path)!r} has schema version {version}; this Pawl knows up to {NEWEST}",
            advice="upgrade Pawl, or choose another state directory",
        )
    if version == 0 and tables:
        raise StoreError(
            f"{str(database.path)!r} is a database of another program",
            advice="choose another state directory",
        )
    _touch_every_table(database)
    return version


def _touch_every_table(database: Database) -> None:
    """A first look into each table, which finds most damage at once instead of half-way through a command."""
    for (name,) in database.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"):
        database.first(f'SELECT 1 FROM "{name}" NOT INDEXED LIMIT 1')


def migrate(database: Database) -> None:
    """Runs the migrations that the file has not seen, each as its own transaction. The caller is alone."""
    version = check(database)
    if version == 0:
        # Can be chosen only while the file is empty.
        database.run("PRAGMA auto_vacuum = INCREMENTAL")
    database.write_ahead()
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        with database.transaction():
            migration(database)
            database.run(f"PRAGMA user_version = {number}")
