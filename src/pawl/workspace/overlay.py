"""Reading off the upper layer of an overlay what a command changed.

The kernel marks a deletion with a device numbered 0:0 (or an attribute), a folder that hides what lies below it with
`opaque`, and what it copied up before a write with `origin`. The time taken depends on the change, not on the tree.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pawl.core.change import NodeKind
from pawl.core.errors import PathRefused
from pawl.settings.tree import Seen, Tree
from pawl.workspace.hiding import Masks
from pawl.workspace.paths import depth, parent
from pawl.workspace.surface import Difference, OwnTree, change_mode, empty

_SPACES = ("user.overlay.", "trusted.overlay.")
"""An overlay mounted without privileges writes the first, one mounted by root the second."""

OPAQUE = "user.overlay.opaque"


@dataclass(slots=True)
class Age:
    """When the bench was made, in the clock of the file system, and which paths were agreed upon later."""

    stamp_ns: int
    trusted: dict[str, int] = field(default_factory=dict)

    def stale(self, path: str, seen: Seen) -> bool:
        """Whether what the workspace has was changed after the bench was made. The same instant counts as before."""
        return seen.changed_ns > self.stamp_ns and self.trusted.get(path) != seen.changed_ns


def differences(upper: OwnTree, lower: Tree, age: Age) -> Iterator[Difference]:
    """Every path where the merged view may differ from the lower layer. Nothing is read but names and marks."""
    return _Walk(upper, lower, age).differences()


def is_whiteout(upper: OwnTree, path: str, seen: Seen) -> bool:
    """Whether the upper layer says that nothing stands here."""
    if seen.whiteout:
        return True
    return seen.kind is NodeKind.FILE and seen.size == 0 and "whiteout" in _file_marks(upper, path)


def is_opaque(upper: OwnTree, path: str) -> bool:
    """Whether a folder of the upper layer hides what the lower layer has in it."""
    return _folder_marks(upper, path).get("opaque") == b"y"


@dataclass(frozen=True, slots=True)
class _Folder:
    path: str
    beneath: bool
    """The lower layer has a folder here too."""
    covered: bool
    """What only the lower layer has in it is deleted."""


@dataclass(slots=True)
class _Walk:
    upper: OwnTree
    lower: Tree
    age: Age
    _hidden: set[tuple[int, int]] = field(default_factory=set)
    """Size and time of each lower file that the bench moved, replaced or removed."""
    _arrived: list[Difference] = field(default_factory=list)
    """Files that were copied up from a lower path which is not there: moved on the bench, or deleted below it."""

    def differences(self) -> Iterator[Difference]:
        pending = [_Folder("", beneath=True, covered=False)]
        while pending:
            yield from self._folder(pending.pop(), pending)
        for arrived in self._arrived:
            assert arrived.after is not None
            moved = (arrived.after.size, arrived.after.modified_ns) in self._hidden
            yield Difference(arrived.path, None, arrived.after, stale=not moved)

    def _folder(self, folder: _Folder, pending: list[_Folder]) -> Iterator[Difference]:
        marks = _folder_marks(self.upper, folder.path)
        covered = folder.covered or marks.get("opaque") == b"y"
        gone = not folder.beneath and "origin" in marks
        entries = self.upper.entries(folder.path)
        for name, after in entries.items():
            path = f"{folder.path}/{name}" if folder.path else name
            before = self.lower.find(path) if folder.beneath else None
            if is_whiteout(self.upper, path, after):
                yield from self._removed(path, before)
            elif after.kind is NodeKind.DIRECTORY:
                below = before is not None and before.kind is NodeKind.DIRECTORY
                pending.append(_Folder(path, below, covered and below))
                yield from self._folders(path, before, after)
            elif before is None and after.kind is NodeKind.FILE and "origin" in _file_marks(self.upper, path):
                yield from self._arrival(Difference(path, None, after), folder, gone=gone)
            else:
                yield from self._replaced(path, before, after)
        if covered and folder.beneath:
            for name, before in self._below(folder.path).items():
                if name not in entries:
                    yield from self._removed(f"{folder.path}/{name}" if folder.path else name, before)

    def _folders(self, path: str, before: Seen | None, after: Seen) -> Iterator[Difference]:
        if before is None or before.kind is not NodeKind.DIRECTORY:
            # A folder that was copied up and is gone below is made again only by what is put into it.
            copied = before is None and "origin" in _folder_marks(self.upper, path)
            yield Difference(path, before, after, stale=copied or self._stale(path, before))
        elif before.mode != after.mode:
            yield Difference(path, before, after, stale=self.age.stale(path, before))

    def _replaced(self, path: str, before: Seen | None, after: Seen) -> Iterator[Difference]:
        if before is not None and before.kind is NodeKind.DIRECTORY:
            yield from self._contents_removed(path)
        self._hide(before)
        yield Difference(path, before, after, stale=self._stale(path, before))

    def _arrival(self, difference: Difference, folder: _Folder, *, gone: bool) -> Iterator[Difference]:
        """A copied-up file whose lower one is missing was moved here, unless the user deleted that one meanwhile."""
        if gone:
            yield Difference(difference.path, None, difference.after, stale=True)
        elif folder.beneath and self._folder_changed(folder.path):
            self._arrived.append(difference)
        else:
            yield difference

    def _folder_changed(self, path: str) -> bool:
        seen = self.lower.find(path) if path else Seen.of(os.fstat(self.lower.fd))
        return seen is None or self.age.stale(path, seen)

    def _removed(self, path: str, before: Seen | None) -> Iterator[Difference]:
        if before is None:
            return
        if before.kind is NodeKind.DIRECTORY:
            yield from self._contents_removed(path)
        self._hide(before)
        yield Difference(path, before, None, stale=self._stale(path, before))

    def _contents_removed(self, path: str) -> Iterator[Difference]:
        """Everything below a lower folder, however deep."""
        pending = [path]
        while pending:
            folder = pending.pop()
            for name, before in self._below(folder).items():
                inner = f"{folder}/{name}"
                if before.kind is NodeKind.DIRECTORY:
                    pending.append(inner)
                self._hide(before)
                yield Difference(inner, before, None, stale=self._stale(inner, before))

    def _below(self, path: str) -> dict[str, Seen]:
        """What a lower folder holds; nothing when the user closed it or took it away meanwhile."""
        try:
            return self.lower.entries(path)
        except (FileNotFoundError, NotADirectoryError, PermissionError, PathRefused):
            return {}

    def _stale(self, path: str, before: Seen | None) -> bool:
        """A folder's time tells only that its entries changed, and each of them is looked at by itself."""
        return before is not None and before.kind is not NodeKind.DIRECTORY and self.age.stale(path, before)

    def _hide(self, before: Seen | None) -> None:
        if before is not None and before.kind is NodeKind.FILE:
            self._hidden.add((before.size, before.modified_ns))


