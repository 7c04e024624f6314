"""Writing the index: which files have changed, what is in them, and how it is put into the tables."""

from __future__ import annotations

import fcntl
import hashlib
import json
import math
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeVar

from pawl.code.import_map import Resolver
from pawl.code.languages import LARGEST_FILE, FileKind, is_readable, kind_by_name, language_of
from pawl.code.parsers import IndexPage, Parsers, Rows
from pawl.code.query import Tokens
from pawl.core.errors import PawlError, StoreBusy, StoreError, TimedOut
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import without_known
from pawl.core.text import Text
from pawl.workspace.bench_files import Stamp, WorkspaceFiles
from pawl.workspace.git import Commit, GitLog

_BATCH, _SMALL_BATCH = 2000, 50
"""Files that become part of the index in one step; few where less than `_LONG` seconds are left."""
_LONG = 20.0
_MOST_TEXT = 1 << 20
"""Characters of tokens that are collected before they are written."""
_INSERTS = (
    "INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO definition VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO import VALUES (?, ?, ?, ?)",
    "INSERT INTO piece VALUES (?, ?, ?, ?, ?, ?, ?)",
    "INSERT INTO word (rowid, path, names, body) VALUES (?, ?, ?, ?)",
)
_UNLINKED = "INSERT OR REPLACE INTO fact VALUES ('unlinked', '')"
"""Stands from the first file that is written until the links are, so that whoever ends in between leaves word of it."""
_UNSURE_NS = 50_000_000
"""A file that was written so shortly before it was read may be written again without a new time."""


class Known(NamedTuple):
    """A file's row in the index."""

    id: int
    size: int
    modified_ns: int
    digest: bytes


F = TypeVar("F", int, str)
"""A file, by its number or its path."""


class _Read(NamedTuple):
    """A file that was read for the index; without a page when there is nothing in it for the index."""

    stamp: Stamp
    digest: bytes = b""
    page: IndexPage | None = None


