"""The queue, wherever it is kept; adding to it: one request, one for each file, or the lines of a file; its
statistics."""

from __future__ import annotations

import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import field, replace
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Protocol

from pawl.agent.briefing import configured
from pawl.agent.queue.job_rows import FILES, home_of
from pawl.agent.queue.labels import checked_label
from pawl.agent.session import Session
from pawl.core.change import Lease
from pawl.core.errors import StoreBusy, UnknownEntry, UsageError
from pawl.core.job import CRITICAL, ClaimTerms, Job, JobDependency, JobEnd, JobState, NewJob, QueueState
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RunRequest
from pawl.core.typed import AtLeast, AtMost, read_settings
from pawl.models.telemetry import Telemetry
from pawl.settings.config import Config
from pawl.store.jobs import Jobs
from pawl.store.store import Store
from pawl.workspace.project import Project

FILE = "{file}"
HIGHEST = 1000
_LINE = frozenset({"request", "name", "after", "if_failed", "priority", "budget"})


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """The table `[queue]` of the settings."""

    attempts: Annotated[int, AtLeast(1)] = 3
    """How often a job is taken before it counts as failed."""
    together: Annotated[int, AtLeast(1), AtMost(64)] = 2
    """Jobs of one workspace at the same time."""
    workers: Annotated[int, AtLeast(1), AtMost(64)] = 1
    """Of `pawl queue run`."""
    providers: Mapping[str, int] = field(default_factory=dict)
    """Jobs at the same time that ask one provider, by its name."""
    most: Annotated[int, AtLeast(1)] = 1_000_000
    """Jobs that have not ended; more are refused."""
    server: str = ""
    """The address of a PostgreSQL server that keeps the queue of several machines."""
    labels: tuple[str, ...] = ()
    """Of the workers of this machine, for jobs that require them."""
    dead_seconds: Annotated[float, AtLeast(3), AtMost(3600)] = 30.0
    """The job of a worker that is not heard of is taken over within this time, where the queue is on a server."""


def queue_settings(config: Config) -> QueueSettings:
    return read_settings(QueueSettings(), "queue", config.tables.queue)


class JobQueue(Protocol):
    """Jobs, who carries them, and what counts for all of them: in the state file, or on a server for many machines.

    Every change of a job that is carried names the lease under which it is made, in the transaction that makes it.
    """

    look_seconds: float

    def together(self) -> AbstractContextManager[None]: ...
    def now(self) -> str: ...
    def add(self, jobs: Iterable[NewJob]) -> list[int]: ...
    def get(self, number: int) -> Job: ...
    def depth(self) -> int: ...
    def number_of(self, name: str) -> int | None: ...
    def list(
        self, *, state: JobState | None = None, ended_since: str | None = None, newest: int | None = None
    ) -> Sequence[Job]: ...
    def after(self, number: int) -> tuple[JobDependency, ...]: ...
    def beat(self) -> None: ...
    def take(self, terms: ClaimTerms, lock: ExitStack) -> Job | None: ...
    def begun(self, lease: Lease, run: str, *, sent_back: bool = False) -> None: ...
    def end(self, lease: Lease, end: JobEnd) -> None: ...
    def release(
        self, lease: Lease, reason: str, *, state: JobState, seconds: float = 0.0, counts: bool = True
    ) -> None: ...
    def holds(self, lease: Lease, *, unpaused: bool = False) -> bool: ...
    def fence(self, lease: Lease) -> AbstractContextManager[None]: ...
    def pause(self, numbers: Sequence[int], *, paused: bool) -> None: ...
    def cancel(self, number: int) -> Job: ...
    def retry(self, number: int) -> None: ...
    def hold(self, provider: str, seconds: float) -> None: ...
    def allow(self, budget: Decimal | None) -> None: ...
    def state(self) -> QueueState: ...
    def is_idle(self, labels: frozenset[str] | None = None) -> bool: ...


VARIABLE, PASSWORD = "PAWL_QUEUE", "PAWL_QUEUE_PASSWORD"


def server_of(config: Config, given: str | None) -> str:
    """The address of the server that keeps the queue; empty for the queue in the state file."""
    return given or config.environment.get(VARIABLE) or queue_settings(config).server


