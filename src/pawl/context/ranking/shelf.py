"""The index as the signals of a ranking read it: what a query asks for, over tables that stay from query to query."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from pawl.context.git_history import Past
from pawl.context.ranking.tables import Tables
from pawl.context.sorting import Kind
from pawl.context.tokens import tokens
from pawl.core.outline import Definition, DefinitionKind, FileOutline

_AT_ONCE = 500
_OCCURRENCES = """
    SELECT doc, sum(CASE col WHEN 'body' THEN 1.0 WHEN 'names' THEN 3.0 ELSE 4.0 END), max(col = 'path')
    FROM occurrence WHERE term = ? GROUP BY doc
"""

Scores = dict[int, float]
"""A number for each file, by the file's number; what is not there is 0."""


class PieceRow(NamedTuple):
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


class Named(NamedTuple):
    """A definition of a name that was asked for."""

    file: int
    kind: DefinitionKind
    name: str
    qualified: str
    line: int


class Shelf:
    """For one query; what it has read it remembers."""

    def __init__(
        self, connection: sqlite3.Connection, tables: Tables, *, tests: bool = True, history: bool = True
    ) -> None:
        self._connection = connection
        self.tables = tables
        self._history = history
        self.files = tables.files
        self.by_path = tables.by_path
        self.candidates = frozenset(row.id for row in self.files.values() if tests or not row.test)
        self._postings: dict[str, list[Posting]] = {}
        self._spread: dict[str, int] = {}

    @property
    def past(self) -> Sequence[Past]:
        return self.tables.past if self._history else ()

    def pieces(self, numbers: Sequence[int]) -> list[PieceRow]:
        """These pieces, as far as they are still there, by their numbers."""
        found: list[PieceRow] = []
        for part in _parts(numbers):
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(f"SELECT id, file, start, stop FROM piece WHERE id IN ({marks})", part)
            found.extend(PieceRow(*row) for row in rows)
        return sorted(found)

    def pieces_of(self, files: Sequence[int]) -> list[PieceRow]:
        found: list[PieceRow] = []
        for part in _parts(files):
            marks = ",".join("?" * len(part))
            rows = self._connection.execute(f"SELECT id, file, start, stop FROM piece WHERE file IN ({marks})", part)
            found.extend(PieceRow(*row) for row in rows)
        return sorted(found)

    def spread(self, token: str) -> int:
        """In how many pieces a token occurs, about: pieces that are gone count as well."""
        if token not in self._spread:
            row = self._connection.execute("SELECT doc FROM spread WHERE term = ?", (token,)).fetchone()
            self._spread[token] = row[0] if row else 0
        return self._spread[token]

    def rarity(self, name: str) -> float:
        """From 0 for what is everywhere to 1 for what is almost nowhere."""
        found = tokens(name)
        total = 1 + len(self.tables.piece_files)
        if not found:
            # A name of one letter is not counted; it is no rarity, and not everywhere either.
            return 0.5
        return math.log(1 + total / (1 + self.spread(found[0]))) / math.log(1 + total)

    def postings(self, token: str) -> list[Posting]:
        if token not in self._postings:
            rows = self._connection.execute(_OCCURRENCES, (token,)).fetchall()
            files = self.tables.piece_files
            self._postings[token] = [row for row in rows if row[0] in files]
        return self._postings[token]

    def together(self, tokens: Sequence[str]) -> list[PieceRow]:
        """The pieces in whose text these tokens stand one after the other."""
        phrase = f'body : "{" ".join(tokens)}"'
        rows = self._connection.execute("SELECT rowid FROM word WHERE word MATCH ?", (phrase,))
        return self.pieces([number for (number,) in rows])

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
        """What a file defines, in its order."""
        rows = self._connection.execute(
            "SELECT kind, name, qualified, start, line, stop, depth, signature, doc FROM definition"
            " WHERE file = ? ORDER BY rowid",
            (file,),
        )
        return [
            Definition(
                kind=DefinitionKind(kind),
                name=name,
                qualified=qualified,
                start=start,
                line=line,
                end=stop,
                depth=depth,
                signature=signature,
                doc=doc,
            )
            for kind, name, qualified, start, line, stop, depth, signature, doc in rows
        ]

    def outlines(self, paths: Iterable[str] | None = None) -> list[FileOutline]:
        """These files, or all candidates that are code, with what they define."""
        if paths is None:
            chosen = [row for row in self.files.values() if row.id in self.candidates and row.kind is Kind.CODE]
        else:
            chosen = [self.files[self.by_path[path]] for path in paths if path in self.by_path]
        lines = dict(self._connection.execute("SELECT file, max(stop) FROM piece GROUP BY file"))
        return [
            FileOutline(
                path=row.path,
                language=row.language,
                lines=lines.get(row.id, 0),
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
