"""What happened, one row each, in the order in which it happened; the file itself forbids to change or drop one."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from decimal import Decimal

from pawl.core.redact import redacted
from pawl.core.run import Mode, Reasoning, RequestRecord, RoleName, Stage
from pawl.store.database import Clock, Database, Row, iso, readable

_PAGE = 500


class Events:
    """What happened in workspaces, append-only."""

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


_NAMES = tuple(one.name for one in fields(RequestRecord))
_COLUMNS = ", ".join(_NAMES)
_MARKS = ", ".join("?" * (len(_NAMES) + 2))
_LARGEST = (1 << 63) - 1
"""What a column holds; a provider may say anything about its tokens."""


class Requests:
    """One line for every request to a model."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def record(self, workspace: str, record: RequestRecord) -> int:
        """Adds a request, without secrets, and returns its number; durable when it returns, or with the batch."""
        values = (iso(self._clock()), os.fsencode(workspace), *(_column(getattr(record, name)) for name in _NAMES))
        with self._database.transaction():
            cursor = self._database.run(f"INSERT INTO request (time, workspace, {_COLUMNS}) VALUES ({_MARKS})", values)
        return int(cursor.lastrowid or 0)

    def records(self, workspace: str, *, run: str | None = None, limit: int | None = None) -> Sequence[RequestRecord]:
        """Oldest first; with a limit, the newest of them."""
        where = "workspace = :workspace" if run is None else "workspace = :workspace AND run = :run"
        rows = self._database.rows(
            f"SELECT {_COLUMNS} FROM request WHERE {where} ORDER BY id DESC LIMIT :limit",
            {
                "workspace": os.fsencode(workspace),
                "run": None if run is None else readable(run),
                "limit": -1 if limit is None else limit,
            },
        )
        return [_record(row) for row in reversed(rows)]


def _column(value: object) -> object:
    match value:
        case str():
            return readable(redacted(str(value)))
        case tuple():
            return json.dumps([redacted(str(one)) for one in value])
        case Decimal():
            return str(value)
        case bool() | float() | None:
            return value
        case int():
            return max(-_LARGEST, min(value, _LARGEST))
    raise TypeError(f"a request is not made of {type(value).__name__}")


def _record(row: Row) -> RequestRecord:
    values = dict(zip(_NAMES, row, strict=True))
    return RequestRecord(
        **{
            **values,
            "mode": Mode(values["mode"]),
            "stage": Stage(values["stage"]),
            "role": RoleName(values["role"]),
            "reasoning": Reasoning(values["reasoning"]),
            "tools": tuple(json.loads(values["tools"])),
            "estimated": bool(values["estimated"]),
            "cost": None if values["cost"] is None else Decimal(values["cost"]),
        }
    )
