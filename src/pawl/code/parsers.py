"""Parsing the files of a workspace without trusting them: in processes of their own, under limits."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import resource
import signal
import subprocess
import sys
import weakref
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import field, fields
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar, get_type_hints

from pawl.code.code_model import Definition, DefinitionKind
from pawl.code.languages import FileKind, Language, languages
from pawl.code.query import NUMBER, Tokens, words_of
from pawl.code.syntax import FUNCTIONS, LARGEST, TYPES, Parsed, Use, parse
from pawl.core.errors import ServerUnavailable
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted_each

_OPENS = (FUNCTIONS | TYPES | {DefinitionKind.MACRO}) - {DefinitionKind.TYPE}
"""Definitions that are ranked by themselves."""
_MOST_PIECES = 2000
_MOST_PROSE = 1 << 16


@dataclass(slots=True)
class Piece:
    start: int
    """The first line, from 1."""
    stop: int
    names: list[str] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    """Its lines: those between them belong to other pieces."""
    calls: set[str] = field(default_factory=set)
    uses: set[str] = field(default_factory=set)


def pieces(parsed: Parsed, lines: int) -> list[Piece]:
    """In the order of the file; the first is what is outside of everything."""
    rest = Piece(1, lines)
    found = [rest]
    around: list[tuple[int, Piece]] = []
    """Pieces that are open, with the depth of the definition that opened them."""
    borders: list[tuple[int, Piece]] = [(1, rest)]
    for definition in parsed.definitions:
        _close(around, borders, rest, definition.start)
        inner = around[-1][1] if around else rest
        inner.names.append(definition.name)
        opens = definition.kind in _OPENS and definition.end > definition.start
        if not opens or len(found) >= _MOST_PIECES:
            continue
        piece = Piece(definition.start, definition.end, [definition.qualified])
        found.append(piece)
        around.append((definition.end, piece))
        borders.append((definition.start, piece))
    _close(around, borders, rest, lines + 1)
    _spans(borders, lines)
    _references(parsed, borders)
    return found


def _close(around: list[tuple[int, Piece]], borders: list[tuple[int, Piece]], rest: Piece, line: int) -> None:
    """Everything that ends before the line; what is around it goes on there."""
    while around and around[-1][0] < line:
        end, _ = around.pop()
        borders.append((end + 1, around[-1][1] if around else rest))


def _spans(borders: Sequence[tuple[int, Piece]], lines: int) -> None:
    for number, (start, piece) in enumerate(borders):
        stop = borders[number + 1][0] - 1 if number + 1 < len(borders) else lines
        if start <= stop:
            piece.spans.append((start, stop))


def _references(parsed: Parsed, borders: Sequence[tuple[int, Piece]]) -> None:
    starts = [start for start, _ in borders]
    for name, line, use in parsed.references:
        piece = borders[max(0, bisect_right(starts, line) - 1)][1]
        (piece.calls if use is Use.CALL else piece.uses).add(name)


def piece_tokens(found: Sequence[Piece], text: str, tokens: Tokens) -> Iterator[tuple[Piece, str, str]]:
    """Each piece with the tokens of its names and of its lines."""
    lines = text.split("\n")
    for piece in found:
        body = "\n".join("\n".join(lines[start - 1 : stop]) for start, stop in piece.spans)
        yield piece, tokens.of(" ".join(piece.names)), tokens.of(body)


def prose_tokens(text: str, tokens: Tokens) -> str:
    """Each word of a text once: enough to find it by, and small."""
    words = dict.fromkeys(words_of(text[:_MOST_PROSE]))
    found = dict.fromkeys(" ".join(map(tokens.__getitem__, words)).split())
    found.pop(NUMBER, None)
    return " ".join(found)


_KINDS = frozenset(kind.value for kind in DefinitionKind)


class IndexPage(NamedTuple):
    """One file on its way into the index."""

    path: str
    data: bytes
    """UTF-8, with the one line break that parsers know."""
    kind: FileKind
    language: str
    """Empty when no parser knows it."""

    @property
    def text(self) -> str:
        return self.data.decode("utf-8", "replace")


class DefinitionRow(NamedTuple):
    kind: str
    name: str
    qualified: str
    start: int
    line: int
    stop: int
    depth: int
    signature: str
    doc: str

    @property
    def definition(self) -> Definition:
        values: dict[str, Any] = dict(zip(_COLUMNS, self, strict=True))
        return Definition(**{**values, "kind": DefinitionKind(self.kind)})


_COLUMNS = tuple(field.name for field in fields(Definition))
"""In the order of the row."""
_values = attrgetter(*_COLUMNS)


class ImportRow(NamedTuple):
    line: int
    module: str
    names: str
    """JSON: what is taken from the module."""


class PieceRow(NamedTuple):
    start: int
    stop: int
    length: int
    calls: str
    uses: str
    path: str
    names: str
    body: str
    """The last three are tokens."""


R = TypeVar("R", DefinitionRow, ImportRow, PieceRow)


class Rows(NamedTuple):
    complete: bool
    definitions: Sequence[DefinitionRow] = ()
    imports: Sequence[ImportRow] = ()
    pieces: Sequence[PieceRow] = ()
    error: tuple[int, str] | None = None

    @classmethod
    def read(cls, answer: bytes) -> Rows:
        """From what a process wrote; a ValueError for what is not the rows of a file, because it may write anything."""
        try:
            complete, definitions, imports, found, error = json.loads(answer)
            rows = cls(
                bool(complete),
                [_sound(row, DefinitionRow) for row in definitions],
                [_sound(row, ImportRow) for row in imports],
                [_sound(row, PieceRow) for row in found],
                None if error is None else (int(error[0]), str(error[1])),
            )
            pairs = [pair for row in rows.imports for pair in json.loads(row.names)]
            if any([*map(type, pair)] != [str, str] for pair in pairs):
                raise ValueError("an import of no name")
        except (TypeError, RecursionError) as error:
            raise ValueError(str(error)) from error
        if not _KINDS.issuperset(row.kind for row in rows.definitions):
            raise ValueError("a definition of no kind")
        return rows


def _sound(row: Iterable[object], form: type[R]) -> R:
    if tuple(map(type, row)) != _FORMS[form]:
        raise ValueError(f"not a {form.__name__}")
    return form._make(row)


_FORMS: Mapping[type, tuple[type, ...]] = {
    form: tuple(get_type_hints(form).values()) for form in (DefinitionRow, ImportRow, PieceRow)
}


def read(page: IndexPage, tokens: Tokens) -> Rows:
    """Parses a file and makes its rows; only where a hostile file costs nothing but the process."""
    parsed = parse(page.data, languages()[page.language]) if page.language else Parsed()
    return rows(page, parsed, tokens)


def rows(page: IndexPage, parsed: Parsed, tokens: Tokens) -> Rows:
    """The rows of a file of which this much could be parsed."""
    found = definition_rows(parsed)
    signatures = redacted_each([one.signature for one in found])
    docs = redacted_each([one.doc for one in found])
    return Rows(
        parsed.complete,
        [
            one._replace(signature=signature, doc=doc)
            for one, signature, doc in zip(found, signatures, docs, strict=True)
        ],
        import_rows(parsed),
        _pieces(page, parsed, tokens),
    )


def import_rows(parsed: Parsed) -> list[ImportRow]:
    return [ImportRow(one.line, one.module, json.dumps(one.names)) for one in parsed.imports]


def definition_rows(parsed: Parsed) -> list[DefinitionRow]:
    return [DefinitionRow(*_values(one)) for one in parsed.definitions]


def _pieces(page: IndexPage, parsed: Parsed, tokens: Tokens) -> list[PieceRow]:
    path, text = tokens.of(page.path), page.text
    lines = text.count("\n") + 1
    if page.kind is FileKind.PROSE:
        body = prose_tokens(text, tokens)
        return [PieceRow(1, lines, body.count(" ") + 1, "", "", path, "", body)]
    found: list[PieceRow] = []
    for piece, names, body in piece_tokens(pieces(parsed, lines), text, tokens):
        calls, uses = " ".join(sorted(piece.calls)), " ".join(sorted(piece.uses))
        # The path belongs to the first piece, so that a file is not found by it many times.
        where = "" if found else path
        found.append(PieceRow(piece.start, piece.stop, body.count(" ") + 1, calls, uses, where, names, body))
    return found


READY = b"ready\n"
_IMPORTS = "imports"


def main(seconds: float, memory_bytes: int) -> None:
    """The process that parses: it answers one file after the other, and dies of a file that is too much for it.

    What is asked is a line of JSON (the language, the size and, for the rows of the index, the kind and the path, or
    only that its imports are wanted) and the source; what is answered is a line of JSON. It is JSON because the parsers
    are C: whatever a hostile file has made of this process, its answer is only data. The limits are the kernel's: a
    file over them ends the process.
    """
    # Parsing makes many objects and no cycles.
    gc.disable()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    source, answers = sys.stdin.buffer, sys.stdout.buffer
    answers.write(READY)
    answers.flush()
    tokens = Tokens()
    for line in source:
        name, size, *page = json.loads(line)
        data = source.read(size)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        if page == [_IMPORTS]:
            answer = Rows(complete=True, imports=import_rows(parse(data, languages()[name], imports_alone=True)))
        elif page:
            kind, path = page
            answer = read(IndexPage(path, data, FileKind(kind), name), tokens)
        else:
            parsed = parse(data, languages()[name])
            answer = Rows(parsed.complete, definition_rows(parsed), error=parsed.error)
        answers.write(json.dumps(answer).encode() + b"\n")
        signal.setitimer(signal.ITIMER_PROF, 0)
        answers.flush()


_START = "import sys; sys.path[:] = {path!r}; from pawl.code.parsers import main; main({seconds!r}, {memory_bytes!r})"
_AHEAD = 4
"""How many files wait for each process, so that none is idle and few are held in memory."""
_FAR_AHEAD = 128
_MOST_AHEAD = 4 << 20
"""For an index, that one long file does not keep the others waiting: so many files for each process, while they are not
more bytes than this."""

S = TypeVar("S", "SourceFile", IndexPage)
T = TypeVar("T")

UNREAD = Parsed(complete=False)
"""Facts about a file that its parser did not survive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParserLimits:
    seconds: float = 4.0
    """Processor time for one file."""
    memory_bytes: int = 1 << 30
    processes: int = 1


