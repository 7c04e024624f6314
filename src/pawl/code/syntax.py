"""Definitions, uses and imports of a source file, read from its syntax tree.

The parsers are C that a hostile file can make crash or eat all memory, so that files of a workspace go through
`parsers.Parsers`, which does this in a process of its own.
"""

from __future__ import annotations

import functools
import importlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, cast

from pawl.code.code_model import Definition, DefinitionKind
from pawl.code.languages import Docs, Language, languages
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import shortened

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query


LARGEST = 1 << 20
"""Bytes of a file that are parsed; the rest is left out."""
_LONGEST_NAME = 200
_MARK = b"\xef\xbb\xbf"
_NEWLINE = re.compile(b"\n")
_CAPTURE = re.compile(r"@(definition|reference|import|whole)\b(?:\.(\w+))?")


class Use(StrEnum):
    CALL = "call"
    OTHER = "other"


class Reference(NamedTuple):
    """A name that is used; a tuple, because there are many."""

    name: str
    line: int
    use: Use


class Imported(NamedTuple):
    name: str
    """Empty for the module itself, `*` for all that it has."""
    bound: str
    """Its name here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    module: str
    """As it is written, without quotes."""
    line: int
    names: tuple[Imported, ...] = ()
    """The names taken from it; empty when only the module is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    definitions: tuple[Definition, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    """All three in the order of the file."""
    complete: bool = True
    """False when a part was left out, or could not be read as the language."""
    error: tuple[int, str] | None = None
    """The first line that is not the language, and what is wrong there."""


class _Role(StrEnum):
    DEFINITION = "definition"
    REFERENCE = "reference"
    IMPORT = "import"
    WHOLE = "whole"


class _Pattern(NamedTuple):
    """A match of one pattern of a query: its role, and what follows the dot of its capture."""

    role: _Role
    kind: str
    capture: str


class _Grammar(NamedTuple):
    parser: Parser
    query: Query
    patterns: Sequence[_Pattern]


def parse(source: bytes, language: Language, *, imports_alone: bool = False) -> Parsed:
    """Read the file. A part that is not the language is skipped; a long file is cut at a line."""
    from tree_sitter import QueryCursor

    source = source.removeprefix(_MARK)
    whole = len(source) <= LARGEST
    if not whole:
        source = source[: source.rfind(b"\n", 0, LARGEST) + 1 or LARGEST]
    grammar = _grammar(language.name, imports_alone=imports_alone)
    tree = grammar.parser.parse(source)
    # The cursor must outlive the nodes that it found.
    cursor = QueryCursor(grammar.query)
    reader = _Reader(source, grammar.patterns)
    reader.take(cursor.matches(tree.root_node))
    return Parsed(
        definitions=tuple(definitions(reader.places.values(), reader.wholes, source, reader.newlines, language)),
        references=tuple(reader.references()),
        imports=tuple(reader.imports()),
        complete=whole and not tree.root_node.has_error,
        error=_first_error(tree.root_node) if tree.root_node.has_error else None,
    )


def _first_error(root: Node) -> tuple[int, str]:
    """Where the parser had to skip or to make up something, the first and innermost."""
    node = root
    while not node.is_missing:
        broken = next((child for child in node.children if child.has_error or child.is_missing or child.is_error), None)
        if broken is None:
            break
        node = broken
    line = node.start_point.row + 1
    if node.is_missing:
        return line, f"missing {node.type!r}"
    words = (node.text or b"").decode("utf-8", "replace").split("\n")[0].strip()
    return line, f"unexpected {words[:40]!r}"


@functools.cache
def _grammar(name: str, *, imports_alone: bool) -> _Grammar:
    """The parser and the query of a language, made once for a process."""
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser, Query

    language = languages()[name]
    module, function = language.grammar
    grammar = Grammar(getattr(importlib.import_module(module), function)())
    text = language.query
    query = Query(grammar, text)
    patterns = list(_patterns(query, text.encode()))
    for number, pattern in enumerate(patterns):
        if imports_alone and pattern.role is not _Role.IMPORT:
            query.disable_pattern(number)
    return _Grammar(Parser(grammar), query, patterns)


def _patterns(query: Query, text: bytes) -> Iterator[_Pattern]:
    # The count is a property, whatever the package's own stubs say.
    for index in range(cast("int", query.pattern_count)):
        pattern = text[query.start_byte_for_pattern(index) : query.end_byte_for_pattern(index)].decode()
        capture = _CAPTURE.search(pattern)
        if capture is None:
            raise ValueError(f"a pattern of a query has no role: {pattern}")
        yield _Pattern(_Role(capture[1]), capture[2] or "", capture[0].removeprefix("@"))


class _Reader:
    """Collects what the patterns find; nothing is decoded twice, and no node is walked."""

    def __init__(self, source: bytes, patterns: Sequence[_Pattern]) -> None:
        self._source = source
        self._patterns = patterns
        self.newlines = [match.start() for match in _NEWLINE.finditer(source)]
        self.places: dict[int, DefinitionPlace] = {}
        """Definitions by where their names begin."""
        self.wholes: dict[int, int] = {}
        """For what stands under decorators: where those begin."""
        self._spots: dict[int, tuple[int, Use]] = {}
        """Names that are used, by where they begin."""
        self._modules: dict[int, tuple[str, list[Imported]]] = {}
        """Imports by where the module's name begins."""

    def take(self, matches: Iterable[tuple[int, Mapping[str, list[Node]]]]) -> None:
        patterns, spots = self._patterns, self._spots
        for index, captures in matches:
            role, kind, capture = patterns[index]
            node = captures[capture][0]
            # Most of what is found is references, so that they come first and cost little.
            if role is _Role.REFERENCE:
                start = node.start_byte
                if kind == "call":
                    spots[start] = (node.end_byte, Use.CALL)
                elif start not in spots:
                    spots[start] = (node.end_byte, Use.OTHER)
            elif role is _Role.DEFINITION:
                self._define(DefinitionPlace.of(index, kind, node, captures))
            elif role is _Role.IMPORT:
                self._import(kind, captures)
            else:
                self.wholes[captures["inner"][0].start_byte] = node.start_byte

    def _define(self, place: DefinitionPlace) -> None:
        """Of several patterns that find one name, the one that stands first in the query decides."""
        known = self.places.get(place.name_start)
        if known is None or place.pattern < known.pattern:
            self.places[place.name_start] = place

    def references(self) -> Iterator[Reference]:
        source, newlines = self._source, self.newlines
        for start in sorted(self._spots.keys() - self.places.keys()):
            end, use = self._spots[start]
            if end - start <= _LONGEST_NAME:
                yield Reference(source[start:end].decode("utf-8", "replace"), bisect_right(newlines, start) + 1, use)

    def imports(self) -> Iterator[Import]:
        for start, (module, names) in sorted(self._modules.items()):
            line = bisect_right(self.newlines, start) + 1
            yield Import(module=module, line=line, names=tuple(dict.fromkeys(names)))

    def _import(self, kind: str, captures: Mapping[str, list[Node]]) -> None:
        node = captures["module"][0]
        start = node.start_byte
        module, alias = self._text(node), self._first(captures, "alias")
        if kind == "tree":
            for place, (path, names) in enumerate(_branches(module)):
                self._modules.setdefault(start + place, (path, []))[1].extend(names)
            return
        if kind == "relative" and not module.startswith("."):
            module = f"./{module}"
        known = self._modules.setdefault(start, (module.strip("<>\"'"), []))[1]
        name = "default" if kind == "default" else self._first(captures, "name").lstrip(":")
        if name or alias:
            known.append(Imported(name, alias or name))

    def _first(self, captures: Mapping[str, list[Node]], name: str) -> str:
        nodes = captures.get(name)
        return self._text(nodes[0]) if nodes else ""

    def _text(self, node: Node) -> str:
        return self._source[node.start_byte : node.end_byte].decode("utf-8", "replace")


_TREE = re.compile(r"[{},]|[^{},]+")


def _branches(tree: str) -> list[tuple[str, list[Imported]]]:
    """`a::{b, c::{d as e}}` as modules with what is taken from each."""
    found: dict[str, list[Imported]] = {}
    prefixes = [""]
    pending = ""
    for word in _TREE.findall(tree):
        if word == "{":
            prefixes.append(prefixes[-1] + pending)
            pending = ""
        elif word in "},":
            _leaf(prefixes[-1], pending, found)
            pending = ""
            if word == "}" and len(prefixes) > 1:
                prefixes.pop()
        else:
            pending = "".join(word.split()) if " as " not in word else " ".join(word.split())
    _leaf(prefixes[-1], pending, found)
    return list(found.items())


def _leaf(prefix: str, text: str, found: dict[str, list[Imported]]) -> None:
    if not text:
        return
    path, _, alias = (prefix + text).partition(" as ")
    module, _, name = path.rpartition("::")
    if name == "self":
        module, name, alias = module, "", alias or module.rpartition("::")[2]
    elif not module:
        module, name, alias = name, "", alias
    names = found.setdefault(module, [])
    if name or alias:
        names.append(Imported(name, alias or name))


_PROTOTYPE = "prototype"
_LONGEST_SIGNATURE = 200
_LONGEST_DOC = 120
_READ_OF_SIGNATURE = 2_000
_READ_OF_DOC = 400
_COMMENT_LINES = 100
_PREFIX = 60
"""How much of a line before a definition may belong to it, such as `export` or `type`."""

FUNCTIONS = frozenset({DefinitionKind.FUNCTION, DefinitionKind.METHOD})
TYPES = frozenset(
    {
        DefinitionKind.CLASS,
        DefinitionKind.INTERFACE,
        DefinitionKind.STRUCT,
        DefinitionKind.ENUM,
        DefinitionKind.TYPE,
        DefinitionKind.IMPLEMENTATION,
    }
)
_AROUND = FUNCTIONS | TYPES | {DefinitionKind.MODULE}
"""Definitions that hold others."""
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
    if inner in FUNCTIONS and found in (_PROTOTYPE, DefinitionKind.VARIABLE):
        return None
    kind = DefinitionKind.FUNCTION if found == _PROTOTYPE else DefinitionKind(found)
    return DefinitionKind.METHOD if kind is DefinitionKind.FUNCTION and inner in TYPES else kind


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
        if place.kind == DefinitionKind.TEST:
            return [" ".join(text.split()) or "?"]
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
        return shortened(text, _LONGEST_SIGNATURE)

    def doc(self, place: DefinitionPlace, start: int) -> str:
        if self._language.docs is Docs.INSIDE:
            found = self._inside(place.body) if place.body >= 0 else ""
        else:
            found = self._above(start) if self._opens_its_line(place) else ""
        return shortened(found, _LONGEST_DOC)

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
