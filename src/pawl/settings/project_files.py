"""The files by which a workspace configures agents, read once and used as they were read.

Regular files only, through no link, and bounded: a link, a FIFO, a socket or a device is refused and never opened.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from functools import partial
from pathlib import Path

from pawl.core.change import NodeKind
from pawl.core.errors import ConfigError, NotFound, PathRefused, PawlError, UsageError
from pawl.core.formats import Unreadable, read_json, read_toml
from pawl.core.lazy_dataclass import dataclass
from pawl.settings import files as bounded
from pawl.settings.tree import Tree

CONFIGURING = (".pawl", ".claude/commands")
"""Folders, with all that they hold, by which a repository configures Pawl."""
WORDS = ".pawl/memory"
"""Text for models, which changes with the work and configures nothing."""
MOST_FILES = 2_000
MOST_BYTES = 32 << 20
LARGEST_TEXT = 256 << 10


@dataclass(frozen=True, slots=True)
class ReadFolder:
    """A folder with the contents of its files, by their paths in it."""

    name: str
    files: Mapping[str, bytes]


Folder = Path | ReadFolder


def files_of(folder: Folder, suffix: str) -> Iterator[tuple[str, str, Callable[[], str]]]:
    """Its files of that ending, sorted: the path in the folder, the path to show, and what reads the text."""
    if isinstance(folder, Path):
        for path in sorted(folder.rglob(f"*{suffix}")):
            yield path.relative_to(folder).as_posix(), str(path), partial(bounded.read_text, path)
        return
    for name, data in sorted(folder.files.items()):
        if name.endswith(suffix):
            yield name, f"{folder.name}/{name}", partial(data.decode, "utf-8")


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Their contents by path, and why others were not read."""

    contents: Mapping[str, bytes]
    executable: frozenset[str]
    refused: Mapping[str, str]

    @property
    def digests(self) -> dict[str, str]:
        """The digest of each file, and whether it can be executed."""
        found = {
            path: hashlib.sha256(data).hexdigest() + (" executable" if path in self.executable else "")
            for path, data in self.contents.items()
        }
        return dict(sorted({**found, **dict.fromkeys(self.refused, "refused")}.items()))

    def check(self) -> None:
        """`ConfigError` where something stands that is not a regular file."""
        for path, why in sorted(self.refused.items()):
            raise _unreadable(path, why)

    def text(self, path: str) -> str:
        """The text of a file; empty where there is none."""
        for place, why in self.refused.items():
            if path == place or path.startswith(f"{place}/"):
                raise _unreadable(place, why)
        return _text(self.contents.get(path, b""), path)

    def folder(self, path: str) -> ReadFolder:
        """All that a folder holds; `ConfigError` where something on the way to it, or in it, was refused."""
        for place, why in self.refused.items():
            if f"{path}/".startswith(f"{place}/") or place.startswith(f"{path}/"):
                raise _unreadable(place, why)
        start = f"{path}/"
        return ReadFolder(
            path, {name[len(start) :]: data for name, data in self.contents.items() if name.startswith(start)}
        )


def configures(path: str) -> bool:
    """Whether the path is one of those that Pawl reads, or leads to one."""
    return any(f"{path}/".startswith(f"{one}/") or one.startswith(f"{path}/") for one in CONFIGURING)


def project_files(workspace: str) -> ProjectFiles:
    """Reads all that configures Pawl; `UsageError` where that is too much."""
    reading = _Reading(workspace)
    with Tree(workspace) as tree:
        for place in CONFIGURING:
            reading.read(tree, place)
    return ProjectFiles(reading.contents, frozenset(reading.executable), reading.refused)


def read_text(workspace: str, path: str, most: int = LARGEST_TEXT) -> str:
    """The text of one file of the workspace; empty where there is none, `ConfigError` where it cannot be read."""
    try:
        with Tree(workspace) as tree:
            return _text(tree.read(path, most), path)
    except NotFound:
        return ""
    except (PawlError, OSError) as error:
        raise _unreadable(path, _why(error)) from error


