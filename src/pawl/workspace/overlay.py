"""A bench's files as a layer over the workspace: writing it, and reading off it what a command changed.

The kernel marks a deletion with a device numbered 0:0 (or an attribute), a folder that hides what lies below it with
`opaque`, and what it copied up before a write with `origin`. The time taken depends on the change, not on the tree.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import field, replace
from pathlib import Path

from pawl.core.change import NodeKind
from pawl.core.errors import NotFound, PathRefused
from pawl.core.execution import OverlayView
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import Seen, Tree
from pawl.workspace.masks import Masks
from pawl.workspace.paths import OwnTree, change_mode, depth, empty, held, make_empty, parent
from pawl.workspace.surface import Difference, Surface, tick

OPAQUE = "user.overlay.opaque"
_SPACES = ("user.overlay.", "trusted.overlay.")
"""An overlay mounted without privileges writes the first, one mounted by root the second."""


def differences(upper: OwnTree, lower: Tree, made_ns: int) -> Iterator[Difference]:
    """Every path where the merged view may differ from the lower layer. Nothing is read but names and marks.

    `made_ns` is when the bench was made, in the clock of the file system.
    """
    return _Walk(upper, lower, made_ns).differences()


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
    """Whatever only the lower layer has in it is deleted."""


@dataclass(slots=True)
class _Walk:
    upper: OwnTree
    lower: Tree
    made_ns: int
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
            yield Difference(path, before, after, stale=copied or self._stale(before))
        elif before.mode != after.mode:
            yield Difference(path, before, after, stale=self._changed_since(before))

    def _replaced(self, path: str, before: Seen | None, after: Seen) -> Iterator[Difference]:
        if before is not None and before.kind is NodeKind.DIRECTORY:
            yield from self._contents_removed(path)
        self._hide(before)
        yield Difference(path, before, after, stale=self._stale(before))

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
        return seen is None or self._changed_since(seen)

    def _removed(self, path: str, before: Seen | None) -> Iterator[Difference]:
        if before is None:
            return
        if before.kind is NodeKind.DIRECTORY:
            yield from self._contents_removed(path)
        self._hide(before)
        yield Difference(path, before, None, stale=self._stale(before))

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
                yield Difference(inner, before, None, stale=self._stale(before))

    def _below(self, path: str) -> dict[str, Seen]:
        """The entries of a lower folder; none when the user closed it or took it away meanwhile."""
        with suppress(FileNotFoundError, NotADirectoryError, PermissionError, PathRefused):
            return self.lower.entries(path)
        return {}

    def _stale(self, before: Seen | None) -> bool:
        """A folder's time tells only that its entries changed, and each of them is looked at by itself."""
        return before is not None and before.kind is not NodeKind.DIRECTORY and self._changed_since(before)

    def _changed_since(self, seen: Seen) -> bool:
        """Whether the workspace's side was changed after the bench was made. The same instant counts as before."""
        return seen.changed_ns > self.made_ns

    def _hide(self, before: Seen | None) -> None:
        if before is not None and before.kind is NodeKind.FILE:
            self._hidden.add((before.size, before.modified_ns))


def _folder_marks(upper: OwnTree, path: str) -> dict[str, bytes]:
    with held(upper.open_folder(path)) as folder:
        try:
            return _marks(folder)
        except PermissionError:
            upper.open_up(path)
            return _marks(folder)


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
        """A look at each masked path of the workspace, and at the folders above it."""
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
        _make_opaque(tree, path)


def _make_opaque(tree: OwnTree, path: str) -> None:
    with held(tree.open_folder(path)) as folder:
        os.setxattr(folder, OPAQUE, b"y")


def _mask(tree: OwnTree, path: str, seen: Seen) -> None:
    with tree.folder_of(path) as (folder, name):
        if seen.kind is None:
            os.mknod(name, stat.S_IFCHR, 0, dir_fd=folder)
        else:
            make_empty(folder, name, seen)


def _finish(tree: OwnTree, path: str, seen: Seen) -> None:
    with tree.folder_of(path) as (folder, name):
        os.utime(name, ns=(seen.modified_ns, seen.modified_ns), dir_fd=folder, follow_symlinks=False)
        change_mode(folder, name, seen.mode)


