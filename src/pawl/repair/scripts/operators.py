"""Exchanges of one word for another: operators, constants, names of members, and what is one too many or too few."""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

from pawl.repair.scripts.proposal import EXPRESSIONS, Edit, field, replaced, source

if TYPE_CHECKING:
    from tree_sitter import Node

_ORDERED = frozenset({"-", "/", "%", "<", ">", "<=", ">=", "**", "+"})
_COMPARED = frozenset({"<", ">", "<=", ">=", "===", "!==", "==", "!="})
_SCALED = frozenset({"*", "/", "%", "**"})
_COUNTED = frozenset(
    {"identifier", "member_expression", "call_expression", "binary_expression", "subscript_expression"}
)


@functools.cache
def swaps() -> dict[str, dict[str, Any]]:
    return tomllib.loads((resources.files("pawl.repair.scripts") / "swaps.toml").read_text(encoding="utf-8"))


def operators(node: Node) -> Iterator[Edit]:
    """Another operator, the operands exchanged, or one operand alone."""
    if node.type != "binary_expression":
        return
    left, operator, right = (field(node, part) for part in ("left", "operator", "right"))
    if left is None or operator is None or right is None:
        return
    for other, cost in swaps()["binary"].get(operator.type, {}).items():
        yield replaced(operator, other, "operator", cost)
    if operator.type in _ORDERED:
        between = (node.text or b"")[left.end_byte - node.start_byte : right.start_byte - node.start_byte].decode()
        yield replaced(node, f"{source(right)}{between}{source(left)}", "operands exchanged", 2.0)
    yield replaced(node, source(left), "operand removed", 2.0)
    yield replaced(node, source(right), "operand removed", 2.1)


def assignments(node: Node) -> Iterator[Edit]:
    """Another operator of an assignment, a step in the other direction, an end of a loop for another."""
    if node.type in ("augmented_assignment_expression", "assignment_expression"):
        for child in node.children:
            for other, cost in swaps()["assignment"].get(child.type, {}).items():
                yield replaced(child, other, "assignment", cost)
    elif node.type == "update_expression":
        operator = field(node, "operator")
        if operator is not None:
            yield replaced(operator, "--" if operator.type == "++" else "++", "step", 1.5)
            argument = field(node, "argument")
            if argument is not None:
                yield replaced(node, f"{source(argument)} {operator.type[0]}= 2", "step", 2.4)
    elif node.type == "break_statement":
        yield replaced(node, "continue;", "break", 2.0)
    elif node.type == "continue_statement":
        yield replaced(node, "break;", "continue", 2.0)


def constants(node: Node) -> Iterator[Edit]:
    """A number that is one off or another common one, a truth that is the other."""
    text = source(node)
    if node.type in ("true", "false"):
        yield replaced(node, "false" if text == "true" else "true", "constant", 1.0)
    elif node.type == "number" and text.isdigit():
        value = int(text)
        near = [(value + 1, 1.1), (value - 1, 1.2), (0, 2.0), (1, 2.0), (2, 2.2), (10, 2.8), (-1, 2.6)]
        near += [(value + 2, 2.6), (value * 10, 2.8), (value // 2, 2.8), (value * 2, 2.8)]
        seen = {value}
        for other, cost in near:
            if other not in seen:
                seen.add(other)
                yield replaced(node, str(other) if other >= 0 else f"({other})", "constant", cost)
    elif node.type == "string" and len(text) >= 2:
        quote = text[0]
        for inner in ("", " ", ",", ", "):
            if text[1:-1] != inner:
                yield replaced(node, f"{quote}{inner}{quote}", "text", 2.4)


def bounds(node: Node) -> Iterator[Edit]:
    """One more or one less where something is counted: a side of a comparison, an index, an argument, a result."""
    if node.parent is None or node.type not in (*_COUNTED, "unary_expression"):
        return
    operator = field(node.parent, "operator") if node.parent.type == "binary_expression" else None
    form, cost = "{} {} 1", _counting(node, node.parent)
    if operator is not None and operator.type in _SCALED and node.type != "binary_expression":
        form, cost = "({} {} 1)", 2.0
    elif operator is not None and operator.type in _COMPARED:
        cost = 1.6
    if cost:
        for sign in "+-":
            yield replaced(node, form.format(source(node), sign), "one off", cost)


def _counting(node: Node, parent: Node) -> float:
    """What one more or less costs by what holds the value; nothing where nothing is counted."""
    if parent.type == "subscript_expression" and field(parent, "index") == node:
        return 1.6
    if parent.type in ("arguments", "return_statement"):
        return 2.0
    assigned = ("variable_declarator", "assignment_expression", "augmented_assignment_expression")
    if parent.type in assigned and node in (field(parent, "value"), field(parent, "right")):
        return 2.2
    return 0.0


def members(node: Node) -> Iterator[Edit]:
    """Another method or property of the same shape."""
    if node.type in ("property_identifier", "shorthand_property_identifier"):
        for other, cost in swaps()["members"].get(source(node), {}).items():
            yield replaced(node, other, "member", cost)


def unary(node: Node) -> Iterator[Edit]:
    """A sign or a call that is too many."""
    argument = field(node, "argument") if node.type in ("unary_expression", "await_expression") else None
    if argument is not None:
        yield replaced(node, source(argument), "unary removed", 1.5)
    if node.type != "call_expression":
        return
    function, given = field(node, "function"), field(node, "arguments")
    if function is None or given is None:
        return
    inside = given.named_children
    if len(inside) == 1 and inside[0].type in EXPRESSIONS:
        yield replaced(node, source(inside[0]), "call removed", 2.4)
    holder = field(function, "object")
    if function.type == "member_expression" and holder is not None and source(holder) not in ("Math", "Object"):
        yield replaced(node, source(holder), "call removed", 2.4)


def wraps(node: Node) -> Iterator[Edit]:
    """A call or a sign that is missing around a value."""
    parent = node.parent
    if parent is None or node.type not in (*_COUNTED, "parenthesized_expression"):
        return
    held = parent.type in ("arguments", "return_statement", "parenthesized_expression", "variable_declarator", "pair")
    held = held or parent.type in ("assignment_expression", "augmented_assignment_expression", "binary_expression")
    if not held or node in (field(parent, "left") if "assignment" in parent.type else None, field(parent, "name")):
        return
    text = source(node)
    tight = node.type == "binary_expression"
    for form, cost in swaps()["wraps"].items():
        whole = form.format(f"({text})" if tight and not form.endswith("({})") and form != "[{}]" else text)
        yield replaced(node, whole, "wrapped", cost)
