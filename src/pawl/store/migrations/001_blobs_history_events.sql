CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    encoding TEXT NOT NULL CHECK (encoding IN ('raw', 'zlib')),
    refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0),
    last_put INTEGER NOT NULL
);

-- Apart from its row, because SQLite writes a whole row again when its count of references changes.
CREATE TABLE content (
    blob INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
    data BLOB NOT NULL
);

CREATE TRIGGER blob_in_use BEFORE DELETE ON blob WHEN OLD.refs > 0
BEGIN SELECT RAISE(ABORT, 'the blob is in use'); END;

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
);

CREATE INDEX entry_of_workspace ON entry (workspace);

CREATE INDEX entry_prepared ON entry (workspace) WHERE state = 'prepared';

CREATE TABLE entry_mode (
    entry INTEGER NOT NULL REFERENCES entry (id),
    path BLOB NOT NULL,
    mode INTEGER NOT NULL,
    PRIMARY KEY (entry, path)
) WITHOUT ROWID;

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
);

CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    workspace BLOB NOT NULL,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX event_of_run ON event (workspace, run);

CREATE TRIGGER event_not_updated BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER event_not_deleted BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