def _folder_marks(upper: OwnTree, path: str) -> dict[str, bytes]:
    fd = upper.open_folder(path)
    try:
        return _marks(fd)
    except PermissionError:
        upper.open_up(path)
        return _marks(fd)
    finally:
        os.close(fd)


def _file_marks(upper: OwnTree, path: str) -> dict[str, bytes]:
    with upper.folder_of(path) as (folder, name):
        place = b"/proc/self/fd/%d/%s" % (folder, os.fsencode(name))
        try:
            return _marks(place)
        except PermissionError:
            upper.open_up(path)
            return _marks(place)


def _marks(place: int | bytes) -> dict[str, bytes]:
    """The overlay's own attributes of a file or folder, without their prefix."""
    found: dict[str, bytes] = {}
    follow = isinstance(place, int)
    try:
        names = os.listxattr(place, follow_symlinks=follow)
    except OSError as error:
        if error.errno in (errno.ENOTSUP, errno.ENOENT):
            return found
        raise
    for name in names:
        for space in _SPACES:
            if name.startswith(space):
                found[name.removeprefix(space)] = os.getxattr(place, name, follow_symlinks=follow)
    return found


class MaskLayer:
    """A folder that repeats the workspace only where something is masked: as read-only below a bench as that is.

    An empty file stands for a secret, an overlay's sign of a deletion for a special file, and an empty folder that
    hides what is below it for one that could not be searched.
    """

    def __init__(self, place: Path, workspace: Tree) -> None:
        self.place = place
        self._workspace = workspace
        self._laid: dict[str, Seen] = {}
        self._masks = Masks()

    def lay(self, masks: Masks) -> str:
        """The folder with exactly these masks; empty when there is nothing to mask."""
        wanted = self._wanted(masks)
        if not wanted:
            return ""
        if masks != self._masks or _modes(wanted) != _modes(self._laid):
            self._build(masks, wanted)
        return str(self.place)

    def _wanted(self, masks: Masks) -> dict[str, Seen]:
        """What the workspace has at each masked path, and at the folders above it."""
        found: dict[str, Seen] = {}
        for path in (*masks.secrets, *masks.special, *masks.closed):
            missing = {}
            while path and path not in found:
                seen = self._workspace.find(path)
                if seen is None:
                    break
                missing[path] = seen
                path = parent(path)
            else:
                found.update(missing)
        return found

    def _build(self, masks: Masks, wanted: dict[str, Seen]) -> None:
        self._masks, self._laid = Masks(), {}
        self.place.mkdir(mode=0o700, exist_ok=True)
        tree = OwnTree(self.place)
        try:
            empty(tree.fd)
            folders = sorted((path for path in wanted if wanted[path].kind is NodeKind.DIRECTORY), key=depth)
            for path in folders:
                _make_folder(tree, path, hides=path in masks.closed)
            for path, seen in wanted.items():
                if seen.kind is not NodeKind.DIRECTORY:
                    _mask(tree, path, seen)
            for path in reversed(folders):
                _finish(tree, path, wanted[path])
        finally:
            tree.close()
        self._masks, self._laid = masks, wanted


def _modes(wanted: dict[str, Seen]) -> dict[str, tuple[NodeKind | None, int]]:
    return {path: (seen.kind, seen.mode) for path, seen in wanted.items()}


def _make_folder(tree: OwnTree, path: str, *, hides: bool) -> None:
    with tree.folder_of(path) as (folder, name):
        os.mkdir(name, 0o700, dir_fd=folder)
    if hides:
        fd = tree.open_folder(path)
        try:
            os.setxattr(fd, OPAQUE, b"y")
        finally:
            os.close(fd)


def _mask(tree: OwnTree, path: str, seen: Seen) -> None:
    with tree.folder_of(path) as (folder, name):
        if seen.kind is None:
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=folder)
        else:
            make_empty(folder, name, seen)


def make_empty(folder: int, name: str, seen: Seen) -> None:
    """An empty file that looks like another and that nobody may write."""
    fd = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400, dir_fd=folder)
    try:
        os.fchmod(fd, seen.mode & 0o555)
        os.utime(fd, ns=(seen.modified_ns, seen.modified_ns))
    finally:
        os.close(fd)


def _finish(tree: OwnTree, path: str, seen: Seen) -> None:
    with tree.folder_of(path) as (folder, name):
        os.utime(name, ns=(seen.modified_ns, seen.modified_ns), dir_fd=folder, follow_symlinks=False)
        change_mode(folder, name, seen.mode)
