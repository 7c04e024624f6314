-- A table of changes, and the triggers that count the blobs which its rows name.
CREATE TABLE {owner}_change (
    {owner} INTEGER NOT NULL REFERENCES {owner} (id),
    path BLOB NOT NULL,
    before_kind TEXT,
    before_mode INTEGER,
    before_blob TEXT,
    after_kind TEXT,
    after_mode INTEGER,
    after_blob TEXT,
    PRIMARY KEY ({owner}, path)
) WITHOUT ROWID;

CREATE TRIGGER {owner}_change_named AFTER INSERT ON {owner}_change BEGIN
    SELECT RAISE(ABORT, 'a blob is missing') FROM (SELECT NEW.before_blob AS name UNION SELECT NEW.after_blob)
    WHERE name IS NOT NULL AND NOT EXISTS (SELECT 1 FROM blob WHERE hash = name);
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.before_blob;
    UPDATE blob SET refs = refs + 1 WHERE hash = NEW.after_blob;
END;

CREATE TRIGGER {owner}_change_dropped AFTER DELETE ON {owner}_change BEGIN
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.before_blob;
    UPDATE blob SET refs = refs - 1 WHERE hash = OLD.after_blob;
END;

CREATE TRIGGER {owner}_change_not_updated BEFORE UPDATE ON {owner}_change
BEGIN SELECT RAISE(ABORT, 'changes are written once'); END;
