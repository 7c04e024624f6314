"""Bringing paths of a tree to given nodes, in an order that a crash at any instant can be recovered from.

New contents are staged in one folder at the root and made durable before the first visible step; every visible step is
one rename, unlink, mkdir, rmdir or chmod. The same code goes forward, goes back, and resumes.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from pawl.core.change import Change, ChangeSet, Kind, Node
from pawl.core.errors import Conflicted, PathRefused
from pawl.core.ports import BlobReader
from pawl.workspace.paths import depth, parent
from pawl.workspace.tree import Seen, Tree

STAGING_PREFIX = ".pawl-tmp-"

SPECIAL = Node(Kind.FILE, "special", 0)
"""Stands for a device, FIFO or socket: equal to nothing that a change set can hold."""

SYNC_EACH = 16
"""Up to this many files each is flushed by itself; above, one flush of the file system is cheaper."""

_HANDLE = getattr(os, "O_PATH", 0)
_libc = ctypes.CDLL(None, use_errno=True)


def flush(fd: int) -> None:
    """Waits until the file or folder is on the disk."""
    if sys.platform == "darwin":
        fcntl.fcntl(fd, fcntl.F_FULLFSYNC)
    else:
        os.fsync(fd)


def flush_file_system(fd: int) -> None:
    """Waits until everything written to the file system of this descriptor is on the disk."""
    if not hasattr(_libc, "syncfs"):
        os.sync()
    elif _libc.syncfs(fd) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _later(_: int) -> None:
    """One flush of the whole file system follows."""


def staging_name(entry: int) -> str:
    return f"{STAGING_PREFIX}{entry}"


@dataclass(frozen=True, slots=True)
class Step:
    """One path on its way: where it stands now, and where it shall stand."""

    path: str
    now: Node | None
    goal: Node | None
    seen: Seen | None

    @property
    def removes(self) -> bool:
        return self.now is not None and (self.goal is None or self.goal.kind is not self.now.kind)

    @property
    def stages(self) -> bool:
        """Whether a new content or link has to be put in place."""
        if self.goal is None or self.goal.kind is Kind.DIRECTORY:
            return False
        return self.now is None or (self.now.kind, self.now.blob) != (self.goal.kind, self.goal.blob)


@dataclass(slots=True)
class Writer:
    tree: Tree
    blobs: BlobReader
    staging: str
    modes: Mapping[str, int] = field(default_factory=dict)
    """Folders that are opened for writing meanwhile though the change set does not speak of them."""
    sync_each: int = SYNC_EACH

    def settle(self, steps: Iterable[Step]) -> None:
        """Takes every step. Raises `OSError` or `Conflicted` half-way; the caller then goes back."""
        every = list(steps)
        todo = [step for step in every if step.now != step.goal]
        staged = self._stage(todo)
        self._unlock(todo)
        touched: set[str] = set()
        for step in sorted(todo, key=lambda step: depth(step.path), reverse=True):
            if step.removes:
                self._remove(step)
                touched.add(parent(step.path))
        for step in sorted(todo, key=lambda step: depth(step.path)):
            if step.goal is not None and step.goal.kind is Kind.DIRECTORY and (step.now is None or step.removes):
                self._make_folder(step.path)
                touched.add(parent(step.path))
        for step, name in staged:
            self._put(step, name)
            touched.add(parent(step.path))
        self._set_modes(every)
        self.sweep()
        self._flush_folders(touched)

    def sweep(self) -> None:
        """Removes the staging folder with whatever is left in it."""
        try:
            fd = self.tree.open_folder(self.staging)
        except FileNotFoundError:
            return
        try:
            for name in os.listdir(fd):
                os.unlink(name, dir_fd=fd)
        finally:
            os.close(fd)
        os.rmdir(self.staging, dir_fd=self.tree.fd)

    def _stage(self, todo: list[Step]) -> list[tuple[Step, str]]:
        wanted = [step for step in todo if step.stages]
        if not wanted:
            return []
        self.sweep()
        os.mkdir(self.staging, 0o700, dir_fd=self.tree.fd)
        fd = self.tree.open_folder(self.staging)
        one_by_one = len(wanted) <= self.sync_each
        try:
            harden = flush if one_by_one else _later
            staged = [(step, self._stage_one(fd, str(number), step, harden)) for number, step in enumerate(wanted)]
            (flush if one_by_one else flush_file_system)(fd)
        finally:
            os.close(fd)
        return staged

    def _stage_one(self, folder: int, name: str, step: Step, harden: Callable[[int], None]) -> str:
        assert step.goal is not None and step.goal.blob is not None
        data = self.blobs.get(step.goal.blob)
        if step.goal.kind is Kind.LINK:
            os.symlink(data, os.fsencode(name), dir_fd=folder)
            return name
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = os.open(name, flags, 0o600, dir_fd=folder)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(fd, rest) :]
            self._keep_ownership(fd, step)
            os.fchmod(fd, step.goal.mode)
            harden(fd)
        finally:
            os.close(fd)
        return name

    def _keep_ownership(self, fd: int, step: Step) -> None:
        """A replaced file keeps its owner and attributes; what root creates belongs to the folder's owner."""
        model = step.seen if step.seen is not None and not step.removes else None
        if model is not None:
            self._copy_attributes(fd, step.path)
        if os.geteuid() == 0:
            model = model or self._nearest_folder(step.path)
            if (model.owner, model.group) != (0, 0):
                os.fchown(fd, model.owner, model.group)

    def _copy_attributes(self, fd: int, path: str) -> None:
        with suppress(OSError), self.tree.folder_of(path) as (folder, name), _opened(name, folder) as old:
            for attribute in os.listxattr(old):
                with suppress(OSError):
                    os.setxattr(fd, attribute, os.getxattr(old, attribute))

    def _nearest_folder(self, path: str) -> Seen:
        above = parent(path)
        while above:
            seen = self.tree.find(above)
            if seen is not None and seen.kind is Kind.DIRECTORY:
                return seen
            above = parent(above)
        return Seen.of(os.fstat(self.tree.fd))

    def _unlock(self, todo: list[Step]) -> None:
        """Folders whose entries change are opened for their owner; each gets its mode back at the end."""
        folders = {parent(step.path) for step in todo if step.removes or step.now is None or step.stages}
        for path in sorted(folders - {""}, key=depth):
            seen = self.tree.find(path)
            if seen is not None and seen.kind is Kind.DIRECTORY and is_locked(seen):
                self._chmod(path, seen.mode | 0o700)

    def _still(self, step: Step) -> None:
        """The user may have saved the file since it was looked at: then it is theirs."""
        if not _same(self.tree.find(step.path), step.seen):
            raise Conflicted(f"{step.path!r} changed while it was being written", (step.path,))

    def _remove(self, step: Step) -> None:
        self._still(step)
        assert step.now is not None
        with self.tree.folder_of(step.path) as (folder, name):
            if step.now.kind is not Kind.DIRECTORY:
                os.unlink(name, dir_fd=folder)
                return
            try:
                os.rmdir(name, dir_fd=folder)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                if step.goal is not None:
                    raise Conflicted(f"{step.path!r} has other files in it", (step.path,)) from error
                # What the user put there meanwhile keeps its folder.

    def _make_folder(self, path: str) -> None:
        with self.tree.folder_of(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)
            if os.geteuid() == 0:
                model = Seen.of(os.fstat(folder))
                os.chown(name, model.owner, model.group, dir_fd=folder, follow_symlinks=False)

    def _put(self, step: Step, staged: str) -> None:
        if step.removes:
            if self.tree.find(step.path) is not None:
                raise Conflicted(f"{step.path!r} was created while it was being written", (step.path,))
        else:
            self._still(step)
        staging = self.tree.open_folder(self.staging)
        try:
            with self.tree.folder_of(step.path) as (folder, name):
                os.rename(staged, name, src_dir_fd=staging, dst_dir_fd=folder)
        finally:
            os.close(staging)

    def _set_modes(self, every: list[Step]) -> None:
        wanted = {
            step.path: step.goal.mode
            for step in every
            if step.goal is not None and not step.stages and step.goal.kind is not Kind.LINK
        }
        for path, mode in self.modes.items():
            wanted.setdefault(path, mode)
        one_by_one = len(wanted) <= self.sync_each
        for path in sorted(wanted, key=depth, reverse=True):
            seen = self.tree.find(path)
            if seen is not None and seen.mode != wanted[path] and seen.kind is not Kind.LINK:
                self._chmod(path, wanted[path], flush if one_by_one else _later)
        if not one_by_one:
            flush_file_system(self.tree.fd)

    def _chmod(self, path: str, mode: int, harden: Callable[[int], None] = flush) -> None:
        with self.tree.folder_of(path) as (folder, name):
            fd = os.open(name, _HANDLE | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
            try:
                # A handle needs no read permission, and its /proc link cannot be swapped for another file.
                os.chmod(f"/proc/self/fd/{fd}" if _HANDLE else fd, mode)
                try:
                    with _opened(name, folder) as file:
                        harden(file)
                except PermissionError:
                    flush_file_system(folder)
            finally:
                os.close(fd)

    def _flush_folders(self, touched: set[str]) -> None:
        if len(touched) > self.sync_each:
            flush_file_system(self.tree.fd)
            return
        for path in sorted(touched | {""}):
            with suppress(FileNotFoundError, NotADirectoryError, PathRefused):
                fd = self.tree.open_folder(path)
                try:
                    flush(fd)
                finally:
                    os.close(fd)


def steps(changes: ChangeSet, tree: Tree, goal: Callable[[Change], Node | None]) -> Iterator[Step]:
    """Where each path of the set stands now, and where it shall stand."""
    for change in changes:
        seen = tree.find(change.path)
        now: Node | None = None
        if seen is not None:
            now = SPECIAL if seen.kind is None else tree.node(change.path)
        yield Step(change.path, now, goal(change), seen)


def forward(change: Change) -> Node | None:
    return change.after


def back(change: Change) -> Node | None:
    return change.before


def is_locked(seen: Seen) -> bool:
    """Whether a folder's mode keeps even its owner from changing its entries."""
    return seen.mode & 0o700 != 0o700 and os.geteuid() != 0


@contextmanager
def _opened(name: str, folder: int) -> Iterator[int]:
    fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def _same(now: Seen | None, known: Seen | None) -> bool:
    """Whether nobody wrote the node between two looks. A change of its other names or of a folder's entries is none."""
    if now is None or known is None:
        return now is known
    if now.kind is Kind.DIRECTORY and known.kind is Kind.DIRECTORY:
        return True
    facts = [(seen.kind, seen.inode, seen.size, seen.modified_ns) for seen in (now, known)]
    return facts[0] == facts[1]
