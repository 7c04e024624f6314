"""The librarian of a workspace: keeps the index, and answers which files and definitions must change."""

from __future__ import annotations

import hashlib
import math
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pawl.code.bundle import redacted_lines
from pawl.code.code_model import Definition, Hit, Outline, PackFile, Query
from pawl.code.import_map import ImportMap
from pawl.code.index_reader import IndexReader, IndexTables, state_of
from pawl.code.index_writer import IndexWriter, Refreshed, alone, connect, is_damage, renewed, store_error, take_in
from pawl.code.outline import Outliner, repository_outline
from pawl.code.parsers import ParserLimits, Parsers
from pawl.code.ranker import rank
from pawl.code.reach import ChangedLines, Reach, reached
from pawl.core.errors import PawlError, UsageError
from pawl.core.text import Text
from pawl.settings.config import Config
from pawl.settings.files import Tree
from pawl.settings.guardrails import Guardrails
from pawl.workspace.bench_files import Files, WorkspaceFiles
from pawl.workspace.git import GitLog
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.workspace.bench import Bench


def import_graph(shelf: IndexReader) -> ImportMap:
    """Every file with code is in it, also one that imports nothing; cycles share a rank."""
    files = shelf.files
    imported = {
        row.path: frozenset(files[target].path for target in shelf.tables.imported.get(number, ()) if target in files)
        for number, row in files.items()
        if row.language
    }
    return ImportMap.joined(imported)


_MOST_PROCESSES = 4
_FEW = 20_000
"""Pieces that are gone and cost nothing yet."""

PATIENCE_SECONDS = 30.0
"""How long whoever asks waits for files to be taken in."""

T = TypeVar("T")


def everything(path: str) -> bool:
    """Lets every path pass, for commands that show the user's own files to the user."""
    return True


class CodeLibrarian:
    """Finds the right code without a model: an open index. Without a log of commits it does without them.

    The index knows every file; its answers name those that `shows` lets pass, and `lists` where the guardrails let
    them. Any number of processes may use it at
    once; what one writes, the others see.
    """

    def __init__(
        self,
        path: Path,
        files: WorkspaceFiles,
        log: GitLog | None = None,
        *,
        shows: Callable[[str], bool] = everything,
        lists: Callable[[str], bool] = everything,
        left: Callable[[], float] = lambda: math.inf,
    ) -> None:
        self._path = path
        self._left = left
        self._shows, self._lists = shows, lists
        self._walked, self._until = frozenset[str](), 0.0
        self._files = files
        self._log = log
        self._connection = connect(path)
        self._tables: IndexTables | None = None
        # They start when there is something to parse, and stay for the next change.
        self._parsers = Parsers(ParserLimits(processes=min(_MOST_PROCESSES, os.cpu_count() or 1)))

    def close(self) -> None:
        self._parsers.close()
        self._connection.close()

    def __enter__(self) -> CodeLibrarian:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def refresh(self, paths: Iterable[str] | None = None, *, seconds: float = PATIENCE_SECONDS) -> Refreshed:
        """Takes in what has changed: these files, or whatever a walk through the workspace finds.

        It stops when the time is up, or half of what is left to the run; what it has taken in by then counts, and the
        next time goes on.
        """
        chosen = None if paths is None else sorted(set(paths))
        until = time.monotonic() + min(seconds, self._left() / 2)

        def work() -> Refreshed:
            if self._is_worn():
                self.rebuild()
            return self._refresh(chosen, until)

        return self._sound(work)

    def rebuild(self) -> None:
        """Throws everything away; the next refresh takes in every file."""
        with alone(self._path):
            self._connection.close()
            self._connection = renewed(self._path)
        self._tables = None

    def _refresh(self, paths: Sequence[str] | None, until: float) -> Refreshed:
        if paths is None:
            stamps = self._files.stamps()
        else:
            stamps = [stamp for path in paths if (stamp := self._files.stamp(path)) is not None]
        there = frozenset(stamp.path for stamp in stamps)
        if paths is None:
            self._walked, self._until = there, time.monotonic() + 1.0
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

    def take_in(self, log: GitLog) -> bool:
        """Reads the commits that HEAD reaches, unless it has done so for this HEAD."""

        def work() -> bool:
            with alone(self._path):
                return take_in(self._connection, log)

        return self._sound(work)

    def reading(self, work: Callable[[IndexReader], T], *, tests: bool = True, history: bool = True) -> T:
        """Reads one moment of the index, whoever writes meanwhile."""

        def read() -> T:
            self._connection.execute("BEGIN")
            try:
                tables = self._kept_tables()
                return work(IndexReader(self._connection, tables, tests=tests, history=history, shows=self._is_shown))
            finally:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")

        return self._sound(read)

    def _is_shown(self, path: str) -> bool:
        """What a walk saw within the last second is no secret."""
        return self._lists(path) if path in self._walked and time.monotonic() < self._until else self._shows(path)

    def _kept_tables(self) -> IndexTables:
        """Those of the query before, where nothing was written since."""
        self._connection.execute("SELECT 1 FROM file LIMIT 1").fetchone()
        if self._tables is None or self._tables.state != state_of(self._connection):
            self._tables = IndexTables(self._connection)
        return self._tables

    def graph(self) -> ImportMap:
        """Which file imports which, in every language, and the order in which to work on them."""
        return self.reading(import_graph)

    def graph_at_once(self) -> ImportMap:
        """The same of the workspace as it stands, without an index."""
        return ImportMap.joined(
            IndexWriter(self._connection, self._files, self._parsers).imported(self._files.stamps())
        )

    @property
    def is_empty(self) -> bool:
        """No file of the workspace is in the index."""
        return self.reading(lambda shelf: not shelf.files, history=False)

    def locate(self, query: Query, top: int) -> list[Hit]:
        """Answers from the index as it stands."""
        if not query.text.strip():
            raise UsageError("there is nothing to look for", advice="describe what is wrong, or what should change")
        if top < 1:
            raise UsageError(f"{top} files cannot be shown", advice="ask for at least one")
        if query.history and self._log is not None:
            self.take_in(self._log)
        return self.reading(lambda shelf: rank(query, shelf, top), tests=query.tests, history=query.history)

    def reached(self, changes: Sequence[ChangedLines]) -> Reach:
        """The tests that the changes reach, by the index as it stands."""
        if self._log is not None:
            self.take_in(self._log)
        return self.reading(lambda shelf: reached(changes, shelf))

    def outline(self, files: Files, path: str) -> Outline:
        """The definitions of a file by the index; none for a file that it does not have."""
        return Outline(path=path, files=self.reading(lambda shelf: tuple(shelf.outlines([path]))))

    def overview(self, budget: int, guardrails: Guardrails) -> str:
        """The outline of the whole repository without its tests, at most so many tokens."""
        return self.reading(
            lambda shelf: repository_outline(shelf.outlines(), shelf.uses(), budget=budget, guardrails=guardrails),
            tests=False,
            history=False,
        )


