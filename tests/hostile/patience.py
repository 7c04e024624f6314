"""How long a command has had, whatever else the machine does meanwhile."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

PATIENCE = 10.0
"""Seconds of its own after which a command hangs."""
LONGEST = 120.0
"""Seconds after which it hangs in any case."""
_LOOK = 0.5
CORES = len(os.sched_getaffinity(0))


class Clock:
    """The seconds that a process and what it started have had.

    Those in which something of it was ready and others computed are none; where its own tasks keep each other waiting,
    what they compute counts, spread over all processors.
    """

    def __init__(self, pid: int) -> None:
        self.pid, self.had = pid, 0.0
        self.begun = self.looked = time.monotonic()
        self.tasks = dict(_tasks(pid))

    def look(self) -> float:
        """To be called often: a task that ended meanwhile is not seen."""
        now, tasks = time.monotonic(), dict(_tasks(self.pid))
        before = [self.tasks.get(task, (0, 0)) for task in tasks]
        computed, waited = (
            (sum(task[at] for task in tasks.values()) - sum(task[at] for task in before)) / 1e9 for at in (0, 1)
        )
        self.had += max(0.0, now - self.looked - waited, min(now - self.looked, computed / CORES))
        self.looked, self.tasks = now, tasks
        return self.had

    def patient(self, patience: float = PATIENCE) -> bool:
        """Whether there is no reason yet to call it a hang."""
        if time.monotonic() > self.looked + _LOOK:
            self.look()
        return self.had < patience and self.looked < self.begun + LONGEST

    def until(self, *descriptors: int, patience: float = PATIENCE) -> Sequence[int]:
        """Those that can be read; none where it hangs."""
        while self.patient(patience):
            if ready := select.select(descriptors, [], [], _LOOK)[0]:
                return ready
        return ()


def tell_where(pid: int) -> None:
    """Lets a process that hangs write on its standard error where it stands."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGUSR1)
        select.select([], [], [], 0.5)


def _tasks(pid: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """For each task of a process and of what it started how long it computed, and how long it was ready in vain."""
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            place = f"/proc/{pid}/task/{task}"
            with contextlib.suppress(OSError):
                computed, waited, _ = Path(place, "schedstat").read_bytes().split()
                yield task, (int(computed), int(waited))
                for child in Path(place, "children").read_bytes().split():
                    yield from _tasks(int(child))
