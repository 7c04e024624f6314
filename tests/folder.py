"""The files of a real folder behind the `Files` port, and what goes wrong with them on purpose."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from pawl.settings.guardrails import Guardrails, preset

GUARDRAILS: Guardrails = preset()


class FolderFiles:
    def __init__(self, root: Path) -> None:
        self.root = root

    def read(self, path: str) -> bytes:
        return (self.root / path).read_bytes()

    def write(self, path: str, data: bytes) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    def delete(self, path: str) -> None:
        (self.root / path).unlink()

    def exists(self, path: str) -> bool:
        return os.path.lexists(self.root / path)

    def walk(self, under: str = "") -> Iterable[str]:
        if not (self.root / under).is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", under)
        return sorted(self._below(self.root / under))

    def _below(self, folder: Path) -> Iterator[str]:
        for path in folder.rglob("*"):
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(self.root).as_posix()


class FullDisk(FolderFiles):
    """Writes half of a content and then has no room; `room` writes succeed before that."""

    def __init__(self, root: Path, *, room: int = 0) -> None:
        super().__init__(root)
        self.room = room
        self.failures = 0

    def write(self, path: str, data: bytes) -> None:
        if self.room > 0 or self.failures:
            self.room -= 1
            super().write(path, data)
            return
        self.failures += 1
        super().write(path, data[: len(data) // 2])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


class BrokenDisk(FullDisk):
    """Writes half of a content, and fails at every write after that too."""

    def write(self, path: str, data: bytes) -> None:
        self.failures = 0
        super().write(path, data)


class ForgetfulDisk(FolderFiles):
    """Says that the first write worked, and has lost the end of it."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.writes = 0

    def write(self, path: str, data: bytes) -> None:
        self.writes += 1
        super().write(path, data[:-1] if self.writes == 1 else data)
