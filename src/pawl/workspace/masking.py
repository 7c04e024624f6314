"""The layer between a workspace and a bench's upper layer that holds what no command is shown."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pawl.core.change import Kind
from pawl.workspace.hiding import Masks
from pawl.workspace.overlay import OPAQUE
from pawl.workspace.paths import depth, parent
from pawl.workspace.staging import empty
from pawl.workspace.surface import OwnTree, change_mode
from pawl.workspace.tree import Seen, Tree


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
            folders = sorted((path for path in wanted if wanted[path].kind is Kind.DIRECTORY), key=depth)
            for path in folders:
                _make_folder(tree, path, hides=path in masks.closed)
            for path, seen in wanted.items():
                if seen.kind is not Kind.DIRECTORY:
                    _mask(tree, path, seen)
            for path in reversed(folders):
                _finish(tree, path, wanted[path])
        finally:
            tree.close()
        self._masks, self._laid = masks, wanted


def _modes(wanted: dict[str, Seen]) -> dict[str, tuple[Kind | None, int]]:
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
