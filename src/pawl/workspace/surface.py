"""The surface that a bench's files lie on, read and written alike: a layer over the workspace (`overlay.py`), or a
copy of it, for machines where a layer cannot be mounted.

Of a copy a manifest of how each path was copied tells what a command touched; only that is compared by content.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from pawl.core.change import BlobReader, BlobStore, Change, ChangeSet, Node, NodeKind, is_directory
from pawl.core.errors import AlreadyThere, Conflicted, NotAFile, NotFound, PathRefused, PawlError, TooLarge
from pawl.core.execution import CopyView, View
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import LARGEST_BLOB, Seen, Tree
from pawl.workspace.gate import refuse_own_ground
from pawl.workspace.masks import Masks
from pawl.workspace.paths import (
    FOLDER,
    NEW_FILE,
    OwnTree,
    change_mode,
    depth,
    empty,
    held,
    make_empty,
    parent,
    told,
    write_all,
)

_NEW_FOLDER = 0o755
_OPEN_FOLDER = 0o700


@dataclass(frozen=True, slots=True)
class Difference:
    """A path that may differ between the workspace and the bench; only the contents tell for sure."""

    path: str
    before: Seen | None
    """The workspace's side."""
    after: Seen | None
    """The bench's side."""
    stale: bool = False
    """The workspace's side is not what the bench was made from: somebody changed it meanwhile."""


class Surface(ABC):
    """The files of a bench, kept below `folder`: what is written goes into `tree`."""

    view: View

    def __init__(self, workspace: Tree, folder: Path, tree: OwnTree) -> None:
        self.workspace = workspace
        self.folder = folder
        self.tree = tree
        self.staging = Staging(folder / "staging")

    @abstractmethod
    def kinds(self, path: str = "") -> Mapping[str, NodeKind | None]:
        """Every name in a folder with what it is."""

    def is_untouched(self, folder: str) -> bool:
        """Whether it shows what the workspace has in the folder, and nothing else."""
        return False

    @abstractmethod
    def differences(self) -> Iterator[Difference]:
        """Every path where the bench may not be what the workspace is, in no order."""

    @abstractmethod
    def cover(self, masks: Masks, *, secrets: bool) -> None:
        """Puts masks over what no command is shown; over secrets only where `secrets` says so."""

    @abstractmethod
    def renew(self) -> None:
        """Forgets what it remembers, because a command was at work."""

    def restore(self) -> None:
        """Gives back the modes that reading had to open."""
        self.tree.restore()

    def close(self) -> None:
        self.tree.close()
        self.staging.close()

    def look(self, path: str) -> Seen | None:
        return self._find(path)[1]

    def read_with(self, path: str, limit: int) -> tuple[bytes, Seen]:
        return self._holder(path).read_with(path, limit)

    def link_target(self, path: str) -> bytes:
        return self._holder(path).link_target(path)

    def node(self, path: str, blobs: BlobStore | None = None) -> Node | None:
        tree, seen = self._find(path)
        node = tree.node(path, blobs) if seen is not None else None
        if node is None or seen is None or node.kind is NodeKind.LINK:
            return node
        return Node(node.kind, node.blob, seen.mode)

    def put_file(self, path: str, data: bytes, mode: int) -> None:
        """Puts a file there in one step; folders above it are made as needed."""
        there = self.look(path)
        if there is not None and there.kind is NodeKind.DIRECTORY:
            raise NotAFile(f"{path!r} is a folder", advice="name a file in it")
        self._make_parents(path)
        with self.tree.folder_of(path) as (folder, name):
            self.staging.put_file(folder, name, data, mode)

    def put_link(self, path: str, target: bytes) -> None:
        self._make_parents(path)
        with self.tree.folder_of(path) as (folder, name):
            self.staging.put_link(folder, name, target)

    def make_folder(self, path: str, mode: int) -> None:
        if self.look(path) is not None:
            raise AlreadyThere(f"{path!r} already exists", advice="use it as it is")
        self._make_parents(path)
        self._make(path, mode)

    def remove(self, path: str) -> None:
        """Removes a file, a link or an empty folder."""
        seen = self.look(path)
        if seen is None:
            raise NotFound(f"there is no {path!r}", advice="check the spelling, or search for it")
        if seen.kind is NodeKind.DIRECTORY and self.kinds(path):
            raise NotAFile(f"the folder {path!r} is not empty", advice="remove its contents first")
        self._take_away(path, seen)

    def set_mode(self, path: str, mode: int) -> None:
        tree, seen = self._find(path)
        if seen is None or seen.kind not in (NodeKind.FILE, NodeKind.DIRECTORY):
            raise NotAFile(f"{path!r} has no mode to set", advice="name a file or a folder")
        if seen.kind is NodeKind.DIRECTORY:
            self._make_parents(f"{path}/")
        elif tree is not self.tree:
            self.put_file(path, self.read_with(path, LARGEST_BLOB)[0], mode)
            return
        self.tree.set_mode(path, mode)

    def _find(self, path: str) -> tuple[Tree, Seen | None]:
        """Which tree shows what stands at the path. A symbolic link on the way is refused."""
        return self.tree, self.tree.look(path)

    def _holder(self, path: str) -> Tree:
        tree, seen = self._find(path)
        if seen is None:
            raise NotFound(f"there is no file {path!r}", advice="check the spelling, or search for it")
        return tree

    def _make_parents(self, path: str) -> None:
        """Copies up every folder above the path, or makes it. Every write begins with this."""
        self.renew()
        self.tree.forget(path)
        names = path.split("/")[:-1]
        for count in range(1, len(names) + 1):
            place = "/".join(names[:count])
            tree, seen = self._find(place)
            if seen is None:
                self._make(place, _NEW_FOLDER)
            elif seen.kind is NodeKind.LINK:
                raise PathRefused(f"{path!r} passes through a symbolic link", advice="name the file by its real path")
            elif seen.kind is not NodeKind.DIRECTORY:
                raise NotAFile(f"{place!r} is not a folder", advice="name a file in a folder")
            elif tree is not self.tree:
                self._make(place, seen.mode)

    def _make(self, path: str, mode: int) -> None:
        with self.tree.folder_of(path) as (folder, name):
            os.mkdir(name, 0o700, dir_fd=folder)
            change_mode(folder, name, mode)

    def _take_away(self, path: str, seen: Seen) -> None:
        self.tree.forget(path)
        with self.tree.folder_of(path) as (folder, name):
            (os.rmdir if seen.kind is NodeKind.DIRECTORY else os.unlink)(name, dir_fd=folder)


