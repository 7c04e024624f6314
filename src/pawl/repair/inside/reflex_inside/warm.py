"""A process in which pytest is set up and has collected nothing yet: a fork of it imports the program in a moment."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import select
import sys
from dataclasses import dataclass
from types import FrameType
from typing import Any

from reflex_inside.caught import Caught, end_child
from reflex_inside.hosts import run_pytest
from reflex_inside.protocol import Request
from reflex_inside.suite import Suite
from reflex_inside.workers import receive, send

SECONDS_PER_TEST = 3.0


@dataclass(frozen=True, slots=True)
class Task:
    """What a fork is to find out: whether tests pass with a file replaced, or what runs while all is imported."""

    path: str
    data: bytes
    names: tuple[str, ...] = ()
    seconds: float = 60.0
    watches_import: bool = False


class Warm:
    """Answers tasks with True or False, with the functions that ran at import, or with None where it cannot tell."""

    def __init__(self, request: Request) -> None:
        self.request = request
        inbox, self.outbox = os.pipe()
        self.inbox, outbox = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with Caught():
                os.close(self.outbox)
                os.close(self.inbox)
                _Forks(request, inbox, outbox).run()
            os._exit(0)
        os.close(inbox)
        os.close(outbox)

    def answer(self, task: Task) -> Any:
        with Caught():
            send(self.outbox, task)
            return receive(self.inbox)
        return None

    def close(self) -> None:
        os.close(self.outbox)
        os.close(self.inbox)
        end_child(self.process)


class _Forks:
    """Inside pytest's own run: stops before collection and goes on only in forks."""

    def __init__(self, request: Request, inbox: int, outbox: int) -> None:
        self.request = request
        self.inbox = inbox
        self.outbox = outbox
        self.task: Task | None = None
        self.reply = -1
        self.entered: set[tuple[str, int]] = set()

    def run(self) -> None:
        run_pytest(self.request, self._judge, before_collection=self._wait)
        if self.task is not None:
            # The fork did not get as far as its tests.
            self._say(sorted(self.entered) if self.task.watches_import else False)

    def _wait(self) -> None:
        """Returns only in a fork, which then collects."""
        while (task := receive(self.inbox)) is not None:
            if task.path and is_imported(task.path):
                send(self.outbox, None)
                continue
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(read)
                self.task, self.reply = task, write
                self._prepare(task)
                return
            os.close(write)
            ready, _, _ = select.select([read], [], [], task.seconds)
            answer = receive(read) if ready else None
            os.close(read)
            end_child(child)
            send(self.outbox, False if answer is None else answer)
        os._exit(0)

    def _prepare(self, task: Task) -> None:
        if task.watches_import:
            sys.setprofile(self._enter)
        else:
            serve_instead(task.path, task.data)

    def _enter(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            self.entered.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))

    def _judge(self, suite: Suite) -> None:
        assert self.task is not None
        if self.task.watches_import:
            sys.setprofile(None)
            self._say(sorted(self.entered))
        places = {case.name: index for index, case in enumerate(suite.cases)}
        names = self.task.names
        passed = all(name in places and suite.run(places[name], SECONDS_PER_TEST).passed for name in names)
        self._say(passed)

    def _say(self, answer: Any) -> None:
        send(self.reply, answer)
        os._exit(0)


def is_imported(path: str) -> bool:
    """Whether something, such as a conftest, has imported the file before any test was looked for."""
    return any(getattr(module, "__file__", None) == path for module in list(sys.modules.values()))


def serve_instead(path: str, data: bytes) -> None:
    """Makes every import of the file see other content."""
    loader = importlib.machinery.SourceFileLoader
    read = loader.get_data

    def get_data(self: Any, wanted: str) -> bytes:
        if wanted == path:
            return data
        if wanted == importlib.util.cache_from_source(path):
            raise OSError(f"{wanted!r} is older than its source")
        return read(self, wanted)

    loader.get_data = get_data  # type: ignore[method-assign, assignment]
