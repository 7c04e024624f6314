"""A bench's files as a copy of the workspace, for machines where a layer over it cannot be mounted.

A manifest of how each path was copied tells what a command touched; only that is compared by content.
"""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pawl.core.change import NodeKind
from pawl.core.errors import NotFound, PathRefused, PawlError, TooLarge
from pawl.core.execution import CopyView
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.tree import Seen, Tree
from pawl.workspace.masks import Masks
from pawl.workspace.paths import depth
from pawl.workspace.surface import Difference, Surface, tick
from pawl.workspace.trees import NEW_FILE, OwnTree, held, make_empty

_CLONE = 0x40049409  # FICLONE
_PIECE = 1 << 20


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
                if seen.kind is NodeKind.DIRECTORY:
                    folders[path] = seen
                    pending.append(path)
                yield Copied(path, seen, copy)
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
        for copied in Copier(self.workspace, self.tree, limit, masked=hides).copied():
            if copied.source.kind is NodeKind.FILE and hides(copied.path):
                self._hidden.add(copied.path)
            self.manifest[copied.path] = CopyRecord(copied.source, copied.copy)
            newest = max(newest, copied.copy.changed_ns)
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
