"""Evidence of a query for a file: its words, by BM25 over pieces and whole files; the names, paths and frames
that it speaks of; and the commits that were about the same.
"""

from __future__ import annotations

import math
import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

from pawl.code.code_model import DefinitionKind
from pawl.code.index_reader import IndexReader, Named, Scores
from pawl.code.languages import FileKind
from pawl.code.query import QueryTerms, StackFrame, Zone
from pawl.core.lazy_dataclass import dataclass

_ZONES = {Zone.TITLE: 2.0, Zone.PROSE: 1.0, Zone.CODE: 0.6, Zone.TRACE: 0.4}
_MOST_TERMS = 50
_MOST_SPREAD = 0.25
"""A token in more of the pieces than this tells little, and takes long to count."""
_FEW_PIECES = 50
"""A token in no more than these is counted all the same: in a small workspace everything is in a good part of it."""
_SATURATION = 1.2
_FILE_LENGTH = 0.4
_PIECE_LENGTH = 0.5
_NEXT_BEST = 0.3
"""The weight of a file's second piece beside the best; the third counts the square of it."""
_RARE_PIECES = 200
_RARE_FILES = 5
_RARE_SHARE = 10
"""A word in more pieces or files than this, or in more than one file of so many, is not rare."""


def _scores() -> Scores:
    return defaultdict(float)


@dataclass(slots=True)
class Lexical:
    files: Scores = field(default_factory=_scores)
    paths: Scores = field(default_factory=_scores)
    """By the words of the path alone."""
    cover: Scores = field(default_factory=_scores)
    """How much of the query's weight occurs at all, from 0 to 1."""
    pieces: dict[int, float] = field(default_factory=_scores)
    """By the number of the piece; of all files, tests included."""
    of: dict[int, int] = field(default_factory=dict)
    """The file of each of these pieces."""
    best: Scores = field(default_factory=_scores)
    """The best piece of each file, with something for the next best."""
    parts: dict[int, dict[str, float]] = field(default_factory=lambda: defaultdict(dict))
    """The weight of each token for a file."""
    everywhere: frozenset[str] = frozenset()
    """Tokens in so much of the workspace that they are not counted."""

    def telling(self, file: int) -> tuple[str, ...]:
        """The tokens that speak most for a file."""
        parts = self.parts.get(file, {})
        return tuple(sorted(parts, key=lambda token: (-parts[token], token))[:4])


def weights(understood: QueryTerms) -> dict[str, float]:
    """The weight of each token of the query."""
    found: dict[str, float] = defaultdict(float)
    for zone, counts in understood.words.items():
        for token, count in counts.items():
            found[token] += _ZONES[zone] * math.sqrt(min(count, 4))
    return found


def share(tokens: Iterable[str], wanted: Mapping[str, float]) -> float:
    """How much of what is wanted these tokens of it are, from 0 to 1. Of a long text only so much can be looked for."""
    whole = sum(sorted(wanted.values(), reverse=True)[:_MOST_TERMS])
    return min(1.0, sum(wanted[token] for token in sorted(tokens)) / whole) if whole else 0.0


def lexical(understood: QueryTerms, shelf: IndexReader) -> Lexical:
    wanted = weights(understood)
    scoring = _Scoring(shelf)
    spread = {token: count for token in wanted if (count := shelf.spread(token))}
    most = max(_FEW_PIECES, _MOST_SPREAD * max(1, shelf.tables.pieces[0]))
    telling = {token: count for token, count in spread.items() if count <= most} or spread
    for token in _chosen(wanted, telling, shelf):
        scoring.count(token, wanted[token])
    return scoring.done(frozenset(spread.keys() - telling.keys()))


def _chosen(wanted: Mapping[str, float], telling: Mapping[str, int], shelf: IndexReader) -> Sequence[str]:
    """The tokens that tell most: heavy in the query, rare in the workspace."""
    total = max(1, shelf.tables.pieces[0])
    worth = {token: wanted[token] * math.log(1 + total / (1 + count)) for token, count in telling.items()}
    return sorted(telling, key=lambda token: (-worth[token], token))[:_MOST_TERMS]


