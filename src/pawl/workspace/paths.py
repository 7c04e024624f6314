"""Paths of a workspace, judged by components and never by a string prefix: which folder is one, which paths a tool may
name. And trees changed through descriptors: modes that are in the way, what stands at a path, emptying a folder."""

from __future__ import annotations

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path

from pawl.core.change import Node, NodeKind, parents
from pawl.core.errors import DiskFull, NotAFile, NotFound, PathRefused, PermissionDenied, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.config import Config
from pawl.settings.files import Seen, Tree

LONGEST_PATH = 4096
LONGEST_NAME = 255

_ADVICE = "give a path relative to the workspace, such as 'src/app.py'"


def clean(path: str, *, root: str | None = None) -> str:
    """The path in its one form: relative to the workspace, `/` between names.

    An absolute path is accepted only when `root` is given and the path lies below it.
    """
    _refuse_odd_text(path)
    if path.startswith(("~", "file:")) or "://" in path:
        raise PathRefused(f"{path!r} is not a path inside the workspace", advice=_ADVICE)
    names = path.split("/")
    if path.startswith("/"):
        names = _below(path, root)
    while names and names[0] == ".":
        names = names[1:]
    if not names:
        raise PathRefused(f"{path!r} names the workspace itself, not a file in it", advice=_ADVICE)
    for name in names:
        _refuse_odd_name(name, path)
    return "/".join(names)


def _refuse_odd_text(path: str) -> None:
    if not path:
        raise PathRefused("the path is empty", advice=_ADVICE)
    try:
        size = len(path.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise PathRefused(f"the path {path!r} is not valid UTF-8", advice="rename the file first") from error
    if size > LONGEST_PATH:
        raise PathRefused(f"the path {path[:60]!r}… has {size} bytes; the limit is {LONGEST_PATH}", advice=_ADVICE)
    for character in path:
        if unicodedata.category(character) == "Cc":
            raise PathRefused(f"the path {path!r} holds a control character", advice=_ADVICE)


def _refuse_odd_name(name: str, path: str) -> None:
    if name in ("", ".", ".."):
        raise PathRefused(f"{path!r} has the component {name!r}, which could leave the workspace", advice=_ADVICE)
    if len(name.encode("utf-8")) > LONGEST_NAME:
        raise PathRefused(f"a name in {path[:60]!r}… is over {LONGEST_NAME} bytes", advice=_ADVICE)


def _below(path: str, root: str | None) -> list[str]:
    """The components of an absolute path after those of the root."""
    names = path.split("/")[1:]
    wanted = root.split("/")[1:] if root else None
    if wanted is None or names[: len(wanted)] != wanted:
        where = f" {root!r}" if root else ""
        raise PathRefused(f"{path!r} is outside the workspace{where}", advice=_ADVICE)
    return names[len(wanted) :]


def depth(path: str) -> int:
    return path.count("/")


def parent(path: str) -> str:
    """The folder a path is in; empty for the workspace's root."""
    return path.rpartition("/")[0]


def folders_of(paths: Iterable[str]) -> set[str]:
    """Every folder below the root that any of the paths lies in."""
    found: set[str] = set()
    for path in paths:
        while (path := parent(path)) and path not in found:
            found.add(path)
    return found


MARKS = (".git", ".pawl")


def find_workspace(start: Path, config: Config, *, exact: bool, reads: bool = False, anywhere: bool = False) -> Path:
    """The nearest folder upwards that is a repository, or `start` itself; `exact` takes `start` as it is.

    What only reads does so in a folder that may not be written, too.

    A folder that holds the user's home or Pawl's own state is refused: every command could read and change it. So is
    one inside that state, such as a bench. Whoever runs no command works `anywhere`.
    """
    try:
        folder = start.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        raise UsageError(f"there is no folder {str(start)!r}", advice="check the path given with -C") from error
    if not folder.is_dir():
        raise UsageError(f"{str(start)!r} is not a folder", advice="give the folder of your project with -C")
    if not exact:
        folder = _repository(folder, config) or folder
    if not anywhere:
        _check_apart(folder, config)
    if not reads and not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"the workspace {str(folder)!r} is not writable", advice="correct its permissions")
    return folder


def _check_apart(folder: Path, config: Config) -> None:
    for name, inner in (("your home folder", config.home), ("Pawl's own state", config.state)):
        if inner.resolve().is_relative_to(folder):
            raise UsageError(
                f"{str(folder)!r} holds {name}, so it cannot be a workspace",
                advice="change to your project's folder, or name it with -C",
            )
    if folder.is_relative_to(config.state.resolve()):
        raise UsageError(f"{str(folder)!r} lies in Pawl's own state", advice="change to your project's folder")


def _repository(folder: Path, config: Config) -> Path | None:
    for candidate in (folder, *folder.parents):
        if config.home.resolve().is_relative_to(candidate):
            return None
        if is_repository(candidate):
            return candidate
    return None


def is_repository(folder: Path) -> bool:
    return any(os.path.exists(folder / mark) for mark in MARKS)


def bench_places(config: Config) -> tuple[Path, ...]:
    """Where benches can stand: beside the store, or in memory where that cannot hold an overlay."""
    memory = Path("/dev/shm")
    beside = config.state / "benches"
    return (beside, memory / f"pawl-{os.getuid()}") if memory.is_dir() else (beside,)


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
            return PermissionDenied(
                f"{path!r} may not be touched ({why})", advice="change its permissions in the workspace"
            )
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
