"""A bench's files as a layer over the workspace, written straight into the layer while no command runs.

What is written here looks to the kernel like its own work: copied-up folders, devices numbered 0:0 for what is gone,
`opaque` for a folder that replaces another.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pawl.core.change import BlobStore, Node, NodeKind
from pawl.core.errors import AlreadyThere, NotAFile, NotFound, PathRefused
from pawl.core.execution import OverlayView
from pawl.settings.tree import LARGEST_BLOB, Seen, Tree
from pawl.workspace.copied import Copier
from pawl.workspace.hiding import Masks
from pawl.workspace.overlay import OPAQUE, Age, MaskLayer, differences, is_opaque, is_whiteout
from pawl.workspace.paths import parent
from pawl.workspace.surface import Difference, OwnTree, Staging, change_mode, tick

_NEW_FOLDER = 0o755


class LayeredSurface:
    """The upper layer in `folder`, with the workspace below it."""

    def __init__(self, workspace: Tree, folder: Path) -> None:
        self.workspace = workspace
        self.folder = folder
        self.view = OverlayView(
            workspace=workspace.root,
            upper=str(folder / "upper"),
            work=str(folder / "work"),
            merged=str(folder / "merged"),
        )
        self._masks = MaskLayer(folder / "masks", workspace)
        self.upper = OwnTree(folder / "upper")
        self.staging = Staging(folder / "staging")
        self._cover: dict[str, tuple[bool, bool]] = {}
        """Of each folder until the next write: whether it hides what is below it, whether the upper layer has it."""
        self.age = Age((folder / "stamp").stat().st_ctime_ns)

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

    def close(self) -> None:
        self.upper.close()
        self.staging.close()

    def look(self, path: str) -> Seen | None:
        return self._find(path)[1]

    def kinds(self, path: str = "") -> dict[str, NodeKind | None]:
        found: dict[str, NodeKind | None] = {}
        if path and self._find(path)[1] is None:
            raise NotFound(f"there is no folder {path!r}", advice="check the spelling")
        if not self._covered(path):
            below = self.workspace.find(path) if path else None
            if not path or (below is not None and below.kind is NodeKind.DIRECTORY):
                found = self.workspace.kinds(path)
        if not path or self.upper.look(path) is not None:
            for name, seen in self.upper.entries(path).items():
                inner = f"{path}/{name}" if path else name
                if is_whiteout(self.upper, inner, seen):
                    found.pop(name, None)
                else:
                    found[name] = seen.kind
        return found

    def read_with(self, path: str, limit: int) -> tuple[bytes, Seen]:
        return self._holder(path).read_with(path, limit)

    def link_target(self, path: str) -> bytes:
        return self._holder(path).link_target(path)

    def node(self, path: str, blobs: BlobStore | None = None) -> Node | None:
        tree, seen = self._find(path)
        if seen is None:
            return None
        node = tree.node(path, blobs)
        return node if node is None or node.kind is NodeKind.LINK else Node(node.kind, node.blob, seen.mode)

    def put_file(self, path: str, data: bytes, mode: int) -> None:
        there = self._find(path)[1]
        if there is not None and there.kind is NodeKind.DIRECTORY:
            raise NotAFile(f"{path!r} is a folder", advice="name a file in it")
        self._make_parents(path)
        with self.upper.folder_of(path) as (folder, name):
            self.staging.put_file(folder, name, data, mode)

    def put_link(self, path: str, target: bytes) -> None:
        self._make_parents(path)
        with self.upper.folder_of(path) as (folder, name):
            self.staging.put_link(folder, name, target)

    def make_folder(self, path: str, mode: int) -> None:
        if self._find(path)[1] is not None:
            raise AlreadyThere(f"{path!r} is there already", advice="use it as it is")
        self._make_parents(path)
        self._make(path, mode)

    def remove(self, path: str) -> None:
        tree, seen = self._find(path)
        if seen is None:
            raise NotFound(f"there is no {path!r}", advice="check the spelling, or search for it")
        if seen.kind is NodeKind.DIRECTORY and self.kinds(path):
            raise NotAFile(f"{path!r} is a folder with something in it", advice="remove what is in it first")
        self._make_parents(path)
        with self.upper.folder_of(path) as (folder, name):
            if tree is self.upper and seen.kind is NodeKind.DIRECTORY:
                self.staging.discard(folder, name)
            if self._shows_below(path):
                self.staging.put_whiteout(folder, name)
            elif tree is self.upper and seen.kind is not NodeKind.DIRECTORY:
                os.unlink(name, dir_fd=folder)

    def set_mode(self, path: str, mode: int) -> None:
        tree, seen = self._find(path)
        if seen is None or seen.kind not in (NodeKind.FILE, NodeKind.DIRECTORY):
            raise NotAFile(f"{path!r} has no mode to set", advice="name a file or a folder")
        if seen.kind is NodeKind.DIRECTORY:
            self._make_parents(f"{path}/")
        elif tree is not self.upper:
            self.put_file(path, self.read_with(path, LARGEST_BLOB)[0], mode)
            return
        self.upper.set_mode(path, mode)

    def differences(self) -> Iterator[Difference]:
        return differences(self.upper, self.workspace, self.age)

    def adopt(self, other: LayeredSurface) -> None:
        """Takes over everything that another layer over the same workspace holds."""
        for _ in Copier(other.upper, self.upper, limit=sys.maxsize, marks=True).copied():
            pass
        self.age = other.age

    def trust(self, path: str) -> None:
        seen = self.workspace.find(path)
        if seen is not None:
            self.age.trusted[path] = seen.changed_ns

    def cover(self, masks: Masks, *, secrets: bool) -> None:
        wanted = masks if secrets else Masks(special=masks.special)
        self.view = replace(self.view, masks=self._masks.lay(wanted))

    def restore(self) -> None:
        self.upper.restore()

    def renew(self) -> None:
        self._cover.clear()

    def _holder(self, path: str) -> Tree:
        tree, seen = self._find(path)
        if seen is None:
            raise NotFound(f"there is no file {path!r}", advice="check the spelling, or search for it")
        return tree

    def _find(self, path: str) -> tuple[Tree, Seen | None]:
        """Which layer shows what stands at the path. A symbolic link on the way is refused."""
        covered = self._covered(parent(path))
        seen = self.upper.look(path)
        if seen is not None:
            return self.upper, None if is_whiteout(self.upper, path, seen) else seen
        return (self.upper, None) if covered else (self.workspace, self.workspace.look(path))

    def _covered(self, folder: str) -> bool:
        """Whether the upper layer hides what the workspace has inside this folder."""
        unknown: list[str] = []
        while folder and folder not in self._cover:
            unknown.append(folder)
            folder = parent(folder)
        covered, there = self._cover[folder] if folder else (False, True)
        for path in reversed(unknown):
            if there and not covered:
                seen = self.upper.look(path)
                there = seen is not None
                covered = seen is not None and (seen.kind is not NodeKind.DIRECTORY or is_opaque(self.upper, path))
            self._cover[path] = covered, there
        return covered

    def _shows_below(self, path: str) -> bool:
        """Whether the workspace's side would show if the upper layer said nothing of the path."""
        return not self._covered(parent(path)) and self.workspace.find(path) is not None

    def _make_parents(self, path: str) -> None:
        """Copies up every folder above the path, or makes it. Every write begins with this."""
        self._cover.clear()
        self.upper.forget(path)
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
            elif tree is not self.upper:
                self._make(place, seen.mode)

    def _make(self, path: str, mode: int) -> None:
        """A folder of the upper layer: the copy of a lower one, or one that hides whatever the lower layer has."""
        with self.upper.folder_of(path) as (folder, name):
            replaces = self.upper.look(path) is not None
            if replaces:
                os.unlink(name, dir_fd=folder)
            os.mkdir(name, 0o700, dir_fd=folder)
            if replaces:
                fd = self.upper.open_folder(path)
                try:
                    os.setxattr(fd, OPAQUE, b"y")
                finally:
                    os.close(fd)
            change_mode(folder, name, mode)


def _prove(folder: Path) -> None:
    """Makes and removes what an upper layer consists of: an overlay, or a file system without attributes, refuses."""
    device, directory = folder / "whiteout", folder / "opaque"
    os.mknod(device, stat.S_IFCHR, 0)
    device.unlink()
    directory.mkdir()
    os.setxattr(directory, OPAQUE, b"y")
    directory.rmdir()