@contextmanager
def opened_queue(config: Config, store: Store, server: str) -> Iterator[JobQueue]:
    """The queue that the user means, for one thread."""
    if not server:
        yield store.jobs
        return
    from pawl.agent.queue.queue_server import QueueServer
    from pawl.agent.queue.server_queue import ServerQueue

    reached = QueueServer.at(server, config.environment.get(PASSWORD, ""))
    try:
        yield ServerQueue(
            server=reached, store=store, home=home_of(config.state), dead_seconds=queue_settings(config).dead_seconds
        )
    finally:
        reached.close()


def beside(queue: JobQueue, store: Store) -> JobQueue:
    """The same queue, for whoever works with this connection to the state file."""
    from pawl.agent.queue.server_queue import ServerQueue

    return queue.at(store) if isinstance(queue, ServerQueue) else store.jobs


@contextmanager
def again(queue: JobQueue, store: Store) -> Iterator[JobQueue]:
    """The same queue for another thread, which has opened the state file itself."""
    if isinstance(queue, Jobs):
        yield store.jobs
        return
    from pawl.agent.queue.server_queue import ServerQueue

    assert isinstance(queue, ServerQueue)
    with queue.again(store) as other:
        yield other


@dataclass(frozen=True, slots=True, kw_only=True)
class JobWish:
    """The terms on which jobs are added."""

    order: RunRequest
    priority: int | None = None
    after: tuple[str, ...] = ()
    """Numbers of jobs, or runs."""
    if_failed: tuple[str, ...] = ()
    """The same; the job is begun where they fail, before every other."""
    requires: tuple[str, ...] = ()
    trace: str = ""


def add(shop: Project, queue: JobQueue, wish: JobWish, texts: Sequence[str]) -> list[int]:
    """One job for each text."""
    _refuse_overflow(shop, queue, len(texts))
    with _traced(shop, wish) as traced:
        return _added(shop, queue, traced, texts)


@contextmanager
def _traced(shop: Project, wish: JobWish) -> Iterator[JobWish]:
    """The jobs are below the span of their adding, whichever machine carries them."""
    with Telemetry.open(shop.config.environment) as telemetry, telemetry.span("queue add", {}):
        yield replace(wish, trace=telemetry.trace())


def _refuse_overflow(shop: Project, queue: JobQueue, more: int) -> None:
    most = queue_settings(shop.config).most
    if queue.depth() + more > most:
        raise StoreBusy(f"the queue is full: it takes {most} jobs that have not ended", advice="wait until some have")


def _added(shop: Project, queue: JobQueue, wish: JobWish, texts: Sequence[str]) -> list[int]:
    if not texts:
        raise UsageError("there is no request", advice="pawl queue add 'make the tests pass'")
    wish = _portable(wish)
    job = _with_workspace(_new_job(shop, queue, wish), _sent(shop, queue))
    return queue.add(replace(job, order=replace(wish.order, text=text)) for text in texts)


def _portable(wish: JobWish) -> JobWish:
    """A worker may stand in another folder."""
    kind, _, file = wish.order.model.partition(":")
    if kind not in FILES:
        return wish
    return replace(wish, order=replace(wish.order, model=f"{kind}:{os.path.abspath(file)}"))


def _sent(shop: Project, queue: JobQueue) -> str | None:
    """The workspace as it stands now, on the server; None for a queue of this machine."""
    if isinstance(queue, Jobs):
        return None
    from pawl.agent.queue.server_queue import ServerQueue
    from pawl.agent.queue.travel import sent

    assert isinstance(queue, ServerQueue)
    return sent(shop, queue)


def _with_workspace(job: NewJob, snapshot: str | None) -> NewJob:
    """The workspace goes with a job that workers elsewhere may carry. One that follows another begins with what that
    one promotes, at home; a model that is a file is only with workers that have the label `files`."""
    if snapshot is None or job.after:
        return job
    requires = (*job.requires, "files") if job.provider in FILES else job.requires
    return replace(job, snapshot=snapshot, requires=tuple(sorted({*requires})))


