"""File operations under a deadline: one that takes too long is cancelled if it has not begun, and reported."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Generic, TypeVar

from pawl.core.errors import PawlError, TimedOut
from pawl.core.ports import Files

T = TypeVar("T")
_PART = 1000


class _Job(Generic[T]):
    """One operation that its worker does, unless it is abandoned before."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._gate = threading.Lock()
        self._taken = False
        self._value: list[T] = []
        self._error: OSError | PawlError | None = None
        self.ended = threading.Event()

    def take(self) -> bool:
        """True for the first who asks: the worker that does it, or the caller who gives it up."""
        with self._gate:
            first, self._taken = not self._taken, True
        return first

    def do(self) -> None:
        try:
            self._value.append(self._work())
        except (OSError, PawlError) as error:
            self._error = error
        finally:
            self.ended.set()

    def result(self) -> T:
        if self._error is not None:
            raise self._error
        if not self._value:
            raise RuntimeError("a file operation ended without a result")
        return self._value[0]


class Worker:
    """One thread that does operations in the order they come.

    It is one, so that nothing begins before an operation that was given up has really ended: a late write cannot undo
    a later one. It is a daemon, so that a file system that never answers does not keep the process from ending.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job[object]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def run(self, work: Callable[[], T], seconds: float, what: str) -> T:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._serve, name="pawl-files", daemon=True)
            self._thread.start()
        job = _Job(work)
        self._jobs.put(job)  # type: ignore[arg-type]
        if job.ended.wait(seconds):
            return job.result()
        if job.take():
            raise TimedOut(
                f"{what} was cancelled: an earlier file operation has not ended within {seconds:g} s",
                advice="wait a little and try again; tell the user when it stays so",
            )
        raise TimedOut(
            f"{what} took longer than {seconds:g} s; it was given up and may still take effect",
            advice="read the file before you go on, and try again only if it is as it was",
        )

    def _serve(self) -> None:
        while True:
            job = self._jobs.get()
            if job.take():
                job.do()


class TimedFiles:
    """Fits `ports.Files`: the same files, each operation with its own deadline."""

    def __init__(self, files: Files, seconds: float) -> None:
        self._files = files
        self._seconds = seconds
        self._worker = Worker()

    def read(self, path: str) -> bytes:
        return self._worker.run(lambda: self._files.read(path), self._seconds, f"reading {path!r}")

    def write(self, path: str, data: bytes) -> None:
        self._worker.run(lambda: self._files.write(path, data), self._seconds, f"writing {path!r}")

    def delete(self, path: str) -> None:
        self._worker.run(lambda: self._files.delete(path), self._seconds, f"deleting {path!r}")

    def exists(self, path: str) -> bool:
        return self._worker.run(lambda: self._files.exists(path), self._seconds, f"looking for {path!r}")

    def walk(self, under: str = "") -> Iterable[str]:
        """The deadline is that of each part, so that a large folder is no fault; whoever reads it may stop."""
        what = f"listing {under or '.'!r}"
        found = self._worker.run(lambda: iter(self._files.walk(under)), self._seconds, what)
        return self._parts(found, what)

    def _parts(self, found: Iterator[str], what: str) -> Iterator[str]:
        while part := self._worker.run(lambda: tuple(islice(found, _PART)), self._seconds, what):
            yield from part
