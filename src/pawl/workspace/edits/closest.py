"""Where a text that was not found might have been meant. It only helps to word a message; no edit is applied by it."""

from __future__ import annotations

import difflib
import heapq
from collections.abc import Sequence
from dataclasses import dataclass

PLACES = 3
SHOWN_LINES = 6
SHOWN_CHARACTERS = 200
_COMPARED_CHARACTERS = 300
_COMPARED_LINES = 100
_CANDIDATES = 12
_LEAST_LIKENESS = 0.5
_LEAST_LINE = 0.3


@dataclass(frozen=True, slots=True)
class Place:
    """A run of lines that is like the one looked for."""

    line: int
    """From 1."""
    lines: tuple[str, ...]
    only_whitespace: bool
    """Whether it differs in nothing but spaces and tabs."""


def closest(lines: Sequence[str], wanted: str) -> list[Place]:
    """The places most like `wanted`, best first."""
    sought = wanted.strip("\n").split("\n")
    anchor = max(range(len(sought)), key=lambda number: len(sought[number].strip()))
    if not sought[anchor].strip():
        return []
    starts = {max(0, number - anchor) for number in _alike(lines, sought[anchor])}
    scored = [(_likeness(lines[start : start + len(sought)], sought), start) for start in starts]
    best = sorted((pair for pair in scored if pair[0] >= _LEAST_LIKENESS), key=lambda pair: (-pair[0], pair[1]))
    return [_place(lines, start, sought) for _, start in best[:PLACES]]


def shown(places: Sequence[Place]) -> str:
    """The places as numbered lines."""
    text = []
    for place in places:
        if place.only_whitespace:
            text.append("the same but for spaces and tabs (tabs are shown as \\t):")
        for number, line in enumerate(place.lines[:SHOWN_LINES], place.line):
            visible = line.replace("\t", "\\t") if place.only_whitespace else line
            text.append(f"{number:>5} | {visible[:SHOWN_CHARACTERS]}")
        if len(place.lines) > SHOWN_LINES:
            text.append(f"      | … up to line {place.line + len(place.lines) - 1}")
    return "\n".join(text)


def _alike(lines: Sequence[str], wanted: str) -> list[int]:
    """The numbers of the lines most like one line."""
    matcher = difflib.SequenceMatcher(None, b=_reduced(wanted), autojunk=False)
    rough: list[tuple[float, int]] = []
    for number, line in enumerate(lines):
        matcher.set_seq1(_reduced(line))
        # Each is an upper bound of the next and far cheaper; the full comparison is kept for a few.
        if matcher.real_quick_ratio() > _LEAST_LINE and (likeness := matcher.quick_ratio()) > _LEAST_LINE:
            rough.append((likeness, -number))
    fine = []
    for _, number in heapq.nlargest(_COMPARED_LINES, rough):
        matcher.set_seq1(_reduced(lines[-number]))
        fine.append((matcher.ratio(), number))
    return [-number for likeness, number in heapq.nlargest(_CANDIDATES, fine) if likeness > _LEAST_LINE]


def _likeness(lines: Sequence[str], sought: Sequence[str]) -> float:
    one, other = "\n".join(lines), "\n".join(sought)
    if one.split() == other.split():
        return 1.0
    limit = _COMPARED_CHARACTERS * 4
    return difflib.SequenceMatcher(None, one[:limit], other[:limit], autojunk=False).ratio()


def _place(lines: Sequence[str], start: int, sought: Sequence[str]) -> Place:
    found = tuple(lines[start : start + len(sought)])
    return Place(start + 1, found, "\n".join(found).split() == "\n".join(sought).split())


def _reduced(line: str) -> str:
    return " ".join(line[:_COMPARED_CHARACTERS].split())