class _Batch:
    """Rows on their way into the tables: what is written at once costs less than file by file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._next_file: int = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM file").fetchone()[0]
        self._next_piece: int = connection.execute(
            "SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence WHERE name = 'piece'"
        ).fetchone()[0]
        self._rows: dict[str, list[tuple[object, ...]]] = {statement: [] for statement in _INSERTS}
        self._size = 0

    def add(self, read: _Read, old: Known | None, found: Rows) -> int:
        """The number of the file."""
        number = old.id if old else self._next_file
        self._next_file += old is None
        files, definitions, imports, pieces, words = self._rows.values()
        stamp, digest, page = read
        files.append(
            (
                number,
                stamp.path,
                stamp.size,
                stamp.modified_ns,
                digest,
                page.language if page else "",
                page.kind if page else "",
                found.complete,
            )
        )
        definitions.extend([(number, *row) for row in found.definitions])
        imports.extend([(number, *row) for row in found.imports])
        for at, row in enumerate(found.pieces, self._next_piece):
            pieces.append((at, number, *row[:5]))
            words.append((at, *row[5:]))
            self._size += len(row.body)
        self._next_piece += len(found.pieces)
        if self._size > _MOST_TEXT:
            self.write()
        return number

    def write(self) -> None:
        for statement, rows in self._rows.items():
            self._connection.executemany(statement, rows)
            rows.clear()
        self._size = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """The result of an update of the index."""

    read: int = 0
    """Files that looked changed."""
    written: int = 0
    """Files that were."""
    removed: int = 0
    left: int = 0
    """Files for which there was no time; the next update goes on with them."""


class IndexWriter:
    """Brings the tables up to date. The caller is alone in writing."""

    def __init__(self, connection: sqlite3.Connection, files: WorkspaceFiles, parsers: Parsers) -> None:
        self._connection = connection
        self._files = files
        self._parsers = parsers
        self._written: list[int] = []

    def known(self, paths: Iterable[str] | None = None) -> dict[str, Known]:
        """The rows of these files, or of all."""
        columns = "SELECT path, id, size, modified_ns, digest FROM file"
        if paths is None:
            rows = self._connection.execute(columns).fetchall()
        else:
            found = (self._connection.execute(f"{columns} WHERE path = ?", (path,)).fetchone() for path in paths)
            rows = [row for row in found if row is not None]
        return {path: Known(*rest) for path, *rest in rows}

    def differs(self, stamps: Collection[Stamp], paths: Iterable[str] | None) -> bool:
        """Whether there is anything to do; a question that needs no writer's lock."""
        if self._is_unlinked():
            return True
        known, there = self.known(paths), {stamp.path for stamp in stamps}
        new = (one.path for one in stamps if _differs(one, known.get(one.path)))
        return any(one in known or kind_by_name(one) is not None for one in new) or not there.issuperset(known)

    def update(
        self, stamps: Iterable[Stamp], gone: Iterable[str], known: Mapping[str, Known], until: float = math.inf
    ) -> Refreshed:
        """Takes in these files, as far as they have changed and there is time, and forgets those that are gone."""
        changed = [one for one in stamps if kind_by_name(one.path) is not None and _differs(one, known.get(one.path))]
        removed = [known[path].id for path in gone if path in known]
        self._written = []
        everything = bool(removed) or self._is_unlinked() or any(one.path not in known for one in changed)
        if removed:
            with transaction(self._connection):
                self._connection.execute(_UNLINKED)
                for number in removed:
                    self._forget(number)
                    self._connection.execute("DELETE FROM edge WHERE target = ?", (number,))
                    self._connection.execute("DELETE FROM file WHERE id = ?", (number,))
        read = 0
        while read < len(changed) and (not read or time.monotonic() < until):
            size = _BATCH if until - time.monotonic() > _LONG else _SMALL_BATCH
            with transaction(self._connection):
                self._take(changed[read : read + size], known)
            read = min(read + size, len(changed))
        self._link(everything=everything)
        left = len(changed) - read
        return Refreshed(read=read, written=len(self._written), removed=len(removed), left=left)

    def imported(self, stamps: Iterable[Stamp]) -> dict[str, frozenset[str]]:
        """The files with code among these, each with those that it imports: read, and not put into the index."""
        known = [stamp for stamp in stamps if kind_by_name(stamp.path) is not None]
        paths = {stamp.path: stamp.path for stamp in known}
        pages = (
            read.page for stamp in known if kind_by_name(stamp.path) is FileKind.CODE and (read := self._read(stamp))
        )
        found = {
            page.path: rows for page, rows in self._parsers.imports_of_all(one for one in pages if one and one.language)
        }
        targets: dict[str, set[str]] = {path: set() for path in found}
        for source, target in linked(
            ((path, row.module, row.names) for path, rows in found.items() for row in rows), paths
        ):
            targets[source].add(target)
        return {path: frozenset(some) for path, some in targets.items()}

    def _take(self, batch: Iterable[Stamp], known: Mapping[str, Known]) -> None:
        """Files are read as the parsers need them, so that few are held in memory."""
        rows = _Batch(self._connection)
        waiting: dict[str, _Read] = {}

        def pages() -> Iterator[IndexPage]:
            for read in self._changed(batch, known):
                if read.page is None:
                    self._add(rows, read, known.get(read.stamp.path), Rows(complete=True))
                else:
                    waiting[read.page.path] = read
                    yield read.page

        for page, found in self._parsers.rows_of_all(pages()):
            self._add(rows, waiting.pop(page.path), known.get(page.path), found)
        rows.write()
        if self._written:
            self._connection.execute(_UNLINKED)

    def _add(self, rows: _Batch, read: _Read, old: Known | None, found: Rows) -> None:
        if old is not None:
            self._forget(old.id)
        self._written.append(rows.add(read, old, found))

    def _changed(self, batch: Iterable[Stamp], known: Mapping[str, Known]) -> Iterator[_Read]:
        for stamp in batch:
            # What cannot be read is kept by name, so that it is not read again until it changes.
            read = self._read(stamp) or _Read(stamp)
            old = known.get(stamp.path)
            if old is not None and old.digest == read.digest:
                self._connection.execute(
                    "UPDATE file SET size = ?, modified_ns = ? WHERE id = ?",
                    (read.stamp.size, read.stamp.modified_ns, old.id),
                )
            else:
                yield read

    def _read(self, stamp: Stamp) -> _Read | None:
        """The file as text; None when it is not for the index, or cannot be read."""
        kind = kind_by_name(stamp.path)
        if kind is None or stamp.size > LARGEST_FILE:
            return None
        try:
            data, seen = self._files.read(stamp.path, LARGEST_FILE)
            if not is_readable(stamp.path, data):
                return None
            text = without_known(_decoded(data, stamp.path))
        except TimedOut:
            raise
        except (PawlError, OSError):
            return None
        digest = hashlib.blake2b(data, digest_size=16).digest()
        language = language_of(stamp.path, data) if kind is FileKind.CODE else None
        page = IndexPage(stamp.path, text.encode("utf-8", "replace"), kind, language.name if language else "")
        return _Read(_sure(seen), digest, page)

    def _forget(self, number: int) -> None:
        """Everything that is known of a file but its row. Its words stay, and mean nothing without their pieces."""
        for table in ("definition", "import", "piece"):
            self._connection.execute(f"DELETE FROM {table} WHERE file = ?", (number,))

    def _link(self, *, everything: bool) -> None:
        """Finds the files that imports mean. A file that came or went can change what any import means."""
        if not everything and not self._written:
            return
        paths: dict[str, int] = dict(self._connection.execute("SELECT path, id FROM file"))
        imports = "SELECT file, module, names FROM import"
        chosen = None if everything else sorted(set(self._written))
        if chosen is None:
            rows = self._connection.execute(imports).fetchall()
        else:
            each = (self._connection.execute(f"{imports} WHERE file = ?", (number,)) for number in chosen)
            rows = [row for found in each for row in found]
        edges = linked(rows, paths)
        with transaction(self._connection):
            if chosen is None:
                self._connection.execute("DELETE FROM edge")
            for number in chosen or ():
                self._connection.execute("DELETE FROM edge WHERE source = ?", (number,))
            self._connection.executemany("INSERT INTO edge VALUES (?, ?)", sorted(edges))
            self._connection.execute("DELETE FROM fact WHERE name = 'unlinked'")

    def _is_unlinked(self) -> bool:
        return self._connection.execute("SELECT 1 FROM fact WHERE name = 'unlinked'").fetchone() is not None


