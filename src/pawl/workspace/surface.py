"""What the files of a bench lie on: a layer over the workspace, or a copy of it. Both are read and written alike."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pawl.core.change import BlobStore, Node, NodeKind, blob_digest, parents
from pawl.core.errors import NotAFile, NotFound, PathRefused
from pawl.core.execution import View
from pawl.settings.tree import Seen, Tree
from pawl.workspace.hiding import Masks
from pawl.workspace.paths import depth

_HANDLE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that may differ between the workspace and the bench; only the contents tell for sure."""

    path: str
    before: Seen | None
    """What the workspace has."""
    after: Seen | None
    """What the bench has."""
    stale: bool = False
    """The workspace's side is not what the bench was made from: somebody changed it meanwhile."""


class Surface(Protocol):
    @property
    def view(self) -> View: ...

    @property
    def workspace(self) -> Tree: ...

    def look(self, path: str) -> Seen | None: ...

    def kinds(self, path: str = "") -> Mapping[str, NodeKind | None]:
        """Every name in a folder with what it is."""
        ...

    def read_with(self, path: str, limit: int) -> tuple[bytes, Seen]: ...

    def link_target(self, path: str) -> bytes: ...

    def node(self, path: str, blobs: BlobStore | None = None) -> Node | None: ...

    def put_file(self, path: str, data: bytes, mode: int) -> None:
        """Puts a file there in one step; folders above it are made as needed."""
        ...

    def put_link(self, path: str, target: bytes) -> None: ...

    def make_folder(self, path: str, mode: int) -> None: ...

    def remove(self, path: str) -> None:
        """Removes a file, a link or an empty folder."""
        ...

    def set_mode(self, path: str, mode: int) -> None: ...

    def differences(self) -> Iterator[Difference]:
        """Every path where the bench may not be what the workspace is, in no order."""
        ...

    def trust(self, path: str) -> None:
        """Takes what the workspace has at the path now for what the bench was made from."""
        ...

    def cover(self, masks: Masks, *, secrets: bool) -> None:
        """Puts masks over what no command is shown; over secrets only where `secrets` says so."""
        ...

    def restore(self) -> None:
        """Gives back the modes that reading had to open."""
        ...

    def renew(self) -> None:
        """Forgets what it remembers, because a command was at work."""
        ...

    def close(self) -> None: ...


