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

-- A table of changes, and the triggers that count the blobs which its rows name.
CREATE TABLE entry_change (
    entry INTEGER NOT NULL REFERENCES entry (id),
    path BLOB NOT NULL,
    before_kind TEXT,
    before_mode INTEGER,
    before_blob TEXT,
    after_kind TEXT,
    after_mode INTEGER,
    after_blob TEXT,
    PRIMARY KEY (entry, path)
) WITHOUT ROWID;

CREATE TRIGGER entry_change_named AFTER INSERT ON entry_change BEGIN
    SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
    WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
END;

CREATE TRIGGER entry_change_dropped AFTER DELETE ON entry_change BEGIN
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
END;

CREATE TRIGGER entry_change_not_updated BEFORE UPDATE ON entry_change
BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;

CREATE TABLE checkpoint_change (
    checkpoint INTEGER NOT NULL REFERENCES checkpoint (id),
    path BLOB NOT NULL,
    before_kind TEXT,
    before_mode INTEGER,
    before_blob TEXT,
    after_kind TEXT,
    after_mode INTEGER,
    after_blob TEXT,
    PRIMARY KEY (checkpoint, path)
) WITHOUT ROWID;

CREATE TRIGGER checkpoint_change_named AFTER INSERT ON checkpoint_change BEGIN
    SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
    WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
END;

CREATE TRIGGER checkpoint_change_dropped AFTER DELETE ON checkpoint_change BEGIN
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
END;

CREATE TRIGGER checkpoint_change_not_updated BEFORE UPDATE ON checkpoint_change
BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;

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
