"""The search: candidates by cost, judged in forked workers, until a patch and its rivals are known or time is up."""

from __future__ import annotations

import contextlib
import gc
import itertools
import mmap
import select
import struct
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

from reflex_inside.judge import Judge, Judgement, PatchVerdict
from reflex_inside.processes import Child, end_child, limit_memory, receive, send, silence
from reflex_inside.program import Candidate, Frontier

SLOT = struct.Struct("<q")
BATCH_SECONDS = 0.04
LARGEST_BATCH = 64
HUNG_SECONDS = 25.0
COLLECT_EVERY = 400

Task = tuple[int, Candidate, float]


@dataclass(slots=True)
class Worker:
    number: int
    child: Child
    tasks: dict[int, tuple[Candidate, float]] = field(default_factory=dict)
    seen: int = -1
    since: float = 0.0
    cpu: float = 0.0


@dataclass(frozen=True, slots=True)
class Result:
    candidate: Candidate
    limit: float
    judgement: Judgement


class Pool:
    """Keeps some workers busy with batches of candidates."""

    def __init__(self, judge: Judge, count: int, memory: int) -> None:
        self.judge = judge
        self.count = max(1, count)
        self.memory = memory
        self.slots = mmap.mmap(-1, SLOT.size * self.count)
        self.workers: dict[int, Worker] = {}
        self.tried = 0
        self.ended_cpu = 0.0
        self.pace = 0.002
        self.serial = 0

    @property
    def cpu(self) -> float:
        return self.ended_cpu + sum(worker.cpu for worker in self.workers.values())

    def judged(self, take: Callable[[], tuple[Candidate, float] | None], deadline: float) -> Iterator[Result]:
        """Results as they come, until nothing is left to take or the deadline has passed."""
        while time.monotonic() < deadline:
            for number in range(self.count):
                self._feed(number, take)
            busy = [worker for worker in self.workers.values() if worker.tasks]
            if not busy:
                return
            ready, _, _ = select.select([worker.child.inbox for worker in busy], [], [], 0.1)
            for worker in busy:
                if worker.child.inbox in ready:
                    yield from self._collect(worker)
                else:
                    self._watch(worker)

    def _feed(self, number: int, take: Callable[[], tuple[Candidate, float] | None]) -> None:
        worker = self.workers.get(number)
        if worker is not None and worker.tasks:
            return
        batch: list[Task] = []
        size = max(1, min(LARGEST_BATCH, int(BATCH_SECONDS / self.pace)))
        while len(batch) < size and (taken := take()) is not None:
            self.serial += 1
            batch.append((self.serial, *taken))
            if taken[1]:
                break
        if not batch:
            return
        if worker is None:
            worker = self._spawn(number)
        worker.tasks = {serial: (candidate, limit) for serial, candidate, limit in batch}
        worker.since = time.monotonic()
        with contextlib.suppress(BrokenPipeError):
            worker.child.send(batch)

    def _spawn(self, number: int) -> Worker:
        worker = Worker(number, Child(lambda inbox, outbox: self._work(number, inbox, outbox)))
        self.workers[number] = worker
        return worker

    def _work(self, number: int, inbox: int, outbox: int) -> None:
        silence()
        gc.disable()
        limit_memory(self.memory)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), 1000))
        done = 0
        while (batch := receive(inbox)) is not None:
            for serial, candidate, limit in batch:
                SLOT.pack_into(self.slots, SLOT.size * number, serial)
                judgement = self.judge.judge(candidate, limit)
                send(outbox, (serial, judgement, time.process_time()))
                done += 1
                if done % COLLECT_EVERY == 0:
                    gc.collect()

    def _collect(self, worker: Worker) -> Iterator[Result]:
        received = worker.child.receive()
        if received is None:
            yield from self._replace(worker)
            return
        serial, judgement, cpu = received
        candidate, limit = worker.tasks.pop(serial)
        self.pace = 0.9 * self.pace + 0.1 * max(0.0002, cpu - worker.cpu)
        worker.cpu = cpu
        worker.since = time.monotonic()
        self.tried += 1
        yield Result(candidate, limit, judgement)

    def _watch(self, worker: Worker) -> None:
        (current,) = SLOT.unpack_from(self.slots, SLOT.size * worker.number)
        if current != worker.seen:
            worker.seen, worker.since = current, time.monotonic()
        longest = max((limit for _, limit in worker.tasks.values()), default=0.0)
        if time.monotonic() - worker.since > HUNG_SECONDS + 10 * longest:
            end_child(worker.child.process)

    def _replace(self, worker: Worker) -> Iterator[Result]:
        """The worker is gone: the candidate it was at is given up, the others are judged by its successor."""
        (current,) = SLOT.unpack_from(self.slots, SLOT.size * worker.number)
        left = {serial: task for serial, task in worker.tasks.items() if serial != current}
        guilty = worker.tasks.get(current)
        self._end(worker)
        if guilty is not None:
            yield Result(*guilty, Judgement(PatchVerdict.FAILED))
        if left:
            successor = self._spawn(worker.number)
            successor.tasks = left
            successor.since = time.monotonic()
            successor.child.send([(serial, *task) for serial, task in left.items()])

    def _end(self, worker: Worker) -> None:
        worker.child.close()
        self.ended_cpu += worker.cpu
        del self.workers[worker.number]

    def stop(self) -> None:
        for worker in list(self.workers.values()):
            self._end(worker)


