"""The outline of a whole repository for any budget: what is used most comes first, the rest by name, then by number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pawl.context.excerpts import one_line
from pawl.core.guardrails import Guardrails
from pawl.core.outline import Definition, FileOutline
from pawl.core.packs import CHARACTERS_PER_TOKEN
from pawl.core.redact import redacted

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