def linked(rows: Iterable[tuple[F, str, str]], paths: Mapping[str, F]) -> set[tuple[F, F]]:
    """Which files the imports mean: rows of the importing file, the module and what is taken from it."""
    resolver, named = Resolver(paths), {number: path for path, number in paths.items()}
    return {
        (number, paths[target])
        for number, module, names in rows
        for target in resolver.targets(named[number], module, json.loads(names))
        if target != named[number]
    }


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    finished = False
    try:
        yield
        connection.execute("COMMIT")
        finished = True
    finally:
        if not finished and connection.in_transaction:
            connection.execute("ROLLBACK")


def _differs(stamp: Stamp, old: Known | None) -> bool:
    return old is None or (old.size, old.modified_ns) != (stamp.size, stamp.modified_ns)


def _sure(seen: Stamp) -> Stamp:
    """The stamp, or one that fits nothing when the file may change without a new time."""
    fresh = abs(time.time_ns() - seen.modified_ns) < _UNSURE_NS
    return Stamp(seen.path, seen.size, -1) if fresh else seen


def _decoded(data: bytes, path: str) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return Text.decode(data, path).plain
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


_VERSION = 4
"""Goes up with every change of the tables or of what is put into them; an index of another version is made anew."""
_MARK = 0x50574C49
_LONGEST_LOG = 16 << 20
_BUSY_SECONDS = 30.0
_TAKEN_AWAY = frozenset({sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY})
_DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_FORMAT})


def connect(path: Path) -> sqlite3.Connection:
    """The open index. One that is damaged, or of another version, is replaced by an empty one."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(path.parent, error.strerror or str(error)) from error
    connection = _usable(path)
    if connection is not None:
        return connection
    with alone(path):
        return _usable(path, locked=True) or renewed(path)


def generations(path: Path) -> list[Path]:
    """The files that hold the index or held it, newest first.

    Each has a name of its own: SQLite finds the files beside a database by name, also those of one that was replaced
    while somebody had it open.
    """
    numbered = {int(one.suffix[1:]): one for one in path.parent.glob(f"{path.name}.*") if one.suffix[1:].isdigit()}
    return [numbered[number] for number in sorted(numbered, reverse=True)] + ([path] if path.exists() else [])


def renewed(path: Path) -> sqlite3.Connection:
    """A new, empty index in the place of what is there, while no other process does it.

    Whoever has the old one open goes on with what they have.
    """
    old = generations(path)
    number = 1 + (int(old[0].suffix[1:]) if old and old[0] != path else 0)
    draft = Path(f"{path}.new")
    try:
        _remove(draft)
        with closing(_opened(draft)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in (resources.files("pawl.code") / "index.sql").read_text("utf-8").split(";\n"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_MARK}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
        # Whole before it has its name: others open it without a lock.
        made = draft.rename(f"{path}.{number}" if old else path)
        for one in old:
            _remove(one)
        return _opened(made)
    except sqlite3.DatabaseError as error:
        raise store_error(error, path) from error
    except OSError as error:
        raise _unusable(path, error.strerror or str(error)) from error


def _remove(index: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        Path(f"{index}{suffix}").unlink(missing_ok=True)


def _usable(path: Path, *, locked: bool = False) -> sqlite3.Connection | None:
    """The index as it is; None when it has to be made anew, or looked at again with the lock.

    Without it another may take the file away while it is opened, which SQLite calls an error of the disk.
    """
    newest = next(iter(generations(path)), None)
    if newest is None:
        return None
    passing = _DAMAGE if locked else _DAMAGE | _TAKEN_AWAY
    try:
        connection = _opened(newest, make=False)
    except sqlite3.DatabaseError as error:
        if _code(error) in passing:
            return None
        raise store_error(error, path) from error
    try:
        if _fits(connection):
            return connection
    except sqlite3.DatabaseError as error:
        if _code(error) not in passing:
            connection.close()
            raise store_error(error, path) from error
    connection.close()
    return None


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Keeps other processes from writing the index meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(f"{path}.lock", flags, 0o600)
    except OSError as error:
        raise _unusable(Path(f"{path}.lock"), error.strerror or str(error)) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is not what it should be, and not only busy or without room."""
    return _code(error) in _DAMAGE


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def store_error(error: sqlite3.Error, path: Path) -> StoreError:
    """The error of the house for an error of SQLite."""
    if _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreBusy(
            f"another process is writing to the index {str(path)!r}", advice="try again when it has finished"
        )
    return _unusable(path, str(error))


