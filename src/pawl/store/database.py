"""One SQLite connection for one thread: transactions that nest, errors that say what to do next, and the migrations
of the state file, which never change once they were released: old files must always load.

Integrity errors come through as they are: whoever wrote the row knows what the constraint meant.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pawl.core.change import Change, ChangeSet, Node, NodeKind
from pawl.core.errors import MissingBlob, PawlError, StoreBusy, StoreCorrupt, StoreError, StoreTooNew

Row = tuple[Any, ...]
Values = Sequence[object] | Mapping[str, object]

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})
_CORRUPT = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
_LONGEST_LOG = 16 << 20


class Database:
    """The open state file."""

    __slots__ = ("_connection", "path")

    def __init__(self, path: Path, *, busy_seconds: float) -> None:
        self.path = path
        with self._explaining():
            self._connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None)

    def configure(self) -> None:
        """Sets what SQLite forgets between connections; the first statement that reads the file."""
        self.rows("PRAGMA synchronous = FULL")
        self.rows("PRAGMA foreign_keys = ON")
        # A large batch leaves a large log; what is above this is given back at the next checkpoint.
        self.rows(f"PRAGMA journal_size_limit = {_LONGEST_LOG}")
        if sys.platform == "darwin":
            # fsync there does not reach the disk itself.
            self.rows("PRAGMA fullfsync = ON")
            self.rows("PRAGMA checkpoint_fullfsync = ON")

    def write_ahead(self) -> None:
        self.rows("PRAGMA journal_mode = WAL")

    @property
    def version(self) -> int:
        """How many migrations the file has seen; 0 for an empty one."""
        return int(self.one("PRAGMA user_version")[0])

    @property
    def in_transaction(self) -> bool:
        return self._connection.in_transaction

    def run(self, sql: str, values: Values = ()) -> sqlite3.Cursor:
        """Executes a statement that returns nothing of interest but its counts."""
        with self._explaining():
            return self._connection.execute(sql, values)

    def run_many(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        with self._explaining():
            self._connection.executemany(sql, rows)

    def run_script(self, name: str, owner: str = "") -> None:
        """Executes the statements of a file of this package, in which `{owner}` stands for a table."""
        text = (resources.files("pawl.store") / f"{name}.sql").read_text("utf-8").replace("{owner}", owner)
        statement = ""
        for line in text.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self.run(statement)
                statement = ""

    def insert(self, table: str, /, conflict: str = "", **columns: object) -> int:
        """Adds a row and returns its number; durable when it returns, or with the transaction around it."""
        marks = ", ".join(f":{name}" for name in columns)
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"
        return int(self.run(f"{sql} ON CONFLICT {conflict}" if conflict else sql, columns).lastrowid or 0)

    def rows(self, sql: str, values: Values = ()) -> list[Row]:
        with self._explaining():
            return self._connection.execute(sql, values).fetchall()

    def records(self, sql: str, values: Values = ()) -> list[dict[str, Any]]:
        """The rows by the names of their columns."""
        with self._explaining():
            cursor = self._connection.execute(sql, values)
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.IntegrityError, sqlite3.ProgrammingError):
            raise
        except sqlite3.Error as error:
            raise store_error(error, self.path) from error

    def first(self, sql: str, values: Values = ()) -> Row | None:
        found = self.rows(sql, values)
        return found[0] if found else None

    def one(self, sql: str, values: Values = ()) -> Row:
        """The only row of a query that always has one."""
        return self.rows(sql, values)[0]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing and durable at the end; inside another transaction, a part of it."""
        if self._connection.in_transaction:
            with self._part():
                yield
            return
        finished = False
        try:
            # IMMEDIATE, because a reader that turns writer cannot wait for another writer.
            self.run("BEGIN IMMEDIATE")
            yield
            self.run("COMMIT")
            finished = True
        finally:
            if not finished:
                self._abandon("ROLLBACK")

    @contextmanager
    def _part(self) -> Iterator[None]:
        self.run("SAVEPOINT part")
        finished = False
        try:
            yield
            self.run("RELEASE part")
            finished = True
        finally:
            if not finished:
                self._abandon("ROLLBACK TO part", "RELEASE part")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Several queries that see one moment of the file."""
        if self._connection.in_transaction:
            yield
            return
        self.run("BEGIN")
        try:
            yield
        finally:
            self._abandon("ROLLBACK")

    def _abandon(self, *statements: str) -> None:
        # SQLite itself rolls back when the disk is full or fails.
        if self._connection.in_transaction:
            for statement in statements:
                self.run(statement)

    def shrink(self) -> None:
        """Gives the pages that are free back to the disk."""
        with self.transaction():
            # A statement without columns is stepped once, and each step frees one page.
            for _ in range(self.one("PRAGMA freelist_count")[0]):
                self.run("PRAGMA incremental_vacuum")
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        self._connection.close()


class StorePart:
    """One part of the open state file."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """The error of the house for an error of SQLite."""
    code = getattr(error, "sqlite_errorcode", 0)
    primary = code & 0xFF
    name = getattr(error, "sqlite_errorname", type(error).__name__)
    if primary in _BUSY:
        return StoreBusy(
            f"another process is writing to the state file {str(path)!r}",
            advice="try again when it has finished",
        )
    if primary in _CORRUPT:
        return StoreCorrupt(
            f"the state file {str(path)!r} is damaged: {error} ({name})",
            advice=f"move it aside together with {path.name}-wal and {path.name}-shm; "
            "the workspace is not touched, a new history is started",
        )
    if primary == sqlite3.SQLITE_FULL:
        return StoreError(
            f"no room left to write the state file {str(path)!r}: {error}",
            advice="free space on that disk, or choose a state directory on another one",
        )
    return StoreError(
        f"the state file {str(path)!r} cannot be used: {error} ({name})",
        advice="check the disk, and the owner and mode of the file",
    )


Clock = Callable[[], float]
Owner = Literal["entry", "checkpoint", "work"]

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


def _columns(node: Node | None) -> Row:
    return (None, None, None) if node is None else (node.kind.value, node.mode, node.blob)


def _node(columns: Row) -> Node | None:
    kind, mode, blob = columns
    return None if kind is None else Node(NodeKind(kind), blob, mode)


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
    _migration("008_queue"),
    _migration("009_queues_of_many_machines"),
)
NEWEST = len(MIGRATIONS)
"""The `user_version` of a file says how many it has seen."""


def check_schema(database: Database) -> int:
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


def is_newest(database: Database) -> bool:
    """Whether the file has seen every migration."""
    return check_schema(database) == NEWEST


def _touch_every_table(database: Database) -> None:
    """A first look into each table, which finds most damage at once instead of half-way through a command."""
    for (name,) in database.rows("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"):
        database.first(f'SELECT 1 FROM "{name}" NOT INDEXED LIMIT 1')


def migrate(database: Database) -> None:
    """Runs the migrations that the file has not seen, each as its own transaction. The caller is alone."""
    version = check_schema(database)
    if version == 0:
        # Can be chosen only while the file is empty.
        database.run("PRAGMA auto_vacuum = INCREMENTAL")
    database.write_ahead()
    for number, migration in enumerate(MIGRATIONS[version:], start=version + 1):
        with database.transaction():
            migration(database)
            database.run(f"PRAGMA user_version = {number}")
