"""Reading a file that somebody else may have put there: a regular one of a bounded size, or an error at once. And one
writer at a time, across processes.

A FIFO would not answer, a device would not end, and either may stand behind any name of a workspace.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pawl.core.errors import StoreBusy

LARGEST_TEXT = 4 << 20
LARGEST_DATA = 64 << 20
_PIPES = "/dev/fd/"
"""The shell's form of `<(command)`: only who calls can name one, and means to wait for it."""


@contextmanager
def opened(path: str | os.PathLike[str], *, follow: bool = True) -> Iterator[BinaryIO]:
    """The regular file at a path, or a pipe that the shell made; `OSError` for anything else."""
    piped = os.fspath(path).startswith(_PIPES)
    flags = (
        os.O_RDONLY | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW) | (0 if piped else os.O_NONBLOCK)
    )
    descriptor = os.open(path, flags)
    if not piped and not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file", os.fspath(path))
    with open(descriptor, "rb") as file:
        yield file


def read_bytes(path: str | os.PathLike[str], most: int = LARGEST_TEXT, *, follow: bool = True) -> bytes:
    """The whole content; `OSError` for more than that."""
    with opened(path, follow=follow) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it is larger than {most:,} bytes", os.fspath(path))
    return data


def read_text(path: str | os.PathLike[str], most: int = LARGEST_TEXT, *, follow: bool = True) -> str:
    """The whole content as UTF-8; `UnicodeDecodeError` for what is not."""
    return read_bytes(path, most, follow=follow).decode("utf-8")


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


def write_private(path: Path, text: str) -> None:
    """Replaces a file of the user's alone as a whole."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(text, "utf-8")
    os.replace(temporary, path)


def workspace_key(workspace: str) -> str:
    """The name of what is kept of a workspace."""
    return hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:32]
