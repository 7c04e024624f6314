"""A process in which pytest waits on its way to the tests: a fork of it imports the program in a moment."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import select
import sys
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import Any

from reflex_inside.hosts import Pauses, run_pytest
from reflex_inside.limits import Caught, end_child
from reflex_inside.plan import Request
from reflex_inside.suite import Suite
from reflex_inside.workers import receive, send

SECONDS_PER_TEST = 3.0


@dataclass(frozen=True, slots=True)
class Task:
    """What a fork is to find out: whether tests pass with a file replaced."""

    path: str
    data: bytes
    names: tuple[str, ...] = ()
    """The tests that have to pass, in this order."""
    seconds: float = 60.0
    only: tuple[str, ...] = ()
    """What to collect; empty means everything."""
    excused: frozenset[str] = frozenset()
    """Places that could not be collected for reasons of their own, and tests that need not pass."""
    whole: bool = False
    """Whether all tests have to pass that are collected, not only the named ones."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """What every fork would otherwise do again: imports of the standard library, compiling sources and tests."""

    modules: tuple[str, ...]
    sources: tuple[str, ...]
    tests: tuple[str, ...]


class Warm:
    """Answers tasks with True or False, or with None where it cannot tell."""

    def __init__(self, request: Request, *, early: bool = False) -> None:
        self.request = request
        inbox, self.outbox = os.pipe()
        self.inbox, outbox = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with Caught():
                os.close(self.outbox)
                os.close(self.inbox)
                _Forks(request, (inbox, outbox), early=early).run()
            os._exit(0)
        os.close(inbox)
        os.close(outbox)

    def answer(self, task: Task | Preparation) -> Any:
        with Caught():
            send(self.outbox, task)
            return receive(self.inbox)
        return None

    def close(self) -> None:
        os.close(self.outbox)
        os.close(self.inbox)
        end_child(self.process)


class _Forks(Pauses):
    """Inside pytest's own run: stops before collection, or before any conftest, and goes on only in forks."""

    def __init__(self, request: Request, pipes: tuple[int, int], *, early: bool) -> None:
        self.request = request
        self.inbox, self.outbox = pipes
        self.early = early
        self.task: Task | None = None
        self.reply = -1

    def run(self) -> None:
        run_pytest(self.request, self._judge, self)
        if self.task is not None:
            # The fork did not get as far as its tests.
            self._say(answer=False)

    def before_conftests(self) -> None:
        if self.early:
            self._wait(None)

    def before_collection(self, session: Any) -> None:
        if not self.early:
            self._wait(session.config)
        if self.task is not None and self.task.only:
            session.config.args = list(self.task.only)

    def _wait(self, config: Any) -> None:
        """Returns only in a fork, which then goes on."""
        while (task := receive(self.inbox)) is not None:
            if isinstance(task, Preparation):
                with Caught():
                    prepare(task, config)
                send(self.outbox, True)
                continue
            if is_imported(task.path):
                send(self.outbox, None)
                continue
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(read)
                self.task, self.reply = task, write
                serve_instead(task.path, task.data)
                return
            os.close(write)
            ready, _, _ = select.select([read], [], [], task.seconds)
            answer = receive(read) if ready else None
            os.close(read)
            end_child(child)
            send(self.outbox, bool(answer))
        os._exit(0)

    def _judge(self, suite: Suite) -> None:
        assert self.task is not None
        self._say(answer=passes(self.task, suite))

    def _say(self, *, answer: bool) -> None:
        send(self.reply, answer)
        os._exit(0)


def passes(task: Task, suite: Suite) -> bool:
    """Whether the tests pass that the task asks for, and everything could be collected."""
    if any(problem.place not in task.excused for problem in suite.problems):
        return False
    places = {case.name: index for index, case in enumerate(suite.cases)}
    if not places or any(name not in places for name in task.names):
        return False
    order = [places[name] for name in task.names]
    if task.whole:
        known = {*task.names, *task.excused}
        order += [index for name, index in places.items() if name not in known]
    return all(suite.run(index, SECONDS_PER_TEST).passed for index in order)


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


def prepare(preparation: Preparation, config: Any) -> None:
    """Does in this process what its forks then find done; what cannot be done is left to them."""
    for name in preparation.modules:
        with Caught():
            importlib.import_module(name)
    compiled: dict[str, tuple[bytes, CodeType]] = {}
    for path in preparation.sources:
        with Caught():
            data = Path(path).read_bytes()
            compiled[path] = (data, compile(data, path, "exec", dont_inherit=True))
    remember_compiled(compiled)
    with Caught():
        remember_rewritten(preparation.tests, config)


def remember_compiled(compiled: dict[str, tuple[bytes, CodeType]]) -> None:
    loader: Any = importlib.machinery.SourceFileLoader
    translate = loader.source_to_code

    def source_to_code(self: Any, data: bytes, path: str, **options: Any) -> Any:
        known = compiled.get(path)
        return known[1] if known is not None and known[0] == data else translate(self, data, path, **options)

    loader.source_to_code = source_to_code


def remember_rewritten(tests: tuple[str, ...], config: Any) -> None:
    """Keeps tests as pytest compiles them, with its own kind of assertions."""
    from _pytest.assertion import rewrite

    module: Any = rewrite
    translate = module._rewrite_test
    known: dict[str, Any] = {}
    for path in tests:
        with Caught():
            known[path] = translate(Path(path), config)

    def rewritten(path: Path, used: Any) -> Any:
        return known.get(str(path)) or translate(path, used)

    module._rewrite_test = rewritten
