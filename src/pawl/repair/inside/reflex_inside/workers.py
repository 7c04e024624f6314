"""Forked workers that judge candidates; one that dies or hangs is replaced and its candidate dropped."""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import select
import struct
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from reflex_inside.edits import Candidate
from reflex_inside.judge import Judge, Judgement, Verdict
from reflex_inside.limits import Caught, end_child, limit_memory, silence

HEADER = struct.Struct("<I")
SLOT = struct.Struct("<q")
BATCH_SECONDS = 0.04
LARGEST_BATCH = 64
HUNG_SECONDS = 25.0
COLLECT_EVERY = 400

Task = tuple[int, Candidate, float]


def send(descriptor: int, value: Any) -> None:
    data = pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    data = HEADER.pack(len(data)) + data
    while data:
        data = data[os.write(descriptor, data) :]


def receive(descriptor: int) -> Any:
    """The next value; None when the other side is gone."""
    header = _read(descriptor, HEADER.size)
    if header is None:
        return None
    data = _read(descriptor, HEADER.unpack(header)[0])
    return None if data is None else pickle.loads(data)


def _read(descriptor: int, size: int) -> bytes | None:
    parts = b""
    while len(parts) < size:
        part = os.read(descriptor, size - len(parts))
        if not part:
            return None
        parts += part
    return parts


@dataclass(slots=True)
class Worker:
    number: int
    process: int
    inbox: int
    outbox: int
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
        self.broken = 0
        self.dropped = 0
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
            ready, _, _ = select.select([worker.outbox for worker in busy], [], [], 0.1)
            for worker in busy:
                if worker.outbox in ready:
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
            send(worker.inbox, batch)

    def _spawn(self, number: int) -> Worker:
        to_read, to_write = os.pipe()
        from_read, from_write = os.pipe()
        process = os.fork()
        if process == 0:
            with Caught():
                os.close(to_write)
                os.close(from_read)
                self._work(number, to_read, from_write)
            os._exit(0)
        os.close(to_read)
        os.close(from_write)
        worker = Worker(number, process, to_write, from_read)
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
        received = receive(worker.outbox)
        if received is None:
            yield from self._replace(worker)
            return
        serial, judgement, cpu = received
        candidate, limit = worker.tasks.pop(serial)
        self.pace = 0.9 * self.pace + 0.1 * max(0.0002, cpu - worker.cpu)
        worker.cpu = cpu
        worker.since = time.monotonic()
        self.tried += 1
        self.broken += judgement.verdict is Verdict.BROKEN
        yield Result(candidate, limit, judgement)

    def _watch(self, worker: Worker) -> None:
        (current,) = SLOT.unpack_from(self.slots, SLOT.size * worker.number)
        if current != worker.seen:
            worker.seen, worker.since = current, time.monotonic()
        longest = max((limit for _, limit in worker.tasks.values()), default=0.0)
        if time.monotonic() - worker.since > HUNG_SECONDS + 10 * longest:
            end_child(worker.process)

    def _replace(self, worker: Worker) -> Iterator[Result]:
        """The worker is gone: the candidate it was at is given up, the others are judged by its successor."""
        (current,) = SLOT.unpack_from(self.slots, SLOT.size * worker.number)
        left = {serial: task for serial, task in worker.tasks.items() if serial != current}
        guilty = worker.tasks.get(current)
        self._end(worker)
        if guilty is not None:
            self.dropped += 1
            yield Result(*guilty, Judgement(Verdict.FAILED))
        if left:
            successor = self._spawn(worker.number)
            successor.tasks = left
            successor.since = time.monotonic()
            send(successor.inbox, [(serial, *task) for serial, task in left.items()])

    def _end(self, worker: Worker) -> None:
        end_child(worker.process)
        os.close(worker.inbox)
        os.close(worker.outbox)
        self.ended_cpu += worker.cpu
        del self.workers[worker.number]

    def stop(self) -> None:
        for worker in list(self.workers.values()):
            self._end(worker)
