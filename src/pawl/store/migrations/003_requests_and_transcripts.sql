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
);

CREATE INDEX request_of_run ON request (workspace, run);

CREATE TRIGGER request_not_updated BEFORE UPDATE ON request
BEGIN SELECT RAISE(ABORT, 'the request log is append-only'); END;

CREATE TRIGGER request_not_deleted BEFORE DELETE ON request
BEGIN SELECT RAISE(ABORT, 'the request log is append-only'); END;

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
);

CREATE INDEX said_in_conversation ON said (conversation);

CREATE INDEX said_in_workspace ON said (workspace, conversation);

CREATE TRIGGER said_not_updated BEFORE UPDATE ON said
BEGIN SELECT RAISE(ABORT, 'what was said is written once'); END;
