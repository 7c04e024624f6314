"""Every signal for every file of an index, each brought to the range from 0 to 1, so that weights can join them."""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pawl.context.query import Understood, Zone
from pawl.context.ranking.context_signals import Commits, called, messages, neighbours
from pawl.context.ranking.lexical import Lexical, lexical
from pawl.context.ranking.naming import Naming, naming
from pawl.context.ranking.shelf import Scores, Shelf
from pawl.context.sorting import Kind
from pawl.core.locating import Suspicion


class Signal(StrEnum):
    PIECE = "piece"
    FILE = "file"
    TITLE = "title"
    PATH = "path"
    DEFINITION = "definition"
    TITLE_DEFINITION = "title definition"
    DOTTED = "dotted"
    IMPORT = "import"
    MENTION = "mention"
    FRAME = "frame"
    MESSAGE = "message"
    NEIGHBOUR = "neighbour"
    CALLED = "called"
    OFTEN = "often"
    LATELY = "lately"
    ALIKE = "alike"
    TOGETHER = "together"
    TOLD = "told"
    STEM = "stem"
    TITLE_PIECE = "title piece"
    FRAMED = "framed"
    PIECE_PLACE = "piece place"
    FILE_PLACE = "file place"
    SUSPICION = "suspicion"
    PROSE = "prose"
    TEST = "test"
    PACKAGE = "package"


BASE = {
    Signal.PIECE: 1.0,
    Signal.FILE: 1.0,
    Signal.TITLE: 0.3,
    Signal.DEFINITION: 0.8,
    Signal.DOTTED: 0.8,
    Signal.MENTION: 1.0,
    Signal.FRAME: 1.0,
    Signal.MESSAGE: 0.5,
    Signal.PROSE: -1.0,
}
"""What decides from which files neighbours are looked at."""


@dataclass(slots=True)
class Signals:
    lexical: Lexical
    naming: Naming
    values: dict[Signal, Scores] = field(default_factory=dict)
    lines: Mapping[int, Sequence[int]] = field(default_factory=dict)
    """Lines of a file that the query speaks of."""

    def joined(self, weights: Mapping[Signal, float]) -> Scores:
        total: Scores = defaultdict(float)
        for signal, weight in weights.items():
            for number, value in self.values.get(signal, {}).items():
                total[number] += weight * value
        return total


def signals(understood: Understood, suspicions: Sequence[Suspicion], shelf: Shelf) -> Signals:
    words = lexical(understood, shelf)
    names = naming(understood, shelf)
    said, said_lines = messages(understood, shelf)
    found = Signals(lexical=words, naming=names)
    values = found.values
    values[Signal.PIECE] = _scaled(words.best)
    values[Signal.FILE] = _scaled(words.files)
    values[Signal.TITLE] = _scaled(words.titles)
    values[Signal.PATH] = _scaled(words.paths)
    values[Signal.DEFINITION] = _scaled(names.definitions, least=1.0)
    values[Signal.TITLE_DEFINITION] = _scaled(names.titles, least=1.0)
    values[Signal.DOTTED] = _scaled(names.dotted, least=1.0)
    values[Signal.IMPORT] = _scaled(names.imports, least=1.0)
    values[Signal.MENTION] = _scaled(names.mentions, least=1.0)
    values[Signal.FRAME] = _scaled(names.frames, least=1.0)
    values[Signal.MESSAGE] = _scaled(said, least=0.5)
    values[Signal.SUSPICION] = _suspected(suspicions, shelf)
    _habits(found, shelf)
    base = found.joined({**BASE, Signal.SUSPICION: 2.0})
    base = {number: value for number, value in base.items() if value > 0 and number in shelf.candidates}
    values[Signal.NEIGHBOUR] = _scaled(neighbours(base, shelf))
    values[Signal.CALLED] = _scaled(called(words.pieces, shelf))
    commits = Commits(shelf)
    values[Signal.OFTEN], values[Signal.LATELY] = commits.habits()
    values[Signal.ALIKE] = _scaled(commits.alike(understood))
    values[Signal.TOLD] = _scaled(commits.told(understood))
    values[Signal.STEM] = _stems(understood, shelf)
    values[Signal.TITLE_PIECE] = _scaled(words.title_best)
    values[Signal.FRAMED] = dict.fromkeys(names.frames, 1.0)
    values[Signal.PIECE_PLACE] = _places(words.best, shelf)
    values[Signal.FILE_PLACE] = _places(words.files, shelf)
    values[Signal.TOGETHER] = _scaled(commits.together(base))
    lines = {number: [*names.lines.get(number, ()), *said_lines.get(number, ())] for number in base}
    for suspicion in suspicions:
        number = shelf.by_path.get(suspicion.path)
        if suspicion.line and number in lines:
            lines[number].append(suspicion.line)
    found.lines = lines
    return found


def _habits(found: Signals, shelf: Shelf) -> None:
    """What kind of file it is, whatever the query says."""
    for signal in (Signal.PROSE, Signal.TEST, Signal.PACKAGE):
        found.values[signal] = {}
    for number in shelf.candidates:
        row = shelf.files[number]
        if row.kind is Kind.PROSE:
            found.values[Signal.PROSE][number] = 1.0
        elif row.language == "":
            found.values[Signal.PROSE][number] = 0.7
        if row.test:
            found.values[Signal.TEST][number] = 1.0
        if posixpath.basename(row.path) in ("__init__.py", "index.js", "index.ts", "mod.rs", "setup.py"):
            found.values[Signal.PACKAGE][number] = 1.0


def _places(scores: Mapping[int, float], shelf: Shelf) -> Scores:
    """1 for the first of them, a half for the second, a third for the third."""
    order = sorted(scores, key=lambda number: (-scores[number], shelf.files[number].path))
    return {number: 1 / (place + 1) for place, number in enumerate(order[:20])}


def _stems(understood: Understood, shelf: Shelf) -> Scores:
    """Files whose name is a word of the text: in full in the title, less elsewhere, less where many files share it."""
    stems: dict[str, list[int]] = defaultdict(list)
    for number in shelf.candidates:
        row = shelf.files[number]
        if row.kind is Kind.CODE:
            stems[posixpath.basename(row.path).partition(".")[0].lower().strip("_")].append(number)
    found: Scores = {}
    for zone, weight in ((Zone.CODE, 0.3), (Zone.PROSE, 0.6), (Zone.TITLE, 1.0)):
        for name in understood.spelled[zone]:
            for number in stems.get(name, ()):
                found[number] = max(found.get(number, 0.0), weight / len(stems[name]) ** 0.5)
    return found


def _suspected(suspicions: Sequence[Suspicion], shelf: Shelf) -> Scores:
    found: Scores = defaultdict(float)
    for suspicion in suspicions:
        number = shelf.by_path.get(suspicion.path)
        if number is not None:
            found[number] = max(found[number], min(1.0, max(0.0, suspicion.weight)))
    return found


def _scaled(scores: Mapping[int, float], *, least: float = 0.0) -> Scores:
    """From 0 to 1; what is below `least` at its best stays below 1."""
    most = max(max(scores.values(), default=0.0), least)
    return {number: value / most for number, value in scores.items()} if most > 0 else {}
