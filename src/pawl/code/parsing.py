"""What a source file defines, uses and imports, read from its syntax tree.

The parsers are C that a hostile file can make crash or eat all memory, so that files of a workspace go through
`parsers.Parsers`, which does this in a process of its own.
"""

from __future__ import annotations

import functools
import importlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple, cast

from pawl.code.definitions import DefinitionPlace, definitions
from pawl.code.languages import Language, languages
from pawl.core.code import Definition

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Query


LARGEST = 1 << 20
"""What is parsed of a file, in bytes; the rest is left out."""
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
    """What it is called here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Import:
    module: str
    """As it is written, without quotes."""
    line: int
    names: tuple[Imported, ...] = ()
    """What is taken from it; empty when only the module is named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    definitions: tuple[Definition, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    """All three in the order of the file."""
    complete: bool = True
    """False when a part was left out, or could not be read as the language."""


class _Role(StrEnum):
    DEFINITION = "definition"
    REFERENCE = "reference"
    IMPORT = "import"
    WHOLE = "whole"


class _Pattern(NamedTuple):
    """What one pattern of a query finds: its role, and what follows the dot of its capture."""

    role: _Role
    kind: str
    capture: str


class _Grammar(NamedTuple):
    parser: Parser
    query: Query
    patterns: Sequence[_Pattern]


def parse(source: bytes, language: Language) -> Parsed:
    """What can be read of the file. A part that is not the language is skipped; a long file is cut at a line."""
    from tree_sitter import QueryCursor

    source = source.removeprefix(_MARK)
    whole = len(source) <= LARGEST
    if not whole:
        source = source[: source.rfind(b"\n", 0, LARGEST) + 1 or LARGEST]
    grammar = _grammar(language.name)
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
    )


@functools.cache
def _grammar(name: str) -> _Grammar:
    """The parser and the query of a language, made once for a process."""
    from tree_sitter import Language as Grammar
    from tree_sitter import Parser, Query

    language = languages()[name]
    module, function = language.grammar
    grammar = Grammar(getattr(importlib.import_module(module), function)())
    text = language.query
    query = Query(grammar, text)
    return _Grammar(Parser(grammar), query, list(_patterns(query, text.encode())))


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
