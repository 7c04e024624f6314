"""Rows of a queue on a server as jobs, and values as the server takes them."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pawl.core.job import CRITICAL, Job, JobOutcome, JobState
from pawl.core.redact import redacted
from pawl.core.run import RunRequest
from pawl.core.typed import typed
from pawl.store.database import readable

TURNS = 1_000_000
"""A ticket's priority is that of its job, and then its turn; later turns than this are in the order of the jobs."""


def home_of(state: Path) -> str:
    """The name of the machine, or rather of a user's state there; made at its first use."""
    file = state / "queue-home"
    if not file.exists():
        made = state / f"queue-home.{secrets.token_hex(8)}"
        made.write_text(secrets.token_hex(16))
        with suppress(FileExistsError):
            os.link(made, file)
        made.unlink()
    return file.read_text().strip()


def rank(priority: int, turn: int) -> int:
    """The engine's one number for both."""
    return (1001 if priority == CRITICAL else priority) * TURNS + TURNS - 1 - min(turn, TURNS - 1)


def stored_text(text: str) -> str:
    """As the server takes it."""
    return readable(redacted(text)).replace("\0", "")


def moment_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds")


_TIMES = ("created", "started", "ended", "not_before")
_UNSHOWN = frozenset({"ticket", "turn", "request", "lane", "carrier", "snapshot", "life", "unpriced"})


def job_of(row: Mapping[str, Any]) -> Job:
    kept = {name: value for name, value in row.items() if name not in _UNSHOWN}
    times = {name: None if row[name] is None else moment_text(row[name]) for name in _TIMES}
    return Job(
        **{
            **kept,
            **times,
            "not_before": times["not_before"] or "",
            "workspace": os.fsdecode(bytes(row["workspace"])),
            "order": typed(RunRequest, json.loads(row["request"])),
            "state": JobState(row["state"]),
            "requires": tuple(row["requires"]),
            "outcome": None if row["outcome"] is None else JobOutcome(row["outcome"]),
            "cost": None if row["unpriced"] else row["cost"],
            "queue": f"{row['queue']}/{row['life']}",
        }
    )
