-- A state file of schema version 2. It must always load; it never changes.
CREATE TABLE blob (
        id INTEGER PRIMARY KEY,
        hash TEXT NOT NULL UNIQUE,
        size INTEGER NOT NULL,
        encoding TEXT NOT NULL CHECK (encoding IN ('raw', 'zlib')),
        refs INTEGER NOT NULL DEFAULT 0 CHECK (refs >= 0),
        last_put INTEGER NOT NULL
    );
INSERT INTO "blob" VALUES(1,'2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806',4,'raw',1,1800000000);
INSERT INTO "blob" VALUES(2,'27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a',4,'raw',1,1800000000);
INSERT INTO "blob" VALUES(3,'2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881',1,'raw',1,1800000000);
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
        ) WITHOUT ROWID
        ;
CREATE TABLE content (
        blob INTEGER PRIMARY KEY REFERENCES blob (id) ON DELETE CASCADE,
        data BLOB NOT NULL
    );
INSERT INTO "content" VALUES(1,X'6F6E650A');
INSERT INTO "content" VALUES(2,X'74776F0A');
INSERT INTO "content" VALUES(3,X'78');
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
INSERT INTO "entry" VALUES(1,X'2F686F6D652F757365722F70726F6A656374','run-1','edit','a title','','2027-01-15T08:00:00.000+00:00','done',NULL,3,0,1);
INSERT INTO "entry" VALUES(2,X'2F686F6D652F757365722F70726F6A656374','run-1','edit','a title','','2027-01-15T08:00:00.000+00:00','done',NULL,3,0,1);
INSERT INTO "entry" VALUES(3,X'2F686F6D652F757365722F70726F6A656374','run-1','restore','a title','','2027-01-15T08:00:00.000+00:00','done',NULL,NULL,0,1);
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
        ) WITHOUT ROWID
        ;
INSERT INTO "entry_change" VALUES(1,X'61',NULL,NULL,NULL,'file',420,'2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806');
INSERT INTO "entry_change" VALUES(2,X'62',NULL,NULL,NULL,'file',420,'27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a');
INSERT INTO "entry_change" VALUES(3,X'66696C6531',NULL,NULL,NULL,'file',420,'2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881');
CREATE TABLE entry_mode (
        entry INTEGER NOT NULL REFERENCES entry (id),
        path BLOB NOT NULL,
        mode INTEGER NOT NULL,
        PRIMARY KEY (entry, path)
    ) WITHOUT ROWID
    ;
CREATE TABLE entry_reversal (
            entry INTEGER NOT NULL REFERENCES entry (id),
            reversed INTEGER NOT NULL REFERENCES entry (id),
            PRIMARY KEY (entry, reversed)
        ) WITHOUT ROWID
        ;
INSERT INTO "entry_reversal" VALUES(3,1);
INSERT INTO "entry_reversal" VALUES(3,2);
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
INSERT INTO "sqlite_sequence" VALUES('entry',3);
INSERT INTO "sqlite_sequence" VALUES('event',1);
PRAGMA user_version = 2;
