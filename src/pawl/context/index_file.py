"""The file that an index lives in: one SQLite database that can be thrown away at any time and made again."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pawl.core.errors import StoreBusy, StoreError

_VERSION = 2
"""Goes up with every change of the tables or of what is put into them; an index of another version is made anew."""
_MARK = 0x50574C49
_SIDE_FILES = ("", "-wal", "-shm", "-journal")
_LONGEST_LOG = 16 << 20
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT})

_TABLES = (
    """
    CREATE TABLE file (
        id INTEGER PRIMARY KEY,
        path TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        modified_ns INTEGER NOT NULL,
        digest BLOB NOT NULL,
        language TEXT NOT NULL,
        role TEXT NOT NULL,
        complete INTEGER NOT NULL
    )
    """,
    """
    CREATE TABLE definition (
        file INTEGER NOT NULL,
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        qualified TEXT NOT NULL,
        start INTEGER NOT NULL,
        line INTEGER NOT NULL,
        stop INTEGER NOT NULL,
        depth INTEGER NOT NULL,
        signature TEXT NOT NULL,
        doc TEXT NOT NULL
    )
    """,
    "CREATE INDEX definition_of_file ON definition (file)",
    "CREATE INDEX definition_named ON definition (name)",
    # A piece of a file that is ranked for itself: a function, the rest of a class, the rest of the file. Its number is
    # never used again, because the words of a piece that is gone stay in `word` until the index is made anew.
    """
    CREATE TABLE piece (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        file INTEGER NOT NULL,
        start INTEGER NOT NULL,
        stop INTEGER NOT NULL,
        length INTEGER NOT NULL,
        calls TEXT NOT NULL,
        uses TEXT NOT NULL
    )
    """,
    "CREATE INDEX piece_of_file ON piece (file)",
    """
    CREATE TABLE import (
        file INTEGER NOT NULL,
        line INTEGER NOT NULL,
        module TEXT NOT NULL,
        names TEXT NOT NULL
    )
    """,
    "CREATE INDEX import_of_file ON import (file)",
    "CREATE TABLE edge (source INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID",
    # Without its own copy of the text, which would double the size.
    """
    CREATE VIRTUAL TABLE word USING fts5 (path, names, body, content='', tokenize="ascii tokenchars '_'")
    """,
    # How much is collected in memory before it is written; the default writes and merges too often.
    "INSERT INTO word (word, rank) VALUES ('hashsize', 16777216)",
    "CREATE VIRTUAL TABLE occurrence USING fts5vocab (word, instance)",
    "CREATE VIRTUAL TABLE spread USING fts5vocab (word, row)",
    """
    CREATE TABLE past (
        id INTEGER PRIMARY KEY,
        name TEXT NOT NULL,
        at INTEGER NOT NULL,
        words TEXT NOT NULL,
        paths TEXT NOT NULL
    )
    """,
    "CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
)


def connect(path: Path, *, busy_seconds: float = 30.0) -> sqlite3.Connection:
    """The open index. One that is damaged, or of another version, is thrown away and starts empty."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path.parent, error.strerror or str(error)) from error
    connection = _usable(path, busy_seconds)
    if connection is not None:
        return connection
    with alone(path):
        return _settled(path, busy_seconds)


def _settled(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """The same, while no other process does it."""
    found = _usable(path, busy_seconds)
    if found is not None:
        return found
    discard(path)
    connection = _opened(path, busy_seconds)
    connection.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        connection.execute(statement)
    connection.execute(f"PRAGMA application_id = {_MARK}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")
    return connection


def _usable(path: Path, busy_seconds: float) -> sqlite3.Connection | None:
    """The index as it is; None when it has to be made anew."""
    try:
        connection = _opened(path, busy_seconds)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return None
        raise store_error(error, path) from error
    try:
        if _fits(connection):
            return connection
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            connection.close()
            raise store_error(error, path) from error
    connection.close()
    return None


def discard(path: Path) -> None:
    """Throws the index away. Whoever has it open goes on with what they have."""
    for suffix in _SIDE_FILES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keeps other processes from writing the index meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(f"{path}.lock", flags, 0o600)
    except OSError as error:
        raise _unusable(Path(f"{path}.lock"), error.strerror or str(error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not what it should be, and not only busy or without room."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """The error of the house for an error of SQLite."""
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"another process is writing to the index {str(path)!r}", advice="try again when it has finished"
        )
    return _unusable(path, str(error))


def _unusable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"the index {str(path)!r} cannot be used: {why}",
        advice="check the disk, and the owner and mode of the file; it can be deleted at any time",
    )


def _opened(path: Path, busy_seconds: float) -> sqlite3.Connection:
    # Made here, so that it and the files that SQLite puts beside it are the user's alone.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=busy_seconds, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # After a loss of power the index may be gone; it is made again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA journal_size_limit = {_LONGEST_LOG}")
        connection.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _fits(connection: sqlite3.Connection) -> bool:
    """Whether it is an index of this version, as far as a first look at each table tells."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    if (version, mark) != (_VERSION, _MARK):
        return False
    for table in ("file", "definition", "piece", "import", "edge", "past", "fact"):
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    connection.execute("SELECT rowid FROM word WHERE word MATCH 'a' LIMIT 1").fetchone()
    return True
