"""The index of a workspace: brought up to date when it is asked to be, read by those who rank."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from pawl.context.git_history import take_in
from pawl.context.graph import import_graph
from pawl.context.imports import ImportMap
from pawl.context.index_file import alone, connect, discard, is_damage, store_error
from pawl.context.indexing import IndexWriter, Refreshed
from pawl.context.parsers import ParserLimits, Parsers
from pawl.context.ranking.shelf import Shelf
from pawl.context.ranking.tables import Tables, state_of
from pawl.core.ports import CommitLog, SourceFiles

_MOST_PROCESSES = 4
_FEW = 20_000
"""Pieces that are gone and cost nothing yet."""

PATIENCE_SECONDS = 30.0
"""How long whoever asks waits for files to be taken in."""

T = TypeVar("T")


class Index:
    """An open index. Any number of processes may use it at once; what one writes, the others see."""

    def __init__(self, path: Path, files: SourceFiles) -> None:
        self._path = path
        self._files = files
        self._connection = connect(path)
        self._tables: Tables | None = None
        # They start when there is something to parse, and stay for the next change.
        self._parsers = Parsers(ParserLimits(processes=min(_MOST_PROCESSES, os.cpu_count() or 1)))

    def close(self) -> None:
        self._parsers.close()
        self._connection.close()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self, paths: Iterable[str] | None = None, *, seconds: float = PATIENCE_SECONDS) -> Refreshed:
        """Takes in what has changed: these files, or whatever a walk through the workspace finds.

        It stops when the time is up; what it has taken in by then counts, and the next time goes on.
        """
        chosen = None if paths is None else sorted(set(paths))
        until = time.monotonic() + seconds

        def work() -> Refreshed:
            if self._is_worn():
                self.rebuild()
            return self._refresh(chosen, until)

        return self._sound(work)

    def rebuild(self) -> None:
        """Throws everything away; the next refresh takes in every file."""
        with alone(self._path):
            self._connection.close()
            discard(self._path)
        self._connection = connect(self._path)
        self._tables = None

    def _refresh(self, paths: Sequence[str] | None, until: float) -> Refreshed:
        if paths is None:
            if self._connection.execute("SELECT 1 FROM file LIMIT 1").fetchone() is None:
                self._parsers.start()
            stamps = self._files.stamps()
        else:
            stamps = [stamp for path in paths if (stamp := self._files.stamp(path)) is not None]
        there = {stamp.path for stamp in stamps}
        writer = IndexWriter(self._connection, self._files, self._parsers)
        if not writer.differs(stamps, paths):
            return Refreshed()
        with alone(self._path):
            known = writer.known(paths)
            gone = [path for path in (known if paths is None else paths) if path not in there]
            return writer.update(stamps, gone, known, until)

    def _sound(self, work: Callable[[], T]) -> T:
        """Does the work; an index that turns out to be damaged is made anew, once, with every file in it."""
        try:
            try:
                return work()
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
            self.rebuild()
            self._refresh(None, time.monotonic() + PATIENCE_SECONDS)
            return work()
        except sqlite3.DatabaseError as error:
            raise store_error(error, self._path) from error

    def _is_worn(self) -> bool:
        """Whether more pieces are gone than there are."""
        live = self._connection.execute("SELECT count(*) FROM piece").fetchone()[0]
        row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'piece'").fetchone()
        return bool(row and row[0] - live > live + _FEW)

    def take_in(self, log: CommitLog) -> bool:
        """Reads the commits that HEAD reaches, unless it has done so for this HEAD."""

        def work() -> bool:
            with alone(self._path):
                return take_in(self._connection, log)

        return self._sound(work)

    def reading(self, work: Callable[[Shelf], T], *, tests: bool = True, history: bool = True) -> T:
        """Reads one moment of the index, whoever writes meanwhile."""

        def read() -> T:
            self._connection.execute("BEGIN")
            try:
                return work(Shelf(self._connection, self._kept_tables(), tests=tests, history=history))
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

        return self._sound(read)

    def _kept_tables(self) -> Tables:
        """Those of the query before, where nothing was written since."""
        self._connection.execute("SELECT 1 FROM file LIMIT 1").fetchone()
        if self._tables is None or self._tables.state != state_of(self._connection):
            self._tables = Tables(self._connection)
        return self._tables

    def graph(self) -> ImportMap:
        """Which file imports which, in every language, and the order in which to work on them."""
        return self.reading(import_graph)
