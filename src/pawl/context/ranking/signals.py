"""Every signal for every file of an index, each brought to the range from 0 to 1, so that weights can join them."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pawl.context.query import Understood
from pawl.context.ranking.commits import Commits
from pawl.context.ranking.lexical import Lexical, lexical, rare
from pawl.context.ranking.naming import Naming, matching, naming
from pawl.context.ranking.shelf import Scores, Shelf
from pawl.context.ranking.surroundings import called, folders, messages, neighbours, tested
from pawl.context.sorting import Kind
from pawl.context.zones import Zone
from pawl.core.locating import Suspicion


class Signal(StrEnum):
    PIECE = "piece"
    PIECE_PLACE = "piece place"
    """Apart from how well the pieces fit: which file has the best."""
    FILE = "file"
    COVER = "cover"
    RARE = "rare"
    PATH = "path"
    STEM = "stem"
    DEFINITION = "definition"
    DOTTED = "dotted"
    MENTION = "mention"
    FRAME = "frame"
    MESSAGE = "message"
    NEIGHBOUR = "neighbour"
    CALLED = "called"
    FOLDER = "folder"
    TESTED = "tested"
    LATELY = "lately"
    ALIKE = "alike"
    TOGETHER = "together"
    SUSPICION = "suspicion"
    PROSE = "prose"
    TEST = "test"
    ASIDE = "aside"


ABOUT_FILES = frozenset({Signal.LATELY, Signal.PROSE, Signal.TEST, Signal.ASIDE})
"""What is so whatever the query says."""

_BASE = {
    Signal.PIECE: 1.0,
    Signal.FILE: 1.0,
    Signal.DEFINITION: 0.8,
    Signal.DOTTED: 0.8,
    Signal.MENTION: 1.0,
    Signal.FRAME: 1.0,
    Signal.MESSAGE: 0.5,
    Signal.SUSPICION: 2.0,
    Signal.PROSE: -1.0,
}
"""What decides from which files neighbours are looked at."""

_STEM_ZONES = ((Zone.CODE, 0.3), (Zone.PROSE, 0.6), (Zone.TITLE, 1.0))
_FIRST_PLACES = 20
_ASIDE = frozenset(
    [
        *("doc", "docs", "documentation", "example", "examples", "demo", "demos", "sample", "samples", "gallery"),
        *("galleries", "tutorial", "tutorials", "benchmark", "benchmarks", "bench", "asv_bench", "tool", "tools"),
        *("script", "scripts", "ci", ".github", ".circleci", "release", "releases", "maint", "vendor", "vendored"),
        *("third_party", "thirdparty", "extern", "externals", "bundled", "build_tools"),
    ]
)
"""Folders of what is beside the product."""
_ASIDE_FILES = frozenset({"setup.py", "setupext.py", "conftest.py", "noxfile.py", "gulpfile.js", "Gruntfile.js"})


@dataclass(slots=True)
class Signals:
    lexical: Lexical
    naming: Naming
    values: dict[Signal, Scores] = field(default_factory=dict)
    rare_words: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Tokens that a file has and hardly any other."""
    lines: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Lines of a file that the query speaks of."""

    def joined(self, weights: Mapping[Signal, float]) -> Scores:
        total: Scores = defaultdict(float)
        for signal, weight in weights.items():
            for number, value in self.values.get(signal, {}).items():
                total[number] += weight * value
        return total


def signals(understood: Understood, suspicions: Sequence[Suspicion], shelf: Shelf) -> Signals:
    found = Signals(lexical(understood, shelf), naming(understood, shelf))
    _own(found, understood, suspicions, shelf)
    base = found.joined(_BASE)
    base = {number: value for number, value in base.items() if value > 0 and number in shelf.candidates}
    _of_others(found, understood, base, shelf)
    return found


def _own(found: Signals, understood: Understood, suspicions: Sequence[Suspicion], shelf: Shelf) -> None:
    """What the file itself says."""
    words, names = found.lexical, found.naming
    said, said_lines = messages(understood, shelf)
    rarities, found.rare_words = rare(understood, shelf)
    found.values |= {
        Signal.PIECE: _scaled(words.best),
        Signal.PIECE_PLACE: _places(words.best, shelf),
        Signal.FILE: _scaled(words.files),
        Signal.COVER: words.cover,
        Signal.RARE: _scaled(rarities, least=1.0),
        Signal.PATH: _scaled(words.paths),
        Signal.STEM: _stems(understood, shelf),
        Signal.DEFINITION: _scaled(names.definitions, least=1.0),
        Signal.DOTTED: _scaled(names.dotted, least=1.0),
        Signal.MENTION: _scaled(names.mentions, least=1.0),
        Signal.FRAME: _scaled(names.frames, least=1.0),
        Signal.MESSAGE: _scaled(said, least=0.5),
        Signal.SUSPICION: _suspected(suspicions, shelf, found.lines),
        **_kinds(names.told, shelf),
    }
    for lines in (names.lines, said_lines):
        for number, numbers in lines.items():
            found.lines[number].extend(numbers)


def _of_others(found: Signals, understood: Understood, base: Mapping[int, float], shelf: Shelf) -> None:
    """What other files and the commits say of it."""
    words, commits = found.lexical, Commits(shelf)
    found.values |= {
        Signal.NEIGHBOUR: _scaled(neighbours(base, shelf)),
        Signal.CALLED: _scaled(called(words.pieces, shelf)),
        Signal.FOLDER: _scaled(folders(words.files, shelf)),
        Signal.TESTED: _scaled(tested(words.pieces, shelf)),
        Signal.LATELY: commits.lately(),
        Signal.ALIKE: _scaled(commits.alike(understood)),
        Signal.TOGETHER: _scaled(commits.together(base)),
    }


def _kinds(told: Container[int], shelf: Shelf) -> dict[Signal, Scores]:
    """What speaks against a file by its kind. Prose that is told by its name is what is meant."""
    prose: Scores = {}
    test: Scores = {}
    aside: Scores = {}
    for number in shelf.candidates:
        row = shelf.files[number]
        if number not in told and (row.kind is Kind.PROSE or not row.language):
            prose[number] = 1.0 if row.kind is Kind.PROSE else 0.7
        if row.test:
            test[number] = 1.0
        if row.path in _ASIDE_FILES or not _ASIDE.isdisjoint(row.path.lower().split("/")[:-1]):
            aside[number] = 1.0
    return {Signal.PROSE: prose, Signal.TEST: test, Signal.ASIDE: aside}


def _places(scores: Mapping[int, float], shelf: Shelf) -> Scores:
    """1 for the first of them, a half for the second, a third for the third."""
    order = sorted(scores, key=lambda number: (-scores[number], shelf.files[number].path))
    return {number: 1 / (place + 1) for place, number in enumerate(order[:_FIRST_PLACES])}


def _stems(understood: Understood, shelf: Shelf) -> Scores:
    """Files whose name is a word of the text: most in the title, less where many files share it or it is common."""
    stems: dict[str, list[int]] = defaultdict(list)
    for number in shelf.candidates:
        row = shelf.files[number]
        if row.kind is Kind.CODE:
            stems[posixpath.basename(row.path).partition(".")[0].lower().strip("_")].append(number)
    found: Scores = {}
    for zone, weight in _STEM_ZONES:
        for name in understood.spelled[zone] & stems.keys():
            value = weight * shelf.rarity(name) / len(stems[name]) ** 0.5
            for number in stems[name]:
                found[number] = max(found.get(number, 0.0), value)
    return found


def _suspected(suspicions: Sequence[Suspicion], shelf: Shelf, lines: dict[int, list[int]]) -> Scores:
    found: Scores = {}
    for suspicion in suspicions:
        number = shelf.by_path.get(suspicion.path)
        if number is None:
            # A report may tell paths from the folder that the tests ran in.
            ends = [one for one in matching(suspicion.path, shelf) if _ends(shelf.files[one].path, suspicion.path)]
            number = ends[0] if len(ends) == 1 else None
        if number is not None:
            found[number] = max(found.get(number, 0.0), min(1.0, max(0.0, suspicion.weight)))
            if suspicion.line:
                lines[number].append(suspicion.line)
    return found


def _ends(path: str, end: str) -> bool:
    return path.endswith(f"/{end}")


def _scaled(scores: Mapping[int, float], *, least: float = 0.0) -> Scores:
    """From 0 to 1; what is below `least` at its best stays below 1."""
    most = max(max(scores.values(), default=0.0), least)
    return {number: value / most for number, value in scores.items()} if most > 0 else {}