class LayeredSurface(Surface):
    """The upper layer in `folder`, with the workspace below it.

    It is written straight into while no command runs, and what is written looks to the kernel like its own work:
    copied-up folders, devices numbered 0:0 for what is gone, `opaque` for a folder that replaces another.
    """

    view: OverlayView

    def __init__(self, workspace: Tree, folder: Path) -> None:
        super().__init__(workspace, folder, OwnTree(folder / "upper"))
        self.view = OverlayView(
            workspace=workspace.root,
            upper=str(folder / "upper"),
            work=str(folder / "work"),
            merged=str(folder / "merged"),
        )
        self._masks = MaskLayer(folder / "masks", workspace)
        self._cover: dict[str, tuple[bool, bool]] = {}
        """Of each folder until the next write: whether it hides what is below it, whether the upper layer has it."""
        self._made_ns = (folder / "stamp").stat().st_ctime_ns

    @classmethod
    def create(cls, workspace: Tree, folder: Path) -> LayeredSurface:
        """Lays out the folders; `OSError` when the file system cannot hold an upper layer."""
        for name in ("upper", "work", "merged", "staging"):
            (folder / name).mkdir(mode=0o700)
        # The merged root shows the mode of the upper one, so it has to be the workspace's. The owner stays the caller:
        # what belongs to anybody else is read-only in a user namespace.
        (folder / "upper").chmod(stat.S_IMODE(os.fstat(workspace.fd).st_mode))
        _prove(folder / "staging")
        stamp = folder / "stamp"
        stamp.touch(mode=0o600)
        # From here on every write to the workspace has a later time than the stamp.
        tick(folder / "staging", stamp.stat().st_ctime_ns, seconds=0.05)
        return cls(workspace, folder)

    def kinds(self, path: str = "") -> dict[str, NodeKind | None]:
        found: dict[str, NodeKind | None] = {}
        tree, seen = self._find(path) if path else (self.tree, None)
        if path and seen is None:
            raise NotFound(f"there is no folder {path!r}", advice="check the spelling")
        if not self._covered(path):
            below = seen if tree is self.workspace or not path else self.workspace.find(path)
            if not path or (below is not None and below.kind is NodeKind.DIRECTORY):
                found = self.workspace.kinds(path)
        if tree is self.tree:
            for name, seen in self.tree.entries(path).items():
                inner = f"{path}/{name}" if path else name
                if is_whiteout(self.tree, inner, seen):
                    found.pop(name, None)
                else:
                    found[name] = seen.kind
        return found

    def is_untouched(self, folder: str) -> bool:
        return not self._covered(folder) and not self._is_there(folder)

    def differences(self) -> Iterator[Difference]:
        return differences(self.tree, self.workspace, self._made_ns)

    def cover(self, masks: Masks, *, secrets: bool) -> None:
        wanted = masks if secrets else Masks(special=masks.special)
        self.view = replace(self.view, masks=self._masks.lay(wanted))

    def renew(self) -> None:
        self._cover.clear()

    def _find(self, path: str) -> tuple[Tree, Seen | None]:
        covered = self._covered(parent(path))
        seen = self.tree.look(path) if self._is_there(parent(path)) else None
        if seen is not None:
            return self.tree, None if is_whiteout(self.tree, path, seen) else seen
        return (self.tree, None) if covered else (self.workspace, self.workspace.look(path))

    def _covered(self, folder: str) -> bool:
        """Whether the upper layer hides what the workspace has inside this folder."""
        unknown: list[str] = []
        while folder and folder not in self._cover:
            unknown.append(folder)
            folder = parent(folder)
        covered, there = self._cover[folder] if folder else (False, True)
        for path in reversed(unknown):
            if there and not covered:
                seen = self.tree.look(path)
                there = seen is not None
                covered = seen is not None and (seen.kind is not NodeKind.DIRECTORY or is_opaque(self.tree, path))
            self._cover[path] = covered, there
        return covered

    def _is_there(self, folder: str) -> bool:
        """Whether the upper layer has the folder, or what stands in its way."""
        self._covered(folder)
        return not folder or self._cover[folder][1]

    def _shows_below(self, path: str) -> bool:
        """Whether the workspace's side would show if the upper layer said nothing of the path."""
        return not self._covered(parent(path)) and self.workspace.find(path) is not None

    def _take_away(self, path: str, seen: Seen) -> None:
        mine = self._find(path)[0] is self.tree
        self._make_parents(path)
        with self.tree.folder_of(path) as (folder, name):
            if mine and seen.kind is NodeKind.DIRECTORY:
                self.staging.discard(folder, name)
            if self._shows_below(path):
                self.staging.put_whiteout(folder, name)
            elif mine and seen.kind is not NodeKind.DIRECTORY:
                os.unlink(name, dir_fd=folder)

    def _make(self, path: str, mode: int) -> None:
        """A folder of the upper layer: the copy of a lower one, or one that hides whatever the lower layer has."""
        with self.tree.folder_of(path) as (folder, name):
            replaces = self.tree.look(path) is not None
            if replaces:
                os.unlink(name, dir_fd=folder)
            os.mkdir(name, 0o700, dir_fd=folder)
            if replaces:
                _make_opaque(self.tree, path)
            change_mode(folder, name, mode)


def _prove(folder: Path) -> None:
    """Makes and removes what an upper layer consists of: an overlay, or a file system without attributes, refuses."""
    device, directory = folder / "whiteout", folder / "opaque"
    os.mknod(device, stat.S_IFCHR, 0)
    device.unlink()
    directory.mkdir()
    os.setxattr(directory, OPAQUE, b"y")
    directory.rmdir()
