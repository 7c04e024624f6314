-- A state file of schema version 1. It must always load; it never changes.
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL,
    encoding TEXT NOT NULL CHECK (encoding IN ('raw', 'zlib')),
    refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0),
    last_put INTEGER NOT NULL
);
INSERT INTO "blob" VALUES(1,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',6,'raw',6,1800000000);
INSERT INTO "blob" VALUES(2,'62f8e4142b7b675fbe5155dabc80c6772116ff413b80248ceb60ed991e7c3ab8',620,'zlib',2,1800000000);
INSERT INTO "blob" VALUES(3,'b335630551682c19a781afebcf4d07bf978fb1f8ac04c6bf87428ed5106870f5',9,'raw',3,1800000000);
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
INSERT INTO "checkpoint" VALUES(1,X'2F686F6D652F757365722F70726F6A656374','green','2027-01-15T08:00:00+00:00',2,'{"step": 2}','{"tests": "passed"}','{"automatic_on_error": true, "depth": 3, "preserve_user_edits": true}');
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
INSERT INTO "checkpoint_change" VALUES(1,X'524541444D452E6D64',NULL,NULL,NULL,'file',420,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03');
CREATE TABLE content (
    blob INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
    data BLOB NOT NULL
);
INSERT INTO "content" VALUES(1,X'68656C6C6F0A');
INSERT INTO "content" VALUES(2,X'78012BC94855284ECC4D5528CF2F4A2956484C4FCCCC5348CC4B81B24A46A54783855AC901001A42DCB5');
INSERT INTO "content" VALUES(3,X'524541444D452E6D64');
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
INSERT INTO "entry" VALUES(1,X'2F686F6D652F757365722F70726F6A656374','run-1','run','make docs','asked for','2027-01-15T08:00:00.000+00:00','done',NULL,2,0,4);
INSERT INTO "entry" VALUES(2,X'2F686F6D652F757365722F70726F6A656374','run-1','undo','undo 1','asked for','2027-01-15T08:00:00.000+00:00','done',1,NULL,0,4);
INSERT INTO "entry" VALUES(3,X'2F686F6D652F757365722F70726F6A656374','run-2','edit','captured','asked for','2027-01-15T08:00:00.000+00:00','captured',NULL,NULL,0,1);
INSERT INTO "entry" VALUES(4,X'2F686F6D652F757365722F70726F6A656374','run-2','edit','interrupted','asked for','2027-01-15T08:00:00.000+00:00','prepared',NULL,NULL,0,1);
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
INSERT INTO "entry_change" VALUES(1,X'524541444D452E6D64',NULL,NULL,NULL,'file',420,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03');
INSERT INTO "entry_change" VALUES(1,X'636166C3A920FF','file',420,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03','file',493,'62f8e4142b7b675fbe5155dabc80c6772116ff413b80248ceb60ed991e7c3ab8');
INSERT INTO "entry_change" VALUES(1,X'646F6373',NULL,NULL,NULL,'directory',493,NULL);
INSERT INTO "entry_change" VALUES(1,X'6C6174657374',NULL,NULL,NULL,'link',511,'b335630551682c19a781afebcf4d07bf978fb1f8ac04c6bf87428ed5106870f5');
INSERT INTO "entry_change" VALUES(2,X'524541444D452E6D64','file',420,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03',NULL,NULL,NULL);
INSERT INTO "entry_change" VALUES(2,X'636166C3A920FF','file',493,'62f8e4142b7b675fbe5155dabc80c6772116ff413b80248ceb60ed991e7c3ab8','file',420,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03');
INSERT INTO "entry_change" VALUES(2,X'646F6373','directory',493,NULL,NULL,NULL,NULL);
INSERT INTO "entry_change" VALUES(2,X'6C6174657374','link',511,'b335630551682c19a781afebcf4d07bf978fb1f8ac04c6bf87428ed5106870f5',NULL,NULL,NULL);
INSERT INTO "entry_change" VALUES(3,X'6C6174657374',NULL,NULL,NULL,'link',511,'b335630551682c19a781afebcf4d07bf978fb1f8ac04c6bf87428ed5106870f5');
INSERT INTO "entry_change" VALUES(4,X'524541444D452E6D64',NULL,NULL,NULL,'file',420,'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03');
CREATE TABLE entry_mode (
    entry INTEGER NOT NULL REFERENCES entry (id),
    path BLOB NOT NULL,
    mode INTEGER NOT NULL,
    PRIMARY KEY (entry, path)
) WITHOUT ROWID;
INSERT INTO "entry_mode" VALUES(1,X'646F6373',365);
CREATE TABLE event (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    time TEXT NOT NULL,
    workspace BLOB NOT NULL,
    run TEXT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
);
INSERT INTO "event" VALUES(1,'2027-01-15T08:00:00.000+00:00',X'2F686F6D652F757365722F70726F6A656374','run-1','started','{"n": 1}');
CREATE TRIGGER blob_in_use BEFORE DELETE ON blob WHEN OLD.refs > 0
BEGIN SELECT RAISE(ABORT, 'the blob is in use'); END;
CREATE INDEX entry_of_workspace ON entry (workspace);
CREATE INDEX entry_prepared ON entry (workspace) WHERE state = 'prepared';
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
CREATE INDEX event_of_run ON event (workspace, run);
CREATE TRIGGER event_not_updated BEFORE UPDATE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
CREATE TRIGGER event_not_deleted BEFORE DELETE ON event
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('entry',4);
INSERT INTO "sqlite_sequence" VALUES('checkpoint',1);
INSERT INTO "sqlite_sequence" VALUES('event',1);
PRAGMA user_version = 1;
