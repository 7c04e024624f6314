"""A text as a language server counts it: lines and characters of the agreed encoding, and edits between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_WIDTHS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
ENCODINGS = ("utf-32", "utf-16", "utf-8")
"""What this client can count in, the simplest first."""


@dataclass(frozen=True, slots=True)
class Span:
    """The characters from `start` up to `end` of a text give way to `new`."""

    start: int
    end: int
    new: str


class Document:
    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self._encoding = encoding if encoding in _UNITS else "utf-16"
        self._starts = [0, *(match.end() for match in _LINE_ENDS.finditer(text))]

    def offset(self, position: Mapping[str, Any]) -> int:
        """Where a position lies in the text; beyond a line's or the text's end it is that end."""
        line, character = int(position["line"]), int(position["character"])
        if line >= len(self._starts):
            return len(self.text)
        following = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        content = self.text[self._starts[line] : following]
        content = content.rstrip("\r\n") if line + 1 < len(self._starts) else content
        data = content.encode(_WIDTHS[self._encoding], "surrogatepass")
        kept = data[: character * _UNITS[self._encoding]]
        return self._starts[line] + len(kept.decode(_WIDTHS[self._encoding], "ignore"))

    def spans(self, edits: Iterable[Mapping[str, Any]]) -> tuple[Span, ...]:
        """A server's text edits as spans of this text."""
        found = (
            Span(self.offset(edit["range"]["start"]), self.offset(edit["range"]["end"]), str(edit["newText"]))
            for edit in edits
        )
        return tuple(sorted(found, key=lambda span: (span.start, span.end)))


def applied(text: str, spans: Iterable[Span]) -> str:
    """The text after the edits, which do not overlap; those of one place keep their order."""
    parts: list[str] = []
    position = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        parts += [text[position : span.start], span.new]
        position = max(position, span.end)
    return "".join([*parts, text[position:]])
