"""What stands at paths of a workspace, also where even its owner may not look without opening it first."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from pawl.core.change import Kind, Node, blob_digest, parents
from pawl.core.errors import NotAFile, NotFound, PathRefused
from pawl.workspace.paths import depth
from pawl.workspace.surface import change_mode
from pawl.workspace.tree import Seen, Tree

SPECIAL = Node(Kind.FILE, "special", 0)
"""Stands for a device, FIFO or socket, and for what changes while it is looked at: equal to nothing in a change set."""

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Standing:
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
            case Kind.DIRECTORY:
                return Node.directory(seen.mode)
            case Kind.LINK:
                return Node.link(blob_digest(self.tree.link_target(path)))
            case Kind.FILE:
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
    return {Kind.DIRECTORY: 0o500, Kind.FILE: 0o400}.get(seen.kind, 0) if seen.kind is not None else 0


def is_closed(seen: Seen, needed: int) -> bool:
    """Whether only the mode keeps its owner from what is needed. Nothing is closed to root."""
    return seen.mode & needed != needed and seen.owner == os.geteuid() != 0
