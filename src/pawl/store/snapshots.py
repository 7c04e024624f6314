"""Values that belong to a conversation and outlive the process: what its session remembers, its worksheet."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from pawl.core.redact import redacted_body
from pawl.store.database import Database
from pawl.store.rows import Clock, iso, readable


class Snapshots:
    """One value of each kind for each conversation; an empty name stands for the workspace itself."""

    __slots__ = ("_clock", "_database")

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def put(self, workspace: str, conversation: str, kind: str, body: Mapping[str, object]) -> None:
        """Keeps the value, without secrets, in the place of the one before; durable when it returns."""
        with self._database.transaction():
            self._database.run(
                "INSERT INTO snapshot (workspace, conversation, kind, body, time) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT (workspace, conversation, kind)"
                " DO UPDATE SET body = excluded.body, time = excluded.time",
                (
                    os.fsencode(workspace),
                    readable(conversation),
                    kind,
                    json.dumps(redacted_body(body)),
                    iso(self._clock()),
                ),
            )

    def fork(self, workspace: str, conversation: str, other: str) -> None:
        """Copies the values of a conversation for another one."""
        with self._database.transaction():
            self._database.run(
                "INSERT INTO snapshot (workspace, conversation, kind, body, time)"
                " SELECT workspace, ?, kind, body, time FROM snapshot WHERE workspace = ? AND conversation = ?",
                (readable(other), os.fsencode(workspace), readable(conversation)),
            )

    def get(self, workspace: str, conversation: str, kind: str) -> Mapping[str, object] | None:
        """The value, or None when there is none that can be read: it is only ever a help."""
        row = self._database.first(
            "SELECT body FROM snapshot WHERE workspace = ? AND conversation = ? AND kind = ?",
            (os.fsencode(workspace), readable(conversation), kind),
        )
        try:
            body = json.loads(row[0]) if row is not None else None
        except ValueError:
            return None
        return body if isinstance(body, dict) else None