class SourceFile(NamedTuple):
    path: str
    data: bytes
    language: Language


class Parsers:
    """Processes that start when they are first needed and end with this object, or with the program.

    Safe to use from several threads.
    """

    def __init__(self, limits: ParserLimits | None = None) -> None:
        self._limits = limits or ParserLimits()
        self._workers = [_Worker(self._limits) for _ in range(self._limits.processes)]
        self._idle: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        weakref.finalize(self, _close_all, self._workers)

    def __enter__(self) -> Parsers:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the processes; the next file starts one again."""
        _close_all(self._workers)

    def parse(self, data: bytes, language: Language) -> Parsed:
        """The definitions of a file; `UNREAD` when it takes too long, takes too much or crashes the parser."""
        # One byte more than is parsed tells the worker that the file goes on.
        found = self._ask([language.name], data[: LARGEST + 1])
        if found is None:
            return UNREAD
        definitions = tuple(row.definition for row in found.definitions)
        return Parsed(definitions=definitions, complete=found.complete, error=found.error)

    def parse_all(self, sources: Iterable[SourceFile]) -> Iterator[tuple[SourceFile, Parsed]]:
        """The same for many files, in their order, with all processes at work. Sources are taken as they are needed."""
        return self._each(lambda source: self.parse(source.data, source.language), sources, _AHEAD)

    def rows(self, page: IndexPage) -> Rows:
        """Read a file for the index. One that its parser does not survive has its words, and no definitions."""
        found = self._ask([page.language, page.kind, page.path], page.data)
        return rows(page, UNREAD, Tokens()) if found is None else found

    def rows_of_all(self, pages: Iterable[IndexPage]) -> Iterator[tuple[IndexPage, Rows]]:
        """The same for many files, as `parse_all` does it."""
        return self._each(self.rows, pages, _FAR_AHEAD)

    def imports_of_all(self, pages: Iterable[IndexPage]) -> Iterator[tuple[IndexPage, Sequence[ImportRow]]]:
        """The imports alone, in a third of the time."""

        def imports(page: IndexPage) -> Sequence[ImportRow]:
            found = self._ask([page.language, _IMPORTS], page.data)
            return () if found is None else found.imports

        return self._each(imports, pages, _FAR_AHEAD)

    def _ask(self, about: list[str], data: bytes) -> Rows | None:
        """A process's answer; None when it did not survive the question, or answers anything else."""
        worker = self._idle.get()
        try:
            return Rows.read(worker.ask(about, data))
        except ValueError:
            return None
        finally:
            self._idle.put(worker)

    def _each(self, work: Callable[[S], T], sources: Iterable[S], ahead: int) -> Iterator[tuple[S, T]]:
        waiting: deque[tuple[S, Future[T]]] = deque()
        held = 0
        with ThreadPoolExecutor(self._limits.processes, thread_name_prefix="pawl-parse") as threads:
            try:
                for source in sources:
                    waiting.append((source, threads.submit(work, source)))
                    held += len(source.data)
                    while waiting and (len(waiting) >= ahead * self._limits.processes or held > _MOST_AHEAD):
                        done, result = waiting.popleft()
                        held -= len(done.data)
                        yield done, result.result()
                while waiting:
                    done, result = waiting.popleft()
                    yield done, result.result()
            finally:
                for _, result in waiting:
                    result.cancel()


