"""The queue under fire: many short runs in many workspaces, workers killed and stopped at random; and what it costs.

python benchmarks/job_queue.py [--jobs N] [--workspaces N] [--workers N] [--kills N] [--seed N] [--machines N]
                               [--dead SECONDS]  when a worker on a server is dead (30 is the default of Pawl, 3 here)
                               [--stops SHARE]   of the hits, those that stop a worker instead of killing it
                               [--serial]        also one after the other; with --workers 0 only that
python benchmarks/job_queue.py --memory N        N runs carried by one worker: its memory and threads meanwhile
python benchmarks/job_queue.py --overhead N      N runs bare and N through the queue, in one process, by turns
python benchmarks/job_queue.py --rows N [--ended N] [--batch N]
                                                 a queue of N jobs, beside others that have ended: what adding,
                                                 claiming, ending, counting and listing takes
python benchmarks/job_queue.py --scaling N [--wait MS]
                                                 N runs with one worker, and as many with four; the model may wait
python benchmarks/job_queue.py --simulate CLAIM,END,LOOK
                                                 on paper: 1,000 workers, 1,000,000 jobs, measured milliseconds

Each with `--queue postgres` on a PostgreSQL server of its own instead of the state file; it is restarted at random too.

Everything is a real process, the model is scripted. Half of the jobs write a file of their own, half change a line of
a file that all jobs of the workspace change. At the end every job has ended once, every change is in the history once,
and the trees are those of carrying the jobs one after the other: with `--serial` that is done too, without a queue.
"""

from __future__ import annotations

import argparse
import heapq
import json
import os
import random
import resource
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from pawl.agent.queue.job_queue import JobQueue, JobWish, QueueSettings, add, beside, opened_queue
from pawl.agent.queue.server_queue import ServerQueue
from pawl.agent.queue.worker import QueueWorker
from pawl.agent.session import Session
from pawl.core.change import EntryKind, EntryState
from pawl.core.job import ClaimTerms, Job, JobEnd, JobOutcome, JobState, NewJob
from pawl.core.run import Approval, RunRequest
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import Config, load
from pawl.store.store import Store
from pawl.workspace.project import Project

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import postgres
from postgres import Postgres

SHARED = "list.txt"
LONGEST_STOP = 3.0
"""Seconds for which a worker is stopped; a job is taken over within a fraction of one where its worker is dead."""
OUTCOMES = frozenset(JobOutcome)
BLOCK = 4
"""Runs that are measured together."""


