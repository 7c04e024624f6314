"""One edit that the search may try, and what is known of the place it is made at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node


FUNCTIONS = frozenset(
    {
        "function_declaration",
        "function_expression",
        "arrow_function",
        "method_definition",
        "generator_function_declaration",
        "generator_function",
    }
)
EXPRESSIONS = frozenset(
    {
        "binary_expression",
        "call_expression",
        "member_expression",
        "subscript_expression",
        "identifier",
        "number",
        "string",
        "unary_expression",
        "parenthesized_expression",
        "ternary_expression",
        "array",
        "object",
        "true",
        "false",
        "null",
        "new_expression",
        "template_string",
    }
)


class ScriptProposal(NamedTuple):
    """The bytes from `start` to `end` of a file become `text`."""

    path: str
    start: int
    end: int
    text: str
    template: str
    function: str
    line: int
    cost: float


class ScriptEdit(NamedTuple):
    """What a template wants, before its place is known by name."""

    start: int
    end: int
    text: str
    template: str
    cost: float


def replaced(node: Node, text: str, template: str, cost: float) -> ScriptEdit:
    return ScriptEdit(node.start_byte, node.end_byte, text, template, cost)


def source(node: Node) -> str:
    return (node.text or b"").decode("utf-8", "replace")


def field(node: Node, name: str) -> Node | None:
    return node.child_by_field_name(name)


def within(node: Node) -> Iterator[Node]:
    """The node and everything below it, in the order of the file."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        waiting.extend(reversed(one.children))


def function_around(node: Node) -> Node | None:
    """The innermost function that the node lies in."""
    one = node.parent
    while one is not None and one.type not in FUNCTIONS:
        one = one.parent
    return one


def outermost_function(node: Node) -> Node | None:
    found, one = None, node.parent
    while one is not None:
        if one.type in FUNCTIONS:
            found = one
        one = one.parent
    return found


def name_of(function: Node | None) -> str:
    """What a function is called: by itself, or by what it is assigned to."""
    if function is None:
        return ""
    named = field(function, "name")
    if named is not None:
        return source(named)
    parent = function.parent
    if parent is not None:
        for part in ("name", "left", "key"):
            holder = field(parent, part)
            if holder is not None:
                return source(holder)
    return ""


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


_READING = frozenset({"binary_expression", "assignment_expression", "augmented_assignment_expression"})
_DECLARING = frozenset(
    {
        "formal_parameters",
        "required_parameter",
        "optional_parameter",
        "import_specifier",
        "import_clause",
        "namespace_import",
        "export_specifier",
        "array_pattern",
        "object_pattern",
        "rest_pattern",
        "labeled_statement",
        "catch_clause",
    }
)
