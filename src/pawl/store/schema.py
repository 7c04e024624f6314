"""The tables, as an ordered list of migrations; the `user_version` of the file says how many it has seen.

A migration that was released never changes: old files must always load.
"""

from __future__ import annotations

from collections.abc import Callable

from pawl.core.errors import StoreError, StoreTooNew
from pawl.store.database import Database

RUNS = (
    """
    CREATE TABLE run (
        id TEXT PRIMARY KEY,
        workspace BLOB NOT NULL,
        created TEXT NOT NULL,
        state TEXT NOT NULL,
        node TEXT NOT NULL,
        task INTEGER NOT NULL,
        attempt INTEGER NOT NULL,
        request TEXT NOT NULL,
        delivery TEXT CHECK (delivery IN ('DONE', 'NEEDS_WORK'))
    ) WITHOUT ROWID
    """,
    "CREATE INDEX run_of_workspace ON run (workspace, created)",
    """
    CREATE TRIGGER run_delivered BEFORE UPDATE OF delivery ON run
    WHEN OLD.delivery IS NOT NULL AND NEW.delivery IS NOT OLD.delivery
    BEGIN SELECT RAISE(ABORT, 'the delivery of a run is written once'); END
    """,
    """
    CREATE TRIGGER run_not_deleted BEFORE DELETE ON run
    BEGIN SELECT RAISE(ABORT, 'the record of a run stays'); END
    """,
    """
    CREATE TABLE run_value (
        run TEXT NOT NULL REFERENCES run (id),
        name TEXT NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE run_step (
        run TEXT NOT NULL REFERENCES run (id),
        talk TEXT NOT NULL,
        number INTEGER NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (run, talk, number)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE work (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        run TEXT NOT NULL REFERENCES run (id),
        name TEXT NOT NULL,
        UNIQUE (run, name)
    )
    """,
    """
    CREATE TABLE evaluation (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        run TEXT NOT NULL UNIQUE,
        score INTEGER NOT NULL CHECK (score BETWEEN 1 AND 5),
        reason TEXT NOT NULL,
        judge TEXT NOT NULL
    )
    """,
    """
    CREATE TRIGGER evaluation_not_updated BEFORE UPDATE ON evaluation
    BEGIN SELECT RAISE(ABORT, 'the evaluation log is append-only'); END
    """,
    """
    CREATE TRIGGER evaluation_not_deleted BEFORE DELETE ON evaluation
    BEGIN SELECT RAISE(ABORT, 'the evaluation log is append-only'); END
    """,
)


Migration = Callable[[Database], None]

_BLOBS = (
    """
    CREATE TABLE blob (
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        encoding TEXT NOT NULL CHECK (encoding IN ('raw', 'zlib')),
        refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0),
        last_put INTEGER NOT NULL
    )
    """,
    # Apart from its row, because SQLite writes a whole row again when its count of references changes.
    """
    CREATE TABLE content (
        blob INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
        data BLOB NOT NULL
    )
    """,
    """
    CREATE TRIGGER blob_in_use BEFORE DELETE ON blob WHEN OLD.refs > 0
    BEGIN SELECT RAISE(ABORT, 'the blob is in use'); END
    """,
)

_HISTORY = (
    """
    CREATE TABLE entry (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        run TEXT NOT NULL,
        kind TEXT NOT NULL,
        title TEXT NOT NULL,
        reason TEXT NOT NULL,
        created TEXT NOT NULL,
        state TEXT NOT NULL,
        reverses INTEGER REFERENCES entry (id),
        reversed_by INTEGER REFERENCES entry (id),
        pruned INTEGER NOT NULL DEFAULT 0,
        files INTEGER NOT NULL
    )
    """,
    "CREATE INDEX entry_of_workspace ON entry (workspace)",
    "CREATE INDEX entry_prepared ON entry (workspace) WHERE state = 'prepared'",
    """
    CREATE TABLE entry_mode (
        entry INTEGER NOT NULL REFERENCES entry (id),
        path BLOB NOT NULL,
        mode INTEGER NOT NULL,
        PRIMARY KEY (entry, path)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE checkpoint (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        name TEXT NOT NULL,
        created TEXT NOT NULL,
        after_entry INTEGER NOT NULL,
        progress TEXT NOT NULL,
        verification TEXT NOT NULL,
        policy TEXT NOT NULL,
        UNIQUE (workspace, name)
    )
    """,
)