def rare(understood: QueryTerms, shelf: IndexReader) -> tuple[Scores, dict[int, list[str]]]:
    """Files of code with words of the query that hardly any other has, and which words these are."""
    heaviest: dict[str, float] = {}
    for zone, counts in understood.words.items():
        for token in counts:
            heaviest[token] = max(heaviest.get(token, 0.0), _ZONES[zone])
    code = frozenset(
        file for file in shelf.candidates if shelf.files[file].kind is FileKind.CODE and not shelf.files[file].test
    )
    few = min(_RARE_FILES, len(code) // _RARE_SHARE)
    found: Scores = defaultdict(float)
    words: dict[int, list[str]] = defaultdict(list)
    for token in sorted(heaviest, key=lambda token: (-heaviest[token], token)):
        if not 0 < shelf.spread(token) <= _RARE_PIECES:
            continue
        holders = {file for *_, file, _ in shelf.postings(token)} & code
        if len(holders) <= few:
            for file in holders:
                found[file] += heaviest[token] / len(holders)
                words[file].append(token)
    return found, words


class _Scoring:
    def __init__(self, shelf: IndexReader) -> None:
        self._shelf = shelf
        self._found = Lexical()
        self._whole = 0.0
        lengths = [shelf.tables.lengths.get(number, 1) for number in shelf.candidates] or [1]
        self._file_average = sum(lengths) / len(lengths)

    def count(self, token: str, weight: float) -> None:
        """Adds what one token gives to every piece and file."""
        (every, average), pieces, of = self._shelf.tables.pieces, self._found.pieces, self._found.of
        postings = self._shelf.postings(token)
        in_files: Scores = defaultdict(float)
        in_paths: set[int] = set()
        worth = weight * math.log(1 + every / (1 + len(postings)))
        fixed, growing = _SATURATION * (1 - _PIECE_LENGTH), _SATURATION * _PIECE_LENGTH / average
        for piece, value, in_path, file, length in postings:
            of[piece] = file
            in_files[file] += value
            pieces[piece] += worth * value / (value + fixed + growing * length)
            if in_path:
                in_paths.add(file)
        self._count_files(token, weight, in_files, in_paths)

    def _count_files(self, token: str, weight: float, in_files: Scores, in_paths: set[int]) -> None:
        found, lengths = self._found, self._shelf.tables.lengths
        candidates = [number for number in in_files if number in self._shelf.candidates]
        worth = weight * math.log(1 + len(self._shelf.candidates) / (1 + len(candidates)))
        fixed, growing = _SATURATION * (1 - _FILE_LENGTH), _SATURATION * _FILE_LENGTH / self._file_average
        self._whole += worth
        for number in candidates:
            value = in_files[number]
            part = worth * value / (value + fixed + growing * lengths.get(number, 1))
            found.files[number] += part
            found.cover[number] += worth
            found.parts[number][token] = part
            if number in in_paths:
                found.paths[number] += worth

    def done(self, everywhere: frozenset[str]) -> Lexical:
        found = self._found
        found.everywhere = everywhere
        for number in found.cover:
            found.cover[number] /= self._whole
        ranked: dict[int, list[float]] = defaultdict(list)
        for piece, value in found.pieces.items():
            ranked[found.of[piece]].append(value)
        for file, values in ranked.items():
            if file in self._shelf.candidates:
                first, *others = sorted(values, reverse=True)[:3]
                found.best[file] = first + sum(value * _NEXT_BEST**place for place, value in enumerate(others, 1))
        return found


_MOST_ALIKE = 60
_MOST_SEEDS = 8
_MOST_TOGETHER = 8
"""A commit of more files says little about what belongs together."""


class CommitEvidence:
    """The commits that HEAD reaches, as evidence."""

    def __init__(self, shelf: IndexReader) -> None:
        self._shelf = shelf
        self._past = shelf.past

    def lately(self) -> Scores:
        """From 1 for what the newest commit changed to 0 for what none did."""
        found: Scores = {}
        for place, commit in enumerate(self._past):
            for path in commit.paths:
                number = self._shelf.by_path.get(path)
                if number is not None:
                    found.setdefault(number, 1 - place / len(self._past))
        return found

    def alike(self, understood: QueryTerms) -> Scores:
        """Files that commits changed whose messages speak of the same."""
        wanted = weights(understood)
        spread: Counter[str] = Counter()
        words = [set(commit.words.split()) & wanted.keys() for commit in self._past]
        for found in words:
            spread.update(found)
        total = len(self._past)
        rarity = {token: math.log(1 + total / (1 + count)) for token, count in spread.items()}
        scored = []
        for commit, found in zip(self._past, words, strict=True):
            if found:
                value = sum(wanted[token] * rarity[token] for token in sorted(found))
                scored.append((value / math.sqrt(8 + commit.words.count(" ")), commit))
        scored.sort(key=lambda pair: -pair[0])
        result: Scores = defaultdict(float)
        for value, commit in scored[:_MOST_ALIKE]:
            numbers = [number for path in commit.paths if (number := self._shelf.by_path.get(path)) is not None]
            numbers = [number for number in numbers if number in self._shelf.candidates]
            for number in numbers:
                result[number] += (value / scored[0][0]) ** 3 / len(numbers)
        return result

    def together(self, base: Mapping[int, float]) -> Scores:
        """Files that changed in the same commits as the best ones."""
        seeds = sorted(base, key=lambda number: (-base[number], self._shelf.files[number].path))[:_MOST_SEEDS]
        chosen = {self._shelf.files[number].path: base[number] for number in seeds}
        times: Counter[str] = Counter()
        result: Scores = defaultdict(float)
        shared: list[tuple[str, str, float]] = []
        for commit in self._past:
            if len(commit.paths) > _MOST_TOGETHER:
                continue
            for path in commit.paths:
                if path in chosen:
                    times[path] += 1
                    shared.extend((path, other, 1 / len(commit.paths)) for other in commit.paths if other != path)
        for path, other, value in shared:
            number = self._shelf.by_path.get(other)
            if number is not None and number in self._shelf.candidates:
                result[number] += chosen[path] * value / (2 + times[path])
        return result


_KINDS = {
    DefinitionKind.FIELD: 0.4,
    DefinitionKind.VARIABLE: 0.6,
    DefinitionKind.MODULE: 0.5,
    DefinitionKind.CLASS: 1.2,
}
_NAME_ZONES = {Zone.TITLE: 1.6, Zone.PROSE: 1.0, Zone.CODE: 0.5, Zone.TRACE: 0.4}
_TICKED = 0.5
_IMPORTED = 0.3
_FADING = 0.7
"""The weight of the next frame outwards."""
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
            weight = max(_NAME_ZONES[zone] for zone in zones) + (_TICKED if name in self._understood.ticked else 0)
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
            self._dotted(dotted.split("."), max(_NAME_ZONES[zone] for zone in zones))
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
        """A name of a module: its own definition, or one of the package that it passes on."""
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
