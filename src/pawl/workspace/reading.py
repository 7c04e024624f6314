"""The files of the workspace itself for whoever only reads them: no bench, no link, no secret, nothing ignored."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pawl.core.change import Kind
from pawl.core.errors import NotFound, PawlError, SecretRefused
from pawl.core.guardrails import Guardrails
from pawl.core.locating import Stamp
from pawl.workspace.ignore import EXCLUDE_FILE, IGNORE_FILES, LARGEST_IGNORE_FILE, Ignore, Read
from pawl.workspace.tree import Tree

INDEX_IGNORE_FILES = (*IGNORE_FILES, ".pawlignore")
"""What is named here is not read for an index; .pawlignore says nothing about what a bench keeps."""
_MOST_FILES = 200_000


class WorkspaceFiles:
    """Fits `ports.SourceFiles`."""

    def __init__(self, tree: Tree, guardrails: Guardrails, *, global_ignore: Path | None = None) -> None:
        self._tree = tree
        self._guardrails = guardrails
        self._global_ignore = global_ignore

    def stamps(self) -> list[Stamp]:
        found: list[Stamp] = []
        listed: set[str] = set()
        ignore = self._ignore(lambda path: self._read_ignore(path) if path in listed else None)
        pending = [""]
        listed.add(EXCLUDE_FILE)
        while pending and len(found) < _MOST_FILES:
            folder = pending.pop()
            entries = [entry for entry in self._entries(folder) if not self._is_hidden(entry[0])]
            # Ignore files that the listing does not show need not be looked for.
            listed.update(path for path, _ in entries if path.endswith("ignore"))
            for path, status in entries:
                is_folder = stat.S_ISDIR(status.st_mode)
                if ignore.topmost(path, folder=is_folder) is not None:
                    continue
                if is_folder:
                    pending.append(path)
                else:
                    found.append(Stamp(path, status.st_size, status.st_mtime_ns))
        return sorted(found, key=lambda stamp: stamp.path)

    def stamp(self, path: str) -> Stamp | None:
        seen = self._tree.find(path)
        if seen is None or seen.kind is not Kind.FILE or self._is_hidden(path):
            return None
        if self._ignore(self._read_ignore).topmost(path, folder=False) is not None:
            return None
        return Stamp(path, seen.size, seen.modified_ns)

    def read(self, path: str, limit: int) -> tuple[bytes, Stamp]:
        if self._is_hidden(path):
            raise SecretRefused(f"{path!r} is not for reading", advice="work without its content")
        data, seen = self._tree.read_with(path, limit)
        return data, Stamp(path, seen.size, seen.modified_ns)

    def _entries(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        """The folders and regular files of a folder; nothing when it may not be looked into."""
        try:
            descriptor = self._tree.open_folder(folder)
        except (OSError, PawlError):
            return
        try:
            with os.scandir(descriptor) as entries:
                for entry in entries:
                    with suppress(OSError):
                        status = entry.stat(follow_symlinks=False)
                        # A name that is no text cannot be shown or asked for.
                        if (stat.S_ISDIR(status.st_mode) or stat.S_ISREG(status.st_mode)) and _is_text(entry.name):
                            yield (f"{folder}/{entry.name}" if folder else entry.name), status
        finally:
            os.close(descriptor)

    def _is_hidden(self, path: str) -> bool:
        return ".git" in path.casefold().split("/") or self._guardrails.never(path) or self._guardrails.is_secret(path)

    def _ignore(self, read: Read) -> Ignore:
        return Ignore(read, global_file=self._global_ignore, names=INDEX_IGNORE_FILES)

    def _read_ignore(self, path: str) -> bytes | None:
        try:
            return self._tree.read(path, LARGEST_IGNORE_FILE)
        except (NotFound, PawlError, OSError):
            return None


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
