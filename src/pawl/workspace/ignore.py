"""Which paths stay on the bench: what git ignores, what the neutral ignore files name, and caches known without either.

Ignore files are read as the bench shows them, and only in the folders on the way to a path that is asked about.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from pawl.core import bounded
from pawl.workspace.gitignore import Patterns, parse
from pawl.workspace.paths import parent

IGNORE_FILES = (".gitignore", ".agentignore", ".aiignore")
"""In one folder a later file wins over an earlier one."""

EXCLUDE_FILE = ".git/info/exclude"
LARGEST_IGNORE_FILE = 1 << 20

_Chain = tuple[tuple[int, Patterns], ...]
"""Patterns, each with how many bytes of a path lead to their folder."""

_NOTHING = Patterns.of(())

Read = Callable[[str], bytes | None]
"""Gives the content of a workspace path, None when no plain file of a sensible size stands there."""


class IgnoreNothing:
    """For a user who wants everything that a command left, caches included."""

    def topmost(self, path: str, *, folder: bool) -> str | None:
        return None


class Ignore:
    """What the ignore files say. They are read once; make another to see them anew."""

    def __init__(self, read: Read, *, global_file: Path | None = None, names: tuple[str, ...] = IGNORE_FILES) -> None:
        self._read = read
        self._names = names
        self._global_file = global_file
        self._chains: dict[str, _Chain] = {}
        self._folders: dict[str, str | None] = {"": None}

    def topmost(self, path: str, *, folder: bool) -> str | None:
        """The ignored path at or above this one that is nearest to the root; a folder ends with a slash.

        What lies below an ignored folder cannot be taken back by any pattern.
        """
        above = self._above(parent(path))
        if above is not None:
            return above
        if not self._ignores(path, folder=folder):
            return None
        return f"{path}/" if folder else path

    def _above(self, folder: str) -> str | None:
        """The topmost ignored path at or above a folder; walks down without recursion, whatever the depth."""
        unknown: list[str] = []
        while folder not in self._folders:
            unknown.append(folder)
            folder = parent(folder)
        found = self._folders[folder]
        for path in reversed(unknown):
            if found is None and self._ignores(path, folder=True):
                found = f"{path}/"
            self._folders[path] = found
        return found

    def _ignores(self, path: str, *, folder: bool) -> bool:
        encoded = os.fsencode(path)
        for length, patterns in self._chain(parent(path)):
            said = patterns.decide(encoded[length:], folder=folder)
            if said is not None:
                return said
        for patterns in self._lowest:
            said = patterns.decide(encoded, folder=folder)
            if said is not None:
                return said
        return False

    def _chain(self, folder: str) -> _Chain:
        """Every folder at or above this one that has patterns, with them, the nearest first."""
        unknown: list[str] = []
        while folder not in self._chains:
            unknown.append(folder)
            if not folder:
                break
            folder = parent(folder)
        for path in reversed(unknown):
            above = self._chains[parent(path)] if path else ()
            patterns = self._patterns(path)
            length = len(os.fsencode(path)) + 1 if path else 0
            self._chains[path] = ((length, patterns), *above) if patterns.every else above
        return self._chains[unknown[0] if unknown else folder]

    def _patterns(self, folder: str) -> Patterns:
        contents = [self._read(f"{folder}/{name}" if folder else name) for name in self._names]
        if not any(contents):
            return _NOTHING
        return Patterns.of(tuple(pattern for text in contents if text for pattern in parse(text)))

    @functools.cached_property
    def _lowest(self) -> tuple[Patterns, ...]:
        """What any ignore file of a folder wins over, the strongest first."""
        every = (Patterns.of(parse(self._read(EXCLUDE_FILE) or b"")), _of_user(self._global_file), _caches())
        return tuple(patterns for patterns in every if patterns.every)


@functools.cache
def _caches() -> Patterns:
    return Patterns.of(parse((resources.files("pawl.workspace") / "caches.txt").read_bytes()))


def _of_user(file: Path | None) -> Patterns:
    if file is None:
        return Patterns.of(())
    try:
        with bounded.opened(file) as opened:
            return Patterns.of(parse(opened.read(LARGEST_IGNORE_FILE)))
    except OSError:
        return Patterns.of(())
