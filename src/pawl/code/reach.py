"""Which tests a change reaches: every file of tests in order, from imports, names, commits and paths in the index.

Imports alone decide nothing: in a large project they lead from half of the tests to any file.
"""

from __future__ import annotations

import functools
import math
import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from dataclasses import field
from itertools import islice

from pawl.code.index_reader import IndexReader, Scores
from pawl.code.languages import FileKind, kind_by_name, languages
from pawl.code.query import COMMON, WORD, tokens
from pawl.code.ranker import folders
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import edits, split_lines
from pawl.core.typed import data_table

_SHORTEST = 4
"""Of a name that says something."""
_MOST_USERS = 60
"""A name that more pieces use leads to none of them."""
_MOST_DEFINERS = 8
_MOST_TOGETHER = 10
"""Paths of a commit that says something about them."""
_MOST_WORDS = 2000
"""Of the changed lines of a file."""
_OUTER = 0.7
"""The part of a class or function around what was changed."""
SECONDS_PER_TEST = 0.05
"""Of a test that was never timed."""
LINES_PER_TEST = 32
"""Where tests have no names in the index, as in JavaScript (48,660 lines of tests of excalidraw hold 1,538)."""
_LEAST_SCORE = 0.3
_LEAST_SHARE = 0.1
"""Of the best score."""
_ACROSS = ("together", "data", "itself")
"""Evidence that counts in every language."""
_FARTHEST = 6
_ENTRIES = ("__init__.py", "index.ts", "index.js", "mod.rs", "lib.rs")
"""Files that pass on what others define."""


@dataclass(frozen=True, slots=True)
class ChangedLines:
    """The change of one file."""

    path: str
    lines: frozenset[int]
    """Lines of the file as it was, from 1: those that are gone, and those around what came."""
    text: str
    """The lines that are gone, and those that came."""

    @classmethod
    def of(cls, path: str, before: bytes, after: bytes) -> ChangedLines:
        old, new = split_lines(before), split_lines(after)
        lines: set[int] = set()
        text: list[bytes] = []
        for part in edits(old, new):
            lines |= _lines(part.a_start, part.a_end)
            text += [*old[part.a_start : part.a_end], *new[part.b_start : part.b_end]]
        return cls(path, frozenset(lines), b"".join(text).decode("utf-8", "replace"))


_FILE = re.compile(r"^diff --git .*$", re.MULTILINE)
_PATHS = re.compile(r"^(?:---|\+\+\+) (?:[ab]/)?(.+?)\t?$", re.MULTILINE)
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? .*$((?:\n[ +\-\\].*|\n$)*)", re.MULTILINE)


def changed_in(patch: str) -> list[ChangedLines]:
    """The changed files of a patch in git's format."""
    found = []
    for part in _FILE.split(patch)[1:]:
        names = [name for name in _PATHS.findall(part.partition("\n@@")[0]) if name != "/dev/null"]
        lines: set[int] = set()
        text: list[str] = []
        for start, _, body in _HUNK.findall(part):
            at = int(start)
            for line in body.splitlines()[1:]:
                if line[:1] in ("-", "+"):
                    text.append(line[1:])
                    lines |= {at} if line[0] == "-" else {max(1, at - 1), at}
                at += line[:1] != "+"
        found += [ChangedLines(name, frozenset(lines), "\n".join(text)) for name in names[-1:]]
    return found


