"""Everything that happens in runs, event by event, for whoever looks on: another process, a page, a later moment.

It stands in a file of its own beside the state file. The record of a run is in the state file; the stream only tells
about it, so that nothing that befalls it holds up a run, and it need not survive a power cut.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from pawl.store.database import Clock, iso, readable
from pawl.store.side_file import SideFile

KEPT_DAYS = 14
MOST_READ = 500
"""Events that one reading brings."""


class RunStream(SideFile):
    name = "stream"

    @classmethod
    def open(cls, directory: Path, *, clock: Clock = time.time, busy_seconds: float = 1.0) -> Self:
        stream = super().open(directory, clock=clock, busy_seconds=busy_seconds)
        stream._database.rows("PRAGMA synchronous = NORMAL")
        return stream

    def append(self, workspace: str, run: str, events: Sequence[tuple[str, Mapping[str, object]]]) -> None:
        """Add events, each by its type and its fields, in their order."""
        now, where = iso(self._clock()), os.fsencode(workspace)
        with self._database.transaction():
            self._database.run_many(
                "INSERT INTO streamed (time, workspace, run, type, body) VALUES (?, ?, ?, ?, ?)",
                ((now, where, run, kind, readable(json.dumps(body, default=str))) for kind, body in events),
            )

    def read(self, workspace: str, *, after: int, run: str = "") -> list[dict[str, Any]]:
        """The next events of the workspace, or of one run, that come after that number."""
        found = self._database.records(
            "SELECT id, time, run, type, body FROM streamed WHERE id > :after AND workspace = :workspace"
            " AND (:run = '' OR run = :run) ORDER BY id LIMIT :most",
            {"after": after, "workspace": os.fsencode(workspace), "run": run, "most": MOST_READ},
        )
        return [{**one, "body": json.loads(one["body"])} for one in found]

    def last(self) -> int:
        """The number of the newest event; 0 without one."""
        return int(self._database.one("SELECT coalesce(max(id), 0) FROM streamed")[0])

    def prune(self) -> None:
        """Drop what is older than two weeks, a part at a time."""
        before = iso((datetime.fromtimestamp(self._clock(), UTC) - timedelta(days=KEPT_DAYS)).timestamp())
        self._database.run(
            "DELETE FROM streamed WHERE id IN (SELECT id FROM streamed WHERE time < ? ORDER BY time LIMIT 5000)",
            (before,),
        )
