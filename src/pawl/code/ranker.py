"""From a query to an answer: signals for every file, each from 0 to 1, weights that join them, and the files in order,
each with its reasons and the definitions that may change.
"""

from __future__ import annotations

import functools
import math
import posixpath
from collections import Counter, defaultdict
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import field

from pawl.code.code_model import Definition, DefinitionKind, Hit, Query, Suspicion
from pawl.code.index_reader import IndexReader, PieceLines, Scores
from pawl.code.languages import FileKind
from pawl.code.query import QueryTerms, Zone, phrase, spellings, understand
from pawl.code.query_evidence import (
    CommitEvidence,
    Lexical,
    NamedThings,
    lexical,
    matching,
    naming,
    rare,
    share,
    weights,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written

_MOST_SEEDS = 20
_MOST_PIECES = 25
_MOST_DEFINERS = 4
_MOST_TESTS = 12
_LONGEST_RUN = 8


def neighbours(base: Mapping[int, float], shelf: IndexReader) -> Scores:
    """Imports of the best files; a file that imports many gives each less."""
    found: Scores = defaultdict(float)
    seeds = sorted(base, key=lambda number: (-base[number], shelf.files[number].path))[:_MOST_SEEDS]
    for number in seeds:
        targets = shelf.tables.imported.get(number, ())
        for target in targets:
            if target in shelf.candidates:
                found[target] += base[number] / math.sqrt(len(targets))
    return found


def called(words: Lexical, shelf: IndexReader) -> Scores:
    """Where the names are defined that the best pieces use: in the files that theirs import, or else in few files."""
    files, pieces, of = shelf.files, words.pieces, words.of
    best = sorted(pieces, key=lambda number: (-pieces[number], number))
    best = [number for number in best[: 4 * _MOST_PIECES] if not files[of[number]].test][:_MOST_PIECES]
    used = {number: {*calls, *uses} for number, (calls, uses) in shelf.references(best).items()}
    named = shelf.named({name for names in used.values() for name in names})
    definers = {
        name: {row.file for row in rows if row.file in shelf.candidates and not files[row.file].test}
        for name, rows in named.items()
    }
    found: Scores = defaultdict(float)
    for number in best:
        own = of[number]
        weight = (pieces[number] / pieces[best[0]]) ** 2
        near = {own, *shelf.tables.imported.get(own, ())}
        votes: Scores = defaultdict(float)
        for name in sorted(used.get(number, ())):
            there = definers.get(name, set())
            chosen = there & near or (there if len(there) <= _MOST_DEFINERS else set())
            share = (1.0 if there & near else 0.5) / max(1, len(chosen))
            for file in chosen - {own}:
                votes[file] += share
        for file, value in votes.items():
            found[file] += weight * math.log1p(value)
    return {file: value / math.log(3 + len(shelf.tables.importers.get(file, ()))) for file, value in found.items()}


def folders(scores: Mapping[int, float], shelf: IndexReader) -> Scores:
    """How well the best files of its folder fit, the file itself left out."""
    of = {number: shelf.files[number].path.rpartition("/")[0] for number in scores}
    groups: dict[str, list[float]] = defaultdict(list)
    for number, value in scores.items():
        groups[of[number]].append(value)
    groups = {folder: sorted(values, reverse=True)[:4] for folder, values in groups.items()}
    found: Scores = {}
    for number, value in scores.items():
        best = groups[of[number]]
        others = best[: best.index(value)] + best[best.index(value) + 1 :] if value in best else best[:3]
        found[number] = sum(others) / 3
    return found


def tested(lexical: Lexical, shelf: IndexReader) -> Scores:
    """Files that the tests which fit best are about, by the words of their paths."""
    best: dict[int, float] = {}
    for number, value in lexical.pieces.items():
        file = lexical.of[number]
        if shelf.files[file].test and value > best.get(file, 0.0):
            best[file] = value
    chosen = sorted(best, key=lambda number: (-best[number], shelf.files[number].path))[:_MOST_TESTS]
    words = shelf.tables.path_words
    spread: Counter[str] = Counter(token for number in shelf.candidates for token in words[number])
    holders: dict[str, list[int]] = defaultdict(list)
    wanted = {token for number in chosen for token in words[number]}
    for number in sorted(shelf.candidates):
        if not shelf.files[number].test and shelf.files[number].kind is FileKind.CODE:
            for token in words[number] & wanted:
                holders[token].append(number)
    total = len(shelf.candidates)
    rarity = {token: math.log(1 + total / (1 + spread[token])) for token in spread}
    found: Scores = defaultdict(float)
    for test in chosen:
        shared: dict[int, float] = defaultdict(float)
        for token in sorted(words[test]):
            for number in holders.get(token, ()):
                shared[number] += rarity[token]
        own = sum(rarity.get(token, 0.0) for token in sorted(words[test])) or 1.0
        for number, value in shared.items():
            whole = sum(rarity[token] for token in sorted(words[number]))
            alike = value / math.sqrt(own * whole)
            found[number] = max(found[number], best[test] / best[chosen[0]] * alike * alike)
    return found


def messages(understood: QueryTerms, shelf: IndexReader) -> tuple[Scores, dict[int, list[int]]]:
    """Files whose text holds a message of the query, with the lines of the pieces; the longer and rarer the better."""
    found: Scores = defaultdict(float)
    lines: dict[int, list[int]] = defaultdict(list)
    for message in understood.messages[:12]:
        for run in phrase(message)[:4]:
            for part in _windows(run[:_LONGEST_RUN]):
                pieces = [piece for piece in shelf.together(part) if piece.file in shelf.candidates]
                files = {piece.file for piece in pieces if shelf.files[piece.file].kind is FileKind.CODE}
                if not files:
                    continue
                if len(files) <= 8:
                    for number in files:
                        found[number] = max(found[number], len(part) / _LONGEST_RUN / len(files) ** 0.5)
                    for piece in pieces:
                        lines[piece.file].append(piece.start)
                break
    return found, lines


def _windows(run: Sequence[str]) -> list[list[str]]:
    """The whole run, then ever shorter parts of it."""
    least = min(3, len(run))
    return [
        list(run[start : start + length])
        for length in range(len(run), least - 1, -1)
        for start in range(len(run) - length + 1)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    weight: float
    base: float = 0.0
    told: str = ""
    names: bool = False
    habit: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingTable:
    signals: Mapping[str, Signal]
    aside_folders: frozenset[str]
    aside_files: frozenset[str]


@functools.cache
def ranking() -> RankingTable:
    """What `ranking.toml` says of each signal, with the weight that was learnt for it."""
    table, learnt = (data_table("pawl.code", name) for name in ("ranking.toml", "ranking_learnt.toml"))
    rows = {name: {**row, "weight": learnt["weights"][name]} for name, row in table["signals"].items()}
    return written(RankingTable, {**table, "signals": rows})


_STEM_ZONES = ((Zone.CODE, 0.3), (Zone.PROSE, 0.6), (Zone.TITLE, 1.0))
_FIRST_PLACES = 20


@dataclass(slots=True)
class Signals:
    lexical: Lexical
    naming: NamedThings
    values: dict[str, Scores] = field(default_factory=dict)
    rare_words: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """Tokens that a file has and hardly any other."""
    lines: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    """Lines of a file that the query speaks of."""

    def joined(self, weight_of: Callable[[Signal], float]) -> Scores:
        total: Scores = defaultdict(float)
        for name, signal in ranking().signals.items():
            for number, value in self.values.get(name, {}).items():
                total[number] += weight_of(signal) * value
        return total


def signals(understood: QueryTerms, suspicions: Sequence[Suspicion], shelf: IndexReader) -> Signals:
    found = Signals(lexical(understood, shelf), naming(understood, shelf))
    _own(found, understood, suspicions, shelf)
    base = found.joined(lambda signal: signal.base)
    base = {number: value for number, value in base.items() if value > 0 and number in shelf.candidates}
    _of_others(found, understood, base, shelf)
    return found


def _own(found: Signals, understood: QueryTerms, suspicions: Sequence[Suspicion], shelf: IndexReader) -> None:
    """The evidence in the file itself."""
    words, names = found.lexical, found.naming
    said, said_lines = messages(understood, shelf)
    rarities, found.rare_words = rare(understood, shelf)
    found.values |= {
        "piece": _scaled(words.best),
        "piece place": _places(words.best, shelf),
        "file": _scaled(words.files),
        "cover": words.cover,
        "rare": _scaled(rarities, least=1.0),
        "path": _scaled(words.paths),
        "stem": _stems(understood, shelf),
        "definition": _scaled(names.definitions, least=1.0),
        "dotted": _scaled(names.dotted, least=1.0),
        "mention": _scaled(names.mentions, least=1.0),
        "frame": _scaled(names.frames, least=1.0),
        "message": _scaled(said, least=0.5),
        "suspicion": _suspected(suspicions, shelf, found.lines),
        **_kinds(names.told, shelf),
    }
    for lines in (names.lines, said_lines):
        for number, numbers in lines.items():
            found.lines[number].extend(numbers)


def _of_others(found: Signals, understood: QueryTerms, base: Mapping[int, float], shelf: IndexReader) -> None:
    """The evidence of other files and of the commits."""
    words, commits = found.lexical, CommitEvidence(shelf)
    found.values |= {
        "neighbour": _scaled(neighbours(base, shelf)),
        "called": _scaled(called(words, shelf)),
        "folder": _scaled(folders(words.files, shelf)),
        "tested": _scaled(tested(words, shelf)),
        "lately": commits.lately(),
        "alike": _scaled(commits.alike(understood)),
        "together": _scaled(commits.together(base)),
    }


def _kinds(told: Container[int], shelf: IndexReader) -> dict[str, Scores]:
    """The evidence against a file by its kind. Prose named in the query is meant."""
    prose: Scores = {}
    test: Scores = {}
    aside: Scores = {}
    table = ranking()
    for number in shelf.candidates:
        row = shelf.files[number]
        if number not in told and (row.kind is FileKind.PROSE or not row.language):
            prose[number] = 1.0 if row.kind is FileKind.PROSE else 0.7
        if row.test:
            test[number] = 1.0
        if row.path in table.aside_files or not table.aside_folders.isdisjoint(row.path.lower().split("/")[:-1]):
            aside[number] = 1.0
    return {"prose": prose, "test": test, "aside": aside}


def _places(scores: Mapping[int, float], shelf: IndexReader) -> Scores:
    """1 for the first of them, a half for the second, a third for the third."""
    order = sorted(scores, key=lambda number: (-scores[number], shelf.files[number].path))
    return {number: 1 / (place + 1) for place, number in enumerate(order[:_FIRST_PLACES])}


def _stems(understood: QueryTerms, shelf: IndexReader) -> Scores:
    """Files whose name is a word of the text: most in the title, less where many files share it or it is common."""
    stems: dict[str, list[int]] = defaultdict(list)
    for number in shelf.candidates:
        row = shelf.files[number]
        if row.kind is FileKind.CODE:
            stems[posixpath.basename(row.path).partition(".")[0].lower().strip("_")].append(number)
    found: Scores = {}
    for zone, weight in _STEM_ZONES:
        for name in understood.spelled[zone] & stems.keys():
            value = weight * shelf.rarity(name) / len(stems[name]) ** 0.5
            for number in stems[name]:
                found[number] = max(found.get(number, 0.0), value)
    return found


def _suspected(suspicions: Sequence[Suspicion], shelf: IndexReader, lines: dict[int, list[int]]) -> Scores:
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


MOST_SYMBOLS = 10
_NAMED = 0.6
_QUALIFIED = 0.5
_SPOKEN_OF = 1.0
_DETAIL = 0.3
_DETAILS = frozenset({DefinitionKind.FIELD, DefinitionKind.VARIABLE})
_LEAST = 0.15


def likeliest(
    definitions: Sequence[Definition],
    pieces: Mapping[PieceLines, float],
    names: Mapping[str, float],
    lines: Sequence[int],
) -> tuple[Definition, ...]:
    """The best first. `pieces` are those of the file with how well their words fit, `names` what the query names."""
    by_lines = {(piece.start, piece.stop): value for piece, value in pieces.items()}
    most = max(by_lines.values(), default=0.0) or 1.0
    last = {name.rpartition(".")[2]: name for name in names}
    heaviest = max(names.values(), default=0.0) or 1.0
    scores: dict[int, float] = defaultdict(float)
    for place, one in enumerate(definitions):
        scores[place] += by_lines.get((one.start, one.end), 0.0) / most
        if one.name in last:
            said = last[one.name]
            whole = "." in said and one.qualified.endswith(".".join(said.split(".")[-2:]))
            detail = _DETAIL if one.kind in _DETAILS else 1.0
            scores[place] += detail * (_NAMED * names[said] / heaviest + (_QUALIFIED if whole else 0.0))
    for line in lines:
        around = [place for place, one in enumerate(definitions) if one.start <= line <= one.end]
        around = [place for place in around if definitions[place].kind not in _DETAILS] or around
        if around:
            scores[max(around, key=lambda place: (definitions[place].depth, place))] += _SPOKEN_OF
    chosen = sorted((place for place in scores if scores[place] > _LEAST), key=lambda place: (-scores[place], place))
    return tuple(definitions[place] for place in chosen[:MOST_SYMBOLS])


_MOST_REASONS = 4
_LEAST_SHARE = 0.04
"""Of a file's score, for a reason to be worth telling."""

_LEAST_NAMED = 0.2
_LEAST_COVERED = 0.35
_MOST_COVERING = 10
"""Where nothing is named, one of so many first files, or a commit, must have this share of the text: what real issues
are about has twice as much, and a text about something else has a word or two of it by chance."""


def rank(query: Query, shelf: IndexReader, top: int) -> list[Hit]:
    """The same index and query give the same answer, ties by path."""
    understood = understand(query.text)
    found = signals(understood, query.suspicions, shelf)
    total = found.joined(lambda signal: signal.weight)
    scored = [number for number in total if number in shelf.candidates and _is_found(number, found)]
    scored.sort(key=lambda number: (-total[number], shelf.files[number].path))
    if not _fits(understood, found, scored[:_MOST_COVERING], shelf):
        return []
    spelled = spellings(query.text)
    least = min((total[number] for number in scored), default=0.0)
    first = {shelf.by_path[path] for path in query.first if path in shelf.by_path}
    chosen = sorted(scored[:200], key=lambda number: number not in first)[:top] if first else scored[:top]
    pieces = _pieces(chosen, found, shelf)
    return [
        Hit(
            path=shelf.files[number].path,
            # Moved above 0, whatever speaks against a file.
            score=round(total[number] - min(0.0, least) + 0.0001, 4),
            reasons=_reasons(number, found, spelled),
            symbols=likeliest(
                shelf.definitions(number), pieces[number], _names(number, found), found.lines.get(number, ())
            ),
        )
        for number in chosen
    ]


def _is_found(number: int, found: Signals) -> bool:
    """Whether the query itself speaks for the file, and not only its habits."""
    signals = ranking().signals
    return any(scores.get(number) for name, scores in found.values.items() if not signals[name].habit)


def _fits(understood: QueryTerms, found: Signals, first: Sequence[int], shelf: IndexReader) -> bool:
    """Whether the text is about this workspace at all: it names something there, or one file has a good part of it."""
    values = [found.values[name] for name, signal in ranking().signals.items() if signal.names]
    files = {number for scores in values for number in scores}
    if any(sum(scores.get(number, 0.0) for scores in values) >= _LEAST_NAMED for number in files):
        return True
    wanted = weights(understood)
    words = found.lexical
    if any(share(words.everywhere.union(words.parts.get(number, ())), wanted) >= _LEAST_COVERED for number in first):
        return True
    return any(share(wanted.keys() & commit.words.split(), wanted) >= _LEAST_COVERED for commit in shelf.past)


def _pieces(numbers: list[int], found: Signals, shelf: IndexReader) -> dict[int, dict[PieceLines, float]]:
    wanted: dict[int, dict[PieceLines, float]] = {number: {} for number in numbers}
    for piece in shelf.pieces_of(numbers):
        wanted[piece.file][piece] = found.lexical.pieces.get(piece.id, 0.0)
    return wanted


def _names(number: int, found: Signals) -> Mapping[str, float]:
    return found.naming.words.get(number, {})


def _reasons(number: int, found: Signals, spelled: Mapping[str, str]) -> tuple[str, ...]:
    signals = ranking().signals
    parts = {name: signal.weight * found.values[name].get(number, 0.0) for name, signal in signals.items()}
    whole = sum(part for part in parts.values() if part > 0) or 1.0
    names = _names(number, found)
    said = {
        "{names}": ", ".join(sorted(names, key=lambda name: (-names[name], name))[:3]),
        "{words}": ", ".join(dict.fromkeys(spelled.get(one, one) for one in found.lexical.telling(number))),
        "{rare}": " or ".join(dict.fromkeys(spelled.get(one, one) for one in found.rare_words.get(number, ())[:2])),
    }
    reasons: dict[str, float] = {}
    for name, part in parts.items():
        text = signals[name].told
        for field_name, value in said.items():
            if field_name in text:
                text = text.replace(field_name, value) if value else ""
        reasons[text] = reasons.get(text, 0.0) + part
    told = sorted(
        (text for text in reasons if text and reasons[text] / whole > _LEAST_SHARE), key=lambda text: -reasons[text]
    )
    return tuple(told[:_MOST_REASONS])