@dataclass
class Site:
    """A user with workspaces, scripts and a state of their own."""

    root: Path
    queue: str = ""
    dead: float = 3.0
    """Seconds after which a worker on a server that is not heard of is dead."""
    wait: int = 0
    """Milliseconds for which the model thinks before each answer."""
    workspaces: list[Path] = field(default_factory=list)
    expected: dict[Path, dict[str, str]] = field(default_factory=dict)

    @classmethod
    def made(cls, root: Path, workspaces: int, jobs: int, queue: str = "", dead: float = 3.0) -> Site:
        site = cls(root, queue, dead)
        (root / "scripts").mkdir()
        (root / "config.toml").write_text(f"[queue]\nattempts = 1000000\ntogether = 2\ndead_seconds = {dead}\n")
        each = -(-jobs // workspaces)
        for number in range(workspaces):
            folder = root / f"project{number:02}"
            folder.mkdir()
            text = "".join(f"item {one:04}\n\n\n\n\n" for one in range(each))
            (folder / SHARED).write_text(text)
            site.workspaces.append(folder)
            site.expected[folder] = {SHARED: text}
        return site

    def environment(self, state: str = "state") -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
        own = {"HOME": self.root / "home", "PAWL_STATE": self.root / state, "PAWL_CONFIG": self.root / "config.toml"}
        return {**kept, "PAWL_QUEUE": self.queue, **{name: str(value) for name, value in own.items()}}

    @contextmanager
    def opened(self, state: str = "state") -> Iterator[tuple[Store, JobQueue]]:
        config = self.config(state)
        with Store.open(config.state, busy_seconds=60) as store, opened_queue(config, store, self.queue) as queue:
            yield store, queue

    def config(self, state: str = "state") -> Config:
        (self.root / "home").mkdir(exist_ok=True)
        return load(self.environment(state))

    def order(self, number: int) -> tuple[Path, RunRequest]:
        """The request of that number, its script, and what it makes of its workspace."""
        at, own = number % len(self.workspaces), number // len(self.workspaces)
        folder = self.workspaces[at]
        if own % 2:
            name = f"note{own:04}.txt"
            calls = [("file_write", {"path": name, "content": f"note {own}\n"})]
            self.expected[folder][name] = f"note {own}\n"
        else:
            old, new = f"item {own:04}", f"done {own:04}"
            calls = [("file_read", {"path": SHARED}), ("strict_patch", {"path": SHARED, "old": old, "new": new})]
            self.expected[folder][SHARED] = self.expected[folder][SHARED].replace(old, new)
        turns = [{"text": "", "calls": [{"name": name, "arguments": words}]} for name, words in calls]
        turns.append({"text": "Done."})
        script = self.root / "scripts" / f"{number}.jsonl"
        lines = (
            {"match": {"step": step}, "times": 0, "answer": turn, "delay_ms": self.wait}
            for step, turn in enumerate(turns)
        )
        script.write_text("".join(json.dumps(line) + "\n" for line in lines))
        text = f"write note {own}" if own % 2 else f"mark entry {own} of the list as done"
        return folder, RunRequest(text=text, approval=Approval.NEVER, attended=False, model=f"scripted:{script}")

    def add(self, jobs: int, state: str = "state") -> None:
        """Spread over the workspaces."""
        config = self.config(state)
        for folder in self.workspaces:
            with Project.open(config, folder) as shop, opened_queue(config, shop.store, self.queue) as queue:
                for number in range(jobs):
                    place, order = (
                        self.order(number) if number % len(self.workspaces) == self._at(folder) else (None, None)
                    )
                    if place is not None and order is not None:
                        add(shop, queue, JobWish(order=order), [order.text])

    def _at(self, folder: Path) -> int:
        return self.workspaces.index(folder)

    def wrong_trees(self) -> list[str]:
        found = []
        for folder, files in self.expected.items():
            there = {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}
            found += [
                f"{folder.name}/{name}" for name in sorted({*there, *files}) if there.get(name) != files.get(name)
            ]
        return found


@dataclass
class Killer:
    """Keeps so many workers at work, by turns on each machine, and ends them at random."""

    site: Site
    workers: int
    kills: int
    jobs: int
    chance: random.Random
    machines: int = 1
    stops: float = 0.2
    server: Postgres | None = None
    hosts: dict[int, int] = field(default_factory=dict)
    """The machine of each process."""
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)
    done: Counter[str] = field(default_factory=Counter)
    nodes: Counter[str] = field(default_factory=Counter)
    killed: list[tuple[int, float]] = field(default_factory=list)
    """The jobs whose worker was killed, and when."""
    largest: list[int] = field(default_factory=list)

    def go(self) -> None:
        try:
            with self.site.opened() as (_, queue):
                self._play(queue)
        finally:
            for one in self.running:
                one.terminate()
            for one in self.running:
                one.wait()

    def _play(self, queue: JobQueue) -> None:
        every = self.jobs / max(1, self.kills)
        following = every
        told = time.monotonic()
        while True:
            while len(self.running) < self.workers:
                self.running.append(self._started())
            self.running = [one for one in self.running if one.poll() is None]
            ended = self.jobs - queue.depth()
            if time.monotonic() - told > 30:
                print(f"  {ended} of {self.jobs} ended, {sum(self.done.values())} hits", flush=True)
                told = time.monotonic()
            if ended == self.jobs:
                break
            if ended >= following or self.jobs - ended <= len(self.running):
                following = min(following + every, self.jobs)
                self._hit(queue)
            _pause(0.1)

    def _started(self) -> subprocess.Popen[bytes]:
        busy = Counter(self.hosts[one.pid] for one in self.running)
        host = min(range(self.machines), key=lambda one: busy[one])
        folder = self.site.workspaces[0]
        if host:
            (folder := self.site.root / f"elsewhere{host}").mkdir(exist_ok=True)
        words = [sys.executable, "-P", "-m", "pawl", "-C", str(folder), "worker", "--label", "files"]
        environment, quiet = self.site.environment(state_of(host)), subprocess.DEVNULL
        with (self.site.root / "errors.txt").open("a") as errors:
            started = subprocess.Popen(
                words, env=environment, stdin=quiet, stdout=quiet, stderr=errors, start_new_session=True
            )
        self.hosts[started.pid] = host
        return started

    def _hit(self, queue: JobQueue) -> None:
        """At any point of whatever the worker does."""
        if sum(self.done.values()) >= self.kills or not self.running:
            return
        _pause(self.chance.random() * 1.5)
        if self.server is not None and self.chance.random() < 0.1:
            how = self.chance.choice(["fast", "immediate"])
            self.server.restart(how)
            self.done[f"server {how}"] += 1
            queue.server.close()
            return
        one = self.chance.choice(self.running)
        self.largest.append(_memory(one.pid))
        running = queue.list(state=JobState.RUNNING)
        carried = next((job for job in running if str(job.worker).rpartition(":")[2] == str(one.pid)), None)
        node = "nothing" if carried is None else self._node(carried, self.hosts[one.pid])
        if one.poll() is not None:
            return
        self.nodes[node] += 1
        if self.chance.random() >= self.stops:
            one.send_signal(signal.SIGKILL)
            one.wait()
            self.done["SIGKILL"] += 1
            if carried is not None:
                self.killed.append((carried.id, time.time()))
        else:
            one.send_signal(signal.SIGSTOP)
            # On a server: longer than its lease.
            _pause(1 + self.chance.random() * (LONGEST_STOP - 1) + (self.site.dead if self.server else 0))
            one.send_signal(signal.SIGCONT)
            self.done["SIGSTOP"] += 1

    def _node(self, job: Job, host: int) -> str:
        """Where its run stands, as the machine that carries it knows."""
        with Store.open(self.site.root / state_of(host), busy_seconds=60) as store:
            known = store.runs.progress(job.run or "")
        return f"{known[0] if known else 'beginning'}{' elsewhere' if host else ''}"


