"""Processes from before the program was imported: each candidate that acts at import gets a fork of one."""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any

from reflex_inside.edits import Candidate
from reflex_inside.hosts import run_host
from reflex_inside.limits import Caught, end_child, forked, limit_memory, silence
from reflex_inside.plan import Request
from reflex_inside.suite import Suite
from reflex_inside.warm import Preparation, Task, Warm, passes, serve_instead
from reflex_inside.workers import receive, send

MOST_PLAUSIBLE = 3
RIVAL_SECONDS = 3.0
LONGEST_TRIAL = 60.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Asks which lines of files below a folder run while the tests are collected."""

    folder: str
    seconds: float


class Zygote:
    def __init__(self, request: Request) -> None:
        self.request = request
        inbox, self.outbox = os.pipe()
        self.inbox, outbox = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with Caught():
                os.close(self.outbox)
                os.close(self.inbox)
                silence()
                self._serve(inbox, outbox)
            os._exit(0)
        os.close(inbox)
        os.close(outbox)

    def _serve(self, inbox: int, outbox: int) -> None:
        limit_memory(self.request.memory)
        warm = Warm(self.request) if self.request.framework == "pytest" else None
        early, preparation = False, None
        while (task := receive(inbox)) is not None:
            if isinstance(task, Watch):
                send(outbox, forked(lambda: self._watch(task.folder), task.seconds))
                continue
            answer = warm.answer(task) if warm is not None else None
            if isinstance(task, Preparation):
                preparation = task
            elif answer is None and warm is not None and not early:
                # A conftest has imported the program: forks have to begin before that.
                warm.close()
                warm, early = Warm(self.request, early=True), True
                if preparation is not None:
                    warm.answer(preparation)
                answer = warm.answer(task)
            if answer is None and isinstance(task, Task):
                answer = bool(forked(lambda: self._passes(task), task.seconds))
            send(outbox, answer)

    def _passes(self, task: Task) -> bool:
        serve_instead(task.path, task.data)
        passed: list[bool] = []
        request = self.request
        # Options may belong to the words between them: then all of them stay.
        if task.only and request.framework == "pytest" and not any(word.startswith("-") for word in request.tests):
            request = replace(request, tests=task.only)
        run_host(request, lambda suite: passed.append(passes(task, suite)))
        return passed == [True]

    def _watch(self, folder: str) -> set[tuple[str, int]]:
        ran: set[tuple[str, int]] = set()
        inside = folder + os.sep

        def step(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                ran.add((frame.f_code.co_filename, frame.f_lineno))
            return step

        def enter(frame: FrameType, event: str, argument: Any) -> Any:
            return step if frame.f_code.co_filename.startswith(inside) else None

        def stop(suite: Suite) -> None:
            sys.settrace(None)

        sys.settrace(enter)
        run_host(self.request, stop)
        sys.settrace(None)
        return ran

    def prepare(self, preparation: Preparation) -> None:
        send(self.outbox, preparation)

    def begin(self, task: Task) -> None:
        send(self.outbox, task)

    def result(self) -> bool:
        return bool(receive(self.inbox))

    def passes(self, task: Task) -> bool:
        self.begin(task)
        return self.result()

    def lines_at_import(self, folder: str, seconds: float) -> frozenset[tuple[str, int]]:
        """The lines that run while the tests are collected; empty where that cannot be told."""
        send(self.outbox, Watch(folder, seconds))
        return frozenset(receive(self.inbox) or ())

    def close(self) -> None:
        os.close(self.outbox)
        os.close(self.inbox)
        end_child(self.process)


@dataclass(slots=True)
class Trials:
    """Judges candidates, several at a time: by a few tests first, then by all."""

    zygotes: list[Zygote]
    first: Callable[[Candidate], Task]
    last: Callable[[Candidate], Task]
    tried: int = 0

    def search(
        self, take: Callable[[], Candidate | None], deadline: float, report: Callable[[], None]
    ) -> list[Candidate]:
        """The first candidates that pass, from those that can be taken before the deadline."""
        plausible: list[Candidate] = []
        busy: dict[int, tuple[Zygote, Candidate, bool]] = {}
        while True:
            for zygote in self.zygotes:
                left = deadline - time.monotonic()
                if zygote.inbox in busy or left <= 0 or len(plausible) >= MOST_PLAUSIBLE:
                    continue
                if (candidate := take()) is None:
                    break
                zygote.begin(replace(self.first(candidate), seconds=min(left + 1, LONGEST_TRIAL)))
                busy[zygote.inbox] = (zygote, candidate, False)
            if not busy:
                return plausible
            ready, _, _ = select.select(list(busy), [], [])
            for inbox in ready:
                zygote, candidate, last = busy.pop(inbox)
                passed = zygote.result()
                if passed and not last:
                    left = max(1.0, deadline - time.monotonic())
                    zygote.begin(replace(self.last(candidate), seconds=min(left + 1, LONGEST_TRIAL)))
                    busy[inbox] = (zygote, candidate, True)
                    continue
                self.tried += 1
                report()
                if passed:
                    plausible.append(candidate)
                    deadline = min(deadline, time.monotonic() + RIVAL_SECONDS)