class Staging:
    """A folder on the bench's own file system in which things are made before they are moved to their place."""

    def __init__(self, folder: Path) -> None:
        self._fd = os.open(folder, FOLDER)
        self._count = 0

    def close(self) -> None:
        os.close(self._fd)

    def put_file(self, folder: int, name: str, data: bytes, mode: int) -> None:
        """A new file with this content; one that was there under other names too keeps its own."""

        def make(staged: str) -> None:
            with held(os.open(staged, NEW_FILE, 0o600, dir_fd=self._fd)) as fd:
                write_all(fd, data)
                os.fchmod(fd, mode)

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


def apply(surface: Surface, changes: ChangeSet, blobs: BlobReader) -> None:
    """Writes the set; `Conflicted` with the paths in the way, and nothing written, where the bench differs."""
    steps = _planned(surface, changes)
    contents = {
        change.path: blobs.get(change.after.blob)
        for change in steps
        if change.after is not None and change.after.blob is not None
    }
    upwards = sorted(steps, key=lambda change: depth(change.path), reverse=True)
    closed = _opened(surface, steps)
    for change in upwards:
        if change.before is not None and (change.after is None or change.after.kind is not change.before.kind):
            with _at(change.path):
                surface.remove(change.path)
    for change in reversed(upwards):
        with _at(change.path):
            _put(surface, change, contents.get(change.path, b""))
    modes = {path: mode for path, mode in closed.items() if path not in changes.paths}
    modes |= {change.path: change.after.mode for change in upwards if change.after and is_directory(change.after)}
    for path in sorted(modes, key=depth, reverse=True):
        with _at(path):
            surface.set_mode(path, modes[path])


def _put(surface: Surface, change: Change, content: bytes) -> None:
    match change.after:
        case Node(kind=NodeKind.DIRECTORY) if not is_directory(change.before):
            surface.make_folder(change.path, _OPEN_FOLDER)
        case Node(kind=NodeKind.LINK):
            surface.put_link(change.path, content)
        case Node(kind=NodeKind.FILE, mode=mode):
            surface.put_file(change.path, content, mode)


