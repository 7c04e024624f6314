CREATE TABLE streamed (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    workspace BLOB NOT NULL,
    run TEXT NOT NULL,
    type TEXT NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX streamed_of_run ON streamed (run, id);

CREATE INDEX streamed_at ON streamed (time);
