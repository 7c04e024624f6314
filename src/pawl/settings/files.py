"""Reading a file that somebody else may have put there: a regular one of a bounded size, or an error at once.

A FIFO would not answer, a device would not end, and either may stand behind any name of a workspace.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

LARGEST_TEXT = 4 << 20
LARGEST_DATA = 64 << 20
_PIPES = "/dev/fd/"
"""What a shell writes for `<(command)`: only who calls can name one, and means to wait for it."""


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
