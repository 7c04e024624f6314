"""Writing the index: which files have changed, what is in them, and how it is put into the tables."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from pawl.context.languages import Language, language_of
from pawl.context.parsers import Parsers, Source
from pawl.context.parsing import Parsed
from pawl.context.pieces import piece_tokens, pieces, prose_tokens
from pawl.context.resolving import Resolver
from pawl.context.sorting import LARGEST_FILE, Kind, is_readable, kind_by_name
from pawl.context.tokens import Tokens
from pawl.core.content import Text
from pawl.core.errors import PawlError, TimedOut
from pawl.core.locating import Stamp
from pawl.core.ports import SourceFiles
from pawl.core.redact import redacted

_BATCH = 2000
"""Files that become part of the index in one step."""
_UNSURE_NS = 50_000_000
"""A file that was written so shortly before it was read may be written again without a new time."""


class Known(NamedTuple):
    """What the index has of a file."""

    id: int
    size: int
    modified_ns: int
    digest: bytes


@dataclass(slots=True)
class _Page:
    """One file on its way into the index."""

    stamp: Stamp
    digest: bytes
    kind: Kind
    text: str
    language: Language | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What an update of the index came to."""

    read: int = 0
    """Files that looked changed."""
    written: int = 0
    """Files that were."""
    removed: int = 0


