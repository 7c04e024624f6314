-- The tables of the index (index_writer.py). With every change of them goes up the version there.

CREATE TABLE file (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    modified_ns INTEGER NOT NULL,
    digest BLOB NOT NULL,
    language TEXT NOT NULL,
    role TEXT NOT NULL,
    complete INTEGER NOT NULL
);

CREATE TABLE definition (
    file INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    qualified TEXT NOT NULL,
    start INTEGER NOT NULL,
    line INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    signature TEXT NOT NULL,
    doc TEXT NOT NULL
);

CREATE INDEX definition_of_file ON definition (file);

CREATE INDEX definition_named ON definition (name);

-- A piece of a file that is ranked for itself: a function, the rest of a class, the rest of the file. Its number is
-- never used again, because the words of a piece that is gone stay in `word` until the index is made anew.
CREATE TABLE piece (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    file INTEGER NOT NULL,
    start INTEGER NOT NULL,
    stop INTEGER NOT NULL,
    length INTEGER NOT NULL,
    calls TEXT NOT NULL,
    uses TEXT NOT NULL
);

CREATE INDEX piece_of_file ON piece (file, length);

CREATE TABLE import (
    file INTEGER NOT NULL,
    line INTEGER NOT NULL,
    module TEXT NOT NULL,
    names TEXT NOT NULL
);

CREATE INDEX import_of_file ON import (file);

CREATE TABLE edge (source INTEGER NOT NULL, target INTEGER NOT NULL, PRIMARY KEY (source, target)) WITHOUT ROWID;

-- Without its own copy of the text, which would double the size.
CREATE VIRTUAL TABLE word USING fts5 (path, names, body, content='', tokenize="ascii tokenchars '_'");

-- How much is collected in memory before it is written; the default writes and merges too often.
INSERT INTO word (word, rank) VALUES ('hashsize', 16777216);

CREATE VIRTUAL TABLE occurrence USING fts5vocab (word, instance);

CREATE VIRTUAL TABLE spread USING fts5vocab (word, row);

CREATE TABLE past (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    at INTEGER NOT NULL,
    words TEXT NOT NULL,
    paths TEXT NOT NULL
);

CREATE TABLE fact (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
