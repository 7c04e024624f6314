CREATE TABLE audited_run (
    run TEXT PRIMARY KEY,
    workspace BLOB NOT NULL,
    began TEXT NOT NULL,
    objective TEXT NOT NULL,
    ladder TEXT NOT NULL,
    failing INTEGER NOT NULL,
    ended TEXT,
    why TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '',
    entry INTEGER
) WITHOUT ROWID;

CREATE INDEX audited_run_of_workspace ON audited_run (workspace, began);

CREATE TABLE audited_tier (
    run TEXT NOT NULL,
    tier INTEGER NOT NULL,
    name TEXT NOT NULL,
    mode TEXT NOT NULL,
    left_because TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (run, tier)
) WITHOUT ROWID;

CREATE TABLE audited_attempt (
    run TEXT NOT NULL,
    number INTEGER NOT NULL,
    time TEXT NOT NULL,
    tier INTEGER NOT NULL,
    iteration INTEGER NOT NULL,
    sample INTEGER NOT NULL,
    mode TEXT NOT NULL,
    model TEXT NOT NULL,
    ended TEXT NOT NULL,
    failing INTEGER,
    paths TEXT NOT NULL,
    refused TEXT NOT NULL,
    verdicts TEXT NOT NULL,
    cost TEXT,
    tokens INTEGER NOT NULL,
    seconds REAL NOT NULL,
    PRIMARY KEY (run, number)
) WITHOUT ROWID;