@contextmanager
def _at(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise told(error, path) from error


def _opened(surface: Surface, steps: list[Change]) -> dict[str, int]:
    """Opens the folders whose mode keeps even their owner from changing their entries; gives their modes."""
    closed: dict[str, int] = {}
    if os.geteuid() == 0:
        return closed
    for path in sorted({parent(change.path) for change in steps} - {""}, key=depth):
        with suppress(PathRefused):
            seen = surface.look(path)
            if seen is not None and seen.kind is NodeKind.DIRECTORY and seen.mode & 0o700 != 0o700:
                closed[path] = seen.mode
                surface.set_mode(path, seen.mode | 0o700)
    return closed


def _planned(surface: Surface, changes: ChangeSet) -> list[Change]:
    """The changes that are not already so; a folder may have any mode before, and be gone already."""
    steps: list[Change] = []
    conflicts: list[str] = []
    for change in changes:
        refuse_own_ground(change.path)
        try:
            now = surface.node(change.path)
        except PathRefused:
            now = None  # what lies behind a link is not there
        except NotAFile:
            conflicts.append(change.path)
            continue
        if now == change.after:
            continue
        if now == change.before or (is_directory(now) and is_directory(change.before)):
            steps.append(Change(change.path, now, change.after))
        else:
            conflicts.append(change.path)
    if conflicts:
        raise Conflicted(
            f"the bench has something else at {', '.join(map(repr, sorted(conflicts)))}",
            tuple(sorted(conflicts)),
            advice="nothing was written; rebase the change set over what the bench has",
        )
    return steps


_CLONE = 0x40049409  # FICLONE
_PIECE = 1 << 20


@dataclass(slots=True)
class Copier:
    """Copies what is in `source` into the empty folder `target`. Special files and what cannot be read are left out."""

    source: Tree
    target: OwnTree
    limit: int
    """How many bytes may be written; shared blocks do not count."""
    masked: Callable[[str], bool] = lambda _: False
    """Whether an empty file is to stand for the one at a path."""
    written: int = 0

    def copied(self) -> Iterator[tuple[str, Seen, Seen]]:
        """Copies while it is iterated: each path, and how it looks on both sides. Folders get their modes and times at
        the end."""
        folders: dict[str, Seen] = {}
        pending = [""]
        while pending:
            folder = pending.pop()
            for name, seen in self._entries(folder).items():
                path = f"{folder}/{name}" if folder else name
                copy = self._copy(path, seen)
                if copy is None:
                    continue
                if seen.kind is NodeKind.DIRECTORY:
                    folders[path] = seen
                    pending.append(path)
                yield path, seen, copy
        for path in sorted(folders, key=depth, reverse=True):
            self._finish(path, folders[path])

    def copy_over(self, path: str, seen: Seen) -> None:
        """Copies one path, replacing the file or link that stands there; a folder stays as it is."""
        there = self.target.find(path)
        if there is not None and there.kind is NodeKind.DIRECTORY:
            return
        if there is not None:
            with self.target.folder_of(path) as (folder, name):
                os.unlink(name, dir_fd=folder)
        self._copy(path, seen)

    def _entries(self, folder: str) -> dict[str, Seen]:
        with suppress(PermissionError, FileNotFoundError, NotADirectoryError, PathRefused):
            return self.source.entries(folder)
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
            case NodeKind.DIRECTORY:
                os.mkdir(name, 0o700, dir_fd=folder)
                return seen
            case NodeKind.LINK:
                os.symlink(self.source.link_target(path), os.fsencode(name), dir_fd=folder)
            case NodeKind.FILE if self.masked(path):
                make_empty(folder, name, seen)
            case NodeKind.FILE:
                self._copy_file(folder, name, path, seen)
            case None:
                return None
        return Seen.of(os.stat(name, dir_fd=folder, follow_symlinks=False))

    def _copy_file(self, folder: int, name: str, path: str, seen: Seen) -> None:
        with held(self.source.open_file(path)) as source, held(os.open(name, NEW_FILE, 0o600, dir_fd=folder)) as target:
            self._copy_data(source, target)
            os.fchmod(target, seen.mode)
            os.utime(target, ns=(seen.modified_ns, seen.modified_ns))

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

    def _finish(self, path: str, seen: Seen) -> None:
        with held(self.target.open_folder(path)) as target:
            os.utime(target, ns=(seen.modified_ns, seen.modified_ns))
            os.fchmod(target, seen.mode)


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


LARGEST_COPY = 8 << 30


@dataclass(frozen=True, slots=True)
class CopyRecord:
    """How a path looked when it was copied, in the workspace and in the copy; None where that is not known."""

    source: Seen | None
    copy: Seen | None


class CopiedSurface(Surface):
    """The copy in `folder`, made from the workspace and compared with it by the manifest."""

    def __init__(self, workspace: Tree, folder: Path, manifest: dict[str, CopyRecord]) -> None:
        super().__init__(workspace, folder, OwnTree(folder / "copy"))
        self.view = CopyView(workspace=workspace.root, copy=str(folder / "copy"))
        self.manifest = manifest
        self._hidden: set[str] = set()
        """The files of the workspace for which an empty one stands now."""

    @classmethod
    def create(
        cls, workspace: Tree, folder: Path, hides: Callable[[str], bool], *, limit: int = LARGEST_COPY
    ) -> CopiedSurface:
        """A copy in which an empty file stands for each that it `hides`."""
        (folder / "copy").mkdir(mode=0o700)
        (folder / "staging").mkdir(mode=0o700, exist_ok=True)
        surface = cls(workspace, folder, {})
        try:
            surface._fill(limit, hides)
        except BaseException:
            surface.close()
            raise
        return surface

    def _fill(self, limit: int, hides: Callable[[str], bool]) -> None:
        newest = 0
        for path, source, copy in Copier(self.workspace, self.tree, limit, masked=hides).copied():
            if source.kind is NodeKind.FILE and hides(path):
                self._hidden.add(path)
            self.manifest[path] = CopyRecord(source, copy)
            newest = max(newest, copy.changed_ns)
        self.tree.set_mode("", Seen.of(os.fstat(self.workspace.fd)).mode)
        # From here on every write has a later time than any that the manifest knows.
        tick(self.folder / "staging", newest, seconds=2.5)

    def kinds(self, path: str = "") -> dict[str, NodeKind | None]:
        try:
            return self.tree.kinds(path)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotFound(f"there is no folder {path!r}", advice="check the spelling") from error

    def differences(self) -> Iterator[Difference]:
        met: set[str] = set()
        pending = [""]
        while pending:
            folder = pending.pop()
            for name, after in self.tree.entries(folder).items():
                path = f"{folder}/{name}" if folder else name
                met.add(path)
                if after.kind is NodeKind.DIRECTORY:
                    pending.append(path)
                difference = self._difference(path, after)
                if difference is not None:
                    yield difference
        for path, record in self.manifest.items():
            before = self.workspace.find(path) if path not in met else None
            if before is not None:
                yield Difference(path, before, None, stale=_stale(record, before, None))

    def _difference(self, path: str, after: Seen) -> Difference | None:
        record = self.manifest.get(path)
        touched = record is None or not _same(record.copy, after)
        if not touched and after.kind is not NodeKind.DIRECTORY:
            return None
        before = self.workspace.find(path)
        if not touched:
            # The folder is as it was; it is only named when the user took it away below what the bench put into it.
            return Difference(path, None, after, stale=True) if before is None else None
        if before is None:
            return Difference(path, None, after, stale=record is not None)
        return Difference(path, before, after, stale=record is None or _stale(record, before, after))

    def cover(self, masks: Masks, *, secrets: bool) -> None:
        """Changes only what commands left alone. Special files are not copied at all."""
        wanted = masks.secrets if secrets else frozenset()
        copier = Copier(self.workspace, self.tree, LARGEST_COPY, masked=wanted.__contains__)
        for path in self._hidden ^ wanted:
            source, copy, record = self.workspace.find(path), self.tree.find(path), self.manifest.get(path)
            alone = copy is not None and record is not None and _same(record.copy, copy)
            if alone and source is not None and source.kind is NodeKind.FILE:
                copier.copy_over(path, source)
                self.manifest[path] = CopyRecord(source, self.tree.find(path))
                self._hidden ^= {path}

    def renew(self) -> None:
        """Nothing is remembered of the copy."""

    def adopt(self, source: Tree, changed: Iterator[Difference]) -> None:
        """Brings every path to what it is in `source`, so that this bench shows what another one showed."""
        every = sorted(changed, key=lambda one: depth(one.path))
        for one in reversed(every):
            leaves = one.before is not None and (one.after is None or one.after.kind is not one.before.kind)
            if leaves and self.tree.find(one.path) is not None:
                self.remove(one.path)
            if one.stale:
                self.manifest[one.path] = CopyRecord(None, None)
        copier = Copier(source, self.tree, LARGEST_COPY)
        for one in every:
            if one.after is not None:
                self._make_parents(one.path)
                copier.copy_over(one.path, one.after)
        for one in reversed(every):
            if one.after is not None and one.after.kind is NodeKind.DIRECTORY:
                self.tree.set_mode(one.path, one.after.mode)


def _same(one: Seen | None, other: Seen) -> bool:
    """Whether nobody wrote it between two looks. A folder is the same whatever is in it."""
    if one is None or (one.kind, one.mode) != (other.kind, other.mode):
        return False
    if one.kind is NodeKind.DIRECTORY:
        return True
    facts = [(seen.size, seen.modified_ns, seen.changed_ns, seen.inode) for seen in (one, other)]
    return facts[0] == facts[1]


def _stale(record: CopyRecord, before: Seen, after: Seen | None) -> bool:
    """A folder that the bench took away may have changed: what is in it is looked at path by path."""
    if before.kind is NodeKind.DIRECTORY and (after is None or after.kind is not NodeKind.DIRECTORY):
        return False
    return not _same(record.source, before)
