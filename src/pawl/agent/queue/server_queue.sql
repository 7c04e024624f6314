CREATE TABLE pawl_queue (
    id integer PRIMARY KEY CHECK (id = 1),
    version integer NOT NULL,
    name text NOT NULL,
    paused boolean NOT NULL DEFAULT false,
    budget numeric,
    since timestamptz NOT NULL DEFAULT now(),
    last_turn bigint NOT NULL DEFAULT 0,
    dead_seconds double precision,
    engine text
);

INSERT INTO pawl_queue (id, version, name) VALUES (1, 3, gen_random_uuid()::text);

CREATE TABLE pawl_lane (
    name text PRIMARY KEY,
    home text NOT NULL,
    workspace bytea NOT NULL,
    owner text NOT NULL,
    provider text NOT NULL,
    requires text[] NOT NULL
);

CREATE TABLE pawl_job (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    ticket bigint UNIQUE,
    home text NOT NULL,
    workspace bytea NOT NULL,
    request text NOT NULL,
    seal text NOT NULL,
    provider text NOT NULL,
    priority integer NOT NULL,
    turn bigint NOT NULL,
    requires text[] NOT NULL,
    trace text NOT NULL,
    snapshot text,
    created timestamptz NOT NULL DEFAULT clock_timestamp(),
    state text NOT NULL CHECK (state IN ('queued', 'running', 'waiting', 'ended')),
    paused boolean NOT NULL DEFAULT false,
    not_before timestamptz,
    run text,
    lane text,
    carrier text NOT NULL DEFAULT '',
    lease bigint NOT NULL DEFAULT 0,
    life integer NOT NULL DEFAULT 1,
    attempts integer NOT NULL DEFAULT 0,
    sent_back boolean NOT NULL DEFAULT false,
    worker text,
    allowance numeric,
    started timestamptz,
    ended timestamptz,
    outcome text,
    verdict text NOT NULL DEFAULT '',
    entry bigint,
    cost numeric NOT NULL DEFAULT 0,
    unpriced boolean NOT NULL DEFAULT false,
    reason text NOT NULL DEFAULT '',
    CHECK ((state = 'ended') = (outcome IS NOT NULL))
);

CREATE INDEX pawl_job_unready ON pawl_job (id) WHERE state = 'queued' AND ticket IS NULL;
CREATE INDEX pawl_job_active ON pawl_job (state) WHERE state IN ('running', 'waiting');
CREATE INDEX pawl_job_open ON pawl_job (home, workspace, turn) WHERE state <> 'ended';
CREATE INDEX pawl_job_ended ON pawl_job (ended);
CREATE INDEX pawl_job_snapshot ON pawl_job (snapshot) WHERE state <> 'ended';

CREATE TABLE pawl_job_run (run text NOT NULL, job bigint NOT NULL REFERENCES pawl_job, PRIMARY KEY (run, job));

CREATE INDEX pawl_run_of_job ON pawl_job_run (job);

CREATE TABLE pawl_after (
    job bigint NOT NULL REFERENCES pawl_job,
    earlier bigint NOT NULL REFERENCES pawl_job,
    failed boolean NOT NULL
);

CREATE INDEX pawl_after_of_job ON pawl_after (job);
CREATE INDEX pawl_after_earlier ON pawl_after (earlier);

CREATE TABLE pawl_hold (provider text PRIMARY KEY, until timestamptz NOT NULL);

CREATE TABLE pawl_spent (job bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(), amount numeric NOT NULL);

CREATE INDEX pawl_spent_at ON pawl_spent (at);

CREATE TABLE pawl_note (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    job bigint NOT NULL,
    what text NOT NULL,
    lease bigint NOT NULL,
    worker text
);

CREATE INDEX pawl_note_of_job ON pawl_note (job);

CREATE TABLE pawl_snapshot (digest text PRIMARY KEY, data bytea NOT NULL);

CREATE TABLE pawl_progress (job bigint PRIMARY KEY REFERENCES pawl_job, run text NOT NULL, data bytea NOT NULL);
