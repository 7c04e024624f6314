"""What speaks for a file besides its own words: neighbours, code and tests that fit, its folder, messages it holds."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from pawl.context.query import Understood, phrase
from pawl.context.ranking.shelf import Scores, Shelf
from pawl.context.sorting import Kind

_MOST_SEEDS = 20
_MOST_PIECES = 25
_MOST_DEFINERS = 4
_MOST_TESTS = 12
_LONGEST_RUN = 8


def neighbours(base: Mapping[int, float], shelf: Shelf) -> Scores:
    """What the best files import; a file that imports many gives each less."""
    found: Scores = defaultdict(float)
    seeds = sorted(base, key=lambda number: (-base[number], shelf.files[number].path))[:_MOST_SEEDS]
    for number in seeds:
        targets = shelf.tables.imported.get(number, ())
        for target in targets:
            if target in shelf.candidates:
                found[target] += base[number] / math.sqrt(len(targets))
    return found


def called(pieces: Mapping[int, float], shelf: Shelf) -> Scores:
    """Where the names are defined that the best pieces use: in the files that theirs import, or else in few files."""
    best = sorted(pieces, key=lambda number: (-pieces[number], number))
    files, of = shelf.files, shelf.tables.piece_files
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


def folders(scores: Mapping[int, float], shelf: Shelf) -> Scores:
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


def tested(pieces: Mapping[int, float], shelf: Shelf) -> Scores:
    """Files that the tests which fit best are about, by the words of their paths."""
    best: dict[int, float] = {}
    for number, value in pieces.items():
        file = shelf.tables.piece_files[number]
        if shelf.files[file].test and value > best.get(file, 0.0):
            best[file] = value
    chosen = sorted(best, key=lambda number: (-best[number], shelf.files[number].path))[:_MOST_TESTS]
    words = shelf.tables.path_words
    spread: Counter[str] = Counter(token for number in shelf.candidates for token in words[number])
    holders: dict[str, list[int]] = defaultdict(list)
    wanted = {token for number in chosen for token in words[number]}
    for number in sorted(shelf.candidates):
        if not shelf.files[number].test and shelf.files[number].kind is Kind.CODE:
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


def messages(understood: Understood, shelf: Shelf) -> tuple[Scores, dict[int, list[int]]]:
    """Files whose text holds a message of the query, with the lines of the pieces; the longer and rarer the better."""
    found: Scores = defaultdict(float)
    lines: dict[int, list[int]] = defaultdict(list)
    for message in understood.messages[:12]:
        for run in phrase(message)[:4]:
            for part in _windows(run[:_LONGEST_RUN]):
                pieces = [piece for piece in shelf.together(part) if piece.file in shelf.candidates]
                files = {piece.file for piece in pieces if shelf.files[piece.file].kind is Kind.CODE}
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
