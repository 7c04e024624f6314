"""Keeps hidden files out of reach where they cannot be covered by a mount: moved away, and put back afterwards."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator

from pawl.sandbox.layers import Place


@contextlib.contextmanager
def set_aside(copy: str, places: Iterable[Place]) -> Iterator[None]:
    """Empty stand-ins take their places meanwhile.

    The folders are held open: a command that puts a link in the way of one cannot make the way back lead elsewhere.
    """
    with contextlib.ExitStack() as stack:
        hidden = list(places)
        if hidden:
            store = tempfile.mkdtemp(prefix=".aside-", dir=os.path.dirname(copy))
            stack.callback(shutil.rmtree, store)
            for number, place in enumerate(hidden):
                stack.enter_context(_away(place, os.path.join(store, str(number))))
        yield


@contextlib.contextmanager
def _away(place: Place, store: str) -> Iterator[None]:
    parent, name = os.path.split(place.host)
    folder = os.open(parent, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        os.rename(name, store, src_dir_fd=folder)
        if place.is_folder:
            os.mkdir(name, 0o700, dir_fd=folder)
        else:
            os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder))
        try:
            yield
        finally:
            _clear(name, folder)
            # Fails only when the command removed the folder that held it.
            with contextlib.suppress(FileNotFoundError):
                os.rename(store, name, dst_dir_fd=folder)
    finally:
        os.close(folder)


def _clear(name: str, folder: int) -> None:
    """Removes whatever the command left in the place, also folders that it locked."""
    try:
        os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return
    except IsADirectoryError:
        os.chmod(name, 0o700, dir_fd=folder)
        for _, inner, _, here in os.fwalk(name, dir_fd=folder):
            for each in inner:
                if stat.S_ISDIR(os.stat(each, dir_fd=here, follow_symlinks=False).st_mode):
                    os.chmod(each, 0o700, dir_fd=here)
        shutil.rmtree(name, dir_fd=folder)
