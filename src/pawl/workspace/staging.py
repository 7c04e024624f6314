"""Putting things in place by one rename, and removing whatever a command left behind."""

from __future__ import annotations

import errno
import os
import stat
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from pawl.workspace.surface import change_mode

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Staging:
    """A folder on the bench's own file system in which things are made before they are moved to their place."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder, _FOLDER)
        self._count = 0

    def close(self) -> None:
        os.close(self._fd)

    def put_file(self, folder: int, name: str, data: bytes, mode: int) -> None:
        """A new file with this content; one that was there under other names too keeps its own."""

        def make(staged: str) -> None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            fd = os.open(staged, flags, 0o600, dir_fd=self._fd)
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(fd, rest) :]
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

        self._put(folder, name, make)

    def put_link(self, folder: int, name: str, target: bytes) -> None:
        self._put(folder, name, lambda staged: os.symlink(target, os.fsencode(staged), dir_fd=self._fd))

    def put_whiteout(self, folder: int, name: str) -> None:
        self._put(folder, name, lambda staged: os.mknod(staged, stat.S_IFCHR, 0, dir_fd=self._fd))

    def discard(self, folder: int, name: str) -> None:
        """Takes a folder away in one step, then removes it with all that is in it."""
        change_mode(folder, name, 0o700)
        os.rename(name, self._name(), src_dir_fd=folder, dst_dir_fd=self._fd)
        empty(self._fd)

    def _put(self, folder: int, name: str, make: Callable[[str], None]) -> None:
        staged = self._name()
        try:
            make(staged)
            os.rename(staged, name, src_dir_fd=self._fd, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(staged, dir_fd=self._fd)
            raise

    def _name(self) -> str:
        self._count += 1
        return str(self._count)


def tick(folder: Path, after_ns: int, *, seconds: float) -> None:
    """Waits until what is written in the folder is later than the given time, but no longer than `seconds`."""
    probe = folder / "clock"
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    probe.touch()
    while probe.stat().st_ctime_ns <= after_ns and time.monotonic() < deadline:
        pause.wait(0.001)
        probe.touch()
    probe.unlink()


def empty(folder: int) -> None:
    """Removes everything in the folder, whatever its mode and however deep.

    Each folder found is moved up to the top before it is emptied, so neither the length of a path nor the number of
    open descriptors grows with the depth.
    """
    count = 0
    while names := os.listdir(folder):
        for name in names:
            if not _unlinked(folder, name):
                count = _flatten(folder, name, count)


def _flatten(top: int, name: str, count: int) -> int:
    change_mode(top, name, 0o700)
    fd = os.open(name, _FOLDER, dir_fd=top)
    try:
        for inner in os.listdir(fd):
            if not _unlinked(fd, inner):
                change_mode(fd, inner, 0o700)
                count = _moved_up(fd, inner, top, count)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=top)
    return count


def _moved_up(folder: int, name: str, top: int, count: int) -> int:
    while True:
        count += 1
        try:
            os.rename(name, f".pawl-gone-{count}", src_dir_fd=folder, dst_dir_fd=top)
        except OSError as error:
            # A file, or a folder that holds something, has this name already.
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                raise
        else:
            return count


def _unlinked(folder: int, name: str) -> bool:
    """Whether the name is gone now; a folder stays."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        return False
    os.unlink(name, dir_fd=folder)
    return True
