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
) WITHOUT ROWID;

CREATE INDEX run_of_workspace ON run (workspace, created);

CREATE TRIGGER run_delivered BEFORE UPDATE OF delivery ON run
WHEN OLD.delivery IS NOT NULL AND NEW.delivery IS NOT OLD.delivery
BEGIN SELECT RAISE(ABORT, 'the delivery of a run is written once'); END;

CREATE TRIGGER run_not_deleted BEFORE DELETE ON run
BEGIN SELECT RAISE(ABORT, 'the record of a run stays'); END;

CREATE TABLE run_value (
    run TEXT NOT NULL REFERENCES run (id),
    name TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, name)
) WITHOUT ROWID;

CREATE TABLE run_step (
    run TEXT NOT NULL REFERENCES run (id),
    talk TEXT NOT NULL,
    number INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (run, talk, number)
) WITHOUT ROWID;

CREATE TABLE work (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    run TEXT NOT NULL REFERENCES run (id),
    name TEXT NOT NULL,
    UNIQUE (run, name)
);

CREATE TABLE evaluation (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    workspace BLOB NOT NULL,
    run TEXT NOT NULL UNIQUE,
    score INTEGER NOT NULL CHECK (score BETWEEN 1 AND 5),
    reason TEXT NOT NULL,
    judge TEXT NOT NULL
);

CREATE TRIGGER evaluation_not_updated BEFORE UPDATE ON evaluation
BEGIN SELECT RAISE(ABORT, 'the evaluation log is append-only'); END;

CREATE TRIGGER evaluation_not_deleted BEFORE DELETE ON evaluation
BEGIN SELECT RAISE(ABORT, 'the evaluation log is append-only'); END;

CREATE TABLE work_change (
    work INTEGER NOT NULL REFERENCES work (id),
    path BLOB NOT NULL,
    before_kind TEXT,
    before_mode INTEGER,
    before_blob TEXT,
    after_kind TEXT,
    after_mode INTEGER,
    after_blob TEXT,
    PRIMARY KEY (work, path)
) WITHOUT ROWID;

CREATE TRIGGER work_change_named AFTER INSERT ON work_change BEGIN
    SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
    WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
END;

CREATE TRIGGER work_change_dropped AFTER DELETE ON work_change BEGIN
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
END;

CREATE TRIGGER work_change_not_updated BEFORE UPDATE ON work_change
BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;