class IndexWriter:
    """Brings the tables up to date. The caller is alone in writing."""

    def __init__(self, connection: sqlite3.Connection, files: SourceFiles, parsers: Parsers) -> None:
        self._connection = connection
        self._files = files
        self._parsers = parsers
        self._tokens = Tokens()
        self._written: list[int] = []
        self._next = 1
        """The number of the next piece."""

    def known(self, paths: Iterable[str] | None = None) -> dict[str, Known]:
        """What the index has of these files, or of all."""
        columns = "SELECT path, id, size, modified_ns, digest FROM file"
        if paths is None:
            rows = self._connection.execute(columns).fetchall()
        else:
            found = (self._connection.execute(f"{columns} WHERE path = ?", (path,)).fetchone() for path in paths)
            rows = [row for row in found if row is not None]
        return {path: Known(*rest) for path, *rest in rows}

    def differs(self, stamps: Iterable[Stamp], paths: Iterable[str] | None) -> bool:
        """Whether there is anything to do; a question that needs no writer's lock."""
        known = self.known(paths)
        wanted = {stamp.path: stamp for stamp in stamps if kind_by_name(stamp.path) is not None}
        if any(_differs(stamp, known.get(path)) for path, stamp in wanted.items()):
            return True
        return any(path in known and path not in wanted for path in (known if paths is None else paths))

    def update(self, stamps: Iterable[Stamp], gone: Iterable[str], known: Mapping[str, Known]) -> Refreshed:
        """Takes in these files, as far as they have changed, and forgets those that are gone."""
        changed = [one for one in stamps if kind_by_name(one.path) is not None and _differs(one, known.get(one.path))]
        removed = [known[path].id for path in gone if path in known]
        self._written = []
        self._next = self._connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM sqlite_sequence").fetchone()[0]
        if removed:
            with transaction(self._connection):
                for number in removed:
                    self._forget(number)
                    self._connection.execute("DELETE FROM edge WHERE target = ?", (number,))
                    self._connection.execute("DELETE FROM file WHERE id = ?", (number,))
        for start in range(0, len(changed), _BATCH):
            with transaction(self._connection):
                self._take(changed[start : start + _BATCH], known)
        self._link(everything=bool(removed) or any(one.path not in known for one in changed))
        return Refreshed(read=len(changed), written=len(self._written), removed=len(removed))

    def _take(self, batch: Iterable[Stamp], known: Mapping[str, Known]) -> None:
        """Files are read as the parsers need them, so that few are held in memory."""
        waiting: dict[str, _Page] = {}

        def sources() -> Iterator[Source]:
            for page in self._pages(batch, known):
                if page.language is None:
                    self._write(page, Parsed())
                else:
                    waiting[page.stamp.path] = page
                    yield Source(page.stamp.path, page.text.encode("utf-8", "replace"), page.language)

        for source, parsed in self._parsers.parse_all(sources()):
            self._write(waiting.pop(source.path), parsed)

    def _pages(self, batch: Iterable[Stamp], known: Mapping[str, Known]) -> Iterator[_Page]:
        for stamp in batch:
            # What cannot be read is kept by name, so that it is not read again until it changes.
            page = self._page(stamp) or _Page(stamp, b"", Kind.PROSE, "", None)
            old = known.get(stamp.path)
            if old is not None and old.digest == page.digest:
                self._connection.execute(
                    "UPDATE file SET size = ?, modified_ns = ? WHERE id = ?",
                    (page.stamp.size, page.stamp.modified_ns, old.id),
                )
            else:
                yield page

    def _page(self, stamp: Stamp) -> _Page | None:
        """The file as text; None when it is not for the index, or cannot be read."""
        kind = kind_by_name(stamp.path)
        if kind is None or stamp.size > LARGEST_FILE:
            return None
        try:
            data, seen = self._files.read(stamp.path, LARGEST_FILE)
            if not is_readable(stamp.path, data):
                return None
            text = _decoded(data, stamp.path)
        except TimedOut:
            raise
        except (PawlError, OSError):
            return None
        digest = hashlib.blake2b(data, digest_size=16).digest()
        return _Page(_sure(seen), digest, kind, text, language_of(stamp.path, data) if kind is Kind.CODE else None)

    def _write(self, page: _Page, parsed: Parsed) -> None:
        number: int = self._connection.execute(
            "INSERT INTO file (path, size, modified_ns, digest, language, role, complete) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET size = excluded.size, modified_ns = excluded.modified_ns,"
            " digest = excluded.digest, language = excluded.language, role = excluded.role,"
            " complete = excluded.complete"
            " RETURNING id",
            (
                page.stamp.path,
                page.stamp.size,
                page.stamp.modified_ns,
                page.digest,
                page.language.name if page.language else "",
                page.kind if page.digest else "",
                parsed.complete,
            ),
        ).fetchone()[0]
        self._forget(number)
        self._written.append(number)
        if page.digest:
            self._write_parts(number, parsed)
            self._write_words(number, page, parsed)

    def _write_parts(self, number: int, parsed: Parsed) -> None:
        self._connection.executemany(
            "INSERT INTO definition VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    number,
                    d.kind,
                    d.name,
                    d.qualified,
                    d.start,
                    d.line,
                    d.end,
                    d.depth,
                    *map(redacted, (d.signature, d.doc)),
                )
                for d in parsed.definitions
            ],
        )
        self._connection.executemany(
            "INSERT INTO import VALUES (?, ?, ?, ?)",
            [(number, one.line, one.module, json.dumps(one.names)) for one in parsed.imports],
        )

    def _write_words(self, number: int, page: _Page, parsed: Parsed) -> None:
        path = self._tokens.of(page.stamp.path)
        rows: list[tuple[int, int, int, int, int, str, str]] = []
        words: list[tuple[int, str, str, str]] = []
        if page.kind is Kind.PROSE:
            body = prose_tokens(page.text, self._tokens)
            rows.append((self._next, number, 1, page.text.count("\n") + 1, body.count(" ") + 1, "", ""))
            words.append((self._next, path, "", body))
        else:
            found = pieces(parsed, page.text.count("\n") + 1)
            for piece, names, body in piece_tokens(found, page.text, self._tokens):
                at = self._next + len(rows)
                calls, uses = " ".join(sorted(piece.calls)), " ".join(sorted(piece.uses))
                rows.append((at, number, piece.start, piece.stop, body.count(" ") + 1, calls, uses))
                words.append((at, path, names, body))
                path = ""
        self._next += len(rows)
        self._connection.executemany("INSERT INTO piece VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        self._connection.executemany("INSERT INTO word (rowid, path, names, body) VALUES (?, ?, ?, ?)", words)

    def _forget(self, number: int) -> None:
        """Everything that is known of a file but its row. Its words stay, and mean nothing without their pieces."""
        for table in ("definition", "import", "piece"):
            self._connection.execute(f"DELETE FROM {table} WHERE file = ?", (number,))

    def _link(self, *, everything: bool) -> None:
        """Finds the files that imports mean. A file that came or went can change what any import means."""
        if not everything and not self._written:
            return
        paths: dict[str, int] = dict(self._connection.execute("SELECT path, id FROM file"))
        resolver = Resolver(paths)
        named = {number: path for path, number in paths.items()}
        imports = "SELECT file, module, names FROM import"
        chosen = None if everything else sorted(set(self._written))
        if chosen is None:
            rows = self._connection.execute(imports).fetchall()
        else:
            each = (self._connection.execute(f"{imports} WHERE file = ?", (number,)) for number in chosen)
            rows = [row for found in each for row in found]
        edges = {
            (number, paths[target])
            for number, module, names in rows
            for target in resolver.targets(named[number], module, json.loads(names))
            if target != named[number]
        }
        with transaction(self._connection):
            if chosen is None:
                self._connection.execute("DELETE FROM edge")
            for number in chosen or ():
                self._connection.execute("DELETE FROM edge WHERE source = ?", (number,))
            self._connection.executemany("INSERT INTO edge VALUES (?, ?)", sorted(edges))


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