def _unusable(path: Path, why: str) -> StoreError:
    return StoreError(
        f"the index {str(path)!r} cannot be used: {why}",
        advice="check the disk, and the owner and mode of the file; it can be deleted at any time",
    )


def _opened(path: Path, *, make: bool = True) -> sqlite3.Connection:
    if make:
        # Made here, so that it and the files that SQLite puts beside it are the user's alone.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    place = f"{path.absolute().as_uri()}?mode=rw"
    connection = sqlite3.connect(place, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False, uri=True)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        # After a loss of power the index may be gone; it is made again.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute(f"PRAGMA journal_size_limit = {_LONGEST_LOG}")
        connection.execute("PRAGMA temp_store = MEMORY")
    except sqlite3.DatabaseError:
        connection.close()
        raise
    return connection


def _fits(connection: sqlite3.Connection) -> bool:
    """Whether it is an index of this version, as far as a first look at each table tells."""
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    mark = connection.execute("PRAGMA application_id").fetchone()[0]
    if (version, mark) != (_VERSION, _MARK):
        return False
    for table in ("file", "definition", "piece", "import", "edge", "past", "fact"):
        connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone()
    connection.execute("SELECT rowid FROM word WHERE word MATCH 'a' LIMIT 1").fetchone()
    return True


_MOST_COMMITS = 4000
_MOST_PATHS = 30
"""A commit that changes more says nothing about any of them."""
_LONGEST_MESSAGE = 1000


class Past(NamedTuple):
    """A commit as the index keeps it."""

    at: int
    words: str
    """The tokens of its message."""
    paths: tuple[str, ...]


def take_in(connection: sqlite3.Connection, log: GitLog) -> bool:
    """Brings the commits up to date with HEAD, unless they are of this HEAD; returns whether there was anything to do.

    A commit that HEAD does not reach never counts.
    """
    head = log.head()
    row = connection.execute("SELECT value FROM fact WHERE name = 'head'").fetchone()
    if head == (row[0] if row else ""):
        return False
    commits = log.commits(_MOST_COMMITS) if head else ()
    if head and not commits:
        return False
    with transaction(connection):
        connection.execute("DELETE FROM past")
        connection.executemany("INSERT INTO past (name, at, words, paths) VALUES (?, ?, ?, ?)", _commit_rows(commits))
        connection.execute("INSERT OR REPLACE INTO fact VALUES ('head', ?)", (head,))
    return True


def _commit_rows(commits: Iterable[Commit]) -> Iterable[tuple[str, int, str, str]]:
    tokens = Tokens()
    for commit in commits:
        if 0 < len(commit.paths) <= _MOST_PATHS:
            words = tokens.of(commit.message[:_LONGEST_MESSAGE])
            yield commit.name, commit.at, words, "\n".join(commit.paths)


def past(connection: sqlite3.Connection) -> list[Past]:
    """Newest first."""
    rows = connection.execute("SELECT at, words, paths FROM past ORDER BY id")
    return [Past(at, words, tuple(paths.split("\n"))) for at, words, paths in rows]
