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
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from pawl.context.languages import Language
from pawl.context.parsing import LARGEST, Parsed
from pawl.context.worker import READY, unpacked
from pawl.core.errors import ServerUnavailable

_START = "import sys; sys.path[:] = {path!r}; from pawl.context.worker import main; main({seconds!r}, {memory_bytes!r})"
_AHEAD = 4
"""How many files wait for each process, so that none is idle and few are held in memory."""

UNREAD = Parsed(complete=False)
"""What is known of a file that its parser did not survive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserLimits:
    seconds: float = 4.0
    """Processor time for one file."""
    memory_bytes: int = 1 << 30
    processes: int = 1


class Source(NamedTuple):
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
        """What can be read of the file; `UNREAD` when it takes too long, takes too much or crashes the parser."""
        worker = self._idle.get()
        try:
            return worker.parse(data, language)
        finally:
            self._idle.put(worker)

    def parse_all(self, sources: Iterable[Source]) -> Iterator[tuple[Source, Parsed]]:
        """The same for many files, in their order, with all processes at work. Sources are taken as they are needed."""
        ahead = _AHEAD * self._limits.processes
        waiting: deque[tuple[Source, Future[Parsed]]] = deque()
        with ThreadPoolExecutor(self._limits.processes, thread_name_prefix="pawl-parse") as threads:
            try:
                for source in sources:
                    waiting.append((source, threads.submit(self.parse, source.data, source.language)))
                    if len(waiting) >= ahead:
                        done, parsed = waiting.popleft()
                        yield done, parsed.result()
                while waiting:
                    done, parsed = waiting.popleft()
                    yield done, parsed.result()
            finally:
                for _, parsed in waiting:
                    parsed.cancel()


def _close_all(workers: Iterable[_Worker]) -> None:
    for worker in workers:
        worker.close()


class _Worker:
    """One process, used by one thread at a time."""

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    def parse(self, data: bytes, language: Language) -> Parsed:
        process = self._process = self._process or self._started()
        assert process.stdin is not None and process.stdout is not None
        # One byte more than is parsed tells the worker that the file goes on.
        kept = data[: LARGEST + 1]
        try:
            process.stdin.write(json.dumps([language.name, len(kept)]).encode() + b"\n" + kept)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if answer.endswith(b"\n"):
            return unpacked(answer)
        self.close()
        return UNREAD

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

    def _started(self) -> subprocess.Popen[bytes]:
        start = _START.format(
            path=[entry for entry in sys.path if os.path.isabs(entry)],
            seconds=self._limits.seconds,
            memory_bytes=self._limits.memory_bytes,
        )
        process = subprocess.Popen(
            # Without site, because the path is given: that starts faster, and nothing of the user's runs.
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
        )
        assert process.stdout is not None
        self._process = process
        if process.stdout.readline() != READY:
            self.close()
            raise ServerUnavailable("the parser of source files does not start", advice="install Pawl again")
        return process