def _new_job(shop: Project, queue: JobQueue, wish: JobWish) -> NewJob:
    """Tell what is wrong with the terms now, not when nobody looks."""
    Session(shop).checked(replace(wish.order, text=wish.order.text or "a request"))
    after = [_dependency(queue, shop.store, one) for one in wish.after]
    failed = [_dependency(queue, shop.store, one) for one in wish.if_failed]
    if both := next((one for one in failed if one in after), None):
        raise UsageError(f"job {both.job or both.run} is never both done and failed", advice="name it once")
    after += [replace(one, failed=True) for one in failed]
    priority = wish.priority
    if priority is None:
        priority = CRITICAL if wish.if_failed else 0
    model = wish.order.model or configured(shop, "").routes.default
    return NewJob(
        workspace=shop.workspace,
        order=wish.order,
        provider=_provider(model),
        priority=priority,
        after=tuple(after),
        requires=tuple(sorted({*map(checked_label, wish.requires)})),
        trace=wish.trace,
    )


def _provider(model: str) -> str:
    kind = model.partition(":")[0]
    return kind if kind in FILES else model.partition("/")[0]


def _dependency(queue: JobQueue, store: Store, name: str) -> JobDependency:
    """A job by its number, or a run by its id; the run of a job stands for the job, which may have another later."""
    number = queue.number_of(name)
    if number is not None:
        return JobDependency(job=queue.get(number).id)
    if store.runs.state(name) is not None:
        return JobDependency(run=name)
    raise UnknownEntry(f"there is no job or run {name!r}", advice="'pawl queue list' lists the jobs")


def for_each_file(shop: Project, pattern: str, text: str) -> list[str]:
    """The text for each file that the pattern names, in their order."""
    from pawl.code.librarian import source_files
    from pawl.workspace.ignore import path_expression

    if FILE not in text:
        raise UsageError(
            f"the request does not name {FILE}", advice="pawl queue add --each 'src/**/*.py' 'type {file}'"
        )
    try:
        fits = re.compile(path_expression(os.fsencode(pattern.removeprefix("./"))), re.DOTALL)
    except ValueError as error:
        raise UsageError(f"{pattern!r} is not a pattern: {error}", advice="such as 'src/**/*.py'") from error
    found = [one.path for one in source_files(shop).stamps() if fits.fullmatch(os.fsencode(one.path))]
    if not found:
        raise UsageError(f"no file of the workspace is named by {pattern!r}", advice="quote it: 'src/**/*.py'")
    return [text.replace(FILE, path) for path in sorted(found)]


