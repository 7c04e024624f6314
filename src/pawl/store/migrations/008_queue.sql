CREATE TABLE job (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    workspace BLOB NOT NULL,
    request TEXT NOT NULL,
    provider TEXT NOT NULL,
    priority INTEGER NOT NULL,
    turn INTEGER NOT NULL,
    created TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'ended')),
    paused INTEGER NOT NULL DEFAULT 0,
    not_before TEXT NOT NULL DEFAULT '',
    run TEXT,
    lease INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    sent_back INTEGER NOT NULL DEFAULT 0,
    worker INTEGER,
    allowance TEXT,
    started TEXT,
    ended TEXT,
    outcome TEXT,
    verdict TEXT NOT NULL DEFAULT '',
    entry INTEGER,
    reason TEXT NOT NULL DEFAULT '',
    CHECK ((state = 'ended') = (outcome IS NOT NULL))
);

CREATE INDEX job_next ON job (priority DESC, turn, id) WHERE state = 'queued' AND paused = 0;

CREATE INDEX job_of_state ON job (state, ended);

CREATE INDEX job_of_workspace ON job (workspace, turn);

CREATE TRIGGER job_ends_once BEFORE UPDATE ON job
WHEN OLD.outcome IS NOT NULL AND NEW.outcome IS NOT NULL
BEGIN SELECT RAISE(ABORT, 'a job ends once'); END;

CREATE TABLE job_run (
    run TEXT PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES job (id)
) WITHOUT ROWID;

CREATE INDEX run_of_job ON job_run (job);

CREATE TABLE job_after (
    job INTEGER NOT NULL REFERENCES job (id),
    earlier INTEGER REFERENCES job (id),
    earlier_run TEXT,
    failed INTEGER NOT NULL DEFAULT 0
);

CREATE INDEX after_of_job ON job_after (job);

CREATE TABLE queue_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    paused INTEGER NOT NULL DEFAULT 0,
    budget TEXT,
    since TEXT NOT NULL DEFAULT '',
    last_turn INTEGER NOT NULL DEFAULT 0
);

INSERT INTO queue_state (id) VALUES (1);

CREATE TABLE provider_hold (
    provider TEXT PRIMARY KEY,
    until TEXT NOT NULL
) WITHOUT ROWID;
