ALTER TABLE job ADD COLUMN requires TEXT NOT NULL DEFAULT '[]';

ALTER TABLE job ADD COLUMN trace TEXT NOT NULL DEFAULT '';

CREATE TABLE job_delivery (
    entry INTEGER PRIMARY KEY REFERENCES entry (id),
    queue TEXT NOT NULL,
    job INTEGER NOT NULL,
    run TEXT NOT NULL
);

CREATE INDEX delivery_of_job ON job_delivery (queue, job);