def _lines(start: int, end: int) -> set[int]:
    return set(range(start + 1, end + 1)) or {start, start + 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReachedTest:
    """A file of tests."""

    path: str
    tests: int
    """How many it defines, as far as names tell; at least 1."""
    score: float
    own: float
    """The part of the score that does not come from the files beside it."""
    distance: int
    """Over how many imports it leads to the change; 0 where none do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    tests: tuple[ReachedTest, ...]
    """Every file of tests, the likeliest to be concerned first."""
    lost: tuple[str, ...] = ()
    """Changed files whose effect cannot be followed."""

    @property
    def likely(self) -> tuple[ReachedTest, ...]:
        """Those that more than chance links to the change."""
        best = max((one.own for one in self.tests), default=0.0)
        return tuple(one for one in self.tests if one.own >= max(_LEAST_SCORE, _LEAST_SHARE * best))


def within(tests: Iterable[ReachedTest], seconds: float, costs: Callable[[ReachedTest], float]) -> list[ReachedTest]:
    """The first of them that fit the time; one that does not is left out, and smaller ones after it may be in."""
    chosen = []
    for one in tests:
        cost = costs(one)
        if cost <= seconds:
            chosen.append(one)
            seconds -= cost
    return chosen


@dataclass(slots=True)
class _ChangedNames:
    """Names by how much they stand for the change."""

    touched: dict[str, float] = field(default_factory=dict)
    """Definitions that hold changed lines."""
    inner: dict[str, float] = field(default_factory=dict)
    """Identifiers of changed lines."""
    around: dict[str, float] = field(default_factory=dict)
    """Identifiers of the rest of those definitions."""


@functools.cache
def _weights() -> Mapping[str, float]:
    return dict(data_table("pawl.code", "reach.toml")["weights"])


def reached(changes: Sequence[ChangedLines], shelf: IndexReader) -> Reach:
    """The files of tests in the order in which the change is likely to concern them."""
    tests = test_files(shelf)
    found = signals(changes, shelf, tests)
    own = _sum(found, tests, _foreign(changes, shelf, tests))
    beside = folders(own, shelf)
    total = {number: own[number] + _weights()["folder"] * beside.get(number, 0.0) for number in tests}
    distance = _distances(changes, shelf)
    order = sorted(tests, key=lambda number: (-total[number], shelf.files[number].path))
    return Reach(
        tests=tuple(
            ReachedTest(
                path=shelf.files[number].path,
                tests=tests[number],
                score=total[number],
                own=own[number],
                distance=distance.get(number, 0),
            )
            for number in order
        ),
        lost=tuple(one.path for one in changes if _is_lost(one.path, found["data"])),
    )


def test_files(shelf: IndexReader) -> dict[int, int]:
    """The files of tests, each with how many tests it seems to define."""
    named = shelf.tests_defined()
    lines: Mapping[int, int] = {}
    inside = shelf.tests_inside()
    found = {number: count for number, count in inside.items() if shelf.files[number].language == "rust"}
    for number, row in shelf.files.items():
        if not row.test or row.kind is not FileKind.CODE or not row.language:
            continue
        name = posixpath.basename(row.path)
        count = named.get(number, 0)
        if row.language == "python":
            if count and not name.startswith(("conftest", "__init__")):
                found[number] = count
        elif count or "test" in name.lower() or "spec" in name.lower() or "__tests__" in row.path:
            # Most are functions without a name, which only the length tells.
            lines = lines or shelf.lines()
            found[number] = max(1, count, lines.get(number, 0) // LINES_PER_TEST)
    return found


def signals(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Mapping[int, int]) -> dict[str, Scores]:
    """For each kind of evidence a number from 0 to about 1 for the files of tests that have it."""
    names = _names(changes, shelf)
    holders = _Holders(shelf, tests)
    users = _users(names.touched, shelf, tests)
    base = {shelf.by_path[one.path]: 1.0 for one in changes if one.path in shelf.by_path}
    return {
        "touched": holders.scores(names.touched),
        "users": holders.scores(users),
        "inner": holders.scores(names.inner),
        "around": holders.scores(names.around),
        "imported": _imported(changes, shelf, tests),
        "near": {number: 2.0 ** (1 - at) for number, at in _distances(changes, shelf).items() if number in tests},
        "together": _together(changes, shelf, tests),
        "path": _paths(changes, shelf, tests),
        "stem": _stems(changes, shelf, tests),
        "data": _data(changes, shelf, tests),
        "itself": {number: 1.0 for number in base if number in tests},
    }


def _sum(found: Mapping[str, Scores], tests: Iterable[int], foreign: Container[int]) -> Scores:
    total: Scores = dict.fromkeys(tests, 0.0)
    for name, scores in found.items():
        for number, value in scores.items():
            if number in total:
                by_chance = number in foreign and name not in _ACROSS
                total[number] += _weights()[name] * value * (_weights()["foreign"] if by_chance else 1.0)
    return total


def _foreign(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Collection[int]) -> set[int]:
    """Tests in other languages than all changed files, where there are some in theirs; names are alike by chance."""
    changed = [shelf.files[shelf.by_path[one.path]] for one in changes if one.path in shelf.by_path]
    kin = {_kin(row.language) for row in changed if row.kind is FileKind.CODE}
    foreign = {number for number in tests if _kin(shelf.files[number].language) not in kin}
    known = len(changed) == len(changes) and "" not in kin
    return foreign if known and len(foreign) < len(tests) else set()


def _kin(language: str) -> str:
    """The family of a language, which TypeScript and JavaScript have in common."""
    known = languages().get(language)
    return known.queries[0] if known is not None else ""


def _names(changes: Sequence[ChangedLines], shelf: IndexReader) -> _ChangedNames:
    found = _ChangedNames()
    for one in changes:
        _add(found.inner, islice(WORD.findall(one.text), _MOST_WORDS), 1.0)
        number = shelf.by_path.get(one.path)
        if number is None:
            continue
        holding = [each for each in shelf.definitions(number) if any(each.start <= at <= each.end for at in one.lines)]
        deepest = max((each.depth for each in holding), default=0)
        for each in holding:
            _add(found.touched, [each.name], 1.0 if each.depth == deepest else _OUTER)
        pieces = [
            each.id for each in shelf.pieces_of([number]) if any(each.start <= at <= each.stop for at in one.lines)
        ]
        for calls, uses in shelf.references(pieces).values():
            _add(found.around, (*calls, *uses), 1.0)
    for name in found.touched:
        found.inner.pop(name, None)
    for name in (*found.touched, *found.inner):
        found.around.pop(name, None)
    return found


def _add(names: dict[str, float], found: Iterable[str], weight: float) -> None:
    for name in found:
        if len(name) >= _SHORTEST and name.lower() not in COMMON and not name.startswith("__"):
            names[name] = max(names.get(name, 0.0), weight)


class _Holders:
    """The files of tests that hold a name, in code or in a text."""

    def __init__(self, shelf: IndexReader, tests: Mapping[int, int]) -> None:
        self._shelf = shelf
        self._tests = tests
        self._found: dict[str, Counter[int]] = {}

    def of(self, name: str) -> Counter[int]:
        if name not in self._found:
            whole = tokens(name)[:1]
            counts: Counter[int] = Counter()
            for token in whole:
                for _, count, _, file, _ in self._shelf.postings(token):
                    if file in self._tests:
                        counts[file] += int(count)
            self._found[name] = counts
        return self._found[name]

    def scores(self, names: Mapping[str, float]) -> Scores:
        """The names that a file holds, by how rare they are among the tests; what is everywhere counts nothing."""
        found: Scores = defaultdict(float)
        total = math.log(1 + len(self._tests))
        for name, weight in names.items():
            counts = self.of(name)
            rarity = math.log((1 + len(self._tests)) / (1 + len(counts))) / total if counts else 0.0
            for file, count in counts.items():
                found[file] += weight * rarity * rarity * (1 - 0.5**count)
        return {file: math.log1p(value) for file, value in found.items()}


def _users(touched: Mapping[str, float], shelf: IndexReader, tests: Mapping[int, int]) -> dict[str, float]:
    """Names of the code that uses what was changed, fixtures and helpers of tests among it."""
    found: dict[str, float] = {}
    for name, weight in touched.items():
        rows = (row for token in tokens(name)[:1] for row in shelf.postings(token))
        pieces = list(dict.fromkeys(piece for piece, _, _, file, _ in rows if file not in tests))
        if not 0 < len(pieces) <= _MOST_USERS:
            continue
        using = [piece for piece, (calls, uses) in shelf.references(pieces).items() if name in calls or name in uses]
        share = weight / math.sqrt(1 + len(using))
        for user in shelf.names_of(using):
            if user not in touched:
                _add(found, [user], share)
    return found


def _imported(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Mapping[int, int]) -> Scores:
    """Tests that import by name what the changed files define, from wherever it is passed on."""
    numbers = [shelf.by_path[one.path] for one in changes if one.path in shelf.by_path]
    defined = {each.name for number in numbers for each in shelf.definitions(number) if each.depth == 0}
    many = {
        name: len({row.file for row in rows if row.file not in tests}) for name, rows in shelf.named(defined).items()
    }
    kept = {name for name in defined if many.get(name, 0) <= _MOST_DEFINERS}
    found: Scores = {}
    for number, names in shelf.imports_of(tests):
        shared = kept.intersection(names)
        if shared:
            value = max(1 / max(1, many[name]) for name in shared)
            found[number] = max(found.get(number, 0.0), value)
    return found


def _distances(changes: Sequence[ChangedLines], shelf: IndexReader) -> dict[int, int]:
    """Over how many imports each file leads to a changed one; a package that passes on what it imports is no step."""
    start = [shelf.by_path[one.path] for one in changes if one.path in shelf.by_path]
    found = dict.fromkeys(start, 0)
    waiting = list(start)
    while waiting:
        number = waiting.pop(0)
        for importer in shelf.tables.importers.get(number, ()):
            passes = posixpath.basename(shelf.files[importer].path) in _ENTRIES if importer in shelf.files else False
            at = found[number] + (0 if passes and found[number] == 0 else 1)
            if importer not in found and at <= _FARTHEST:
                found[importer] = at
                waiting.append(importer)
    return {number: max(1, at) for number, at in found.items() if number not in start}


def _together(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Mapping[int, int]) -> Scores:
    """Tests that changed in the same commits, the smaller the better."""
    paths = {one.path for one in changes}
    found: Scores = defaultdict(float)
    for commit in shelf.past:
        if len(commit.paths) <= _MOST_TOGETHER and not paths.isdisjoint(commit.paths):
            for number in {shelf.by_path.get(path, -1) for path in commit.paths} & tests.keys():
                found[number] += 1 / len(commit.paths)
    most = max(found.values(), default=1.0)
    return {number: math.sqrt(value / most) for number, value in found.items()}


def _paths(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Mapping[int, int]) -> Scores:
    """Tests whose path has the words of a changed one, the rarer the better."""
    words = shelf.tables.path_words
    spread = Counter(word for number in words for word in words[number])
    rarity = {word: math.log(1 + len(words) / count) for word, count in spread.items()}
    found: Scores = {}
    for one in changes:
        number = shelf.by_path.get(one.path)
        own = words[number] if number is not None else frozenset(posixpath.splitext(one.path)[0].lower().split("/"))
        whole = sum(rarity.get(word, 0.0) for word in own) or 1.0
        for test in tests:
            shared = sum(rarity[word] for word in own & words[test])
            if shared:
                all_words = sum(rarity[word] for word in words[test]) or 1.0
                found[test] = max(found.get(test, 0.0), shared / math.sqrt(whole * all_words))
    return found


def _stems(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Mapping[int, int]) -> Scores:
    """Tests that are called by a changed file: `test_cli.py`, `cli/tests.py`, `cli.test.ts`."""
    spread: Counter[str] = Counter(_stem(row.path) for row in shelf.files.values() if not row.test)
    found: Scores = {}
    for stem in {_stem(one.path) for one in changes} - {""}:
        for number in tests:
            path = shelf.files[number].path
            name = posixpath.basename(path).partition(".")[0].lower()
            exact = name in (f"test_{stem}", f"{stem}_test", f"tests_{stem}", stem)
            inside = posixpath.basename(posixpath.dirname(path)).lower() == stem
            if exact or inside or f"_{stem}" in name:
                value = (1.0 if exact else 0.7 if inside else 0.4) / math.sqrt(max(1, spread[stem]))
                found[number] = max(found.get(number, 0.0), value)
    return found


def _stem(path: str) -> str:
    folder, name = posixpath.split(path)
    own = name.partition(".")[0].lower().strip("_")
    return posixpath.basename(folder).lower() if own in ("init", "index", "mod", "lib", "main", "base") else own


def _data(changes: Sequence[ChangedLines], shelf: IndexReader, tests: Mapping[int, int]) -> Scores:
    """Tests that name a changed file of data, or lie below a changed `conftest.py` or beside such a file."""
    found: Scores = {}
    for one in changes:
        folder, name = posixpath.split(one.path)
        if name == "conftest.py":
            below = [
                number for number in tests if f"{shelf.files[number].path}/".startswith(f"{folder}/" if folder else "")
            ]
            found |= dict.fromkeys(below, 1.0)
        elif shelf.by_path.get(one.path) is None or not shelf.files[shelf.by_path[one.path]].language:
            stem = name.partition(".")[0]
            words = [token for word in WORD.findall(stem) for token in tokens(word)[:1]]
            for piece in shelf.together(words) if words else ():
                if piece.file in tests:
                    found[piece.file] = 1.0
    return found


def _is_lost(path: str, data: Scores) -> bool:
    """Whether nothing tells whom the file concerns: configuration that everything may read."""
    return not data and kind_by_name(path) is not FileKind.CODE
