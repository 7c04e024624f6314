"""The tables of an index that every query reads: loaded when they are first asked for, kept until the index changes."""

from __future__ import annotations

import functools
import posixpath
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pawl.context.git_history import Past, past
from pawl.context.sorting import Kind, is_test
from pawl.context.tokens import parts, stem

_SAYING_NOTHING = frozenset({"test", "init", "src", "lib", "py"})
"""Words of paths that are everywhere, or say that it is a test."""


class FileRow(NamedTuple):
    id: int
    path: str
    language: str
    kind: Kind
    test: bool


class Tables:
    """Of one state of the index. Each is read within the transaction of the query that first asks for it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.state = state_of(connection)
        rows = connection.execute("SELECT id, path, language, role FROM file WHERE role != '' ORDER BY path")
        every = (FileRow(number, path, language, Kind(role), is_test(path)) for number, path, language, role in rows)
        self.files: Mapping[int, FileRow] = {row.id: row for row in every}
        self.by_path: Mapping[str, int] = {row.path: row.id for row in self.files.values()}

    @property
    def piece_files(self) -> Mapping[int, int]:
        """The file of each piece, by the number of the piece."""
        return self._pieces[0]

    @property
    def piece_lengths(self) -> Mapping[int, int]:
        """How many tokens each piece has."""
        return self._pieces[1]

    @functools.cached_property
    def _pieces(self) -> tuple[Mapping[int, int], Mapping[int, int]]:
        files: dict[int, int] = {}
        lengths: dict[int, int] = {}
        for piece, file, length in self._connection.execute("SELECT id, file, length FROM piece"):
            files[piece] = file
            lengths[piece] = length
        return files, lengths

    @functools.cached_property
    def lengths(self) -> Mapping[int, int]:
        """How many tokens each file has."""
        return dict(self._connection.execute("SELECT file, sum(length) FROM piece GROUP BY file"))

    @functools.cached_property
    def imported(self) -> Mapping[int, Sequence[int]]:
        """For each file the files that it imports."""
        found: dict[int, list[int]] = defaultdict(list)
        for source, target in self._connection.execute("SELECT source, target FROM edge"):
            found[source].append(target)
        return found

    @functools.cached_property
    def importers(self) -> Mapping[int, Sequence[int]]:
        found: dict[int, list[int]] = defaultdict(list)
        for source, targets in self.imported.items():
            for target in targets:
                found[target].append(source)
        return found

    @functools.cached_property
    def by_name(self) -> Mapping[str, Sequence[int]]:
        """Files by the last part of their path."""
        found: dict[str, list[int]] = defaultdict(list)
        for row in self.files.values():
            found[posixpath.basename(row.path)].append(row.id)
        return found

    @functools.cached_property
    def path_words(self) -> Mapping[int, frozenset[str]]:
        """The words of each path, without those that say that it is a test."""
        return {row.id: _path_words(row.path) for row in self.files.values()}

    @functools.cached_property
    def past(self) -> Sequence[Past]:
        return past(self._connection)


def state_of(connection: sqlite3.Connection) -> tuple[int, int]:
    """Another one after each change, whoever made it: the first number counts those of others, the second its own.
    Within a transaction that has begun to read."""
    return connection.execute("PRAGMA data_version").fetchone()[0], connection.total_changes


def _path_words(path: str) -> frozenset[str]:
    folder, _, name = path.rpartition("/")
    return _words(folder) | _words(name.rpartition(".")[0] or name)


@functools.lru_cache(maxsize=1 << 14)
def _words(part: str) -> frozenset[str]:
    return frozenset(stem(word) for word in parts(part)) - _SAYING_NOTHING
