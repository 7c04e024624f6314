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
);

CREATE VIRTUAL TABLE memory_text USING fts5 (text, content = 'memory', content_rowid = 'id');

CREATE TRIGGER memory_added AFTER INSERT ON memory
BEGIN INSERT INTO memory_text (rowid, text) VALUES (NEW.id, NEW.text); END;

CREATE TRIGGER memory_forgotten AFTER DELETE ON memory
BEGIN INSERT INTO memory_text (memory_text, rowid, text) VALUES ('delete', OLD.id, OLD.text); END;

CREATE TRIGGER memory_changed AFTER UPDATE OF text ON memory BEGIN
    INSERT INTO memory_text (memory_text, rowid, text) VALUES ('delete', OLD.id, OLD.text);
    INSERT INTO memory_text (rowid, text) VALUES (NEW.id, NEW.text);
END;

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
);

CREATE INDEX answer_by_use ON answer (used);

CREATE TABLE known_file (
    workspace BLOB NOT NULL,
    path BLOB NOT NULL,
    digest TEXT NOT NULL,
    seen TEXT NOT NULL,
    PRIMARY KEY (workspace, path)
) WITHOUT ROWID;

CREATE TABLE snapshot (
    workspace BLOB NOT NULL,
    conversation TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    time TEXT NOT NULL,
    PRIMARY KEY (workspace, conversation, kind)
) WITHOUT ROWID;
