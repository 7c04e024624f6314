"""Copying a folder with modes, links and times: blocks are shared where the file system can, holes stay holes."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from pawl.core.change import Kind
from pawl.core.errors import PathRefused, PawlError, TooLarge
from pawl.workspace.masking import make_empty
from pawl.workspace.paths import depth
from pawl.workspace.surface import OwnTree
from pawl.workspace.tree import Seen, Tree

_CLONE = 0x40049409  # FICLONE
_PIECE = 1 << 20
_MARKS = ("user.overlay.", "trusted.overlay.")


@dataclass(frozen=True, slots=True)
class Copied:
    """One path that was copied, as it was seen on both sides."""

    path: str
    source: Seen
    copy: Seen


@dataclass(slots=True)
class Copier:
    """Copies what is in `source` into the empty folder `target`. Special files and what cannot be read are left out."""

    source: Tree
    target: OwnTree
    limit: int
    """How many bytes may be written; shared blocks do not count."""
    marks: bool = False
    """Whether the signs of an overlay's upper layer are copied too."""
    masked: Callable[[str], bool] = lambda _: False
    """Whether an empty file is to stand for the one at a path."""
    written: int = 0

    def copied(self) -> Iterator[Copied]:
        """Copies while it is iterated. Folders get their modes and times at the end."""
        folders: dict[str, Seen] = {}
        pending = [""]
        while pending:
            folder = pending.pop()
            for name, seen in self._entries(folder).items():
                path = f"{folder}/{name}" if folder else name
                copy = self._copy(path, seen)
                if copy is None:
                    continue
                if seen.kind is Kind.DIRECTORY:
                    folders[path] = seen
                    pending.append(path)
                yield Copied(path, seen, copy)
        for path in sorted(folders, key=depth, reverse=True):
            self._finish(path, folders[path])

    def copy_over(self, path: str, seen: Seen) -> None:
        """Copies one path, replacing the file or link that stands there; a folder stays as it is."""
        there = self.target.find(path)
        if there is not None and there.kind is Kind.DIRECTORY:
            return
        if there is not None:
            with self.target.folder_of(path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        self._copy(path, seen)

    def _entries(self, folder: str) -> dict[str, Seen]:
        try:
            return self.source.entries(folder)
        except (PermissionError, FileNotFoundError, NotADirectoryError, PathRefused):
            return {}

    def _copy(self, path: str, seen: Seen) -> Seen | None:
        with self.target.folder_of(path) as (folder, name):
            try:
                return self._make(folder, name, path, seen)
            except (PermissionError, FileNotFoundError, NotADirectoryError, PawlError) as error:
                if isinstance(error, TooLarge):
                    raise
                return None

    def _make(self, folder: int, name: str, path: str, seen: Seen) -> Seen | None:
        match seen.kind:
            case Kind.DIRECTORY:
                os.mkdir(name, 0o700, dir_fd=folder)
                return seen
            case Kind.LINK:
                os.symlink(self.source.link_target(path), os.fsencode(name), dir_fd=folder)
            case Kind.FILE if self.masked(path):
                make_empty(folder, name, seen)
            case Kind.FILE:
                self._copy_file(folder, name, path, seen)
            case None:
                if not (self.marks and seen.whiteout):
                    return None
                os.mknod(name, stat.S_IFCHR, 0, dir_fd=folder)
        return Seen.of(os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _copy_file(self, folder: int, name: str, path: str, seen: Seen) -> None:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        source = self.source.open_file(path)
        try:
            target = os.open(name, flags, 0o600, dir_fd=folder)
            try:
                self._copy_data(source, target)
                self._copy_marks(source, target)
                os.fchmod(target, seen.mode)
                os.utime(target, ns=(seen.modified_ns, seen.modified_ns))
            finally:
                os.close(target)
        finally:
            os.close(source)

    def _copy_data(self, source: int, target: int) -> None:
        with suppress(OSError):
            fcntl.ioctl(target, _CLONE, source)
            return
        size = os.fstat(source).st_size
        for start, end in _pieces_with_data(source, size):
            self.written += end - start
            if self.written > self.limit:
                raise TooLarge(
                    f"the workspace {self.source.root!r} holds more than the {self.limit:,} bytes that may be copied",
                    advice="see 'pawl doctor' for what this machine needs to work without a copy",
                )
            while start < end and (data := os.pread(source, min(_PIECE, end - start), start)):
                start += os.pwrite(target, data, start)
        os.ftruncate(target, size)

    def _copy_marks(self, source: int, target: int) -> None:
        for name in os.listxattr(source) if self.marks else ():
            if name.startswith(_MARKS):
                os.setxattr(target, name, os.getxattr(source, name))

    def _finish(self, path: str, seen: Seen) -> None:
        target = self.target.open_folder(path)
        try:
            if self.marks:
                source = self.source.open_folder(path)
                try:
                    self._copy_marks(source, target)
                finally:
                    os.close(source)
            os.utime(target, ns=(seen.modified_ns, seen.modified_ns))
            os.fchmod(target, seen.mode)
        finally:
            os.close(target)


def _pieces_with_data(fd: int, size: int) -> Iterator[tuple[int, int]]:
    offset = 0
    while offset < size:
        try:
            start = os.lseek(fd, offset, os.SEEK_DATA)
            offset = os.lseek(fd, start, os.SEEK_HOLE)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return
            start, offset = offset, size
        yield start, offset