def _close_all(workers: Iterable[_Worker]) -> None:
    for worker in workers:
        worker.close()


class _Worker:
    """One process, used by one thread at a time."""

    def __init__(self, limits: ParserLimits) -> None:
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None
        self._is_ready = False

    def ask(self, about: list[str], data: bytes) -> bytes:
        """One line; empty when the process has died of the question."""
        process = self._ready()
        assert process.stdin is not None and process.stdout is not None
        name, *page = about
        try:
            process.stdin.write(json.dumps([name, len(data), *page]).encode() + b"\n" + data)
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if answer.endswith(b"\n"):
            return answer
        self.close()
        return b""

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # What was still to be sent has nobody to go to.
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()

    def _ready(self) -> subprocess.Popen[bytes]:
        process = self._process = self._process or self._started()
        if not self._is_ready:
            assert process.stdout is not None
            if process.stdout.readline() != READY:
                self.close()
                raise ServerUnavailable("the parser of source files does not start", advice="install Pawl again")
            self._is_ready = True
        return process

    def _started(self) -> subprocess.Popen[bytes]:
        start = _START.format(
            path=[entry for entry in sys.path if os.path.isabs(entry)],
            seconds=self._limits.seconds,
            memory_bytes=self._limits.memory_bytes,
        )
        self._is_ready = False
        return subprocess.Popen(
            # Without site, because the path is given: that starts faster, and nothing of the user's runs.
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", start],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
        )
