"""The rows of the queue: jobs, what goes before them, who carries them, and what counts for all of them.

Every change of a job that is carried names the lease under which it is made, in the transaction that makes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pawl.core.change import Lease
from pawl.core.errors import Cancelled, Refused, StoreBusy, StoreCorrupt, UnknownEntry
from pawl.core.job import ClaimTerms, Job, JobDependency, JobEnd, JobOutcome, JobState, NewJob, QueueState
from pawl.core.redact import redacted, redacted_body
from pawl.core.run import RunRequest
from pawl.core.typed import plain, typed
from pawl.store.database import StorePart, iso, readable
from pawl.store.run_lock import run_lock

_BLOCKED = """EXISTS (
    SELECT 1 FROM job_after AS a LEFT JOIN job AS e ON e.id = a.earlier LEFT JOIN run AS r ON r.id = a.earlier_run
    WHERE a.job = job.id AND NOT CASE WHEN a.failed
        THEN coalesce(e.outcome NOT IN ('done', 'cancelled'), r.state = 'ended' AND r.delivered <> 'DONE', 0)
        ELSE coalesce(e.outcome = 'done', r.state = 'ended' AND r.delivered = 'DONE', 0) END
)"""
_COST = """(
    SELECT group_concat(coalesce(q.cost, '?'), ' ') FROM job_run AS o
    JOIN request AS q ON q.workspace = job.workspace AND q.run = o.run WHERE o.job = job.id
)"""
_JOB = f"SELECT *, {_BLOCKED} AS blocked, {_COST} AS cost FROM job"
_READY = f"""state = 'queued' AND paused = 0 AND NOT {_BLOCKED} AND NOT EXISTS (
    SELECT 1 FROM json_each(requires) WHERE value NOT IN (SELECT value FROM json_each(coalesce(:labels, requires)))
)"""
_NEXT = f"""{_JOB} INDEXED BY job_next WHERE {_READY} AND not_before <= :now
    AND NOT (SELECT paused FROM queue_state)
    AND (SELECT count(*) FROM job AS o WHERE o.state = 'running' AND o.workspace = job.workspace) < :together
    AND NOT EXISTS (SELECT 1 FROM provider_hold AS h WHERE h.provider = job.provider AND h.until > :now)
    AND (SELECT count(*) FROM job AS o WHERE o.state = 'running' AND o.provider = job.provider)
        < coalesce((SELECT value FROM json_each(:providers) WHERE key = job.provider), :now)
    ORDER BY priority DESC, turn, id LIMIT 8"""
"""A number is smaller than a text: a provider without a limit of its own has none."""
_OPEN = "state IN ('queued', 'running', 'waiting')"
"""By the index of states: most jobs of an old queue have ended."""
_LISTED = {
    "state": "state = :state",
    "since": "state = 'ended' AND ended >= :since",
    "newest": f"({_OPEN} OR id > (SELECT max(id) FROM job) - :newest)",
}


class Jobs(StorePart):
    """The queue of one machine, in the state file. A worker holds a lock of the operating system for its job, which
    dies with its process: no heartbeat is needed."""

    look_seconds = 0.5
    """How often a worker looks whether its job was cancelled or paused."""

    def together(self) -> AbstractContextManager[None]:
        """Everything inside becomes durable as one step, or not at all."""
        return self._database.transaction()

    def now(self) -> str:
        return iso(self._clock())

    def beat(self) -> None:
        """Its lock tells that a worker is alive."""

    def fence(self, lease: Lease) -> AbstractContextManager[None]:
        """The journal checks the lease in the transaction that begins the promotion."""
        return nullcontext()

    def add(self, jobs: Iterable[NewJob]) -> list[int]:
        """Adds all of them or none, each workspace taking turns with the others; returns their numbers."""
        with self._database.transaction():
            return [self._add(one) for one in jobs]

    def _add(self, job: NewJob) -> int:
        workspace = os.fsencode(job.workspace)
        turn = self._database.one(
            "SELECT max(coalesce((SELECT max(turn) FROM job WHERE workspace = ?), 0), last_turn) + 1 FROM queue_state",
            (workspace,),
        )[0]
        number = self._database.insert(
            "job",
            workspace=workspace,
            request=json.dumps(redacted_body(plain(job.order, sparse=True))),
            provider=job.provider,
            priority=job.priority,
            turn=turn,
            created=iso(self._clock()),
            state=JobState.QUEUED,
            requires=json.dumps(job.requires),
            trace=job.trace,
        )
        for one in job.after:
            self._database.insert("job_after", job=number, earlier=one.job, earlier_run=one.run, failed=int(one.failed))
        return number

    def get(self, number: int) -> Job:
        self._settle_answered()
        found = self._database.records(f"{_JOB} WHERE id = ?", (number,))
        if not found:
            raise UnknownEntry(f"there is no job {number}", advice="'pawl queue list' lists them")
        return _job(found[0])

    def depth(self) -> int:
        """How many have not ended."""
        return int(self._database.one(f"SELECT count(*) FROM job WHERE {_OPEN}")[0])

    def number_of(self, name: str) -> int | None:
        """The job that is named by its number or by one of its runs; None where no run of a job is called so."""
        if name.isascii() and name.isdigit() and len(name) < 18:
            return int(name)
        row = self._database.first("SELECT job FROM job_run WHERE run = ?", (readable(name),))
        return None if row is None else int(row[0])

    def list(
        self, *, state: JobState | None = None, ended_since: str | None = None, newest: int | None = None
    ) -> Sequence[Job]:
        """In the order in which they were added; of those that have ended only these newest."""
        self._settle_answered()
        values = {"state": state, "since": ended_since, "newest": newest}
        where = " AND ".join(sql for name, sql in _LISTED.items() if values[name] is not None) or "1"
        return [_job(one) for one in self._database.records(f"{_JOB} WHERE {where} ORDER BY id", values)]

    def after(self, number: int) -> tuple[JobDependency, ...]:
        rows = self._database.rows("SELECT earlier, earlier_run, failed FROM job_after WHERE job = ?", (number,))
        return tuple(JobDependency(job=job, run=run, failed=bool(failed)) for job, run, failed in rows)

    def take(self, terms: ClaimTerms, lock: ExitStack) -> Job | None:
        """The job to be carried next, held with its lock; None where there is none."""

        def takes(number: int) -> bool:
            try:
                lock.enter_context(run_lock(self._database.path.parent / "locks" / f"job{number}.run", 1e-9))
            except StoreBusy:
                return False
            return True

        # What a dead worker left behind goes first.
        for one in self.list(state=JobState.RUNNING):
            if takes(one.id):
                if (adopted := self.adopt(one.id, os.getpid())) is not None:
                    return adopted
                lock.close()
        return self.next(terms, takes, os.getpid())

    def next(self, terms: ClaimTerms, takes: Callable[[int], bool], worker: int) -> Job | None:
        """Claim the job that is to be carried next: the highest priority, then workspaces by turns. None where there
        is none. `takes` gets hold of its lock, and says whether it could."""
        with self._database.transaction():
            self._settle_answered()
            left = self.state().left
            if left is not None and left <= 0:
                return None
            values = {
                "now": iso(self._clock()),
                "together": terms.together,
                "providers": json.dumps(dict(terms.providers)),
                "labels": json.dumps(sorted(terms.labels)),
            }
            for row in self._database.records(_NEXT, values):
                if takes(row["id"]):
                    break
            else:
                return None
            self._database.run("UPDATE queue_state SET last_turn = max(last_turn, ?)", (row["turn"],))
            return self._taken(_job(row), worker, None if left is None else left / max(1, terms.shares))

    def adopt(self, number: int, worker: int) -> Job | None:
        """Take over a job whose worker is gone; the caller has its lock. None where it has ended meanwhile."""
        with self._database.transaction():
            job = self.get(number)
            return self._taken(job, worker, job.allowance) if job.state is JobState.RUNNING else None

    def _taken(self, job: Job, worker: int, allowance: Decimal | None) -> Job:
        own = job.order.budget.get("money")
        if allowance is not None and own is not None:
            allowance = min(allowance, Decimal(str(own)))
        now = iso(self._clock())
        self._database.run(
            "UPDATE job SET state = 'running', lease = lease + 1, attempts = attempts + 1, worker = ?, allowance = ?,"
            " started = coalesce(started, ?) WHERE id = ?",
            (worker, None if allowance is None else str(allowance), now, job.id),
        )
        self._note(job.id, "taken")
        return self.get(job.id)

    def begun(self, lease: Lease, run: str, *, sent_back: bool = False) -> None:
        """The job is carried by that run from now on."""
        self._held(lease, "UPDATE job SET run = ?, sent_back = max(sent_back, ?) WHERE", (run, int(sent_back)))
        self._database.insert("job_run", run=run, job=lease.job)

    def end(self, lease: Lease, end: JobEnd) -> None:
        """The job has ended, once."""
        values = (iso(self._clock()), end.outcome, end.verdict, end.entry, readable(redacted(end.reason)))
        with self._database.transaction():
            self._held(
                lease,
                "UPDATE job SET state = 'ended', ended = ?, outcome = ?, verdict = ?, entry = ?, reason = ?,"
                " worker = NULL, allowance = NULL WHERE",
                values,
            )
            self._note(lease.job, end.outcome)

    def release(self, lease: Lease, reason: str, *, state: JobState, seconds: float = 0.0, counts: bool = True) -> None:
        """Nobody carries the job any more; it is taken again after so many seconds, or waits for the user. An attempt
        that `counts` was one of the job's own fault."""
        until = iso(self._clock() + seconds) if seconds else ""
        with self._database.transaction():
            self._held(
                lease,
                "UPDATE job SET state = ?, not_before = ?, reason = ?, attempts = attempts - ?, worker = NULL,"
                " allowance = NULL WHERE",
                (state, until, readable(redacted(reason)), 0 if counts else 1),
            )
            self._note(lease.job, state)

    def _held(self, lease: Lease, sql: str, values: Sequence[object]) -> None:
        wanted = (*values, lease.job, lease.number)
        if self._database.run(f"{sql} id = ? AND lease = ? AND state = 'running'", wanted).rowcount != 1:
            raise lost(lease)

    def holds(self, lease: Lease, *, unpaused: bool = False) -> bool:
        """Whether the lease is the newest of a job that runs, and that nobody has paused."""
        row = self._database.first(
            "SELECT job.paused OR q.paused FROM job, queue_state AS q"
            " WHERE job.id = ? AND lease = ? AND state = 'running'",
            (lease.job, lease.number),
        )
        return row is not None and not (unpaused and row[0])

    def may_promote(self, lease: Lease, run: str) -> bool:
        """Whether the job of the lease may begin a promotion now. The server of another queue may have forgotten who
        held it last; here nothing is forgotten, so that no second run of a job promotes what a first one did."""
        if not lease.queue:
            return self.holds(lease)
        sql = (
            "SELECT 1 FROM job_delivery AS d JOIN entry ON entry.id = d.entry WHERE d.queue = ? AND d.job = ?"
            " AND d.run <> ? AND entry.state IN ('prepared', 'done')"
        )
        return self._database.first(sql, (lease.queue, lease.job, run)) is None

    def delivered(self, lease: Lease, run: str, entry: int) -> None:
        self._database.insert("job_delivery", queue=lease.queue, job=lease.job, run=run, entry=entry)

    def pause(self, numbers: Sequence[int], *, paused: bool) -> None:
        """These jobs, or all without numbers. One that runs is stopped by its worker, and resumed from there."""
        with self._database.transaction():
            if not numbers:
                self._database.run("UPDATE queue_state SET paused = ?", (int(paused),))
            for number in numbers:
                if self.get(number).state is JobState.ENDED:
                    raise Refused(
                        f"job {number} has ended",
                        advice=f"unless it is done, 'pawl queue retry {number}' begins it again",
                    )
                self._database.run("UPDATE job SET paused = ? WHERE id = ?", (int(paused), number))

    def promoted(self, run: str | None) -> int | None:
        """The entry that the run has in its workspace by now."""
        sql = "SELECT max(id) FROM entry WHERE run = ? AND kind = 'edit' AND state IN ('prepared', 'done')"
        return None if run is None else self._database.one(sql, (run,))[0]

    def cancel(self, number: int) -> Job:
        """Whoever carries it can promote nothing from now on; what was promoted before is told."""
        with self._database.transaction():
            job = self.get(number)
            if job.state is JobState.ENDED:
                raise Refused(f"job {number} has ended already: {job.outcome}")
            self._database.run(
                "UPDATE job SET state = 'ended', outcome = ?, ended = ?, lease = lease + 1, worker = NULL,"
                " allowance = NULL, reason = ?, entry = ? WHERE id = ?",
                (JobOutcome.CANCELLED, iso(self._clock()), *cancelled(self.promoted(job.run)), number),
            )
            self._note(number, JobOutcome.CANCELLED)
        return job

    def retry(self, number: int) -> None:
        """An ended job is queued again with all its attempts; a run that was interrupted is resumed."""
        with self._database.transaction():
            job = self.get(number)
            if job.state is not JobState.ENDED or job.outcome is JobOutcome.DONE:
                raise Refused(
                    f"job {number} is {job.standing}",
                    advice="only a job that ended without being done can be retried",
                )
            self._database.run(
                "UPDATE job SET state = 'queued', outcome = NULL, ended = NULL, attempts = 0, sent_back = 0,"
                " not_before = '', reason = '', verdict = '', entry = NULL, paused = 0, lease = lease + 1,"
                " run = (SELECT id FROM run WHERE id = job.run AND state = 'working') WHERE id = ?",
                (number,),
            )
            self._note(number, JobState.QUEUED)

    def hold(self, provider: str, seconds: float) -> None:
        """No worker asks this provider for so long."""
        until = iso(self._clock() + seconds)
        update = "(provider) DO UPDATE SET until = max(until, excluded.until)"
        self._database.insert("provider_hold", conflict=update, provider=provider, until=until)

    def allow(self, budget: Decimal | None) -> None:
        """The most that all jobs together may spend from now on; None for no limit."""
        values = (None if budget is None else str(budget), iso(self._clock()))
        self._database.run("UPDATE queue_state SET budget = ?, since = ?", values)

    def state(self) -> QueueState:
        paused, budget, since = self._database.one("SELECT paused, budget, since FROM queue_state")
        if budget is None:
            return QueueState(paused=bool(paused))
        # Those that run count with all that they may spend, beside what they have spent.
        spent = self._database.rows(
            "SELECT q.cost FROM job JOIN job_run AS o ON o.job = job.id"
            " JOIN request AS q ON q.workspace = job.workspace AND q.run = o.run"
            " WHERE q.time >= ? AND q.cost IS NOT NULL",
            (since,),
        )
        held = self._database.rows("SELECT allowance FROM job WHERE allowance IS NOT NULL")
        return QueueState(
            paused=bool(paused),
            budget=Decimal(budget),
            since=since,
            spent=sum((Decimal(cost) for (cost,) in spent), Decimal(0)),
            reserved=sum((Decimal(one) for (one,) in held), Decimal(0)),
        )

    def is_idle(self, labels: frozenset[str] | None = None) -> bool:
        """Nothing runs, and nothing that a worker with these labels, or any, could run is left but what waits for a
        person."""
        running = self._database.first("SELECT 1 FROM job WHERE state = 'running' LIMIT 1")
        ready = f"SELECT 1 FROM job INDEXED BY job_next WHERE {_READY} AND NOT (SELECT paused FROM queue_state) LIMIT 1"
        values = {"labels": None if labels is None else json.dumps(sorted(labels))}
        return running is None and self._database.first(ready, values) is None

    def _settle_answered(self) -> None:
        """Runs that waited were answered, and carried on by whoever answered them."""
        if self._database.first("SELECT 1 FROM job WHERE state = 'waiting' LIMIT 1") is None:
            return
        self._database.run(
            "UPDATE job SET state = 'ended', ended = ?, outcome = CASE (SELECT delivered FROM run WHERE id = job.run)"
            " WHEN 'DONE' THEN 'done' WHEN 'PARTLY' THEN 'partly' WHEN 'UNVERIFIED' THEN 'unverified'"
            " ELSE 'failed' END WHERE state = 'waiting' AND run IN (SELECT id FROM run WHERE state = 'ended')",
            (iso(self._clock()),),
        )
        self._database.run(
            "UPDATE job SET state = 'queued' WHERE state = 'waiting'"
            " AND run IN (SELECT id FROM run WHERE state = 'working')"
        )

    def _note(self, number: int, what: str) -> None:
        """The log of events has each step of a job, for statistics and for whoever looks after it."""
        self._database.run(
            "INSERT INTO event (time, workspace, run, kind, body) SELECT ?, workspace, coalesce(run, ''), 'job',"
            " json_object('job', id, 'what', ?, 'lease', lease, 'attempts', attempts) FROM job WHERE id = ?",
            (iso(self._clock()), what, number),
        )