class OwnTree(Tree):
    """A folder that belongs to Pawl. What a command closed even to its owner is opened when it is looked at."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        super().__init__(os.fspath(root))
        self._modes: dict[str, int] = {}

    def open_folder(self, path: str) -> int:
        try:
            return super().open_folder(path)
        except PermissionError:
            self.open_up(path)
            return super().open_folder(path)

    def open_file(self, path: str) -> int:
        try:
            return super().open_file(path)
        except PermissionError:
            self.open_up(path)
            return super().open_file(path)

    def look(self, path: str) -> Seen | None:
        seen = super().look(path)
        return seen if seen is None or path not in self._modes else replace(seen, mode=self._modes[path])

    def entries(self, path: str = "") -> dict[str, Seen]:
        found = super().entries(path)
        for name, seen in found.items() if self._modes else ():
            inner = f"{path}/{name}" if path else name
            if inner in self._modes:
                found[name] = replace(seen, mode=self._modes[inner])
        return found

    def restore(self) -> None:
        for path, mode in reversed(self._modes.items()):
            with suppress(FileNotFoundError, NotADirectoryError):
                self._chmod(path, mode)
        self._modes = {}

    def forget(self, path: str) -> None:
        """What stood at the path is gone, and its mode with it."""
        self._modes.pop(path, None)

    def set_mode(self, path: str, mode: int) -> None:
        self._chmod(path, mode)
        self.forget(path)

    def _chmod(self, path: str, mode: int) -> None:
        if not path:
            os.fchmod(self.fd, mode)
            return
        with self.folder_of(path) as (folder, name):
            change_mode(folder, name, mode)

    def open_up(self, path: str) -> None:
        """Opens every closed folder down to the path, and what stands there."""
        names = path.split("/")
        for count in range(len(names) + 1):
            place = "/".join(names[:count])
            seen = super().look(place) if place else Seen.of(os.fstat(self.fd))
            if seen is None or seen.kind not in (NodeKind.DIRECTORY, NodeKind.FILE):
                return
            needed = 0o700 if seen.kind is NodeKind.DIRECTORY else 0o400
            if seen.mode & needed != needed:
                self._modes.setdefault(place, seen.mode)
                self._chmod(place, seen.mode | needed)


@contextmanager
def handle(folder: int, name: str) -> Iterator[int]:
    """A descriptor that stands for what is there without reading it; it never leads through a link."""
    fd = os.open(name, _HANDLE, dir_fd=folder)
    try:
        yield fd
    finally:
        os.close(fd)


def change_mode(folder: int, name: str, mode: int) -> None:
    with handle(folder, name) as fd:
        # The handle needs no permission, and its /proc link cannot be swapped for another file.
        os.chmod(f"/proc/self/fd/{fd}" if hasattr(os, "O_PATH") else fd, mode)


SPECIAL = Node(NodeKind.FILE, "special", 0)
"""Stands for a device, FIFO or socket, and for what changes while it is looked at: equal to nothing in a change set."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class TreeStatus:
    """Looks at a tree."""

    tree: Tree
    modes: Mapping[str, int] = field(default_factory=dict)
    """The modes of what was opened for the look."""

    def at(self, path: str) -> tuple[Seen | None, Node | None]:
        """What stands there without and with its content; the look is older, so it tells of a later change."""
        seen = self.tree.find(path)
        if seen is None:
            return None, None
        if path in self.modes:
            seen = replace(seen, mode=self.modes[path])
        try:
            return seen, self._node(path, seen)
        except (NotFound, NotAFile, PathRefused, FileNotFoundError, NotADirectoryError):
            return seen, SPECIAL

    def _node(self, path: str, seen: Seen) -> Node:
        match seen.kind:
            case NodeKind.DIRECTORY:
                return Node.directory(seen.mode)
            case NodeKind.LINK:
                return Node.link(blob_digest(self.tree.link_target(path)))
            case NodeKind.FILE:
                return Node.file(self._hash(path), seen.mode)
        return SPECIAL

    def _hash(self, path: str) -> str:
        hasher = hashlib.sha256()
        with os.fdopen(self.tree.open_file(path), "rb", buffering=0) as file:
            while chunk := file.read(_CHUNK):
                hasher.update(chunk)
        return hasher.hexdigest()


def open_closed(tree: Tree, paths: Iterable[str], announce: Callable[[Mapping[str, int]], None]) -> dict[str, int]:
    """Opens what its owner may not look into, down to the paths; returns the modes that it had.

    `announce` is told before anything is opened. What lies in a closed folder is found once that is open.
    """
    named = frozenset(paths)
    ordered = sorted(named.union(*map(parents, named)), key=depth)
    opened: dict[str, int] = {}
    while fresh := {path: seen for path, seen in _closed(tree, ordered).items() if path not in opened}:
        modes = {path: seen.mode for path, seen in fresh.items()}
        announce(modes)
        opened |= modes
        for path, seen in fresh.items():
            with tree.folder_of(path) as (folder, name):
                change_mode(folder, name, seen.mode | _needed(seen))
    return opened


def _closed(tree: Tree, ordered: Iterable[str]) -> dict[str, Seen]:
    found: dict[str, Seen] = {}
    for path in ordered:
        try:
            seen = tree.find(path)
        except PermissionError:
            continue
        if seen is not None and is_closed(seen, _needed(seen)):
            found[path] = seen
    return found


def _needed(seen: Seen) -> int:
    return {NodeKind.DIRECTORY: 0o500, NodeKind.FILE: 0o400}.get(seen.kind, 0) if seen.kind is not None else 0


def is_closed(seen: Seen, needed: int) -> bool:
    """Whether only the mode keeps its owner from what is needed. Nothing is closed to root."""
    return seen.mode & needed != needed and seen.owner == os.geteuid() != 0


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
