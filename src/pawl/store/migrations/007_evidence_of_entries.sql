CREATE TABLE entry_evidence (
    entry INTEGER PRIMARY KEY REFERENCES entry (id),
    body TEXT NOT NULL
);
