"""Parts of a file as numbered lines: whole lines only, what is left out is marked, secrets are gone."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence

from pawl.core.packs import PackFile
from pawl.core.redact import MARK, redacted

LONGEST_LINE = 1_000
"""A longer one is data, and stands as a mark."""

Range = tuple[int, int]
"""The first and the last line, from 1."""


def one_line(path: str) -> str:
    """A path as a part of a line, whatever its name holds."""
    return path.replace("\n", "\\n").replace("\r", "\\r")


def redacted_lines(lines: Sequence[str]) -> tuple[str, ...]:
    """As many lines as before, without secrets: where a secret spans several lines, each of them is a mark."""
    before = "\n".join(lines)
    after = redacted(before)
    if after == before:
        return tuple(lines)
    clean = after.split("\n")
    if len(clean) == len(lines):
        return tuple(clean)
    found: list[str] = []
    matcher = difflib.SequenceMatcher(None, lines, clean, autojunk=False)
    for what, start, end, clean_start, clean_end in matcher.get_opcodes():
        same = what == "equal" or end - start == clean_end - clean_start
        found += clean[clean_start:clean_end] if same else [MARK] * (end - start)
    return tuple(found)


def merged(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same lines in ranges that do not touch, in the order of the file."""
    joined: list[Range] = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def rendered(file: PackFile, ranges: Iterable[Range]) -> list[str]:
    """The path, then the lines of the ranges with a mark for each part between them."""
    shown = [f"## {one_line(file.path)}"]
    at = 1
    for start, end in merged(ranges):
        shown += _gap(at, start - 1)
        shown += _numbered(file.lines, start, end)
        at = end + 1
    return shown + _gap(at, len(file.lines))


def _gap(start: int, end: int) -> list[str]:
    if end < start:
        return []
    return [f"     … | [line {start} left out]" if start == end else f"     … | [lines {start} to {end} left out]"]


def _numbered(lines: Sequence[str], start: int, end: int) -> Iterator[str]:
    for number in range(start, end + 1):
        line = lines[number - 1]
        yield (
            f"{number:>6} | {line}"
            if len(line) <= LONGEST_LINE
            else f"{number:>6} | [a line of {len(line):,} characters]"
        )
