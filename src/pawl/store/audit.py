"""The audit of ladders: every run, tier and attempt with its cost and verdicts, in a database of its own.

It stands beside the state file, so that nothing that befalls it can hold up a run: whoever writes to it passes over
a `StoreError` with a warning.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

from pawl.core.errors import StoreTooNew
from pawl.core.redact import redacted
from pawl.core.tiers import Attempt, Escalation
from pawl.store.database import Clock, Database, Row, iso, readable

FILE_NAME = "audit.db"
VERSION = 1
_TABLES = (
    """
    CREATE TABLE audited_run (
        run TEXT PRIMARY KEY,
        workspace BLOB NOT NULL,
        began TEXT NOT NULL,
        objective TEXT NOT NULL,
        ladder TEXT NOT NULL,
        failing INTEGER NOT NULL,
        ended TEXT,
        why TEXT NOT NULL DEFAULT '',
        reason TEXT NOT NULL DEFAULT '',
        entry INTEGER
    ) WITHOUT ROWID
    """,
    "CREATE INDEX audited_run_of_workspace ON audited_run (workspace, began)",
    """
    CREATE TABLE audited_tier (
        run TEXT NOT NULL,
        tier INTEGER NOT NULL,
        name TEXT NOT NULL,
        mode TEXT NOT NULL,
        left_because TEXT NOT NULL DEFAULT '',
        PRIMARY KEY (run, tier)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE audited_attempt (
        run TEXT NOT NULL,
        number INTEGER NOT NULL,
        time TEXT NOT NULL,
        tier INTEGER NOT NULL,
        iteration INTEGER NOT NULL,
        sample INTEGER NOT NULL,
        mode TEXT NOT NULL,
        model TEXT NOT NULL,
        ended TEXT NOT NULL,
        failing INTEGER,
        paths TEXT NOT NULL,
        refused TEXT NOT NULL,
        verdicts TEXT NOT NULL,
        cost TEXT,
        tokens INTEGER NOT NULL,
        seconds REAL NOT NULL,
        PRIMARY KEY (run, number)
    ) WITHOUT ROWID
    """,
)
_RUN = ("run", "began", "objective", "ladder", "failing", "ended", "why", "reason", "entry")
_TIER = ("tier", "name", "mode", "left_because")
_ATTEMPT = (
    "number",
    "time",
    "tier",
    "iteration",
    "sample",
    "mode",
    "model",
    "ended",
    "failing",
    "paths",
    "refused",
    "verdicts",
    "cost",
    "tokens",
    "seconds",
)


class Audit:
    """The open audit file. For the thread that opened it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    @classmethod
    def open(cls, directory: Path, *, clock: Clock = time.time, busy_seconds: float = 1.0) -> Audit:
        path = directory / FILE_NAME
        if not path.exists():
            # Only its user may read it, from the first moment on.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        database = Database(path, busy_seconds=busy_seconds)
        try:
            database.configure()
            _migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Audit:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def begun(self, workspace: str, run: str, objective: str, ladder: Escalation, failing: int) -> None:
        """A run begins to climb; one that is resumed is known."""
        with self._database.transaction():
            self._database.run(
                "INSERT INTO audited_run (run, workspace, began, objective, ladder, failing) VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (run) DO UPDATE SET ended = NULL, why = '', reason = ''",
                (
                    run,
                    os.fsencode(workspace),
                    iso(self._clock()),
                    readable(redacted(objective)),
                    json.dumps(asdict(ladder), default=str),
                    failing,
                ),
            )
            for number, tier in enumerate(ladder.tiers):
                self._database.run(
                    "INSERT INTO audited_tier (run, tier, name, mode) VALUES (?, ?, ?, ?)"
                    " ON CONFLICT (run, tier) DO NOTHING",
                    (run, number, readable(tier.name), tier.mode),
                )

    def tried(self, run: str, number: int, attempt: Attempt) -> None:
        """The attempt of that number; written once."""
        with self._database.transaction():
            self._database.run(
                f"INSERT INTO audited_attempt (run, {', '.join(_ATTEMPT)})"
                f" VALUES ({', '.join('?' * (len(_ATTEMPT) + 1))}) ON CONFLICT (run, number) DO NOTHING",
                (
                    run,
                    number,
                    iso(self._clock()),
                    attempt.at.tier,
                    attempt.at.number,
                    attempt.sample,
                    attempt.mode,
                    attempt.model,
                    attempt.end,
                    None if attempt.failing is None else len(attempt.failing),
                    json.dumps(list(attempt.paths)),
                    json.dumps([readable(redacted(reason)) for reason in attempt.refused]),
                    json.dumps([list(verdict) for verdict in attempt.verdicts]),
                    None if attempt.cost is None else str(attempt.cost),
                    attempt.tokens,
                    attempt.seconds,
                ),
            )

    def left(self, run: str, tier: int, reason: str) -> None:
        """A tier was left for the next one."""
        with self._database.transaction():
            self._database.run(
                "UPDATE audited_tier SET left_because = ? WHERE run = ? AND tier = ?",
                (readable(redacted(reason)), run, tier),
            )

    def ended(self, run: str, why: str, reason: str, entry: int | None = None) -> None:
        with self._database.transaction():
            self._database.run(
                "UPDATE audited_run SET ended = ?, why = ?, reason = ?, entry = ? WHERE run = ?",
                (iso(self._clock()), why, readable(redacted(reason)), entry, run),
            )

    def runs(self, workspace: str, *, limit: int = -1) -> Sequence[Mapping[str, object]]:
        """Newest first."""
        rows = self._database.rows(
            f"SELECT {', '.join(_RUN)} FROM audited_run WHERE workspace = ? ORDER BY began DESC, run LIMIT ?",
            (os.fsencode(workspace), limit),
        )
        return [_run(row) for row in rows]

    def tiers(self, run: str) -> Sequence[Mapping[str, object]]:
        rows = self._database.rows(f"SELECT {', '.join(_TIER)} FROM audited_tier WHERE run = ? ORDER BY tier", (run,))
        return [dict(zip(_TIER, row, strict=True)) for row in rows]

    def attempts(self, run: str) -> Sequence[Mapping[str, object]]:
        """In the order in which they were made."""
        rows = self._database.rows(
            f"SELECT {', '.join(_ATTEMPT)} FROM audited_attempt WHERE run = ? ORDER BY number", (run,)
        )
        return [_attempt(row) for row in rows]


def _migrate(database: Database) -> None:
    version = database.version
    if version > VERSION:
        raise StoreTooNew(
            f"the audit {str(database.path)!r} has schema version {version}; this Pawl knows up to {VERSION}",
            advice="upgrade Pawl",
        )
    if version == 0:
        database.write_ahead()
        with database.transaction():
            # Another process may have been faster.
            if database.version == 0:
                for statement in _TABLES:
                    database.run(statement)
                database.run(f"PRAGMA user_version = {VERSION}")


def _run(row: Row) -> Mapping[str, object]:
    found = dict(zip(_RUN, row, strict=True))
    return {**found, "ladder": json.loads(found["ladder"])}


def _attempt(row: Row) -> Mapping[str, object]:
    found = dict(zip(_ATTEMPT, row, strict=True))
    lists = {name: json.loads(found[name]) for name in ("paths", "refused", "verdicts")}
    return {**found, **lists, "cost": None if found["cost"] is None else Decimal(found["cost"])}