def state_of(host: int) -> str:
    """The state folder of a machine; jobs are added on the first."""
    return f"state{host or ''}"


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _memory(pid: int, what: str = "VmRSS") -> int:
    """Resident kilobytes, or another number of that process."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in text.splitlines() if line.startswith(what)), 0)


def judged(site: Site, killer: Killer) -> int:
    """Print what came of it; how much is wrong."""
    wrong = site.wrong_trees()
    with site.opened() as (store, queue):
        jobs = queue.list()
        events = _notes(site, store, queue)
        ends = Counter(job for job, what, _ in events if what in OUTCOMES)
        wrong += [f"job {one.id} is {one.standing}: {one.reason}" for one in jobs if one.outcome is not JobOutcome.DONE]
        wrong += [f"job {one.id} ended {ends[one.id]} times" for one in jobs if ends[one.id] != 1]
        entries = [one for folder in site.workspaces for one in store.journal.entries(str(folder))]
        promoted = Counter(one.run for one in entries if one.state is EntryState.DONE and one.kind is EntryKind.EDIT)
        wrong += [f"job {one.id}: {promoted[one.run or '']} entries" for one in jobs if promoted[one.run or ""] != 1]
        wrong += [f"{sum(promoted.values())} changes promoted for {len(jobs)} jobs"] * (
            sum(promoted.values()) != len(jobs)
        )
        taken = [(job, moment) for job, what, moment in events if what == "taken"]
        back = sum(one.sent_back for one in jobs)
    waits = [
        min((moment - when for number, moment in taken if number == job and moment >= when), default=None)
        for job, when in killer.killed
    ]
    known = sorted(one for one in waits if one is not None)
    print(f"jobs {len(jobs)}, attempts {sum(one.attempts for one in jobs)}, sent back {back}, hits {dict(killer.done)}")
    print(f"where the worker was: {dict(killer.nodes.most_common())}")
    if known:
        print(
            f"taken over after: median {statistics.median(known):.2f} s, most {known[-1]:.2f} s,"
            f" of {len(known)} killed with a job"
        )
    print(f"memory of workers when they were hit: most {max(killer.largest, default=0) >> 10} MB")
    said = Counter((site.root / "errors.txt").read_text().splitlines())
    print(f"workers said: {dict(said.most_common(6))}")
    for line in wrong[:20]:
        print(f"WRONG: {line}")
    print(f"wrong: {len(wrong)}")
    return len(wrong)


def _notes(site: Site, store: Store, queue: JobQueue) -> list[tuple[int, str, float]]:
    """What happened to which job, and when."""
    if site.queue:
        with queue.together():
            rows = queue.server.rows("SELECT job, what, extract(epoch FROM at)::float AS at FROM pawl_note ORDER BY id")
        return [(one["job"], one["what"], one["at"]) for one in rows]
    events = (one for folder in site.workspaces for one in store.events.read(str(folder)) if one["kind"] == "job")
    return [
        (one["body"]["job"], one["body"]["what"], datetime.fromisoformat(one["time"]).timestamp()) for one in events
    ]


@contextmanager
def served(options: argparse.Namespace) -> Iterator[Postgres | None]:
    """The server of the queue, where it is to be on one."""
    if not options.queue:
        yield None
        return
    with postgres.server(fsync=True) as made:
        yield made


def story(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="pawl-queue-") as room, served(options) as server:
        url = "" if server is None else server.url
        site = Site.made(Path(room), options.workspaces, options.jobs, url, options.dead)
        site.add(options.jobs)
        killer = Killer(site, options.workers, options.kills, options.jobs, random.Random(options.seed))
        killer.machines, killer.server, killer.stops = options.machines, server, options.stops
        began = time.monotonic()
        killer.go()
        load_now = os.getloadavg()[0]
        print(
            f"{options.jobs} jobs in {options.workspaces} workspaces, {options.workers} workers on"
            f" {options.machines} machines, seed {options.seed}:"
            f" {time.monotonic() - began:.0f} s, load {load_now:.1f}"
        )
        return judged(site, killer) + (len(serial(site, options)) if options.serial else 0)


def serial(site: Site | None, options: argparse.Namespace) -> list[str]:
    """The same requests one after the other, without a queue: where their trees are not those that were computed, nor
    those of the queue."""
    with tempfile.TemporaryDirectory(prefix="pawl-queue-") as room:
        other = Site.made(Path(room), options.workspaces, options.jobs)
        began = time.monotonic()
        for number in range(options.jobs):
            bare(other, number)
        differ = other.wrong_trees()
        for mine, its in zip(site.workspaces if site else (), other.workspaces, strict=site is not None):
            names = sorted({*os.listdir(mine), *os.listdir(its)})
            differ += [f"{mine.name}/{name}" for name in names if _content(mine / name) != _content(its / name)]
        took, load_now = time.monotonic() - began, os.getloadavg()[0]
        print(
            f"{options.jobs} one after the other: {took:.0f} s, load {load_now:.1f}; trees that differ: {differ[:20]}"
        )
        return differ


def _content(file: Path) -> tuple[int, bytes] | None:
    return (file.stat().st_mode, file.read_bytes()) if file.is_file() else None


def bare(site: Site, number: int) -> None:
    """The request of that number, without a queue."""
    folder, order = site.order(number)
    with Project.open(site.config(), folder) as shop:
        session = Session(shop)
        session.do(order)
        session.end()


def _cost(work: Callable[[], object]) -> tuple[float, float]:
    """Processor seconds of this process and its children, and wall seconds."""

    def used() -> float:
        both = (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
        return sum(one.ru_utime + one.ru_stime for one in both)

    before, began = used(), time.monotonic()
    work()
    return used() - before, time.monotonic() - began


def overhead(options: argparse.Namespace) -> int:
    """Bare and queued runs by turns in one process, so that both see the same load."""
    many = options.overhead
    with tempfile.TemporaryDirectory(prefix="pawl-queue-") as room, served(options) as server:
        site = Site.made(Path(room), 1, 4 * (many + 2 * BLOCK), "" if server is None else server.url)
        config = site.config()
        folder = site.workspaces[0]

        def added(number: int) -> None:
            with Project.open(config, folder) as shop:
                order = site.order(number)[1]
                add(shop, beside(queue, shop.store), JobWish(order=order), [order.text])

        def carried(worker: QueueWorker) -> None:
            worker.work(drains=True)

        figures: dict[str, list[tuple[float, float]]] = {"bare": [], "queue": []}
        memory = []
        with site.opened() as (_, queue):
            worker = QueueWorker(config=config, queue=queue, stop=CancelToken(), settings=QueueSettings())
            bare(site, 0)
            for block in range(1, many // BLOCK + 1):
                # The same kind of request for both.
                numbers = [4 * (block * BLOCK + one) for one in range(BLOCK)]
                for one in numbers:
                    added(one + 2)
                pair = [
                    ("bare", lambda numbers=numbers: [bare(site, one) for one in numbers]),
                    ("queue", lambda: carried(worker)),
                ]
                for name, work in pair if block % 2 else reversed(pair):
                    cpu, wall = _cost(work)
                    figures[name].append((cpu / BLOCK, wall / BLOCK))
                memory.append(_memory(os.getpid()))
            assert all(one.outcome is JobOutcome.DONE for one in queue.list())
        for name, pairs in figures.items():
            cpu, wall = (statistics.median(column) for column in zip(*pairs, strict=True))
            print(f"{name:6} median processor {cpu * 1000:.1f} ms, wall {wall * 1000:.1f} ms")
        cpu, wall = (
            statistics.median(b) - statistics.median(a)
            for a, b in zip(zip(*figures["bare"], strict=True), zip(*figures["queue"], strict=True), strict=True)
        )
        print(
            f"queue - bare: processor {cpu * 1000:.1f} ms, wall {wall * 1000:.1f} ms a run,"
            f" load {os.getloadavg()[0]:.1f}"
        )
        quarter = len(memory) // 4
        print(
            f"memory: {memory[quarter] >> 10} MB after {(quarter + 1) * 2 * BLOCK} runs,"
            f" {memory[-1] >> 10} MB after {len(memory) * 2 * BLOCK}"
        )
    return 0


def memory(options: argparse.Namespace) -> int:
    """One real worker from its first run to its last."""
    with tempfile.TemporaryDirectory(prefix="pawl-queue-") as room, served(options) as server:
        site = Site.made(Path(room), options.workspaces, options.memory, "" if server is None else server.url)
        site.add(options.memory)
        words = [sys.executable, "-P", "-m", "pawl", "-C", str(site.workspaces[0]), "worker", "--drain"]
        began = time.monotonic()
        with site.opened() as (_, queue), (Path(room) / "errors.txt").open("w") as errors:
            worker = subprocess.Popen(words, env=site.environment(), stdout=subprocess.DEVNULL, stderr=errors)
            told, step = 0, max(1, options.memory // 20)
            while worker.poll() is None:
                ended = options.memory - queue.depth()
                if ended >= told + step or (ended and not told):
                    told = ended
                    resident, threads = _memory(worker.pid), _memory(worker.pid, "Threads")
                    files = len(os.listdir(f"/proc/{worker.pid}/fd"))
                    print(f"{ended:5} runs: {resident / 1024:.1f} MB, {threads} threads, {files} files", flush=True)
                _pause(0.2)
            wrong = [one.id for one in queue.list() if one.outcome is not JobOutcome.DONE]
        took = time.monotonic() - began
        print(f"{took:.0f} s, load {os.getloadavg()[0]:.1f}; not done: {wrong}; wrong trees: {site.wrong_trees()}")
    return 0


def scaling(options: argparse.Namespace) -> int:
    """The same runs with one worker and with four, by turns."""
    walls: dict[int, list[float]] = {1: [], 4: []}
    with served(options) as server:
        for workers in (1, 4, 1, 4):
            with tempfile.TemporaryDirectory(prefix="pawl-queue-") as room:
                url = "" if server is None else server.fresh(f"q{os.urandom(4).hex()}")
                site = Site.made(Path(room), 8, options.scaling, url)
                site.wait = options.wait
                site.add(options.scaling)
                words = [sys.executable, "-P", "-m", "pawl", "-C", str(site.workspaces[0]), "queue", "run", "--workers"]
                cpu, wall = _cost(
                    lambda: subprocess.run(
                        [*words, str(workers)],  # noqa: B023
                        env=site.environment(),  # noqa: B023
                        check=True,
                        stdout=subprocess.DEVNULL,
                    )
                )
                print(
                    f"{workers} workers: {options.scaling} runs in {wall:.1f} s, processor {cpu:.1f} s,"
                    f" load {os.getloadavg()[0]:.1f}",
                    flush=True,
                )
                walls[workers].append(wall)
    print(f"four workers are {sum(walls[1]) / sum(walls[4]):.2f} times as fast as one")
    return 0


def rows(options: argparse.Namespace) -> int:
    """How the statements of the queue hold with many jobs."""
    order = RunRequest(text="one of many")
    terms = ClaimTerms(together=1000, providers={})
    with (
        tempfile.TemporaryDirectory(prefix="pawl-queue-") as room,
        served(options) as server,
        opened_queue(
            load({"PAWL_STATE": room, "HOME": room}), Store.open(Path(room)), server.url if server else ""
        ) as q,
    ):
        adding = 0.0
        for start in range(0, options.rows, options.batch):
            part = range(start, min(start + options.batch, options.rows))
            some = [NewJob(workspace=f"/project{one % 1000}", order=order) for one in part]
            adding += _cost(lambda: q.add(some))[1]  # noqa: B023
        print(
            f"{options.rows:,} jobs: adding {adding / options.rows * 1e6:.0f} us each in batches of {options.batch:,}"
        )
        if options.ended:
            _fill_up(q, Path(room), options.ended)
        held = []

        def claim() -> None:
            if server is None:
                job = q.next(terms, lambda number: True, 1)
            else:
                # Each by a worker of its own, none of which is called dead meanwhile.
                job = ServerQueue(server=q.server, store=q.store, home=q.home, dead_seconds=3600).take(
                    terms, ExitStack()
                )
            assert job is not None
            held.append(job)

        claims = [_cost(claim)[1] for _ in range(1000)]
        ends = [_cost(lambda: q.end(one.held, JobEnd(outcome=JobOutcome.DONE)))[1] for one in held]  # noqa: B023
        idle = _cost(q.is_idle)[1]
        looks = [_cost(lambda: q.holds(one.held))[1] for one in held]  # noqa: B023
        print(f"claim, up to 1,000 at work: {_both(claims)}; the last hundred: {_both(claims[-100:])}")
        print(
            f"end: {_both(ends)}; look: {_both(looks)}; is it empty: {idle * 1000:.2f} ms;"
            f" load {os.getloadavg()[0]:.1f}"
        )
        depth, listed = _cost(q.depth)[1], _cost(lambda: q.list(newest=1000))[1]
        more = _cost(lambda: q.add([NewJob(workspace="/project1", order=order)]))[1]
        print(
            f"counting what waits: {depth * 1000:.0f} ms; listing: {listed:.1f} s; adding one: {more * 1000:.1f} ms;"
            f" this process has {_memory(os.getpid()) >> 10} MB"
        )
        if server is not None:
            with q.together():
                size = q.server.rows("SELECT pg_database_size(current_database()) >> 20 AS size")[0]["size"]
            print(f"database: {size} MB")
    return 0


def _fill_up(queue: JobQueue, state: Path, many: int) -> None:
    """So many jobs that have ended, beside those that wait."""
    columns = "workspace, request, provider, priority, turn, requires, trace, created"
    more = (
        "INSERT INTO {0} ({1}, state, outcome, started, ended) SELECT {1}, 'ended', 'done', created, created FROM {0}"
    )
    if isinstance(queue, ServerQueue):
        with queue.together():
            queue.server.rows(more.format("pawl_job", f"home, seal, {columns}") + f" WHERE id <= {many}")
            return
    with sqlite3.connect(state / "pawl.db") as database:
        database.execute(more.format("job", columns) + f" WHERE id <= {many}")


def simulate(options: argparse.Namespace) -> int:
    """Ends and claims stand in one line; looks and heartbeats do not, and need the processors of the database."""
    claim, end, look = (float(one) / 1000 for one in options.simulate.split(","))
    many, jobs = 1000, 1_000_000
    print(f"claim {claim * 1000:g} ms and end {end * 1000:g} ms one after the other, a look {look * 1000:g} ms")
    print("run of  jobs/s  of what 1,000 workers could  in line for the next  processors of the database")
    for run in (1, 2, 5, 10, 30, 60, 300):
        chance = random.Random(run)
        free, line = 0.0, 0.0
        workers = [0.0] * many
        for _ in range(jobs):
            asked = workers[0]
            free = max(free, asked) + end + claim
            line += free - asked
            heapq.heapreplace(workers, free + chance.expovariate(1 / run))
        wall = max(workers)
        # Each looks once a second whether it was cancelled, and tells that it lives five times in half a minute.
        processors = (jobs * (claim + end) + many * wall * look * 1.2) / wall
        rate = jobs / wall
        print(f"{run:4} s  {rate:6.0f}  {rate * run / many:27.0%}  {line / jobs:17.3f} s  {processors:26.2f}")
    return 0


def _both(values: Sequence[float]) -> str:
    ordered = sorted(values)
    return f"median {statistics.median(ordered) * 1000:.2f} ms, most {ordered[-1] * 1000:.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, usual in (
        ("jobs", 1000),
        ("workspaces", 20),
        ("workers", 2),
        ("kills", 200),
        ("seed", 1),
        ("machines", 1),
    ):
        parser.add_argument(f"--{name}", type=int, default=usual)
    parser.add_argument("--dead", type=float, default=3.0, metavar="SECONDS")
    parser.add_argument("--stops", type=float, default=0.2, metavar="SHARE")
    parser.add_argument("--serial", action="store_true")
    parser.add_argument("--ended", type=int, default=0, metavar="N")
    parser.add_argument("--wait", type=int, default=0, metavar="MS")
    parser.add_argument("--overhead", type=int, metavar="N")
    parser.add_argument("--memory", type=int, metavar="N")
    parser.add_argument("--rows", type=int, metavar="N")
    parser.add_argument("--simulate", metavar="CLAIM,END,LOOK")
    parser.add_argument("--batch", type=int, default=10_000, metavar="N")
    parser.add_argument("--scaling", type=int, metavar="N")
    parser.add_argument("--queue", choices=["postgres"])
    options = parser.parse_args()
    if options.simulate:
        return simulate(options)
    if options.overhead:
        return overhead(options)
    if options.memory:
        return memory(options)
    if options.serial and not options.workers:
        return min(1, len(serial(None, options)))
    if options.scaling:
        return scaling(options)
    return rows(options) if options.rows else min(1, story(options))


if __name__ == "__main__":
    sys.exit(main())
