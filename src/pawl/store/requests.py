"""One row for every request to a model; the file itself forbids to change or drop one, so that the costs add up."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import fields
from decimal import Decimal

from pawl.core.redact import redacted
from pawl.core.run import Mode, Reasoning, RequestRecord, RoleName, Stage
from pawl.store.database import Database, Row
from pawl.store.rows import Clock, iso, readable

_NAMES = tuple(one.name for one in fields(RequestRecord))
_COLUMNS = ", ".join(_NAMES)
_MARKS = ", ".join("?" * (len(_NAMES) + 2))
_LARGEST = (1 << 63) - 1
"""What a column holds; a provider may say anything about its tokens."""


class Requests:
    """Fits `ports.RequestLog`."""

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
