"""The queue of many machines, on a PostgreSQL server.

procrastinate keeps one ticket for each job that may be carried now: it hands tickets out, keeps the heartbeats of
workers and tells which tickets are held by dead ones. Pawl keeps what a job is, who may promote it, and what counts for
all of them. Every moment is the server's: the clocks of workers may say anything.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import field
from decimal import Decimal
from hashlib import sha256
from typing import Any

from pawl.agent.queue import job_rows
from pawl.agent.queue.job_rows import job_of, moment_text, rank, seal, stored_text
from pawl.agent.queue.queue_server import QueueServer, now
from pawl.core.change import Lease
from pawl.core.errors import QueueUnreachable, Refused, UnknownEntry, UsageError
from pawl.core.job import ClaimTerms, Job, JobDependency, JobEnd, JobOutcome, JobState, NewJob, QueueState
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted_body
from pawl.core.run import RunState
from pawl.core.typed import plain
from pawl.store.jobs import cancelled, lost
from pawl.store.store import Store

TASK = "pawl.carry"
_CLAIM = 0x70617751
"""The advisory lock of those who give or take back tickets, one after the other."""
_FORGET_SECONDS = 3600
_OF_JOB = "queue job"
"""The value of a run that says which job it is of."""


@dataclass(slots=True)
class _Member:
    """The worker as the engine knows it; its connections share it."""

    id: int = 0
    beat: float = 0.0
    dead_seconds: float = 0.0
    """What all workers of the queue go by; 0 until it is known."""
    told: float = 0.0


@dataclass(slots=True, kw_only=True)
class ServerQueue:
    """Fits `JobQueue`. For one thread, beside the state file of its own machine."""

    server: QueueServer
    store: Store
    home: str
    """The name of this machine's state folder: a job that was added here is promoted here."""
    dead_seconds: float = 30.0
    """A worker that was not heard of is dead, and its job is taken over, within so many seconds. The first worker says
    it for all that join it."""
    look_seconds: float = 1.0
    _member: _Member = field(default_factory=_Member)

    def at(self, store: Store) -> ServerQueue:
        """The same beside another connection to the state file."""
        return ServerQueue(
            server=self.server, store=store, home=self.home, dead_seconds=self.dead_seconds, _member=self._member
        )

    @contextmanager
    def again(self, store: Store) -> Iterator[ServerQueue]:
        """The same for another thread."""
        other = self.at(store)
        other.server = self.server.again()
        try:
            yield other
        finally:
            other.server.close()

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything inside becomes durable as one step, or not at all."""
        with self.server.transaction():
            yield

    @contextmanager
    def _turning(self) -> Iterator[None]:
        """A step that gives or takes back tickets."""
        with self.server.transaction():
            self.server.rows("SELECT pg_advisory_xact_lock(%s)", (_CLAIM,))
            yield

    def now(self) -> str:
        with self.server.transaction():
            return moment_text(self.server.rows("SELECT clock_timestamp() AS now")[0]["now"])

    def add(self, jobs: Iterable[NewJob]) -> list[int]:
        """Adds all of them or none, each workspace taking turns with the others; returns their numbers."""
        with self._turning():
            queue = self.server.rows("SELECT last_turn FROM pawl_queue")[0]
            turns: dict[bytes, int] = {}
            if not self.server.rows("SELECT 1 FROM pawl_job WHERE state <> 'ended' LIMIT 1"):
                self.server.rows("UPDATE pawl_queue SET last_turn = 0")
                queue["last_turn"] = 0
            some = list(jobs)
            sql = f"INSERT INTO pawl_job ({job_rows.ADDED}) VALUES ({job_rows.MARKS}) RETURNING id"
            rows = [self._row(one, turns, queue["last_turn"]) for one in some]
            numbers = [int(one["id"]) for one in self.server.many(sql, rows, returns=True)]
            after = [(number, one) for number, job in zip(numbers, some, strict=True) for one in job.after]
            if stray := next((one for _, one in after if one.job is None), None):
                raise UsageError(
                    f"{stray.run!r} is not the run of a job", advice="on a server, name a job of the queue"
                )
            words = [(number, one.job, one.failed) for number, one in after]
            self.server.many("INSERT INTO pawl_after (job, earlier, failed) VALUES (%s, %s, %s)", words)
            self._ready(numbers)
            return numbers

    def _row(self, job: NewJob, turns: dict[bytes, int], last: int) -> dict[str, object]:
        workspace = os.fsencode(job.workspace)
        if workspace not in turns:
            latest = "SELECT coalesce(max(turn), 0) AS turn FROM pawl_job WHERE home = %s AND workspace = %s"
            newest = f"{latest} AND state <> 'ended'"
            turns[workspace] = max(last, self.server.rows(newest, (self.home, workspace))[0]["turn"])
        turns[workspace] += 1
        row: dict[str, object] = {
            "home": self.home,
            "workspace": workspace,
            "request": json.dumps(redacted_body(plain(job.order, sparse=True))),
            "provider": job.provider,
            "priority": job.priority,
            "turn": turns[workspace],
            "requires": list(job.requires),
            "trace": job.trace,
            "snapshot": job.snapshot or None,
        }
        return {**row, "seal": seal(self.store.path.parent, row)}

    def _ready(self, numbers: Sequence[int]) -> None:
        """Tickets for those of the jobs that nothing keeps back and that have none."""
        from procrastinate.jobs import Job as Ticket

        found = self.server.rows(
            f"SELECT * FROM pawl_job AS j WHERE id = ANY(%s) AND state = 'queued' AND ticket IS NULL AND NOT paused"
            f" AND NOT {job_rows.BLOCKED} ORDER BY id",
            (list(numbers),),
        )
        for start in range(0, len(found), 1000):
            part = found[start : start + 1000]
            lanes = self._lanes(part)
            tickets = self.server.engine.batch_defer_jobs(
                [
                    Ticket(
                        queue=lane,
                        lock=None,
                        queueing_lock=f"pawl job {one['id']}",
                        task_name=TASK,
                        task_kwargs={"job": one["id"]},
                        priority=rank(one["priority"], one["turn"]),
                        scheduled_at=one["not_before"],
                    )
                    for one, lane in zip(part, lanes, strict=True)
                ]
            )
            rows = [(made.id, lane, one["id"]) for one, made, lane in zip(part, tickets, lanes, strict=True)]
            self.server.many("UPDATE pawl_job SET ticket = %s, lane = %s WHERE id = %s", rows)

    def _lanes(self, rows: Sequence[Mapping[str, Any]], *, goes_home: bool = False) -> Sequence[str]:
        """Tickets of one workspace, provider and kind of worker are kept apart, so that each can be left alone."""
        names, made = [], {}
        for row in rows:
            home = row["home"] if goes_home or row["snapshot"] is None else ""
            requires = sorted(row["requires"]) if not goes_home else []
            parts = (home, row["home"], bytes(row["workspace"]).hex(), row["provider"], *requires)
            names.append(sha256("\0".join(parts).encode()).hexdigest()[:40])
            made[names[-1]] = (names[-1], home, row["workspace"], row["home"], row["provider"], requires)
        self.server.many(
            "INSERT INTO pawl_lane (name, home, workspace, owner, provider, requires) VALUES (%s, %s, %s, %s, %s, %s)"
            " ON CONFLICT DO NOTHING",
            list(made.values()),
        )
        return names

    def get(self, number: int) -> Job:
        with self.server.transaction():
            self._settle_answered()
            row = self.server.first(f"{job_rows.JOB} AND j.id = %s", (number,))
        if row is None:
            raise UnknownEntry(f"there is no job {number}", advice="'pawl queue list' lists them")
        return self._job(row)

    def _job(self, row: Mapping[str, Any]) -> Job:
        return job_of(row, self.home, self.store.path.parent)

    def depth(self) -> int:
        """How many have not ended."""
        with self.server.transaction():
            return int(self.server.rows("SELECT count(*) AS many FROM pawl_job WHERE state <> 'ended'")[0]["many"])

    def number_of(self, name: str) -> int | None:
        """The job that is named by its number or by one of its runs; None where no run of a job is called so."""
        if name.isascii() and name.isdigit() and len(name) < 18:
            return int(name)
        with self.server.transaction():
            row = self.server.first("SELECT job FROM pawl_job_run WHERE run = %s", (stored_text(name),))
        return None if row is None else int(row["job"])

    def list(
        self, *, state: JobState | None = None, ended_since: str | None = None, newest: int | None = None
    ) -> Sequence[Job]:
        """In the order in which they were added; of those that have ended only these newest."""
        words = {"state": state, "since": ended_since, "newest": newest}
        where = "".join(f" AND {sql}" for name, sql in job_rows.LISTED.items() if words[name] is not None)
        with self.server.transaction():
            self._settle_answered()
            return [self._job(one) for one in self.server.rows(f"{job_rows.JOB}{where} ORDER BY j.id", words)]

    def after(self, number: int) -> tuple[JobDependency, ...]:
        with self.server.transaction():
            rows = self.server.rows("SELECT earlier, failed FROM pawl_after WHERE job = %s", (number,))
        return tuple(JobDependency(job=one["earlier"], failed=one["failed"]) for one in rows)

    def beat(self) -> None:
        """Tell that the worker lives, as often as it has to."""
        if self._member.id and time.monotonic() - self._member.beat >= self._agreed / 6:
            with self.server.transaction():
                now(self.server.engine.update_heartbeat(self._member.id))
                self._agree()
            self._member.beat = time.monotonic()

    def take(self, terms: ClaimTerms, lock: ExitStack) -> Job | None:
        """The job to be carried next; None where there is none."""
        with self.server.transaction():
            words = {"worker": self._member.id, "home": self.home, "silent": self._silent}
            if not self.server.first(job_rows.ANYTHING, words):
                return None
        with self._turning():
            self._enlist()
            self._settle_answered()
            self._take_over()
            engine = self.server.engine
            held = engine.list_jobs(worker_id=self._member.id, status="doing", task=TASK)
            if held:
                # The server was gone in the middle of a step, and this worker carries nothing.
                row = self.server.first("SELECT * FROM pawl_job WHERE ticket = %s", (held[0].id,))
                return None if row is None else self._taken(row, row["allowance"], again=True)
            state = self.state()
            if state.paused or (state.left is not None and state.left <= 0):
                return None
            words = {
                "home": self.home,
                "labels": sorted(terms.labels),
                "together": terms.together,
                "providers": json.dumps(dict(terms.providers)),
            }
            lanes = [one["name"] for one in self.server.rows(job_rows.OPEN_LANES, words)]
            ticket = now(engine.fetch_job(lanes, self._member.id)) if lanes else None
            if ticket is None:
                return None
            row = self.server.first("SELECT * FROM pawl_job WHERE ticket = %s", (ticket.id,))
            if row is None:
                self.server.drop_ticket(ticket.id)
                return None
            self.server.rows("UPDATE pawl_queue SET last_turn = greatest(last_turn, %s)", (row["turn"],))
            return self._taken(row, None if state.left is None else state.left / max(1, terms.shares))

    @property
    def _silent(self) -> float:
        """For so many seconds nothing is heard of a worker that is dead."""
        return self._agreed * 2 / 3

    @property
    def _agreed(self) -> float:
        return self._member.dead_seconds or self.dead_seconds

    def _agree(self) -> None:
        found = self.server.rows("SELECT dead_seconds FROM pawl_queue")[0]["dead_seconds"]
        self._member.dead_seconds = found or self.dead_seconds

    def _enlist(self) -> None:
        known = "SELECT 1 FROM procrastinate_workers WHERE id = %s"
        if not self._member.id or not self.server.rows(known, (self._member.id,)):
            self._agree()
            living = "SELECT 1 FROM procrastinate_workers WHERE last_heartbeat >= now() - %s * interval '1 second'"
            if not self.server.first(living, (self._silent,)):
                self.server.rows("UPDATE pawl_queue SET dead_seconds = %s", (self.dead_seconds,))
                self._agree()
            self._member.id = now(self.server.engine.register_worker())
            self._member.beat = time.monotonic()

    def _take_over(self) -> None:
        """The tickets of dead workers can be taken again; from now on those workers promote nothing."""
        engine = self.server.engine
        stalled = now(engine.get_stalled_jobs(task_name=TASK, seconds_since_heartbeat=self._silent))
        # While the server was away nobody could tell that he lives.
        up = "SELECT 1 WHERE pg_postmaster_start_time() < now() - %s * interval '1 second'"
        for one in stalled if stalled and self.server.first(up, (self._silent,)) else ():
            # One that promotes at this moment holds its row, and is alive.
            held = "SELECT id FROM pawl_job WHERE ticket = %s AND state = 'running' FOR UPDATE SKIP LOCKED"
            row = self.server.first(held, (one.id,))
            if row is not None:
                self.server.rows(
                    "UPDATE pawl_job SET state = 'queued', lease = lease + 1, worker = NULL, allowance = NULL"
                    " WHERE id = %s",
                    (row["id"],),
                )
                self._charge(row["id"])
                self._note(row["id"], "left by its worker")
                engine.retry_job_by_id(one.id, self.server.rows("SELECT now() AS now")[0]["now"])
        now(engine.prune_stalled_workers(_FORGET_SECONDS))

    def _taken(self, row: Mapping[str, Any], allowance: Decimal | None, *, again: bool = False) -> Job:
        own = self._job({**row, "queue": "", "blocked": False}).order.budget.get("money")
        if allowance is not None and own is not None:
            allowance = min(allowance, Decimal(str(own)))
        self.server.rows(
            "UPDATE pawl_job SET state = 'running', lease = lease + 1, attempts = attempts + %s, worker = %s,"
            " allowance = %s, started = coalesce(started, clock_timestamp()), not_before = NULL WHERE id = %s",
            (0 if again else 1, f"{platform.node()}:{os.getpid()}", allowance, row["id"]),
        )
        self._note(row["id"], "taken")
        self._member.told = time.monotonic()
        found = self.server.first(f"{job_rows.JOB} AND j.id = %s", (row["id"],))
        assert found is not None
        return self._job(found)

    def begun(self, lease: Lease, run: str, *, sent_back: bool = False) -> None:
        """The job is carried by that run from now on."""
        with self.server.transaction():
            words = {"run": run, "back": sent_back, "carrier": self.home}
            self._held(lease, "run = %(run)s, sent_back = sent_back OR %(back)s, carrier = %(carrier)s", words)
            self.server.rows("INSERT INTO pawl_job_run (run, job) VALUES (%s, %s)", (run, lease.job))
            self.mark(lease, run)

    def mark(self, lease: Lease, run: str) -> None:
        """Note here that the run is one of this job; nothing on the server can make another run one."""
        self.store.runs.put(run, _OF_JOB, [lease.queue.partition("/")[0], lease.job])

    def is_of(self, lease: Lease, run: str) -> bool:
        return self.store.runs.value(run, _OF_JOB) == [lease.queue.partition("/")[0], lease.job]

    def end(self, lease: Lease, end: JobEnd) -> None:
        """The job has ended, once. In line with those who add: what follows it is seen by one of them."""
        with self._turning():
            words = {"outcome": end.outcome, "verdict": end.verdict, "entry": end.entry, "why": stored_text(end.reason)}
            row = self._held(
                lease,
                "state = 'ended', ended = clock_timestamp(), outcome = %(outcome)s, verdict = %(verdict)s,"
                " entry = %(entry)s, reason = %(why)s, worker = NULL, allowance = NULL",
                words,
            )
            self._charge(lease.job)
            self._drop_ticket(row)
            self._ended(lease.job, end.outcome)

    def _ended(self, number: int, what: str) -> None:
        """What follows from the end of a job, whoever ended it."""
        self._note(number, what)
        self.server.rows("DELETE FROM pawl_progress WHERE job = %s", (number,))
        self.server.rows(
            "DELETE FROM pawl_snapshot AS s USING pawl_job AS mine WHERE mine.id = %s AND s.digest = mine.snapshot AND"
            " NOT EXISTS (SELECT 1 FROM pawl_job AS j WHERE j.snapshot = s.digest AND j.state <> 'ended')",
            (number,),
        )
        following = self.server.rows("SELECT job FROM pawl_after WHERE earlier = %s", (number,))
        self._ready([one["job"] for one in following])

    def release(self, lease: Lease, reason: str, *, state: JobState, seconds: float = 0.0, counts: bool = True) -> None:
        """Nobody carries the job any more; it is taken again after so many seconds, or waits for the user. An attempt
        that `counts` was one of the job's own fault."""
        with self.server.transaction():
            words = {"state": state, "seconds": seconds, "why": stored_text(reason), "off": 0 if counts else 1}
            row = self._held(
                lease,
                "state = %(state)s, not_before = now() + %(seconds)s * interval '1 second', reason = %(why)s,"
                " attempts = attempts - %(off)s, worker = NULL, allowance = NULL",
                words,
            )
            self._charge(lease.job)
            if row["paused"] or state is not JobState.QUEUED:
                self._drop_ticket(row)
            else:
                self.server.engine.retry_job_by_id(row["ticket"], row["not_before"])
            self._note(lease.job, state)

    def _held(self, lease: Lease, sets: str, words: Mapping[str, object]) -> dict[str, Any]:
        found = self.server.first(
            f"UPDATE pawl_job SET {sets} WHERE id = %(job)s AND lease = %(lease)s AND state = 'running' RETURNING *",
            {**words, "job": lease.job, "lease": lease.number},
        )
        if found is None:
            raise lost(lease)
        return found

    def _drop_ticket(self, row: Mapping[str, Any]) -> None:
        if row["ticket"] is not None:
            self.server.drop_ticket(row["ticket"])
            self.server.rows("UPDATE pawl_job SET ticket = NULL, lane = NULL WHERE id = %s", (row["id"],))

    def _charge(self, number: int) -> None:
        """What its runs have cost by now, as far as this machine knows."""
        runs = self.server.rows("SELECT run FROM pawl_job_run WHERE job = %s", (number,))
        costs = [cost for one in runs for cost in self.store.requests.costs(one["run"])]
        total = sum((one for one in costs if one is not None), Decimal(0))
        known = self.server.rows("SELECT cost FROM pawl_job WHERE id = %s", (number,))[0]["cost"]
        if total > known:
            self.server.rows("INSERT INTO pawl_spent (job, amount) VALUES (%s, %s)", (number, total - known))
        self.server.rows(
            "UPDATE pawl_job SET cost = greatest(cost, %s), unpriced = unpriced OR %s WHERE id = %s",
            (total, None in costs, number),
        )

    def holds(self, lease: Lease, *, unpaused: bool = False) -> bool:
        """Whether the lease is the newest of a job that runs, and that nobody has paused."""
        with self.server.transaction():
            row = self.server.first(
                "SELECT j.paused OR q.paused AS paused FROM pawl_job AS j, pawl_queue AS q"
                " WHERE j.id = %s AND lease = %s AND state = 'running'",
                (lease.job, lease.number),
            )
        return row is not None and not (unpaused and row["paused"])

    @contextmanager
    def fence(self, lease: Lease) -> Iterator[None]:
        """While this lasts nobody takes the job over: its row is held. Should the server go away meanwhile, the journal
        still knows whether another run of the job was promoted."""
        promoted = False
        try:
            with self.server.transaction():
                mine = "SELECT 1 FROM pawl_job WHERE id = %s AND lease = %s AND state = 'running' FOR UPDATE"
                if self.server.first(mine, (lease.job, lease.number)) is None:
                    raise lost(lease)
                yield
                promoted = True
        except QueueUnreachable:
            # Nothing was written there; what is promoted is promoted.
            if not promoted:
                raise

    def is_due(self) -> bool:
        """Whether it is time again to tell how far a run is."""
        if time.monotonic() - self._member.told < self._agreed / 6:
            return False
        self._member.told = time.monotonic()
        return True

    def keep_progress(self, lease: Lease, run: str, data: bytes) -> None:
        """The run as far as it is durable on this machine, for whoever has to go on with it elsewhere."""
        with self.server.transaction():
            self._held(lease, "carrier = %(carrier)s", {"carrier": self.home})
            self._charge(lease.job)
            self.server.rows(
                "INSERT INTO pawl_progress (job, run, data) VALUES (%s, %s, %s)"
                " ON CONFLICT (job) DO UPDATE SET run = excluded.run, data = excluded.data",
                (lease.job, run, data),
            )

    def send_home(self, lease: Lease, run: str, data: bytes) -> None:
        """What another machine can do for the job is done; the rest is done where its workspace is."""
        with self.server.transaction():
            self.keep_progress(lease, run, data)
            words = "state = 'queued', worker = NULL, allowance = NULL, attempts = attempts - 1"
            row = self._held(lease, words, {})
            self._charge(lease.job)
            (lane,) = self._lanes([row], goes_home=True)
            self.server.rows("UPDATE pawl_job SET lane = %s WHERE id = %s", (lane, lease.job))
            moment = self.server.rows("SELECT now() AS now")[0]["now"]
            self.server.engine.retry_job_by_id(row["ticket"], moment, queue=lane)
            self._note(lease.job, "sent home")

    def pause(self, numbers: Sequence[int], *, paused: bool) -> None:
        """These jobs, or all without numbers. One that runs is stopped by its worker, and resumed from there."""
        with self._turning():
            if not numbers:
                self.server.rows("UPDATE pawl_queue SET paused = %s", (paused,))
            for number in numbers:
                if self.get(number).state is JobState.ENDED:
                    raise Refused(
                        f"job {number} has ended",
                        advice=f"unless it is done, 'pawl queue retry {number}' begins it again",
                    )
                sql = "UPDATE pawl_job SET paused = %s WHERE id = %s RETURNING *"
                row = self.server.rows(sql, (paused, number))[0]
                if paused and row["state"] == JobState.QUEUED:
                    self._drop_ticket(row)
            if not paused:
                self._ready(numbers)

    def cancel(self, number: int) -> Job:
        """Whoever carries it can promote nothing from now on."""
        with self._turning():
            job = self.get(number)
            if job.state is JobState.ENDED:
                raise Refused(f"job {number} has ended already: {job.outcome}")
            row = self.server.rows(
                "UPDATE pawl_job SET state = 'ended', outcome = %s, ended = clock_timestamp(), lease = lease + 1,"
                " worker = NULL, allowance = NULL, reason = %s, entry = %s WHERE id = %s RETURNING *",
                (JobOutcome.CANCELLED, *cancelled(self.store.jobs.promoted(job.run)), number),
            )[0]
            self._drop_ticket(row)
            self._ended(number, JobOutcome.CANCELLED)
        return job

    def retry(self, number: int) -> None:
        """An ended job is queued again with all its attempts; a run that was interrupted is resumed."""
        with self._turning():
            job = self.get(number)
            if job.state is not JobState.ENDED or job.outcome is JobOutcome.DONE:
                raise Refused(
                    f"job {number} is {job.standing}", advice="only a job that ended without being done can be retried"
                )
            run = job.run if job.run and self.store.runs.state(job.run) is RunState.WORKING else None
            self.server.rows(
                "UPDATE pawl_job SET state = 'queued', outcome = NULL, ended = NULL, attempts = 0, sent_back = false,"
                " not_before = NULL, reason = '', verdict = '', entry = NULL, paused = false, lease = lease + 1,"
                " life = life + 1, run = %s WHERE id = %s",
                (run, number),
            )
            self._note(number, JobState.QUEUED)
            self._ready([number])

    def hold(self, provider: str, seconds: float) -> None:
        """No worker asks this provider for so long."""
        with self.server.transaction():
            self.server.rows(
                "INSERT INTO pawl_hold (provider, until) VALUES (%s, now() + %s * interval '1 second')"
                " ON CONFLICT (provider) DO UPDATE SET until = greatest(pawl_hold.until, excluded.until)",
                (provider, seconds),
            )

    def allow(self, budget: Decimal | None) -> None:
        """The most that all jobs together may spend from now on; None for no limit."""
        with self.server.transaction():
            self.server.rows("UPDATE pawl_queue SET budget = %s, since = clock_timestamp()", (budget,))

    def state(self) -> QueueState:
        with self.server.transaction():
            row = self.server.rows(
                "SELECT paused, budget, since, (SELECT coalesce(sum(amount), 0) FROM pawl_spent WHERE at >= since)"
                " AS spent, (SELECT coalesce(sum(allowance), 0) FROM pawl_job WHERE state = 'running') AS reserved"
                " FROM pawl_queue"
            )[0]
        if row["budget"] is None:
            return QueueState(paused=row["paused"])
        return QueueState(**{**row, "since": moment_text(row["since"])})

    def is_idle(self, labels: frozenset[str] | None = None) -> bool:
        """Nothing runs, and nothing that a worker with these labels here, or any, could run is left but what waits for
        a person."""
        with self.server.transaction():
            self._settle_answered()
            if self.server.rows("SELECT 1 FROM pawl_job WHERE state = 'running' LIMIT 1"):
                return False
            ready = "SELECT 1 FROM pawl_job AS j, pawl_queue AS q WHERE state = 'queued' AND ticket IS NOT NULL"
            ready += " AND NOT q.paused"
            if labels is not None:
                ready += f" AND lane IN ({job_rows.LANES})"
            words = {"home": self.home, "labels": sorted(labels or ())}
            return not self.server.rows(f"{ready} LIMIT 1", words)

    def _settle_answered(self) -> None:
        """Runs that waited were answered on this machine, and carried on by whoever answered them."""
        waiting = "SELECT * FROM pawl_job WHERE state = 'waiting' AND home = %s"
        found = self.server.rows(waiting, (self.home,))
        if all(self.store.runs.state(one["run"]) is RunState.WAITING for one in found):
            return
        self.server.rows("SELECT pg_advisory_xact_lock(%s)", (_CLAIM,))
        for row in self.server.rows(f"{waiting} FOR UPDATE SKIP LOCKED", (self.home,)):
            state = self.store.runs.state(row["run"])
            if state is RunState.ENDED:
                outcome = JobOutcome.of(self.store.runs.get(os.fsdecode(bytes(row["workspace"])), row["run"]).delivery)
                ended = "UPDATE pawl_job SET state = 'ended', ended = clock_timestamp(), outcome = %s WHERE id = %s"
                self.server.rows(ended, (outcome, row["id"]))
                self._charge(row["id"])
                self._ended(row["id"], outcome)
            elif state is RunState.WORKING:
                self.server.rows("UPDATE pawl_job SET state = 'queued', snapshot = NULL WHERE id = %s", (row["id"],))
                self._ready([row["id"]])

    def _note(self, number: int, what: str) -> None:
        self.server.rows(
            "INSERT INTO pawl_note (job, what, lease, worker) SELECT id, %s, lease, worker FROM pawl_job WHERE id = %s",
            (what, number),
        )
