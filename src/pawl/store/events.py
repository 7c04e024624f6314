"""What happened, one row each, in the order in which it happened; the file itself forbids to change or drop one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping

from pawl.store.database import Database
from pawl.store.rows import Clock, iso, readable

_PAGE = 500


class Events:
    """Fits `ports.EventLog`."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def append(self, workspace: str, run: str, kind: str, body: Mapping[str, object]) -> int:
        """Adds an event and returns its number; durable when it returns, or with the batch around it."""
        values = (iso(self._clock()), os.fsencode(workspace), readable(run), readable(kind), json.dumps(dict(body)))
        with self._database.transaction():
            cursor = self._database.run(
                "INSERT INTO event (time, workspace, run, kind, body) VALUES (?, ?, ?, ?, ?)", values
            )
        return int(cursor.lastrowid or 0)

    def read(self, workspace: str, *, run: str | None = None, after: int = 0) -> Iterator[Mapping[str, object]]:
        """The events of a workspace, or of one run, that come after that number; oldest first.

        Read page by page, so that a slow reader holds neither the whole log nor a lock.
        """
        # The plus keeps SQLite from sorting all of a workspace's events for each page.
        where = "+workspace = :workspace" if run is None else "workspace = :workspace AND run = :run"
        sql = f"SELECT id, time, run, kind, body FROM event WHERE {where} AND id > :after ORDER BY id LIMIT {_PAGE}"
        values = {"workspace": os.fsencode(workspace), "run": None if run is None else readable(run)}
        while page := self._database.rows(sql, {**values, "after": after}):
            for number, time, of_run, kind, body in page:
                yield {
                    "id": number,
                    "time": time,
                    "workspace": workspace,
                    "run": of_run,
                    "kind": kind,
                    "body": json.loads(body),
                }
            after = page[-1][0]