_EVENTS = (
    """
    CREATE TABLE event (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        run TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL
    )
    """,
    "CREATE INDEX event_of_run ON event (workspace, run)",
    """
    CREATE TRIGGER event_not_updated BEFORE UPDATE ON event
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
    """
    CREATE TRIGGER event_not_deleted BEFORE DELETE ON event
    BEGIN SELECT RAISE(ABORT, 'events are append-only'); END
    """,
)


_REQUESTS = (
    """
    CREATE TABLE request (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        conversation TEXT NOT NULL,
        run TEXT NOT NULL,
        mode TEXT NOT NULL,
        stage TEXT NOT NULL,
        role TEXT NOT NULL,
        model TEXT NOT NULL,
        reasoning TEXT NOT NULL,
        tools TEXT NOT NULL,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        cost TEXT,
        seconds REAL NOT NULL,
        first_token_seconds REAL,
        attempts INTEGER NOT NULL,
        ended TEXT NOT NULL
    )
    """,
    "CREATE INDEX request_of_run ON request (workspace, run)",
    """
    CREATE TRIGGER request_not_updated BEFORE UPDATE ON request
    BEGIN SELECT RAISE(ABORT, 'the request log is append-only'); END
    """,
    """
    CREATE TRIGGER request_not_deleted BEFORE DELETE ON request
    BEGIN SELECT RAISE(ABORT, 'the request log is append-only'); END
    """,
)

_TRANSCRIPTS = (
    """
    CREATE TABLE said (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        workspace BLOB NOT NULL,
        conversation TEXT NOT NULL,
        run TEXT NOT NULL,
        speaker TEXT NOT NULL,
        body TEXT NOT NULL,
        reasoning TEXT NOT NULL,
        sent_again INTEGER NOT NULL
    )
    """,
    "CREATE INDEX said_in_conversation ON said (conversation)",
    "CREATE INDEX said_in_workspace ON said (workspace, conversation)",
    """
    CREATE TRIGGER said_not_updated BEFORE UPDATE ON said
    BEGIN SELECT RAISE(ABORT, 'what was said is written once'); END
    """,
)

_MEMORIES = (
    """
    CREATE TABLE memory (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        tier TEXT NOT NULL,
        text TEXT NOT NULL,
        words TEXT NOT NULL,
        source TEXT NOT NULL,
        run TEXT NOT NULL,
        created TEXT NOT NULL,
        UNIQUE (workspace, words)
    )
    """,
    "CREATE VIRTUAL TABLE memory_text USING fts5 (text, content = 'memory', content_rowid = 'id')",
    """
    CREATE TRIGGER memory_added AFTER INSERT ON memory
    BEGIN INSERT INTO memory_text (rowid, text) VALUES (NEW.id, NEW.text); END
    """,
    """
    CREATE TRIGGER memory_forgotten AFTER DELETE ON memory
    BEGIN INSERT INTO memory_text (memory_text, rowid, text) VALUES ('delete', OLD.id, OLD.text); END
    """,
    """
    CREATE TRIGGER memory_changed AFTER UPDATE OF text ON memory BEGIN
        INSERT INTO memory_text (memory_text, rowid, text) VALUES ('delete', OLD.id, OLD.text);
        INSERT INTO memory_text (rowid, text) VALUES (NEW.id, NEW.text);
    END
    """,
)

_ANSWERS = (
    """
    CREATE TABLE answer (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        workspace BLOB NOT NULL,
        asked_of TEXT NOT NULL,
        query TEXT NOT NULL,
        code TEXT NOT NULL,
        text TEXT NOT NULL,
        rests TEXT NOT NULL,
        created TEXT NOT NULL,
        used INTEGER NOT NULL,
        UNIQUE (workspace, asked_of, query, code)
    )
    """,
    "CREATE INDEX answer_by_use ON answer (used)",
    """
    CREATE TABLE known_file (
        workspace BLOB NOT NULL,
        path BLOB NOT NULL,
        digest TEXT NOT NULL,
        seen TEXT NOT NULL,
        PRIMARY KEY (workspace, path)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE snapshot (
        workspace BLOB NOT NULL,
        conversation TEXT NOT NULL,
        kind TEXT NOT NULL,
        body TEXT NOT NULL,
        time TEXT NOT NULL,
        PRIMARY KEY (workspace, conversation, kind)
    ) WITHOUT ROWID
    """,
)


OWNERS = ("entry", "checkpoint", "work")
"""Who has a table of changes."""


def _changes_of(owner: str) -> tuple[str, ...]:
    """A table of changes, and the triggers that count the blobs which its rows name."""
    table = f"{owner}_change"
    return (
        f"""
        CREATE TABLE {table} (
            {owner} INTEGER NOT NULL REFERENCES {owner} (id),
            path BLOB NOT NULL,
            before_kind TEXT,
            before_mode INTEGER,
            before_blob TEXT,
            after_kind TEXT,
            after_mode INTEGER,
            after_blob TEXT,
            PRIMARY KEY ({owner}, path)
        ) WITHOUT ROWID
        """,
        f"""
        CREATE TRIGGER {table}_named AFTER INSERT ON {table} BEGIN
            SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
            WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
            UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
        END
        """,
        f"""
        CREATE TRIGGER {table}_dropped AFTER DELETE ON {table} BEGIN
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
            UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
        END
        """,
        f"""
        CREATE TRIGGER {table}_not_updated BEFORE UPDATE ON {table}
        BEGIN SELECT RAISE(ABORT, 'changes are written once'); END
        """,
    )


def _m001_blobs_history_events(database: Database) -> None:
    for statement in (*_BLOBS, *_HISTORY, *_changes_of("entry"), *_changes_of("checkpoint"), *_EVENTS):
        database.run(statement)


def _m002_entries_taken_back_together(database: Database) -> None:
    database.run(
        """
        CREATE TABLE entry_reversal (
            entry INTEGER NOT NULL REFERENCES entry (id),
            reversed INTEGER NOT NULL REFERENCES entry (id),
            PRIMARY KEY (entry, reversed)
        ) WITHOUT ROWID
        """
    )


def _m003_requests_and_transcripts(database: Database) -> None:
    for statement in (*_REQUESTS, *_TRANSCRIPTS):
        database.run(statement)


def _m004_memories_answers_snapshots(database: Database) -> None:
    for statement in (*_MEMORIES, *_ANSWERS):
        database.run(statement)


def _m005_runs(database: Database) -> None:
    for statement in (*RUNS, *_changes_of("work")):
        database.run(statement)


MIGRATIONS: tuple[Migration, ...] = (
    _m001_blobs_history_events,
    _m002_entries_taken_back_together,
    _m003_requests_and_transcripts,
    _m004_memories_answers_snapshots,
    _m005_runs,
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
