"""The outline of a file or a folder: what is defined where, within a number of lines."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from pawl.code.bundle import DETAILS, one_line, outside_functions, within
from pawl.code.code_model import Definition, DefinitionKind, FileOutline, FolderSize, Outline
from pawl.code.languages import language_of, languages, may_be_source
from pawl.code.parsers import Parsers, SourceFile
from pawl.code.syntax import Parsed
from pawl.core.errors import NoMatches, NotAFile, NotFound, ParseFailed, PathRefused, PawlError, SecretRefused, TimedOut
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted
from pawl.core.text import CHARACTERS_PER_TOKEN, Text
from pawl.settings.guardrails import Guardrails
from pawl.workspace.bench_files import Files


class Outliner(Protocol):
    def outline(self, files: Files, path: str) -> Outline:
        """Outline a file, or the files of a folder at their top; empty or `.` is everything.

        Bounded in time and size, and never a secret. `ParseFailed` for a file in an unknown language.
        """
        ...


class SourceOutliner:
    """Fits `Outliner`. The processes that parse end with `close`, or with the program."""

    def __init__(
        self, guardrails: Guardrails, *, lines: int = 300, seconds: float = 20.0, parsers: Parsers | None = None
    ) -> None:
        self._guardrails = guardrails
        self._lines = lines
        self._seconds = seconds
        self._parsers = parsers or Parsers()

    def close(self) -> None:
        self._parsers.close()

    def outline(self, files: Files, path: str) -> Outline:
        place = "" if path in (".", "./") else path.removeprefix("./").rstrip("/")
        try:
            below = list(files.walk(place))
        except (NotADirectoryError, NotAFile):
            below = []
        if below or not place:
            return self._folder(files, place, [one for one in below if not self._is_hidden(one)])
        return self._file(files, place)

    def _file(self, files: Files, path: str) -> Outline:
        if self._guardrails.is_secret(path):
            raise SecretRefused(f"{path!r} holds secrets", advice="work without its content, or ask the user")
        if self._guardrails.never(path):
            raise PathRefused(f"{path!r} is out of reach", advice="name a file of the workspace")
        if not files.exists(path):
            raise NotFound(f"there is nothing at {path!r}", advice="check the spelling, or search for it")
        data = files.read(path)
        text = Text.decode(data, path)
        language = language_of(path, data)
        if language is None:
            raise ParseFailed(
                f"{path!r} is in no language that can be outlined",
                advice=f"read it with file_read; the languages are {', '.join(languages())}",
            )
        parsed = self._parsers.parse(_encoded(text), language)
        outside = outside_functions(parsed.definitions)
        shown = _fitting(outside, self._lines)
        found = FileOutline(
            path=path,
            language=language.name,
            lines=len(text.lines),
            definitions=shown,
            left_out=len(outside) - len(shown),
            complete=parsed.complete,
        )
        return Outline(path=path, files=(found,))

    def _folder(self, files: Files, folder: str, paths: Sequence[str]) -> Outline:
        sources = [path for path in paths if may_be_source(path)]
        folders: tuple[FolderSize, ...] = ()
        known = [path for path in sources if language_of(path) is not None]
        if len(known) > self._lines // 2:
            folders = _sizes(folder, known, self._lines // 4)
            sources = [path for path in sources if path.rpartition("/")[0] == folder]
        left_out = max(0, len(folders) - self._lines)
        folders = folders[: self._lines]
        sources, beyond = sources[: self._lines], sources[self._lines :]
        reader = _Reader(files, self._guardrails)
        found = list(self._parsers.parse_all(reader.sources(sources, time.monotonic() + self._seconds)))
        telling = [one for one in found if one[1].definitions or not one[1].complete] or found
        shown = _shared(telling, self._lines - len(folders))
        if not shown and not folders and reader.late:
            raise TimedOut(f"no file was read in {self._seconds:g} s", advice="outline a narrower folder, or one file")
        if not shown and not folders:
            raise NoMatches(
                f"there is no source file under {folder or '.'!r}",
                advice="list files with file_search, where names, or read one with file_read",
            )
        left_out += len(beyond) + reader.late + len(telling) - len(shown)
        return Outline(path=folder, files=shown, folders=folders, left_out=left_out, skipped=reader.skipped)

    def _is_hidden(self, path: str) -> bool:
        return self._guardrails.is_secret(path) or self._guardrails.never(path)


class _Reader:
    """Reads the files of a folder that are source, and counts those that cannot be read."""

    def __init__(self, files: Files, guardrails: Guardrails) -> None:
        self._files = files
        self._most = guardrails.file_bytes
        self.skipped = 0
        self.late = 0

    def sources(self, paths: Sequence[str], until: float) -> Iterator[SourceFile]:
        for number, path in enumerate(paths):
            if time.monotonic() > until:
                self.late = len(paths) - number
                return
            source = self._source(path)
            if source is not None:
                yield source

    def _source(self, path: str) -> SourceFile | None:
        try:
            data = self._files.read(path)
            language = language_of(path, data)
            if language is None:
                return None
            if len(data) <= self._most:
                return SourceFile(path, _encoded(Text.decode(data, path)), language)
        except TimedOut:
            raise
        except (PawlError, OSError):
            pass
        self.skipped += 1
        return None


def _encoded(text: Text) -> bytes:
    """The text in the one encoding and with the one line break that parsers know."""
    return text.plain.encode("utf-8", "replace")


def _sizes(folder: str, paths: Sequence[str], most: int) -> tuple[FolderSize, ...]:
    """The folders below with how many files are in each, as deep as `most` lines allow, and one level at least."""
    start = len(folder) + 1 if folder else 0
    names = [path[start:].split("/")[:-1] for path in paths]
    counts: Counter[str] = Counter()
    for depth in range(1, max(map(len, names), default=0) + 1):
        deeper = Counter("/".join(parts[:depth]) for parts in names if parts)
        if counts and len(deeper) > most:
            break
        counts = deeper
    above = folder and f"{folder}/"
    return tuple(FolderSize(path=above + path, files=count) for path, count in sorted(counts.items()))


def _shared(found: Sequence[tuple[SourceFile, Parsed]], room: int) -> tuple[FileOutline, ...]:
    """The top definitions of each file. When they are too many, every file shows equally many."""
    tops = [(source, parsed, _top(parsed.definitions)) for source, parsed in found][: max(0, room)]
    sizes = [len(top) for _, _, top in tops]
    room -= len(tops)
    each = max(sizes, default=0)
    while each > 0 and sum(min(each, size) for size in sizes) > room:
        each -= 1
    return tuple(
        FileOutline(
            path=source.path,
            language=source.language.name,
            lines=source.data.count(b"\n"),
            definitions=(shown := _fitting(top, each)),
            left_out=len(top) - len(shown),
            complete=parsed.complete,
        )
        for source, parsed, top in tops
    )


def _top(definitions: Sequence[Definition]) -> tuple[Definition, ...]:
    """The definitions at the top of a file; only modules are looked into."""
    return tuple(within(definitions, lambda kind: kind is DefinitionKind.MODULE))


def _fitting(definitions: tuple[Definition, ...], room: int) -> tuple[Definition, ...]:
    """As many as there is room for: fields and variables go first, then what stands deepest, then the last."""
    if len(definitions) > room:
        definitions = tuple(one for one in definitions if one.kind not in DETAILS) or definitions
    deepest = max((one.depth for one in definitions), default=0)
    while len(definitions) > room and deepest > 0:
        deepest -= 1
        definitions = tuple(one for one in definitions if one.depth <= deepest)
    return definitions[:room]


_PRIVATE = 0.25
_NESTED = 0.5
_NAMES_SHARE = 4
"""The part of the room that the names of further files may take, as its divisor."""


def repository_outline(
    files: Sequence[FileOutline], uses: Mapping[str, int], *, budget: int, guardrails: Guardrails
) -> str:
    """At most `budget` tokens of whole lines. `uses` says how often each name is used in the repository."""
    seen = [one for one in files if not guardrails.is_secret(one.path) and not guardrails.never(one.path)]
    ranked = _ranked(seen, uses)
    room = budget * CHARACTERS_PER_TOKEN
    most = len(ranked.order)
    names = sum(len(one_line(file.path)) + 1 for file in ranked.files)
    for_definitions = room - min(names, room // _NAMES_SHARE) - len(_rest(len(seen))) - 1
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if _size(ranked.lines(middle)) <= for_definitions:
            low = middle
        else:
            high = middle - 1
    lines = ranked.lines(low)
    return "\n".join([*lines, *_named(ranked, low, room - _size(lines))])


@dataclass(frozen=True, slots=True)
class _Ranked:
    files: Sequence[FileOutline]
    """The most used first."""
    order: Sequence[tuple[int, Definition]]
    """Every definition with the place of its file, the most used first."""

    def chosen(self, count: int) -> Mapping[int, list[Definition]]:
        found: dict[int, list[Definition]] = {}
        for place, definition in self.order[:count]:
            found.setdefault(place, []).append(definition)
        return found

    def lines(self, count: int) -> list[str]:
        shown = []
        for place, definitions in sorted(self.chosen(count).items()):
            shown.append(one_line(self.files[place].path))
            for one in sorted(definitions, key=lambda one: (one.line, one.qualified)):
                shown.append(f"{'  ' * (one.depth + 1)}{one.line}: {redacted(one.signature)}")
        return shown


def _ranked(files: Sequence[FileOutline], uses: Mapping[str, int]) -> _Ranked:
    shared = Counter(one.name for file in files for one in file.definitions)

    def weight(one: Definition) -> float:
        """A name that many define says little about each of them."""
        found = uses.get(one.name, 0) / shared[one.name]
        return found * (_PRIVATE if one.name.startswith("_") else 1) * (_NESTED if one.depth else 1)

    totals = {file.path: sum(map(weight, file.definitions)) for file in files}
    ordered = sorted(files, key=lambda file: (-totals[file.path], file.path))
    every = [(place, one) for place, file in enumerate(ordered) for one in file.definitions]
    every.sort(key=lambda pair: (-weight(pair[1]), pair[1].depth, pair[0], pair[1].line))
    return _Ranked(ordered, every)


def _named(ranked: _Ranked, count: int, room: int) -> list[str]:
    """The further files by name, and how many did not fit."""
    others = [file for place, file in enumerate(ranked.files) if place not in ranked.chosen(count)]
    named: list[str] = []
    for number, file in enumerate(others):
        after = len(others) - number - 1
        mark = [_rest(after)] if after else []
        if _size([*named, one_line(file.path), *mark]) > room:
            rest = _rest(len(others) - number)
            return [*named, rest] if _size([*named, rest]) <= room else named
        named.append(one_line(file.path))
    return named


def _rest(count: int) -> str:
    return f"[… {count:,} more files]"


def _size(lines: Sequence[str]) -> int:
    return sum(len(line) + 1 for line in lines)