@dataclass(slots=True)
class _Reading:
    workspace: str
    contents: dict[str, bytes] = field(default_factory=dict)
    executable: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)
    count: int = 0
    size: int = 0

    def read(self, tree: Tree, place: str) -> None:
        waiting = [place]
        while waiting:
            path = waiting.pop()
            self.count += 1
            if self.count > MOST_FILES or self.size > MOST_BYTES:
                raise UsageError(
                    f"{self.workspace!r} has more files that configure agents than can be looked at",
                    advice=f"at most {MOST_FILES} files and {MOST_BYTES >> 20} MB in {', '.join(CONFIGURING)}",
                )
            try:
                waiting += self._one(tree, path)
            except (PawlError, OSError) as error:
                self.refused[path] = _why(error)

    def _one(self, tree: Tree, path: str) -> list[str]:
        """Keeps a file; the names in a folder."""
        seen = tree.look(path)
        if seen is None or path == WORDS:
            return []
        if seen.kind is NodeKind.DIRECTORY:
            with _folder(tree, path) as entries:
                return [f"{path}/{entry.name}" for entry in itertools.islice(entries, MOST_FILES + 1)]
        if seen.kind is NodeKind.LINK:
            raise PathRefused("it is a symbolic link", advice="")
        if seen.kind is None:
            raise PathRefused("it is a FIFO, a socket or a device", advice="")
        data, seen = tree.read_with(path, MOST_BYTES)
        self.size += len(data)
        self.contents[path] = data
        if seen.mode & 0o111:
            self.executable.add(path)
        return []


@contextmanager
def _folder(tree: Tree, path: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    descriptor = tree.open_folder(path)
    try:
        with os.scandir(descriptor) as entries:
            yield entries
    finally:
        os.close(descriptor)


def _text(data: bytes, path: str) -> str:
    if len(data) > LARGEST_TEXT:
        raise _unreadable(path, f"it is larger than {LARGEST_TEXT} bytes")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        # The error itself would show bytes of the file.
        raise _unreadable(path, "it is not UTF-8") from None


def _why(error: PawlError | OSError) -> str:
    return error.message if isinstance(error, PawlError) else error.strerror or "it cannot be opened"


def _unreadable(path: str, why: str) -> ConfigError:
    return ConfigError(f"{path!r} cannot be read: {why}", advice="put a regular file or folder there, or remove it")


FOLDER = ".pawl"
SETTINGS = f"{FOLDER}/settings.toml"
HOOKS = f"{FOLDER}/hooks.json"

Table = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    """The tables as they are written; who reads one checks it."""

    permissions: Table = field(default_factory=dict)
    hooks: Table = field(default_factory=dict)


def project_settings(workspace: str, trusted: ProjectFiles | None = None) -> ProjectSettings:
    """The settings of a repository, read now or as they were trusted; `ConfigError` when they are wrong."""
    text = partial(read_text, workspace) if trusted is None else trusted.text
    table = _toml(text(SETTINGS), SETTINGS)
    unknown = sorted(set(table) - {"permissions", "hooks"})
    if unknown:
        raise ConfigError(
            f"{SETTINGS!r} has {unknown[0]!r}, which a repository cannot set",
            advice="it takes [permissions] and [hooks]",
        )
    shared = hooks_of(text(HOOKS), HOOKS)
    own = _table(table.get("hooks", {}), f"{SETTINGS}: hooks")
    permissions = _table(table.get("permissions", {}), f"{SETTINGS}: permissions")
    return ProjectSettings(permissions, joined_hooks(own, shared))


def hooks_of(text: str, name: str) -> Table:
    """The events of a file in the form that agents share, `{"hooks": {…}}`."""
    if not text.strip():
        return {}
    try:
        found = read_json(text)
    except Unreadable as error:
        raise ConfigError(f"{name!r} is not JSON: {error}", advice="mend that line") from error
    body = _table(found, name)
    return _table(body.get("hooks", {}), f"{name}: hooks")


def joined_hooks(first: Table, second: Table) -> Table:
    """The hooks of both, those of the first before."""
    joined: dict[str, object] = dict(first)
    for event, groups in second.items():
        before = joined.get(event)
        joined[event] = [*before, *groups] if isinstance(before, list) and isinstance(groups, list) else groups
    return joined


def _toml(text: str, name: str) -> Table:
    try:
        return read_toml(text)
    except Unreadable as error:
        raise ConfigError(f"{name!r} is not TOML: {error}", advice="mend that line") from error


def _table(value: object, name: str) -> Table:
    if not isinstance(value, dict):
        raise ConfigError(f"{name!r} must be a table, not {value!r:.200}", advice="see docs/settings.md")
    return value
