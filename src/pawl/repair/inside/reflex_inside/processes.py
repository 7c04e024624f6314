"""Processes with limits: how long and how large one run of a test may be, forks, and pipes between them."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

REAL_FACTOR = 8.0
REAL_EXTRA = 4.0
HEADER = struct.Struct("<I")


class TimeUp(BaseException):
    """Raised in the code that took too long; not an Exception, so that few handlers swallow it."""


class Clock:
    """Interrupts the block after some CPU seconds, and after many more real ones for code that only waits."""

    armed = False

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGPROF, Clock._ring)
        signal.signal(signal.SIGALRM, Clock._ring)
        Clock.armed = True
        # The timers repeat: a candidate may catch everything inside its endless loop.
        signal.setitimer(signal.ITIMER_PROF, self.seconds, 0.05)
        signal.setitimer(signal.ITIMER_REAL, self.seconds * REAL_FACTOR + REAL_EXTRA, 0.5)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Clock.disarm()

    @staticmethod
    def disarm() -> None:
        Clock.armed = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)

    @staticmethod
    def _ring(number: int, frame: FrameType | None) -> None:
        if Clock.armed:
            raise TimeUp


def limit_memory(size: int) -> None:
    """Caps what this process may allocate on top of nothing: a runaway candidate ends with MemoryError."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        ceiling = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


class Catch:
    """Keeps what the block raises, even an exit or an interrupt: tests may raise anything."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> Catch:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        self.error = error
        return True


def silence() -> None:
    """Sends the streams of this process nowhere; what tests print is nobody's event."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    os.close(null)


def end_child(process: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, 0)


def forked(call: Callable[[], Any], seconds: float) -> Any:
    """The result of `call` in a fork of this process; None when it dies or takes longer."""
    return next(iter(forked_each(lambda: iter([call()]), seconds)), None)


def forked_each(items: Callable[[], Iterator[Any]], seconds: float) -> list[Any]:
    """The items, made in a fork of this process, that it came to before it died or its time was up."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        with Catch():
            os.close(reader)
            os.setpgid(0, 0)
            silence()
            with os.fdopen(writer, "wb") as stream:
                for item in items():
                    pickle.dump(item, stream)
                    stream.flush()
        os._exit(0)
    os.close(writer)
    data = _read_until(reader, time.monotonic() + seconds)
    os.close(reader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    end_child(process)
    made, pickled = [], io.BytesIO(data)
    with contextlib.suppress(EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError):
        while True:
            made.append(pickle.load(pickled))
    return made


def _read_until(reader: int, deadline: float) -> bytes:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        part = os.read(reader, 1 << 20) if ready else b""
        if not part:
            return b"".join(parts)
        parts.append(part)


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


class Child:
    """A fork of this process that does some work, with a pipe to it and one from it."""

    def __init__(self, work: Callable[[int, int], None]) -> None:
        inbox, self.outbox = os.pipe()
        self.inbox, outbox = os.pipe()
        self.process = os.fork()
        if self.process == 0:
            with Catch():
                os.close(self.outbox)
                os.close(self.inbox)
                work(inbox, outbox)
            os._exit(0)
        os.close(inbox)
        os.close(outbox)

    def send(self, value: Any) -> None:
        send(self.outbox, value)

    def receive(self) -> Any:
        return receive(self.inbox)

    def close(self) -> None:
        os.close(self.outbox)
        os.close(self.inbox)
        end_child(self.process)


@contextlib.contextmanager
def tracing(enter: Callable[[FrameType, str, Any], Any]) -> Iterator[None]:
    """Calls `enter` for each function that the block enters, whatever the block raises."""
    sys.settrace(enter)
    try:
        with Catch():
            yield
    finally:
        sys.settrace(None)
