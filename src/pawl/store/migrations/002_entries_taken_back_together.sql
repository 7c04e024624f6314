CREATE TABLE entry_reversal (
    entry INTEGER NOT NULL REFERENCES entry (id),
    reversed INTEGER NOT NULL REFERENCES entry (id),
    PRIMARY KEY (entry, reversed)
) WITHOUT ROWID;
