"""Rows of a queue on a server: how they are asked for, rows as jobs, and values as the server takes them."""

from __future__ import annotations

import hmac
import json
import os
import re
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from pawl.core.errors import Refused, UsageError
from pawl.core.job import CRITICAL, Job, JobOutcome, JobState
from pawl.core.redact import redacted
from pawl.core.run import RunRequest
from pawl.store.database import readable
from pawl.store.jobs import order_of

FILES = ("local", "scripted")
"""Models that are files."""
BLOCKED = """EXISTS (
    SELECT 1 FROM pawl_after AS a JOIN pawl_job AS e ON e.id = a.earlier WHERE a.job = j.id AND NOT CASE WHEN a.failed
        THEN coalesce(e.outcome NOT IN ('done', 'cancelled'), false) ELSE coalesce(e.outcome = 'done', false) END
)"""
COLUMNS = ("home", "workspace", "request", "provider", "priority", "turn", "requires", "trace", "snapshot", "seal")
ADDED, MARKS = f"{', '.join(COLUMNS)}, state", f"{', '.join(f'%({name})s' for name in COLUMNS)}, 'queued'"
JOB = f"SELECT j.*, {BLOCKED} AS blocked, q.name AS queue FROM pawl_job AS j, pawl_queue AS q WHERE true"
LISTED = {
    "state": "state = %(state)s",
    "since": "ended >= %(since)s",
    "newest": "(state <> 'ended' OR j.id > (SELECT max(id) FROM pawl_job) - %(newest)s)",
}
LANES = """SELECT name FROM pawl_lane AS l WHERE l.home IN ('', %(home)s)
    AND array_remove(l.requires, CASE WHEN l.owner = %(home)s THEN 'files' END) <@ %(labels)s::text[]"""
OPEN_LANES = f"""WITH busy AS MATERIALIZED (SELECT home, workspace, provider FROM pawl_job WHERE state = 'running')
    {LANES} AND NOT EXISTS (SELECT 1 FROM pawl_hold AS h WHERE h.provider = l.provider AND h.until > now())
    AND (l.owner, l.workspace) NOT IN (SELECT home, workspace FROM busy GROUP BY home, workspace
        HAVING count(*) >= %(together)s)
    AND l.provider NOT IN (SELECT provider FROM busy GROUP BY provider
        HAVING count(*) >= coalesce((%(providers)s::jsonb ->> provider)::integer, 2147483647))"""


ANYTHING = """SELECT 1 WHERE EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status = 'todo'
        AND (scheduled_at IS NULL OR scheduled_at <= now()))
    OR EXISTS (SELECT 1 FROM pawl_job WHERE state = 'waiting' AND home = %(home)s)
    OR EXISTS (SELECT 1 FROM procrastinate_jobs AS t LEFT JOIN procrastinate_workers AS w ON w.id = t.worker_id
        WHERE t.status = 'doing' AND (t.worker_id = %(worker)s OR w.id IS NULL
            OR w.last_heartbeat < now() - %(silent)s * interval '1 second'))"""
"""Whether it is worth while to stand in line for a ticket."""
TURNS = 1_000_000
"""A ticket's priority is that of its job, and then its turn; later turns than this are in the order of the jobs."""


def home_of(state: Path) -> str:
    """The name of the machine, or rather of a user's state there; made at its first use."""
    return _made(state / "queue-home")


def seal(state: Path, row: Mapping[str, Any]) -> str:
    """What only the user of this state can write beside a row: who may write to the server cannot have a worker work
    in a folder of its machine, or on other terms, than its user said."""
    parts = [bytes(row["workspace"]).hex(), str(row["request"]), *sorted(row["requires"])]
    return hmac.new(_made(state / "queue-key").encode(), json.dumps(parts).encode(), "sha256").hexdigest()


def _made(file: Path) -> str:
    """A word of chance that is kept in the file."""
    if not file.exists():
        made = file.with_name(f"{file.name}.{secrets.token_hex(8)}")
        made.touch(mode=0o600)
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
_UNSHOWN = frozenset({"ticket", "turn", "request", "seal", "lane", "carrier", "snapshot", "life", "unpriced"})
_RUN, _QUEUE = re.compile(r"[a-z0-9]{1,40}"), re.compile(r"[0-9a-f-]{36}")


def job_of(row: Mapping[str, Any], home: str, state: Path) -> Job:
    """A row that somebody else has written is a job that nobody carries."""
    kept = {name: value for name, value in row.items() if name not in _UNSHOWN}
    times = {name: None if row[name] is None else moment_text(row[name]) for name in _TIMES}
    order, defect = _order(row, home, state)
    return Job(
        **{
            **kept,
            **times,
            "not_before": times["not_before"] or "",
            "workspace": os.fsdecode(bytes(row["workspace"])),
            "order": order,
            "state": JobState(row["state"]),
            "requires": tuple(row["requires"]),
            "outcome": None if row["outcome"] is None else JobOutcome(row["outcome"]),
            "cost": None if row["unpriced"] else row["cost"],
            "queue": f"{row['queue']}/{row['life']}",
            "defect": defect,
        }
    )


def _order(row: Mapping[str, Any], home: str, state: Path) -> tuple[RunRequest, str]:
    """The request; and what is wrong with the row."""
    try:
        order = order_of(row["request"])
        if not all(Decimal(str(one)).is_finite() for one in order.budget.values()):
            raise ValueError("its budget is not an amount")
    except (ValueError, ArithmeticError, RecursionError, UsageError) as error:
        return RunRequest(text="?"), f"its request cannot be read: {error}"
    if not _QUEUE.fullmatch(row["queue"]) or (row["run"] is not None and not _RUN.fullmatch(row["run"])):
        return order, "its row is damaged"
    if row["home"] == home and not hmac.compare_digest(row["seal"], seal(state, row)):
        return order, "it was not added here, or was changed on the server since"
    return order, ""


def abroad(order: RunRequest, labels: frozenset[str], limits: Mapping[str, object]) -> RunRequest:
    """The terms on which a worker carries the request of another machine: it writes no file beside its copy of the
    workspace, reads none as a model unless it has the label `files`, installs only what its own settings let it, and
    spends no more than they say."""
    if order.model.partition(":")[0] in FILES and "files" not in labels:
        raise Refused(f"{order.model!r} is a file, which is only read by workers with the label 'files'")
    own = {
        name: min(most, order.budget.get(name, most), key=lambda one: Decimal(str(one)))
        for name, most in limits.items()
    }
    budget = {**order.budget, **own}
    return replace(order, record="", pictures=(), conversation="", install=False, commit="off", budget=budget)
