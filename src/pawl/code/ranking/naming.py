"""What a query names: paths, frames of a traceback, dotted names, definitions; and which files these are."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pawl.code.languages import FileKind
from pawl.code.query import QueryTerms, StackFrame, Zone
from pawl.code.ranking.shelf import IndexReader, Named, Scores
from pawl.core.code import DefinitionKind

_KINDS = {
    DefinitionKind.FIELD: 0.4,
    DefinitionKind.VARIABLE: 0.6,
    DefinitionKind.MODULE: 0.5,
    DefinitionKind.CLASS: 1.2,
}
_ZONES = {Zone.TITLE: 1.6, Zone.PROSE: 1.0, Zone.CODE: 0.5, Zone.TRACE: 0.4}
_TICKED = 0.5
_IMPORTED = 0.3
_FADING = 0.7
"""What the next frame outwards counts."""
_SOURCE_FOLDERS = frozenset({"src", "lib", "python", "source", "sources"})
_MOST_FILES = 25
"""A name that more files define says nothing."""


@dataclass(slots=True)
class NamedThings:
    mentions: Scores = field(default_factory=lambda: defaultdict(float))
    told: set[int] = field(default_factory=set)
    """Files that are named beyond doubt: in the title, or with their folder."""
    frames: Scores = field(default_factory=lambda: defaultdict(float))
    dotted: Scores = field(default_factory=lambda: defaultdict(float))
    definitions: Scores = field(default_factory=lambda: defaultdict(float))
    lines: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Lines of a file that were spoken of."""
    words: dict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """The names by which a file was found, with their weight."""


def naming(understood: QueryTerms, shelf: IndexReader) -> NamedThings:
    found = NamedThings()
    _mentions(understood, shelf, found)
    _frames(understood.frames, shelf, found)
    finder = _Names(understood, shelf, found)
    finder.definitions()
    finder.dotted()
    return found


def matching(path: str, shelf: IndexReader) -> list[int]:
    """The files that a path means, wherever it starts: those that share the most of its end with it."""
    parts = [part for part in path.split("/") if part not in ("", ".", "..")]
    if not parts:
        return []
    shared: dict[int, int] = {}
    end = "/".join(parts[-2:])
    for number in shelf.tables.by_name.get(parts[-1], ()):
        whole = shelf.files[number].path
        # Most share the last part alone, and then only one at the top can be meant: not worth taking apart.
        if not whole.endswith(end) and "/" in whole and whole.partition("/")[0] not in _SOURCE_FOLDERS:
            continue
        own = whole.split("/")
        length = 0
        while length < min(len(own), len(parts)) and own[-1 - length] == parts[-1 - length]:
            length += 1
        # Either the mention or the file must be told in full, but for the folder that a package is installed from:
        # `site-packages/a/x.py` is `src/a/x.py`.
        if length == len(parts) or _SOURCE_FOLDERS.issuperset(own[: len(own) - length]):
            shared[number] = length
    most = max(shared.values(), default=0)
    return sorted(number for number, length in shared.items() if length == most)


def _mentions(understood: QueryTerms, shelf: IndexReader, found: NamedThings) -> None:
    for mention in understood.mentions:
        files = matching(mention.path, shelf)
        if not files or len(files) > _MOST_FILES:
            continue
        if len(files) == 1 and ("/" in mention.path or mention.path in understood.title):
            found.told.update(files)
        weight = (2.0 if mention.linked else 1.0) / len(files)
        for number in files:
            found.mentions[number] = max(found.mentions[number], weight)
            if mention.line:
                found.lines[number].append(mention.line)


def _frames(frames: Sequence[StackFrame], shelf: IndexReader, found: NamedThings) -> None:
    weight = 1.0
    for frame in reversed(frames):
        files = matching(frame.path, shelf)
        if len(files) != 1 or files[0] not in shelf.candidates:
            continue
        number = files[0]
        if not found.frames.get(number):
            found.frames[number] = weight
            weight *= _FADING
        found.lines[number].append(frame.line)


