"""The index as the signals of a ranking read it: what a query asks for, over tables that stay from query to query."""

from __future__ import annotations

import functools
import json
import math
import posixpath
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from pawl.code.code_model import Definition, DefinitionKind, FileOutline
from pawl.code.index_writer import Past, past
from pawl.code.languages import FileKind, is_test
from pawl.code.parsers import DefinitionRow
from pawl.code.query import parts, stem, tokens

_SAYING_NOTHING = frozenset({"test", "init", "src", "lib", "py"})
"""Words of paths that are everywhere, or say that it is a test."""


class FileRow(NamedTuple):
    id: int
    path: str
    language: str
    kind: FileKind
    test: bool


class IndexTables:
    """Of one state of the index. Each is read within the transaction of the query that first asks for it."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self.state = state_of(connection)
        kinds = {str(kind): kind for kind in FileKind}
        rows = connection.execute("SELECT id, path, language, role FROM file WHERE role != '' ORDER BY path")
        every = (FileRow(number, path, language, kinds[role], is_test(path)) for number, path, language, role in rows)
        self.files: Mapping[int, FileRow] = {row.id: row for row in every}
        self.by_path: Mapping[str, int] = {row.path: row.id for row in self.files.values()}

    @functools.cached_property
    def pieces(self) -> tuple[int, float]:
        """How many there are, and how many tokens one has in the middle."""
        count, length = self._connection.execute("SELECT count(*), avg(length) FROM piece").fetchone()
        return count, length or 1.0

    @functools.cached_property
    def gone(self) -> Sequence[tuple[int, int]]:
        """The first and last numbers of pieces that are no more, one after the other; their words are still there."""
        last = self._connection.execute("SELECT max(seq) FROM sqlite_sequence WHERE name = 'piece'").fetchone()[0] or 0
        return self._connection.execute(_GAPS, (last + 1,)).fetchall() if last > self.pieces[0] else []

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


_AT_ONCE = 500
_OCCURRENCES = """
    SELECT doc, value, in_path, file, length FROM (
        SELECT doc, sum(CASE col WHEN 'body' THEN 1.0 WHEN 'names' THEN 3.0 ELSE 4.0 END) AS value,
            max(col = 'path') AS in_path FROM occurrence WHERE term = ? GROUP BY doc
    ) CROSS JOIN piece ON piece.id = doc
"""
_GAPS = """
    SELECT id + 1, next - 1 FROM (SELECT id, lead(id, 1, ?) OVER (ORDER BY id) AS next
    FROM (SELECT 0 AS id UNION ALL SELECT id FROM piece)) WHERE next > id + 1
"""

Scores = dict[int, float]
"""A number for each file, by the file's number; what is not there is 0."""


class PieceLines(NamedTuple):
    """Where a piece stands; the last two are its first and its last line."""

    id: int
    file: int
    start: int
    stop: int


class Posting(NamedTuple):
    """How often a token occurs in a piece, with more for names and paths. Made by the thousand, so that rows are taken
    as they come."""

    piece: int
    count: float  # type: ignore[assignment]
    in_path: int
    file: int
    length: int


class Named(NamedTuple):
    """A definition of a name that was asked for."""

    file: int
    kind: DefinitionKind
    name: str
    qualified: str
    line: int


