"""What the files of a bench lie on: a layer over the workspace, or a copy of it. Both are read and written alike."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from pawl.core.change import Kind, Node
from pawl.core.execution import View
from pawl.core.ports import BlobStore
from pawl.workspace.hiding import Masks
from pawl.workspace.tree import Seen, Tree

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

    def kinds(self, path: str = "") -> Mapping[str, Kind | None]:
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
            if seen is None or seen.kind not in (Kind.DIRECTORY, Kind.FILE):
                return
            needed = 0o700 if seen.kind is Kind.DIRECTORY else 0o400
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
