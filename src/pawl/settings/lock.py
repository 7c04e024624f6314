"""One writer at a time for a workspace, across processes."""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pawl.core.errors import StoreBusy

LOCK_SECONDS = 10.0
"""How long to wait for a holder. A promotion of thousands of files takes less."""


@contextmanager
def writer_lock(folder: Path, workspace: str, *, seconds: float = LOCK_SECONDS) -> Iterator[None]:
    """Holds the workspace's lock; `StoreBusy` with the holder's process number when it does not come free in time."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:24]
    fd = os.open(folder / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _acquire(fd, workspace, seconds)
        os.ftruncate(fd, 0)
        os.pwrite(fd, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(fd)


def _acquire(fd: int, workspace: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                holder = os.pread(fd, 20, 0).decode("ascii", "replace") or "unknown"
                raise StoreBusy(
                    f"another Pawl (process {holder}) is writing {workspace!r}",
                    advice="wait until it has finished and try again",
                ) from error
            pause.wait(0.02)