class IndexReader:
    """For one query; what it has read it remembers."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        tables: IndexTables,
        *,
        tests: bool = True,
        history: bool = True,
        shows: Callable[[str], bool] = lambda path: True,
    ) -> None:
        """`shows` says which paths an answer may name."""
        self._connection = connection
        self.tables = tables
        self._history = history
        self.files = tables.files
        self.by_path = tables.by_path
        self._is_candidate: Callable[[FileRow], bool] = lambda row: (tests or not row.test) and shows(row.path)
        self._postings: dict[str, list[Posting]] = {}
        self._spread: dict[str, int] = {}

    @functools.cached_property
    def candidates(self) -> frozenset[int]:
        """The files that an answer may name."""
        return frozenset(row.id for row in self.files.values() if self._is_candidate(row))

    @property
    def past(self) -> Sequence[Past]:
        return self.tables.past if self._history else ()

    def pieces_of(self, files: Sequence[int]) -> list[PieceLines]:
        return self._pieces("file", files)

    def _pieces(self, column: str, numbers: Sequence[int]) -> list[PieceLines]:
        """The pieces of which a column has one of the numbers, as far as they are still there, by their numbers."""
        found: list[PieceLines] = []
        for part in _parts(numbers):
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT id, file, start, stop FROM piece WHERE {column} IN ({marks})", part
            )
            found.extend(PieceLines(*row) for row in rows)
        return sorted(found)

    def spread(self, token: str) -> int:
        """In how many pieces a token occurs."""
        if token not in self._spread:
            row = self._connection.execute("SELECT doc FROM spread WHERE term = ?", (token,)).fetchone()
            self._spread[token] = row[0] - self._forgotten(token) if row else 0
        return self._spread[token]

    def _forgotten(self, token: str) -> int:
        """In how many pieces that are gone it occurs."""
        count = "SELECT count(*) FROM word WHERE word MATCH ? AND rowid BETWEEN ? AND ?"
        phrase = f'"{token}"'
        return sum(self._connection.execute(count, (phrase, *part)).fetchone()[0] for part in self.tables.gone)

    def rarity(self, name: str) -> float:
        """From 0 for what is everywhere to 1 for what is almost nowhere."""
        found = tokens(name)
        total = 1 + self.tables.pieces[0]
        if not found:
            # A name of one letter is not counted; it is no rarity, and not everywhere either.
            return 0.5
        return math.log(1 + total / (1 + self.spread(found[0]))) / math.log(1 + total)

    def postings(self, token: str) -> list[Posting]:
        if token not in self._postings:
            self._postings[token] = self._connection.execute(_OCCURRENCES, (token,)).fetchall()
        return self._postings[token]

    def together(self, tokens: Sequence[str]) -> list[PieceLines]:
        """The pieces in whose text these tokens stand one after the other."""
        phrase = f'body : "{" ".join(tokens)}"'
        rows = self._connection.execute("SELECT rowid FROM word WHERE word MATCH ?", (phrase,))
        return self._pieces("id", [number for (number,) in rows])

    def named(self, names: Iterable[str]) -> Mapping[str, Sequence[Named]]:
        """The definitions of these names."""
        found: dict[str, list[Named]] = defaultdict(list)
        for part in _parts(sorted(set(names))):
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                f"SELECT file, kind, name, qualified, line FROM definition WHERE name IN ({marks}) ORDER BY file, line",
                part,
            )
            for file, kind, name, qualified, line in rows:
                found[name].append(Named(file, DefinitionKind(kind), name, qualified, line))
        return found

    def definitions(self, file: int) -> list[Definition]:
        """The definitions of a file, in its order."""
        columns = ", ".join(DefinitionRow._fields)
        rows = self._connection.execute(f"SELECT {columns} FROM definition WHERE file = ? ORDER BY rowid", (file,))
        return [DefinitionRow(*row).definition for row in rows]

    def tests_defined(self) -> Mapping[int, int]:
        """How many definitions of each file are named like a test."""
        rows = self._connection.execute(
            "SELECT file, count(*) FROM definition WHERE name GLOB 'test*' OR name GLOB 'Test*' GROUP BY file"
        )
        return dict(rows.fetchall())

    def tests_inside(self) -> Mapping[int, int]:
        """The files that hold a module of tests beside what they test, as in Rust, with how many functions it has."""
        rows = self._connection.execute(
            "SELECT m.file, count(*) FROM definition m JOIN definition d ON d.file = m.file "
            "AND d.start > m.start AND d.stop <= m.stop AND d.kind = 'function' "
            "WHERE m.kind = 'module' AND m.name IN ('test', 'tests') GROUP BY m.file"
        )
        return dict(rows.fetchall())

    def lines(self) -> Mapping[int, int]:
        """How long each file is."""
        return dict(self._connection.execute("SELECT file, max(stop) FROM piece GROUP BY file").fetchall())

    def names_of(self, pieces: Sequence[int]) -> frozenset[str]:
        """The names of the definitions that these pieces are."""
        found: set[str] = set()
        for part in _parts(pieces):
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(
                "SELECT d.name FROM piece p JOIN definition d ON d.file = p.file AND d.start = p.start "
                f"AND d.stop = p.stop WHERE p.id IN ({marks})",
                part,
            )
            found.update(name for (name,) in rows)
        return frozenset(found)

    def imports_of(self, files: Iterable[int]) -> Iterator[tuple[int, frozenset[str]]]:
        """The names that these files import, by file, for each import."""
        for part in _parts(sorted(files)):
            marks = ",".join("?" * len(part))
            for file, names in self._connection.execute(
                f"SELECT file, names FROM import WHERE file IN ({marks})", part
            ):
                yield file, frozenset(name for name, _ in json.loads(names))

    def outlines(self, paths: Iterable[str] | None = None) -> list[FileOutline]:
        """These files, or all that are code, with what they define; none that may not be named."""
        if paths is None:
            chosen = [row for row in self.files.values() if row.id in self.candidates and row.kind is FileKind.CODE]
        else:
            known = (self.files[self.by_path[path]] for path in paths if path in self.by_path)
            chosen = [row for row in known if self._is_candidate(row)]
        length = "SELECT coalesce(max(stop), 0) FROM piece WHERE file = ?"
        return [
            FileOutline(
                path=row.path,
                language=row.language,
                lines=self._connection.execute(length, (row.id,)).fetchone()[0],
                definitions=tuple(self.definitions(row.id)),
            )
            for row in chosen
        ]

    def uses(self) -> Mapping[str, int]:
        """In how many pieces each name is called or used otherwise."""
        found: Counter[str] = Counter()
        for calls, uses in self._connection.execute("SELECT calls, uses FROM piece"):
            found.update({*calls.split(), *uses.split()})
        return found

    def references(self, pieces: Sequence[int]) -> Mapping[int, tuple[list[str], list[str]]]:
        """The names that each piece calls, and those that it uses otherwise."""
        found: dict[int, tuple[list[str], list[str]]] = {}
        for part in _parts(pieces):
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(f"SELECT id, calls, uses FROM piece WHERE id IN ({marks})", part)
            found.update({number: (calls.split(), uses.split()) for number, calls, uses in rows})
        return found


def _parts(values: Sequence[object]) -> list[list[object]]:
    return [list(values[start : start + _AT_ONCE]) for start in range(0, len(values), _AT_ONCE)]
