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
