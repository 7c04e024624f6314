"""Parsing the files of a workspace without trusting them: in processes of their own, under limits."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

from pawl.code.languages import Language
from pawl.code.rows import READY, IndexPage, Rows, rows
from pawl.code.syntax import LARGEST, Parsed
from pawl.code.tokens import Tokens
from pawl.core.errors import ServerUnavailable
from pawl.core.lazy_dataclass import dataclass

_START = "import sys; sys.path[:] = {path!r}; from pawl.code.rows import main; main({seconds!r}, {memory_bytes!r})"
_AHEAD = 4
"""How many files wait for each process, so that none is idle and few are held in memory."""
_FAR_AHEAD = 128
_MOST_AHEAD = 4 << 20
"""For an index, that one long file does not keep the others waiting: so many files for each process, while they are not
more bytes than this."""

S = TypeVar("S", "SourceFile", IndexPage)
T = TypeVar("T")

UNREAD = Parsed(complete=False)
"""Facts about a file that its parser did not survive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserLimits:
    seconds: float = 4.0
    """Processor time for one file."""
    memory_bytes: int = 1 << 30
    processes: int = 1


class SourceFile(NamedTuple):
    path: str
    data: bytes
    language: Language


class Parsers:
    """Processes that start when they are first needed and end with this object, or with the program.

    Safe to use from several threads.
    """

    def __init__(self, limits: ParserLimits | None = None) -> None:
        self._limits = limits or ParserLimits()
        self._workers = [_Worker(self._limits) for _ in range(self._limits.processes)]
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        weakref.finalize(self, _close_all, self._workers)

    def __enter__(self) -> Parsers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes; the next file starts one again."""
        _close_all(self._workers)

    def parse(self, data: bytes, language: Language) -> Parsed:
        """The definitions of a file; `UNREAD` when it takes too long, takes too much or crashes the parser."""
        # One byte more than is parsed tells the worker that the file goes on.
        found = self._ask([language.name], data[: LARGEST + 1])
        if found is None:
            return UNREAD
        definitions = tuple(row.definition for row in found.definitions)
        return Parsed(definitions=definitions, complete=found.complete, error=found.error)

    def parse_all(self, sources: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, Parsed]]:
        """The same for many files, in their order, with all processes at work. Sources are taken as they are needed."""
        return self._each(lambda source: self.parse(source.data, source.language), sources, _AHEAD)

    def rows(self, page: IndexPage) -> Rows:
        """Read a file for the index. One that its parser does not survive has its words, and no definitions."""
        found = self._ask([page.language, page.kind, page.path], page.data)
        return rows(page, UNREAD, Tokens()) if found is None else found

    def rows_of_all(self, pages: Iterable[IndexPage]) -> Iterator[tuple[IndexPage, Rows]]:
        """The same for many files, as `parse_all` does it."""
        return self._each(self.rows, pages, _FAR_AHEAD)

    def _ask(self, about: list[str], data: bytes) -> Rows | None:
        """A process's answer; None when it did not survive the question, or answers anything else."""
        worker = self._idle.get()
        try:
            return Rows.read(worker.ask(about, data))
        except ValueError:
            return None
        finally:
            self._idle.put(worker)

    def _each(self, work: Callable[[S], T], sources: Iterable[S], ahead: int) -> Iterator[tuple[S, T]]:
        waiting: deque[tuple[S, Future[T]]] = deque()
        held = 0
        with ThreadPoolExecutor(self._limits.processes, thread_name_prefix="pawl-parse") as threads:
            try:
                for source in sources:
                    waiting.append((source, threads.submit(work, source)))
                    held += len(source.data)
                    while waiting and (len(waiting) >= ahead * self._limits.processes or held > _MOST_AHEAD):
                        done, result = waiting.popleft()
                        held -= len(done.data)
                        yield done, result.result()
                while waiting:
                    done, result = waiting.popleft()
                    yield done, result.result()
            finally:
                for _, result in waiting:
                    result.cancel()


def _close_all(workers: Iterable[_Worker]) -> None:
    for worker in workers:
        worker.close()


class _Worker:
    """One process, used by one thread at a time."""

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def ask(self, about: list[str], data: bytes) -> bytes:
        """One line; empty when the process has died of the question."""
        process = self._ready()
        assert process.stdin is not None and process.stdout is not None
        name, *page = about
        try:
            process.stdin.write(json.dumps([name, len(data), *page]).encode() + b"\n" + data)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if answer.endswith(b"\n"):
            return answer
        self.close()
        return b""

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What was still to be sent has nobody to go to.
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()

    def _ready(self) -> subprocess.Popen[bytes]:
        process = self._process = self._process or self._started()
        if not self._is_ready:
            assert process.stdout is not None
            if process.stdout.readline() != READY:
                self.close()
                raise ServerUnavailable("the parser of source files does not start", advice="install Pawl again")
            self._is_ready = True
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        start = _START.format(
            path=[entry for entry in sys.path if os.path.isabs(entry)],
            seconds=self._limits.seconds,
            memory_bytes=self._limits.memory_bytes,
        )
        self._is_ready = False
        return subprocess.Popen(
            # Without site, because the path is given: that starts faster, and nothing of the user's runs.
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
        )
