"""Processes from before the program was imported: each candidate that acts at import gets a fork of one."""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import select
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from reflex_inside.processes import Catch, Child, end_child, forked, limit_memory, receive, send, silence, tracing
from reflex_inside.program import Candidate
from reflex_inside.suite import EngineRequest, Suite, run_host, run_pytest

SECONDS_PER_TEST = 3.0


@dataclass(frozen=True, slots=True)
class TrialTask:
    """Asks a fork whether tests pass with a file replaced."""

    path: str
    data: bytes
    names: tuple[str, ...] = ()
    """The tests that have to pass, in this order."""
    seconds: float = 60.0
    only: tuple[str, ...] = ()
    """Places to collect; empty means everything."""
    excused: frozenset[str] = frozenset()
    """Places that could not be collected for reasons of their own, and tests that need not pass."""
    whole: bool = False
    """Whether all tests have to pass that are collected, not only the named ones."""


@dataclass(frozen=True, slots=True)
class Preparation:
    """Work that every fork would do again: imports of the standard library, compiling sources and tests."""

    modules: tuple[str, ...]
    sources: tuple[str, ...]
    tests: tuple[str, ...]


class Warm(Child):
    """Answers tasks with True or False, or with None where it cannot tell."""

    def __init__(self, request: EngineRequest, *, early: bool = False) -> None:
        super().__init__(lambda inbox, outbox: _Forks(request, (inbox, outbox), early=early).run())

    def answer(self, task: TrialTask | Preparation) -> Any:
        with Catch():
            self.send(task)
            return self.receive()
        return None


class _Forks:
    """Inside pytest's own run: stops before collection, or before any conftest, and goes on only in forks."""

    def __init__(self, request: EngineRequest, pipes: tuple[int, int], *, early: bool) -> None:
        self.request = request
        self.inbox, self.outbox = pipes
        self.early = early
        self.task: TrialTask | None = None
        self.reply = -1

    def run(self) -> None:
        run_pytest(self.request, self._judge, (self.before_conftests, self.before_collection))
        if self.task is not None:
            # The fork did not get as far as its tests.
            self._say(answer=False)

    def before_conftests(self, session: Any) -> None:
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
                with Catch():
                    prepare(task, config)
                send(self.outbox, True)
                continue
            if any(getattr(module, "__file__", None) == task.path for module in list(sys.modules.values())):
                # Something, such as a conftest, has imported it before any test was looked for.
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


def passes(task: TrialTask, suite: Suite) -> bool:
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
        with Catch():
            importlib.import_module(name)
    compiled: dict[str, tuple[bytes, CodeType]] = {}
    for path in preparation.sources:
        with Catch():
            data = Path(path).read_bytes()
            compiled[path] = (data, compile(data, path, "exec", dont_inherit=True))
    remember_compiled(compiled)
    with Catch():
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
        with Catch():
            known[path] = translate(Path(path), config)

    def rewritten(path: Path, used: Any) -> Any:
        return known.get(str(path)) or translate(path, used)

    module._rewrite_test = rewritten


MOST_PLAUSIBLE = 3
RIVAL_SECONDS = 3.0
LONGEST_TRIAL = 60.0


@dataclass(frozen=True, slots=True)
class Watch:
    """Asks which lines of files below a folder run while the tests are collected."""

    folder: str
    seconds: float


class Zygote(Child):
    def __init__(self, request: EngineRequest) -> None:
        self.request = request
        super().__init__(self._serve)

    def _serve(self, inbox: int, outbox: int) -> None:
        silence()
        limit_memory(self.request.memory_bytes)
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
            if answer is None and isinstance(task, TrialTask):
                answer = bool(forked(lambda: self._passes(task), task.seconds))
            send(outbox, answer)

    def _passes(self, task: TrialTask) -> bool:
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

        with tracing(enter):
            run_host(self.request, stop)
        return ran

    def result(self) -> bool:
        return bool(self.receive())

    def passes(self, task: TrialTask) -> bool:
        self.send(task)
        return self.result()

    def lines_at_import(self, folder: str, seconds: float) -> frozenset[tuple[str, int]]:
        """The lines that run while the tests are collected; empty where that cannot be told."""
        self.send(Watch(folder, seconds))
        return frozenset(self.receive() or ())


@dataclass(slots=True)
class Trials:
    """Judges candidates, several at a time: by a few tests first, then by all."""

    zygotes: list[Zygote]
    first: Callable[[Candidate], TrialTask]
    last: Callable[[Candidate], TrialTask]
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
                zygote.send(replace(self.first(candidate), seconds=min(left + 1, LONGEST_TRIAL)))
                busy[zygote.inbox] = (zygote, candidate, False)
            if not busy:
                return plausible
            ready, _, _ = select.select(list(busy), [], [])
            for inbox in ready:
                zygote, candidate, last = busy.pop(inbox)
                passed = zygote.result()
                if passed and not last:
                    left = max(1.0, deadline - time.monotonic())
                    zygote.send(replace(self.last(candidate), seconds=min(left + 1, LONGEST_TRIAL)))
                    busy[inbox] = (zygote, candidate, True)
                    continue
                self.tried += 1
                report()
                if passed:
                    plausible.append(candidate)
                    deadline = min(deadline, time.monotonic() + RIVAL_SECONDS)
