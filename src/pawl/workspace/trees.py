"""Trees of files changed through descriptors: modes that are in the way, what stands at a path, emptying a folder."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace

from pawl.core.change import Node, NodeKind, parents
from pawl.core.errors import DiskFull, NotAFile, NotFound, PathRefused, PermissionDenied
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.tree import Seen, Tree
from pawl.workspace.paths import depth

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_HANDLE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC


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
        """Whatever stood at the path is gone, and its mode with it."""
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
def held(fd: int) -> Iterator[int]:
    """Closes the descriptor at the end."""
    try:
        yield fd
    finally:
        os.close(fd)


def change_mode(folder: int, name: str, mode: int) -> None:
    with held(os.open(name, _HANDLE, dir_fd=folder)) as fd:
        # The handle needs no permission, and its /proc link cannot be swapped for another file.
        os.chmod(f"/proc/self/fd/{fd}", mode)


SPECIAL = Node(NodeKind.FILE, "special", 0)
"""Stands for a device, FIFO or socket, and for what changes while it is looked at: equal to nothing in a change set."""


@dataclass(frozen=True, slots=True)
class TreeStatus:
    """Looks at a tree."""

    tree: Tree
    modes: Mapping[str, int] = field(default_factory=dict)
    """The modes of what was opened for the look."""

    def at(self, path: str) -> tuple[Seen | None, Node | None]:
        """The path without and with its content; the look is older, so it tells of a later change."""
        seen = self.tree.find(path)
        if seen is None:
            return None, None
        mode = self.modes.get(path, seen.mode)
        try:
            node = self.tree.node(path)
        except (NotFound, NotAFile, PathRefused, FileNotFoundError, NotADirectoryError):
            node = None
        if node is None:
            return replace(seen, mode=mode), SPECIAL
        return replace(seen, mode=mode), node if node.kind is NodeKind.LINK else replace(node, mode=mode)


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


def nearest_folder(tree: Tree, path: str) -> Seen:
    """The folder that stands nearest above the path."""
    for above in parents(path):
        seen = tree.find(above)
        if seen is not None and seen.kind is NodeKind.DIRECTORY:
            return seen
    return Seen.of(os.fstat(tree.fd))


def make_empty(folder: int, name: str, seen: Seen) -> None:
    """An empty file that looks like another and that nobody may write."""
    with held(os.open(name, NEW_FILE, 0o400, dir_fd=folder)) as fd:
        os.fchmod(fd, seen.mode & 0o555)
        os.utime(fd, ns=(seen.modified_ns, seen.modified_ns))


def told(error: OSError, path: str) -> Exception:
    """An error of the disk about a path, with advice."""
    why = error.strerror or str(error)
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT | errno.EFBIG:
            return DiskFull(f"no room for {path!r} ({why})", advice="free some space and try again")
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return PermissionDenied(f"{path!r} may not be touched ({why})", advice="mend its mode in the workspace")
        case errno.ENOTDIR | errno.EISDIR:
            return NotAFile(f"{path!r} is not where a file can be ({why})", advice="name a file in a folder")
        case errno.ENOENT:
            return NotFound(f"there is no {path!r}", advice="check the spelling, or search for it")
        case errno.ENAMETOOLONG:
            return PathRefused(f"a name in {path!r} is too long here", advice="choose a shorter name")
    return error


def write_all(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


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
    with held(os.open(name, FOLDER, dir_fd=top)) as fd:
        for inner in os.listdir(fd):
            if not _unlinked(fd, inner):
                change_mode(fd, inner, 0o700)
                count = _moved_up(fd, inner, top, count)
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