RIVAL_COST = 2.2
"""How much dearer than the first plausible patch a rival may be."""
RIVAL_CPU = 2.0
ENOUGH = 60
LONGEST_LIMIT = 8.0
RETRY_LIMITS = (0.3, 1.5, LONGEST_LIMIT)
PROGRESS_SECONDS = 0.5
WAIT_SECONDS = 0.5


@dataclass(slots=True)
class PatchSearch:
    """State of one search over a frontier."""

    frontier: Frontier
    pool: Pool
    deadline: float
    limit: float
    failing: int
    stuck: bool = False
    """The first test hung before any change too, so that a candidate which hangs there has told nothing new."""
    report: Callable[[PatchSearch], None] = lambda search: None
    arrived: Callable[[float], Iterable[Candidate]] = lambda seconds: ()
    """Candidates that come from elsewhere, waited for as long as this."""
    more: Callable[[], bool] = lambda: False
    """Whether more can still come from elsewhere."""
    plausible: list[Candidate] = field(default_factory=list)
    stop_cpu: float = float("inf")
    stop_cost: float = float("inf")

    def run(self) -> None:
        while time.monotonic() < self.deadline and not self._enough():
            self._judge_all()
            if not self.more() or self.frontier.bound > self.stop_cost:
                break
            self.frontier.add(self.arrived(WAIT_SECONDS))
        self.report(self)

    def _judge_all(self) -> None:
        reported = 0.0
        for result in self.pool.judged(self._take, self.deadline):
            self._note(result)
            now = time.monotonic()
            if now - reported > PROGRESS_SECONDS:
                reported = now
                self.report(self)
            if self._enough():
                break

    def _enough(self) -> bool:
        return self.pool.cpu > self.stop_cpu or len(self.plausible) >= ENOUGH

    def _take(self) -> tuple[Candidate, float] | None:
        self.frontier.add(self.arrived(0.0))
        if self.frontier.bound > self.stop_cost:
            return None
        return self.frontier.next()

    def _note(self, result: Result) -> None:
        candidate, judgement = result.candidate, result.judgement
        if judgement.verdict is PatchVerdict.PLAUSIBLE:
            self.plausible.append(candidate)
            if len(self.plausible) == 1:
                self.stop_cpu = self.pool.cpu + RIVAL_CPU * self.pool.count
                self.stop_cost = candidate.cost + RIVAL_COST
        elif judgement.verdict is PatchVerdict.SLOW:
            self._retry(result)

    def _retry(self, result: Result) -> None:
        """Slow right programs exist; one that has fixed nearly everything is looked at again at once."""
        used = result.limit or self.limit
        if used >= LONGEST_LIMIT or self.plausible:
            return
        nearly = result.judgement.fixed >= max(1, self.failing - 1)
        steps = sum(used >= step for step in RETRY_LIMITS)
        some = 1.0 if result.judgement.fixed else 6.0 if self.stuck else 3.0
        penalty = (0.3 if nearly and result.judgement.fixed else some) + 1.0 * steps
        limit = next((step for step in RETRY_LIMITS if step > used * 2), LONGEST_LIMIT)
        self.frontier.retry(result.candidate, penalty, limit)


MOST_FIRST = 8
FIRST_TRIED = 4000
SECOND_TRIED = 2500


def partial_fixes(judge: Judge, candidates: list[Candidate], seconds: float) -> list[tuple[int, Candidate]]:
    """The candidates that fix most of the failing tests while keeping the passing ones, best first."""
    deadline = time.monotonic() + seconds
    found: list[tuple[int, Candidate]] = []
    for candidate in candidates[:FIRST_TRIED]:
        if time.monotonic() > deadline:
            break
        fixed = judge.count_fixed(candidate)
        if fixed:
            found.append((fixed, candidate))
    found.sort(key=lambda pair: (-pair[0], pair[1].cost))
    return found[: MOST_FIRST * 3]


def pairs(firsts: list[tuple[int, Candidate]], candidates: list[Candidate]) -> Iterator[Candidate]:
    """Each promising first edit with every cheap second one that does not overlap it."""
    lines: dict[tuple[str, int], int] = {}
    for _, first in firsts:
        place = (first.path, first.line)
        lines[place] = lines.get(place, 0) + 1
        # Many first edits of one line are variants of one idea.
        if lines[place] > 3 or first.at_import:
            continue
        for second in itertools.islice(candidates, SECOND_TRIED):
            if second.function == first.function and apart(first, second):
                yield replace(
                    first,
                    cost=first.cost + second.cost,
                    template=f"{first.template} and {second.template}",
                    edits=tuple(sorted(first.edits + second.edits)),
                )


def apart(first: Candidate, second: Candidate) -> bool:
    every = itertools.product(first.edits, second.edits)
    return not second.at_import and all(one.end < other.start or other.end < one.start for one, other in every)
