"""From the places of definitions in a file to definitions with qualified names, signatures and descriptions."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from pawl.code.languages import Docs, Language
from pawl.core.code import Definition, DefinitionKind

if TYPE_CHECKING:
    from tree_sitter import Node


_PROTOTYPE = "prototype"
_LONGEST_SIGNATURE = 200
_LONGEST_DOC = 120
_READ_OF_SIGNATURE = 2_000
_READ_OF_DOC = 400
_COMMENT_LINES = 100
_PREFIX = 60
"""How much of a line before a definition may belong to it, such as `export` or `type`."""

_FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})
_TYPES = frozenset(
    {
        DefinitionKind.CLASS,
        DefinitionKind.INTERFACE,
        DefinitionKind.STRUCT,
        DefinitionKind.ENUM,
        DefinitionKind.TYPE,
        DefinitionKind.IMPLEMENTATION,
    }
)
_AROUND = _FUNCTIONS | _TYPES | {DefinitionKind.MODULE}
"""What other definitions can stand in."""
_NAMED_AGAIN = frozenset({DefinitionKind.TYPE, DefinitionKind.STRUCT, DefinitionKind.ENUM})

_ARGUMENTS = re.compile(r"<[^<>]*>")
_SEPARATOR = re.compile(r"::|\.")
_DOCSTRING = re.compile(rb"[rRuU]?(\"\"\"|'''|\"|')\s*([^\n]*)")
_SEPARATE = re.compile(rb"[;{}]")
_DECORATION = re.compile(r"^(?:/\*+!?|\*+/?|//[/!]*|#+)\s?|\s*\*+/$")


class DefinitionPlace(NamedTuple):
    """Where a definition stands, in bytes."""

    pattern: int
    kind: str
    start: int
    end: int
    name_start: int
    name_end: int
    scope: tuple[int, int]
    """The name of the type that a definition outside of it belongs to; empty for none."""
    body: int
    """Where the body begins; -1 when there is none."""

    @classmethod
    def of(cls, pattern: int, kind: str, node: Node, captures: Mapping[str, list[Node]]) -> DefinitionPlace:
        name = captures["name"][0]
        scope = captures["scope"][0].byte_range if "scope" in captures else (0, 0)
        body = captures["body"][0] if "body" in captures else node.child_by_field_name("body")
        start, end = node.byte_range
        return cls(
            pattern, kind, start, end, name.start_byte, name.end_byte, scope, -1 if body is None else body.start_byte
        )


class _Around(NamedTuple):
    """A definition that others stand in."""

    end: int
    kind: DefinitionKind
    qualified: str


def definitions(
    places: Iterable[DefinitionPlace],
    wholes: Mapping[int, int],
    source: bytes,
    newlines: Sequence[int],
    language: Language,
) -> Iterator[Definition]:
    """In the order of the file. A variable inside a function is local, and is left out."""
    page = _Page(source, newlines, language)
    around: list[_Around] = []
    for place in sorted(places, key=lambda place: (place.start, -place.end, place.name_start)):
        while around and (around[-1].end < place.end or _names_it(around[-1], place)):
            around.pop()
        kind = _kind(place.kind, around)
        if kind is None:
            continue
        *scope, name = page.names(place)
        qualified = ".".join([*([around[-1].qualified] if around else []), *scope, name])
        start = page.line(wholes.get(place.start, place.start))
        yield Definition(
            kind=kind,
            name=name,
            qualified=qualified,
            start=start,
            line=page.line(place.name_start),
            end=page.line(max(place.start, place.end - 1)),
            depth=len(around),
            signature=page.signature(place, one_line=language.one_line or kind not in _AROUND),
            doc=page.doc(place, start),
        )
        if kind in _AROUND:
            around.append(_Around(place.end, kind, qualified))


def _names_it(outer: _Around, place: DefinitionPlace) -> bool:
    """Whether the outer one is a further name for the same thing: `typedef struct thing {…} thing_t`."""
    return outer.kind is DefinitionKind.TYPE and place.kind in _NAMED_AGAIN


def _kind(found: str, around: Sequence[_Around]) -> DefinitionKind | None:
    inner = around[-1].kind if around else None
    if inner in _FUNCTIONS and found in (_PROTOTYPE, DefinitionKind.VARIABLE):
        return None
    kind = DefinitionKind.FUNCTION if found == _PROTOTYPE else DefinitionKind(found)
    return DefinitionKind.METHOD if kind is DefinitionKind.FUNCTION and inner in _TYPES else kind


class _Page:
    """The text of a file, by bytes and by lines."""

    def __init__(self, source: bytes, newlines: Sequence[int], language: Language) -> None:
        self._source = source
        self._newlines = newlines
        self._language = language

    def line(self, offset: int) -> int:
        return bisect_right(self._newlines, offset - 1) + 1

    def names(self, place: DefinitionPlace) -> list[str]:
        """The name as it is written, taken apart: the last part is the name itself."""
        text = self._text(place.name_start, place.name_end).strip("\"'`:")
        while "<" in text and (bare := _ARGUMENTS.sub("", text)) != text:
            text = bare
        start, end = place.scope
        scope = [self._text(start, end)] if end else []
        parts = [part for part in _SEPARATOR.split(text) if part] if "operator" not in text else [text]
        return [*scope, *("".join(part.split()) for part in parts)] or ["?"]

    def signature(self, place: DefinitionPlace, *, one_line: bool) -> str:
        """From the line of the name, with what stands before it there, to the body."""
        begin = self._line_start(place.name_start)
        if place.start > begin and not self._opens_its_line(place):
            begin = place.start
        end = place.end if place.body <= place.name_end else place.body
        if one_line:
            close = self._source.find(b"\n", place.name_end, end)
            end = close if close >= 0 else end
        text = " ".join(self._text(begin, min(end, begin + _READ_OF_SIGNATURE)).split())
        text = text.rstrip("{:;=, ")
        return text if len(text) <= _LONGEST_SIGNATURE else f"{text[: _LONGEST_SIGNATURE - 1]}…"

    def doc(self, place: DefinitionPlace, start: int) -> str:
        if self._language.docs is Docs.INSIDE:
            found = self._inside(place.body) if place.body >= 0 else ""
        else:
            found = self._above(start) if self._opens_its_line(place) else ""
        return found if len(found) <= _LONGEST_DOC else f"{found[: _LONGEST_DOC - 1]}…"

    def _inside(self, body: int) -> str:
        match = _DOCSTRING.match(self._source, body, body + _READ_OF_DOC)
        return match[2].partition(match[1])[0].strip().decode("utf-8", "replace") if match else ""

    def _above(self, start: int) -> str:
        """The first line of the comment that ends right above; attributes may stand between."""
        number = start - 1
        while number > 0 and self._read(number).startswith("#["):
            number -= 1
        lines: list[str] = []
        block = self._read(number).endswith("*/") if number > 0 else False
        while number > 0 and len(lines) < _COMMENT_LINES:
            line = self._read(number)
            if not block and not line.startswith(self._language.comment):
                break
            lines.append(line)
            number -= 1
            if block and "/*" in line:
                break
        if block and lines and not lines[-1].startswith("/*"):
            return ""
        texts = (_DECORATION.sub("", line).strip() for line in reversed(lines))
        return next((_DECORATION.sub("", text).strip() for text in texts if text), "")

    def _opens_its_line(self, place: DefinitionPlace) -> bool:
        """Whether what stands before it on its line belongs to it, and not to another definition."""
        before = self._source[self._line_start(place.start) : place.start]
        return len(before) <= _PREFIX and not _SEPARATE.search(before)

    def _read(self, number: int) -> str:
        """A line by its number, from 1."""
        start = self._newlines[number - 2] + 1 if number > 1 else 0
        end = self._newlines[number - 1] if number <= len(self._newlines) else len(self._source)
        return self._text(start, min(end, start + _READ_OF_DOC)).strip()

    def _line_start(self, offset: int) -> int:
        return self._source.rfind(b"\n", 0, offset) + 1

    def _text(self, start: int, end: int) -> str:
        return self._source[start:end].decode("utf-8", "replace")
