"""Putting hunks where they belong in a text: on the lines they name, or on the only other lines that are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import islice

from pawl.core.patch_read import FilePatch, PatchHunk
from pawl.core.patch_read_header import Action
from pawl.core.text import split_lines

_SHOWN_LINES = 3
_SHOWN_PLACES = 5
_SHOWN_BYTES = 80
_COMMON = 64
"""A line that occurs more often than this says nothing about where a hunk belongs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Misfit:
    """A part of a patch that does not fit the tree, with the lines that come closest to what it expects."""

    path: str
    line: int
    """Of the patch, counted from 1."""
    problem: str
    closest: tuple[tuple[int, bytes], ...] = ()
    """Lines of the file with their numbers, counted from 1."""

    def __str__(self) -> str:
        nearest = f"; line {self.closest[0][0]} is {_shown(self.closest[0][1])}" if self.closest else ""
        return f"{self.path!r} (line {self.line} of the patch): {self.problem}{nearest}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    data: bytes
    notices: tuple[str, ...] = ()


def fitted(patch: FilePatch, source: bytes, *, is_proven: bool) -> Fitted | Misfit:
    """The text after all hunks of a patch. `is_proven` says that the text is known to be the one it was made from."""
    lines = split_lines(source)
    result = _fit(patch, lines, is_proven=is_proven)
    if not patch.converted or (isinstance(result, Fitted) and patch.action is not Action.CREATE):
        return result
    unconverted = _fit(_unconverted(patch), lines, is_proven=is_proven)
    if isinstance(unconverted, Misfit):
        return result
    notice = f"{patch.new_path!r}: the patch has Windows line ends throughout, which were read as plain ones"
    return Fitted(data=unconverted.data, notices=(*unconverted.notices, notice))


def already_there(patch: FilePatch, source: bytes) -> Misfit:
    """A file that the patch would create, with the first lines that are not as the patch has them."""
    lines = split_lines(source)
    wanted = [line for hunk in patch.hunks for line in hunk.new]
    same = next((at for at, (one, two) in enumerate(zip(lines, wanted, strict=False)) if one != two), None)
    at = same if same is not None else min(len(lines), len(wanted))
    problem = "it already exists with this content" if lines == wanted else "it already exists"
    return Misfit(path=patch.new_path, line=patch.line, problem=problem, closest=_numbered(lines, at))


def left_over(patch: FilePatch, left: bytes) -> Misfit:
    """A file that the patch would delete, which holds more than the patch knows of."""
    lines = split_lines(left)
    problem = f"it holds {len(lines)} lines that the patch does not delete"
    numbers = _numbered(lines, 0) if not patch.hunks else ()
    return Misfit(path=patch.new_path, line=patch.line, problem=problem, closest=numbers)


def _unconverted(patch: FilePatch) -> FilePatch:
    hunks = tuple(
        replace(
            hunk,
            lines=tuple(
                line[:-2] + b"\n" if line.endswith(b"\r\n") else line.removesuffix(b"\r") for line in hunk.lines
            ),
        )
        for hunk in patch.hunks
    )
    return replace(patch, hunks=hunks)


def _fit(patch: FilePatch, lines: Sequence[bytes], *, is_proven: bool) -> Fitted | Misfit:
    result: list[bytes] = []
    notices: list[str] = []
    at = shift = 0
    for number, hunk in enumerate(patch.hunks, 1):
        place = _Placing(patch.new_path, lines, hunk, at).found(hunk.start + shift, is_proven=is_proven)
        if isinstance(place, Misfit):
            return place
        if place - hunk.start != shift:
            shift = place - hunk.start
            notices.append(f"{patch.new_path!r}: hunk {number} was found at line {place + 1}, {_moved(shift)}")
        result += lines[at:place]
        result += hunk.new
        at = place + len(hunk.old)
    result += lines[at:]
    if any(not line.endswith(b"\n") for line in result[:-1]):
        problem = "a line without a newline would no longer be the last one"
        return Misfit(path=patch.new_path, line=patch.hunks[-1].line, problem=problem)
    return Fitted(data=b"".join(result), notices=tuple(notices))


def _moved(shift: int) -> str:
    if not shift:
        return "where the patch says"
    return (
        f"{abs(shift)} {'line' if abs(shift) == 1 else 'lines'} {'below' if shift > 0 else 'above'} what the patch says"
    )


@dataclass(frozen=True, slots=True)
class _Placing:
    path: str
    lines: Sequence[bytes]
    hunk: PatchHunk
    earliest: int
    """Where the hunk before it ends."""

    def found(self, expected: int, *, is_proven: bool) -> int | Misfit:
        old = self.hunk.old
        if not old:
            return self._without_context(expected, is_proven=is_proven)
        if self._fits(expected, old):
            return expected
        last = len(self.lines) - len(old)
        candidates = (at for at in range(self.earliest, last + 1) if self.lines[at] == old[0])
        places = list(islice((at for at in candidates if self._fits(at, old)), _SHOWN_PLACES))
        if len(places) == 1:
            return places[0]
        if places:
            numbers = ", ".join(str(at + 1) for at in places)
            return self._misfit(f"the hunk fits in several places: lines {numbers}")
        return self._nowhere(expected, old)

    def _fits(self, at: int, old: tuple[bytes, ...]) -> bool:
        return at >= self.earliest and tuple(self.lines[at : at + len(old)]) == old

    def _without_context(self, expected: int, *, is_proven: bool) -> int | Misfit:
        """Lines are only added, and nothing around them is shown: the line number must be known to be right."""
        if not self.lines and not expected:
            return 0
        if is_proven and self.earliest <= expected <= len(self.lines):
            return expected
        return self._misfit("the hunk shows no line of the file to place it by")

    def _nowhere(self, expected: int, old: tuple[bytes, ...]) -> Misfit:
        best = self._closest(expected, old)
        at = next((at for at, line in enumerate(old) if self.lines[best + at : best + at + 1] != [line]), 0)
        found = self.lines[best + at] if best + at < len(self.lines) else b""
        ends_differ = found and found.rstrip(b"\r\n") == old[at].rstrip(b"\r\n")
        reason = ", which differs only in its line end" if ends_differ else ""
        problem = f"the hunk expects {_shown(old[at])} at line {best + at + 1}{reason}"
        return self._misfit(problem, _numbered(self.lines, best + at))

    def _closest(self, expected: int, old: tuple[bytes, ...]) -> int:
        """Where most of the hunk's lines would be right; the nearest such place."""
        places: dict[bytes, list[int]] = {line: [] for line in old}
        for at, line in enumerate(self.lines):
            if line in places:
                places[line].append(at)
        votes = Counter(
            place - at for at, line in enumerate(old) if len(places[line]) <= _COMMON for place in places[line]
        )
        possible = [place for place in votes if place >= 0]
        limit = max(0, len(self.lines) - 1)
        return max(possible, key=lambda place: (votes[place], -abs(place - expected)), default=min(expected, limit))

    def _misfit(self, problem: str, closest: tuple[tuple[int, bytes], ...] = ()) -> Misfit:
        return Misfit(path=self.path, line=self.hunk.line, problem=problem, closest=closest)


def _numbered(lines: Sequence[bytes], start: int) -> tuple[tuple[int, bytes], ...]:
    return tuple((at + 1, lines[at]) for at in range(start, min(start + _SHOWN_LINES, len(lines))))


def _shown(line: bytes) -> str:
    text = line.rstrip(b"\r\n").decode("utf-8", "backslashreplace")
    return repr(text if len(text) <= _SHOWN_BYTES else f"{text[:_SHOWN_BYTES]}…")