def cancelled(entry: int | None) -> tuple[str, int | None]:
    """Why a job ended, and the entry that was promoted before."""
    told = "" if entry is None else f"; entry {entry} was promoted before, 'pawl undo {entry}' takes it back"
    return f"cancelled by the user{told}", entry


def lost(lease: Lease) -> Cancelled:
    return Cancelled(
        f"job {lease.job} was cancelled or taken over; nothing of this attempt is promoted",
        advice=f"'pawl queue show {lease.job}' tells who has it",
    )


@lru_cache(maxsize=4096)
def order_of(text: str) -> RunRequest:
    """The request of a row; kept, since whoever watches a queue reads its rows again and again."""
    return typed(RunRequest, json.loads(text))


def _job(row: dict[str, Any]) -> Job:
    try:
        order = order_of(row["request"])
    except ValueError as error:
        raise StoreCorrupt(
            f"the request of job {row['id']} cannot be read: {error}", advice="cancel the job, and add it again"
        ) from error
    kept = {name: value for name, value in row.items() if name not in ("request", "turn")}
    costs = (row["cost"] or "").split()
    return Job(
        **{
            **kept,
            "workspace": os.fsdecode(row["workspace"]),
            "order": order,
            "state": JobState(row["state"]),
            **{name: bool(row[name]) for name in ("paused", "blocked", "sent_back")},
            "requires": tuple(json.loads(row["requires"])),
            "outcome": None if row["outcome"] is None else JobOutcome(row["outcome"]),
            "allowance": None if row["allowance"] is None else Decimal(row["allowance"]),
            "cost": None if "?" in costs else sum(map(Decimal, costs), Decimal(0)),
        }
    )