MOST_FILES = 20


def gathered(
    hits: Iterable[Hit], files: Files, outliner: Outliner, guardrails: Guardrails, *, most: int = MOST_FILES
) -> tuple[PackFile, ...]:
    """The first of the files that can be read, in the order of the hits; a secret is passed over like a missing one."""
    found: list[PackFile] = []
    for path in dict.fromkeys(hit.path for hit in hits):
        if len(found) >= most:
            break
        file = None if guardrails.is_secret(path) or guardrails.never(path) else _read(path, files, outliner)
        if file is not None:
            found.append(file)
    return tuple(found)


def _read(path: str, files: Files, outliner: Outliner) -> PackFile | None:
    try:
        lines = Text.decode(files.read(path), path).lines
    except (PawlError, OSError):
        return None
    return PackFile(path=path, lines=redacted_lines(lines), definitions=_definitions(path, files, outliner))


def _definitions(path: str, files: Files, outliner: Outliner) -> tuple[Definition, ...]:
    """Nothing for a file in a language that nobody parses."""
    try:
        return tuple(one for file in outliner.outline(files, path).files for one in file.definitions)
    except (PawlError, OSError):
        return ()


def index_path(state: Path, workspace: str) -> Path:
    """Where the index of a workspace is kept; it can be deleted at any time."""
    name = hashlib.sha256(os.fsencode(workspace)).hexdigest()[:32]
    return state / "index" / f"{name}.db"


def source_files(shop: Project) -> WorkspaceFiles:
    """The files that an index of the workspace is made of."""
    ignored, listings = shop.config.global_ignore, shop.listings
    return WorkspaceFiles(shop.tree, shop.guardrails, global_ignore=ignored, listings=listings)


def workspace_import_graph(shop: Project, *, seconds: float = PATIENCE_SECONDS) -> ImportMap:
    """Which file of the workspace imports which, in every language that is parsed."""
    with open_librarian(shop) as librarian:
        if librarian.is_empty:
            # An index holds much more than imports; whoever asks for that next makes it.
            return librarian.graph_at_once()
        librarian.refresh(seconds=seconds)
        return librarian.graph()


def open_librarian(shop: Project, *, shows: Callable[[str], bool] | None = None) -> CodeLibrarian:
    """The caller closes it. Nothing is indexed before `refresh`.

    It names what a model may read; `shows` lets other paths pass.
    """

    def runner() -> Bench:
        # Loaded here, because an index that knows the commits of this HEAD needs no bench.
        from pawl.workspace.benches import open_bench

        return open_bench(shop)

    def left() -> float:
        return math.inf if shop.stop is None else shop.stop.left

    path, log, gate = index_path(shop.config.state, shop.workspace), GitLog(shop.tree, runner), shop.read_gate()
    shown, listed = shows or gate.shows, shows or gate.lists
    return CodeLibrarian(path, source_files(shop), log, shows=shown, lists=listed, left=left)


_PATIENCE = 2.0


class IndexThread:
    """Brings the index up to date while a session begins, in a thread of its own.

    It makes the first answer faster and never wrong: whoever asks the librarian still looks whether anything has
    changed. Trouble ends it.
    """

    def __init__(self, config: Config, workspace: str, guardrails: Guardrails) -> None:
        self._config = config
        self._workspace = workspace
        self._guardrails = guardrails
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="pawl-index", daemon=True)
        self._thread.start()

    def __enter__(self) -> IndexThread:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, seconds: float = _PATIENCE) -> None:
        """Waits for its end, not long; an index that is being made then is left to the next who needs it."""
        self._closed = True
        self._thread.join(seconds)

    def _run(self) -> None:
        with suppress(PawlError, OSError), Tree(Path(self._workspace)) as tree:
            files = WorkspaceFiles(tree, self._guardrails, global_ignore=self._config.global_ignore)
            with CodeLibrarian(index_path(self._config.state, self._workspace), files) as librarian:
                try:
                    librarian.refresh(seconds=math.inf)
                except RuntimeError:  # A process that ends starts no more threads.
                    if not self._closed:
                        raise


def prepare_index(shop: Project) -> IndexThread:
    """Begins to index the workspace; the caller closes it before the project."""
    return IndexThread(shop.config, shop.workspace, shop.guardrails)
