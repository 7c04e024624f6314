"""Nodes of a script's syntax tree, edits proposed for them, and marks: each function tells what it is given."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from pawl.core.typed import data_table

if TYPE_CHECKING:
    from tree_sitter import Node


def tables() -> Mapping[str, dict[str, Any]]:
    """Tables of things that are easily exchanged, and the kinds of nodes."""
    return data_table("pawl.repair", "recoveries/swaps.toml")


def kinds(name: str) -> frozenset[str]:
    return frozenset(tables()["kinds"][name])


FUNCTIONS = kinds("functions")
EXPRESSIONS = kinds("expressions")
_READING = kinds("reading")
_DECLARING = kinds("declaring")


class ScriptProposal(NamedTuple):
    """The bytes from `start` to `end` of a file become `text`."""

    start: int
    end: int
    text: str
    template: str
    cost: float
    path: str = ""
    function: str = ""
    line: int = 0


def replaced(node: Node, text: str, template: str, cost: float) -> ScriptProposal:
    return ScriptProposal(node.start_byte, node.end_byte, text, template, cost)


def each(node: Node, texts: Iterable[str], template: str, cost: float) -> Iterator[ScriptProposal]:
    """A proposal for each of the texts; what changes nothing is left out later."""
    return (replaced(node, text, template, cost) for text in texts)


def source(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def part_of(node: Node, start: int, end: int) -> str:
    """The text from one byte of the file to another, both inside of the node."""
    return (node.text or b"")[start - node.start_byte : end - node.start_byte].decode("utf-8", "replace")


def field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def fields(node: Node, *names: str) -> list[Node]:
    """These parts of a node, as far as the parser found them."""
    found = (node.child_by_field_name(name) for name in names)
    return [part for part in found if part is not None]


def within(node: Node) -> Iterator[Node]:
    """The node and everything below it, in the order of the file."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))


def functions_around(node: Node) -> list[Node]:
    """The functions that the node lies in, the innermost first."""
    found = []
    one = node.parent
    while one is not None:
        if one.type in FUNCTIONS:
            found.append(one)
        one = one.parent
    return found


def outermost_function(node: Node) -> Node | None:
    return next(reversed(functions_around(node)), None)


def name_of(function: Node | None) -> str:
    """A function's name: its own, or that of what it is assigned to."""
    if function is None:
        return ""
    holders = fields(function.parent, "name", "left", "key") if function.parent is not None else []
    return next(map(source, (*fields(function, "name"), *holders)), "")


def is_used(node: Node) -> bool:
    """Whether a name is read here, and not declared, imported, or the key of something."""
    parent = node.parent
    if parent is None or node.type != "identifier":
        return False
    if parent.type in _DECLARING:
        return False
    for part in ("name", "left", "parameter", "pattern"):
        if field(parent, part) == node and parent.type not in _READING:
            return False
    return True


MOST_FUNCTIONS = 200
_SAW = "globalThis.__pawlSaw?.({number}, {args}{this})"
_GAVE = "\n;globalThis.__pawlGave?.([{entries}]);\n"
_NAMED = ("identifier", "member_expression")


class Marks(NamedTuple):
    """Insertions into a file, by byte, and a text for its end."""

    insertions: list[tuple[int, str]]
    tail: str


class _Way(NamedTuple):
    """How a function is reached from the end of its file: an expression, and a method of what it gives."""

    holder: str
    method: str = ""
    is_of_instance: bool = False


def marks_of(root: Node) -> Marks:
    """The marks for every outermost function of a file that can be called by a name."""
    insertions: list[tuple[int, str]] = []
    entries: list[str] = []
    functions = (node for node in within(root) if node.type in FUNCTIONS and outermost_function(node) is None)
    for number, function in enumerate(functions):
        if number >= MOST_FUNCTIONS:
            break
        way, args = _way(function), _arguments(function)
        if way is None or args is None:
            continue
        saw = _SAW.format(number=number, args=args, this=", this" if way.is_of_instance else "")
        insertions += _inserted(function, saw)
        entries.append(f"[{number}, {json.dumps(way.method)}, () => {way.holder}]")
    return Marks(insertions, _GAVE.format(entries=", ".join(entries)) if entries else "")


def _inserted(function: Node, saw: str) -> Iterator[tuple[int, str]]:
    body = field(function, "body")
    if body is not None and body.type == "statement_block":
        yield body.start_byte + 1, f"{saw};"
    elif body is not None:
        yield body.start_byte, f"({saw}, ("
        yield body.end_byte, "))"


def _arguments(function: Node) -> str | None:
    """The words for the arguments; None where there are none, as in an arrow function that takes them apart."""
    if function.type != "arrow_function":
        return "arguments"
    alone = field(function, "parameter")
    if alone is not None:
        return f"[{source(alone)}]"
    given = field(function, "parameters")
    names = [_parameter(one) for one in given.named_children if one.type != "comment"] if given is not None else []
    return f"[{', '.join(name for name in names if name)}]" if all(names) else None


def _parameter(node: Node) -> str:
    for part in ("pattern", "left"):
        inner = field(node, part)
        if inner is not None:
            return _parameter(inner)
    return source(node) if node.type == "identifier" else ""


def _way(function: Node) -> _Way | None:
    if function.type == "method_definition":
        return _way_to_method(function)
    named, parent = field(function, "name"), function.parent
    if function.type.endswith("declaration") and named is not None:
        return _Way(source(named))
    if parent is None:
        return None
    if parent.type == "pair":
        key, held = field(parent, "key"), _held(parent.parent)
        return _Way(held, source(key)) if key is not None and key.type == "property_identifier" and held else None
    holder = _held(function)
    owner, _, method = holder.rpartition(".prototype.")
    if owner and method.isidentifier():
        return _Way(owner, method, is_of_instance=function.type != "arrow_function")
    return _Way(holder) if holder else None


def _held(node: Node | None) -> str:
    """The expression that leads to what a value is assigned to."""
    parent = node.parent if node is not None else None
    if parent is None:
        return ""
    if parent.type == "variable_declarator":
        target = field(parent, "name")
    elif parent.type == "assignment_expression" and field(parent, "right") == node:
        target = field(parent, "left")
    else:
        return ""
    simple = (
        target is not None
        and target.type in _NAMED
        and all(one.type not in ("this", "super") for one in within(target))
    )
    return source(target) if target is not None and simple and "(" not in source(target) else ""


def _way_to_method(method: Node) -> _Way | None:
    named, body = field(method, "name"), method.parent
    if named is None or named.type != "property_identifier" or source(named) == "constructor" or body is None:
        return None
    words = {child.type for child in method.children}
    if not words.isdisjoint({"get", "set"}):
        return None
    if body.type == "object":
        held = _held(body)
        return _Way(held, source(named)) if held else None
    owner = body.parent
    name = field(owner, "name") if owner is not None else None
    held = source(name) if name is not None else _held(owner)
    return _Way(held, source(named), is_of_instance="static" not in words) if held else None