def add_lines(shop: Project, queue: JobQueue, wish: JobWish, lines: str) -> list[int]:
    """One job for each line of JSON: `request`, and what differs from the terms; all of them or none. The workspace is
    sent once, and before the queue is kept waiting."""
    found = list(_objects(lines))
    if not found:
        raise UsageError("there is no job in it", advice='each line is an object: {"request": "make the tests pass"}')
    _refuse_overflow(shop, queue, len(found))
    with _traced(shop, wish) as traced:
        jobs: list[_NamedJob] = []
        for number, line in found:
            names, name = {one.name for one in jobs} - {""}, str(line.get("name") or "")
            if name in names:
                raise UsageError(f"line {number}: an earlier line has the name {name!r} too")
            own, waits = _terms(traced, number, line, names)
            try:
                job = _new_job(shop, queue, _portable(own))
            except UnknownEntry as error:
                raise UnknownEntry(f"line {number}: {error.message}", advice="name lines above it, or jobs") from error
            jobs.append(_NamedJob(job=job, name=name, waits=waits))
        snapshot = _sent(shop, queue) if any(not (one.waits or one.job.after) for one in jobs) else None
        jobs = [one if one.waits else replace(one, job=_with_workspace(one.job, snapshot)) for one in jobs]
        with queue.together():
            return _in_order(queue, jobs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _NamedJob:
    """A line of a file: others may wait for it by its name, and it for them."""

    job: NewJob
    name: str
    waits: tuple[tuple[str, bool], ...]
    """The names of lines above, and whether it is begun where they fail."""


def _in_order(queue: JobQueue, jobs: Sequence[_NamedJob]) -> list[int]:
    """Added as many at once as do not wait for each other; their numbers."""
    added: list[int] = []
    numbers: dict[str, int] = {}
    start = 0
    while start < len(jobs):
        stop, new = start, set[str]()
        while stop < len(jobs) and new.isdisjoint(name for name, _ in jobs[stop].waits):
            new.add(jobs[stop].name)
            stop += 1
        part = jobs[start:stop]
        waits = [tuple(JobDependency(job=numbers[name], failed=failed) for name, failed in one.waits) for one in part]
        some = queue.add(replace(one.job, after=(*one.job.after, *more)) for one, more in zip(part, waits, strict=True))
        numbers |= {one.name: number for one, number in zip(part, some, strict=True)}
        added += some
        start = stop
    return added


def _objects(lines: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    for number, written in enumerate(lines.splitlines(), 1):
        if not written.strip():
            continue
        try:
            line = json.loads(written)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"line {number} is not JSON: {error}") from error
        text = line.get("request") if isinstance(line, dict) else None
        if not isinstance(text, str) or not text.strip() or set(line) - _LINE:
            raise UsageError(
                f"line {number} is not a job", advice=f"an object with request, and any of {', '.join(sorted(_LINE))}"
            )
        yield number, line


def _terms(
    wish: JobWish, number: int, line: Mapping[str, object], names: set[str]
) -> tuple[JobWish, tuple[tuple[str, bool], ...]]:
    """The terms of a line, and the lines above that it waits for."""
    given = {
        key: tuple(map(str, one if isinstance(one := line.get(key, ()), list | tuple) else (one,)))
        for key in ("after", "if_failed")
    }
    priority = line.get("priority", wish.priority)
    if priority is not None and not (type(priority) is int and abs(priority) <= HIGHEST):
        raise UsageError(f"line {number}: priority {priority!r} is not a whole number up to {HIGHEST}")
    budget = dict(wish.order.budget)
    if "budget" in line:
        amount = line["budget"]
        if isinstance(amount, bool) or not isinstance(amount, int | float) or not 0 <= amount < math.inf:
            raise UsageError(f"line {number}: budget {amount!r} is not an amount", advice="give US dollars")
        budget["money"] = str(amount)
    own = replace(
        wish,
        order=replace(wish.order, text=str(line["request"]), budget=budget),
        priority=CRITICAL if priority is None and given["if_failed"] else priority,
        after=(*wish.after, *(one for one in given["after"] if one not in names)),
        if_failed=(*wish.if_failed, *(one for one in given["if_failed"] if one not in names)),
    )
    waits = ((one, key == "if_failed") for key, some in given.items() for one in some if one in names)
    return own, tuple(waits)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStats:
    jobs: int
    states: Mapping[str, int]
    workspaces: int
    attempts: int
    cost: Decimal | None
    """None where the price of one is unknown."""
    per_hour: float | None
    """Jobs that ended, from the first one that was taken to the last that ended."""
    waited_seconds: tuple[float, float] | None
    """Half of the jobs, and nine in ten, were taken so long after they were added."""
    worked_seconds: tuple[float, float] | None
    """The same, from taken to ended."""


def stats(jobs: Sequence[Job]) -> QueueStats:
    ended = [one for one in jobs if one.state is JobState.ENDED and one.started and one.ended]
    costs = [one.cost for one in jobs]
    hours = (
        _seconds(min(str(one.started) for one in ended), max(str(one.ended) for one in ended)) / 3600 if ended else 0
    )
    return QueueStats(
        jobs=len(jobs),
        states=dict(sorted(Counter(one.standing for one in jobs).items())),
        workspaces=len({one.workspace for one in jobs}),
        attempts=sum(one.attempts for one in jobs),
        cost=None if None in costs else sum((one for one in costs if one is not None), Decimal(0)),
        per_hour=round(len(ended) / hours, 1) if hours else None,
        waited_seconds=_quantiles([_seconds(one.created, one.started) for one in jobs if one.started]),
        worked_seconds=_quantiles([_seconds(str(one.started), str(one.ended)) for one in ended]),
    )


def _seconds(start: str, end: str) -> float:
    return (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()


def _quantiles(values: Sequence[float]) -> tuple[float, float] | None:
    if not values:
        return None
    ordered = sorted(values)
    half, most = (ordered[int((len(ordered) - 1) * part)] for part in (0.5, 0.9))
    return round(half, 3), round(most, 3)