class _Names:
    """Names of definitions, alone or joined by dots."""

    def __init__(self, understood: QueryTerms, shelf: IndexReader, found: NamedThings) -> None:
        self._understood = understood
        self._shelf = shelf
        self._found = found
        self._tops = {path.partition("/")[0] for path in shelf.by_path}
        names = set(understood.names)
        names.update(part for dotted in understood.dotted for part in dotted.split("."))
        names.update(name for _, taken in understood.imports for name in taken)
        names.update({name[:-1] for name in names if name.endswith("s") and len(name) > 4})
        self._named = {name: self._kept(rows) for name, rows in shelf.named(names).items()}

    def _kept(self, rows: Sequence[Named]) -> list[Named]:
        files = self._shelf.files
        return [row for row in rows if row.file in self._shelf.candidates and files[row.file].kind is FileKind.CODE]

    def definitions(self) -> None:
        for name, zones in self._understood.names.items():
            rows = self._named.get(name) or (self._named.get(name[:-1]) if name.endswith("s") else None) or []
            files = {row.file for row in rows}
            if not files or len(files) > _MOST_FILES:
                continue
            weight = max(_ZONES[zone] for zone in zones) + (_TICKED if name in self._understood.ticked else 0)
            # A plain word is a name by chance more often than one that is made of several.
            plain = name.islower() and "_" not in name
            if len(name) <= 2:
                rows = [row for row in rows if row.kind is DefinitionKind.CLASS]
            weight *= (0.4 if plain and name not in self._understood.ticked else 1.0) / len(files) ** 0.7
            weight *= self._shelf.rarity(name)
            for number, kind in _strongest(rows).items():
                self._found.definitions[number] += weight * kind
                self._found.words[number][name] = weight * kind

    def dotted(self) -> None:
        for dotted, zones in self._understood.dotted.items():
            self._dotted(dotted.split("."), max(_ZONES[zone] for zone in zones))
        for module, taken in self._understood.imports:
            # What example code imports is how the failure is reached, not always where it is.
            for parts in [[*module.split("."), name] for name in taken] or [module.split(".")]:
                self._dotted(parts, _IMPORTED)

    def _dotted(self, parts: list[str], weight: float) -> None:
        for number, value in self._meant(parts).items():
            self._found.dotted[number] = max(self._found.dotted[number], value * weight)
            words = self._found.words[number]
            words[".".join(parts)] = max(words.get(".".join(parts), 0.0), value * weight)

    def _meant(self, parts: list[str]) -> dict[int, float]:
        """The files that a dotted name means: a module and what it defines, or a class and its member."""
        module, rest = self._module(parts)
        if module is not None and not rest:
            return {module: 1.0}
        if module is not None:
            return self._inside(module, rest)
        return self._member(parts) if len(parts) > 1 else {}

    def _module(self, parts: list[str]) -> tuple[int | None, list[str]]:
        for length in range(len(parts), 0, -1):
            if length == 1 and len(parts) > 1 and parts[0] not in self._tops:
                break
            stem = "/".join(parts[:length])
            for name in (f"{stem}.py", f"{stem}/__init__.py"):
                files = matching(name, self._shelf) if length > 1 else self._top(name)
                files = [number for number in files if number in self._shelf.candidates]
                if len(files) == 1:
                    return files[0], parts[length:]
        return None, parts

    def _top(self, name: str) -> list[int]:
        return [
            self._shelf.by_path[place] for place in (name, f"src/{name}", f"lib/{name}") if place in self._shelf.by_path
        ]

    def _inside(self, module: int, rest: list[str]) -> dict[int, float]:
        """What a module has: its own definition, or one of the package that it passes on."""
        for name in rest[:2]:
            rows = self._named.get(name, ())
            if any(row.file == module for row in rows):
                return {module: 1.0}
            folder = posixpath.dirname(self._shelf.files[module].path)
            within = {row.file for row in rows if self._shelf.files[row.file].path.startswith(f"{folder}/")}
            direct = within & set(self._shelf.tables.imported.get(module, ()))
            chosen = direct or within
            if 0 < len(chosen) <= 4:
                return dict.fromkeys(chosen, 1.0 / len(chosen))
        return {module: 0.3}

    def _member(self, parts: list[str]) -> dict[int, float]:
        """`Class.method`, or `instance.method` where only the method is known."""
        last, before = parts[-1], parts[-2]
        rows = self._named.get(last, ())
        exact = {row.file for row in rows if row.qualified.endswith(f"{before}.{last}")}
        if 0 < len(exact) <= 6:
            return dict.fromkeys(exact, 1.2 / len(exact) ** 0.5)
        owners = {row.file for row in self._named.get(before, ()) if row.kind is DefinitionKind.CLASS}
        if 0 < len(owners) <= 3:
            return dict.fromkeys(owners, 0.7 / len(owners))
        files = {row.file for row in rows}
        if 0 < len(files) <= 6:
            return dict.fromkeys(files, 0.5 / len(files))
        return {}


def _strongest(rows: Sequence[Named]) -> Mapping[int, float]:
    found: dict[int, float] = {}
    for row in rows:
        found[row.file] = max(found.get(row.file, 0.0), _KINDS.get(row.kind, 1.0))
    return found
