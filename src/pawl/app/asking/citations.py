"""The places that an answer cites, held against the files: an answer that names a line which is not there says so."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_CITED = re.compile(
    r"(?<![\w./-])(?P<path>(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,9}|(?:[\w.@+-]+/)+[\w.@+-]+):(?P<line>\d{1,7})\b"
)
_PATH = re.compile(r"(?<![\w./:@-])(?:[\w.@+-]+/)*[\w@+-][\w.@+-]*\.[A-Za-z]\w{0,9}\b")
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    path: str
    line: int
    holds: bool
    """There is such a file, and it has that line."""


def citations(text: str, count_lines: Callable[[str], int | None]) -> tuple[Citation, ...]:
    """Every `path:line` of the text, once. `count_lines` is None for what is not a file of the workspace."""
    counted: dict[str, int | None] = {}
    found: dict[tuple[str, int], Citation] = {}
    for path, line in _places(text):
        if path not in counted:
            counted[path] = count_lines(path)
        lines = counted[path]
        holds = lines is not None and 1 <= line <= max(1, lines)
        found.setdefault((path, line), Citation(path=path, line=line, holds=holds))
        if len(found) >= _MOST:
            break
    return tuple(found.values())


def _places(text: str) -> Iterator[tuple[str, int]]:
    for match in _CITED.finditer(text):
        # An address such as localhost.example:8080 is no file.
        if not text[max(0, match.start() - 3) : match.start()].endswith("://"):
            yield match["path"].removeprefix("./"), int(match["line"])


def mentioned(text: str, most: int) -> Iterator[str]:
    """What looks like the path of a file in the user's own words, each once."""
    found: dict[str, None] = {}
    for match in _PATH.finditer(text):
        if len(found) < most:
            found.setdefault(match[0].removeprefix("./").rstrip("."))
    yield from found
