"""Foreign code is run here: whatever it raises is kept as a value, and a fork keeps its traces out of this process."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any


class Caught:
    """Keeps what the block raises, even an exit or an interrupt: tests may raise anything."""

    __slots__ = ("error",)

    def __init__(self) -> None:
        self.error: BaseException | None = None

    def __enter__(self) -> Caught:
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
    """What `call` returns in a fork of this process; None when it dies or takes longer."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        with Caught():
            os.close(reader)
            os.setpgid(0, 0)
            silence()
            with os.fdopen(writer, "wb") as stream:
                pickle.dump(call(), stream)
        os._exit(0)
    os.close(writer)
    data = _read_until(reader, time.monotonic() + seconds)
    os.close(reader)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    end_child(process)
    if data is None:
        return None
    with contextlib.suppress(EOFError, pickle.UnpicklingError, AttributeError, ImportError, IndexError):
        return pickle.loads(data)
    return None


def _read_until(reader: int, deadline: float) -> bytes | None:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return None
        part = os.read(reader, 1 << 20)
        if not part:
            return b"".join(parts)
        parts.append(part)
