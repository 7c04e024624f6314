"""What is easily forgotten: a comparator, a first value, a guard, an `await`, brackets, a second argument."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pawl.repair.scripts.operators import swaps
from pawl.repair.scripts.places import Scope
from pawl.repair.scripts.proposal import Edit, field, function_around, is_used, replaced, source

if TYPE_CHECKING:
    from tree_sitter import Node

MOST_PAIRED = 8
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_FIRST_VALUES = ("0", "[]", "''", "{}")
_CODES = (47, 48, 57, 58, 64, 65, 90, 91, 96, 97, 122, 123)
"""The letters and digits begin and end here."""


def comparators(node: Node, scope: Scope) -> Iterator[Edit]:
    """Numbers sorted as numbers, a first value for a sum, the largest of more than one."""
    if node.type != "call_expression":
        return
    function, given = field(node, "function"), field(node, "arguments")
    method = source(member) if function is not None and (member := field(function, "property")) is not None else ""
    if given is None or not method:
        return
    inside = [source(one) for one in given.named_children]
    if method in ("sort", "toSorted") and not inside:
        yield replaced(given, "((a, b) => a - b)", "comparator", 1.6)
        yield replaced(given, "((a, b) => b - a)", "comparator", 2.2)
    if method == "reduce" and len(inside) == 1:
        for value in _FIRST_VALUES:
            yield replaced(given, f"({inside[0]}, {value})", "first value", 2.2)
    if method in ("max", "min") and len(inside) == 1:
        for pair in itertools.combinations(scope.names[:MOST_PAIRED], 2):
            yield replaced(given, f"({', '.join(pair)})", "arguments", 3.2)
        yield replaced(given, f"(...{inside[0]})", "arguments", 2.0)


def regrouped(node: Node, scope: Scope) -> Iterator[Edit]:
    """The same operands with brackets around others: `a - b / c` as `(a - b) / c` or as `a / c - b`, and back."""
    if node.type != "binary_expression":
        return
    left, operator, right = (field(node, part) for part in ("left", "operator", "right"))
    if left is None or operator is None or right is None or operator.type not in _BINDS:
        return
    sign = operator.type
    inner = field(right, "operator") if right.type == "binary_expression" else None
    if inner is not None and _BINDS.get(inner.type, 0) > _BINDS[sign]:
        first, second = (source(part) for name in ("left", "right") if (part := field(right, name)) is not None)
        yield replaced(node, f"({source(left)} {sign} {first}) {inner.type} {second}", "regrouped", 2.0)
        yield replaced(node, f"{source(left)} {inner.type} {second} {sign} {first}", "regrouped", 2.6)
    inner = field(left, "operator") if left.type == "binary_expression" else None
    if inner is not None and inner.type in _BINDS:
        first, second = (source(part) for name in ("left", "right") if (part := field(left, name)) is not None)
        yield replaced(node, f"{first} {inner.type} ({second} {sign} {source(right)})", "regrouped", 2.2)


def received(node: Node, scope: Scope) -> Iterator[Edit]:
    """What a method belongs to, first copied, without doubles, sorted; a member that may be of nothing."""
    parent = node.parent
    if parent is None or parent.type != "member_expression" or field(parent, "object") != node:
        return
    if node.type == "identifier" and source(node) in ("Math", "Object", "Array", "JSON", "console", "Number"):
        return
    for form, cost in swaps()["receivers"].items():
        yield replaced(node, form.format(source(node)), "wrapped", cost)
    member = field(parent, "property")
    if member is not None and "?." not in source(parent):
        yield replaced(parent, f"{source(node)}?.{source(member)}", "optional member", 2.9)


def twice(node: Node, scope: Scope) -> Iterator[Edit]:
    """A call of a function on its own result."""
    if node.type != "call_expression":
        return
    function, given = field(node, "function"), field(node, "arguments")
    if function is None or given is None or function.type != "identifier" or len(given.named_children) != 1:
        return
    yield replaced(node, f"{source(function)}({source(node)})", "called twice", 2.8)


def awaited(node: Node, scope: Scope) -> Iterator[Edit]:
    """An `await` before a call, where one may stand."""
    if node.type != "call_expression" or node.parent is None or node.parent.type == "await_expression":
        return
    around = function_around(node)
    if around is not None and any(child.type == "async" for child in around.children):
        text = f"await {source(node)}"
        inside = node.parent.type in ("member_expression", "binary_expression")
        yield replaced(node, f"({text})" if inside else text, "await", 1.8)


def first_values(node: Node, scope: Scope) -> Iterator[Edit]:
    """A value for a variable that is declared without one; another empty one for one that has an empty one."""
    if node.type != "variable_declarator":
        return
    name, value = field(node, "name"), field(node, "value")
    loops = node.parent is not None and node.parent.parent is not None and "for_in" in node.parent.parent.type
    if value is None and name is not None and name.type == "identifier" and not loops:
        for other in _FIRST_VALUES:
            yield Edit(node.end_byte, node.end_byte, f" = {other}", "first value", 2.4)
    elif value is not None and source(value) in ("0", "1", "[]", "''", '""', "null", "-1"):
        for other in ("0", "1", "[]", "''", "Infinity", "-Infinity"):
            if other != source(value):
                yield replaced(value, other, "first value", 2.6)


def codes(node: Node, scope: Scope) -> Iterator[Edit]:
    """The code of another letter where a number may be one."""
    text = source(node)
    if node.type == "number" and text.isdigit() and 40 <= int(text) <= 130:
        for code in _CODES:
            if code != int(text):
                yield replaced(node, str(code), "constant", 2.4)


def items(node: Node, scope: Scope) -> Iterator[Edit]:
    """An item of a list in the place of a name, or a part of what the name stands for."""
    if not is_used(node) or node.parent is None or source(node) == "undefined":
        return
    if node.parent.type in ("call_expression", "new_expression") and field(node.parent, "function") == node:
        return
    if "assignment" in node.parent.type and field(node.parent, "left") == node:
        return
    for held, index in itertools.product(scope.lists, scope.indexes):
        if held != index:
            yield replaced(node, f"{held}[{index}]", "item", 3.1)
    if node.parent.type in ("arguments", "return_statement", "for_in_statement"):
        for name in scope.names[:MOST_PAIRED]:
            if name != source(node):
                yield replaced(node, f"{source(node)}.slice({name})", "part", 3.3)
                yield replaced(node, f"{source(node)}.slice(0, {name})", "part", 3.4)


def guarded(node: Node, scope: Scope) -> Iterator[Edit]:
    """A statement that is only meant where two values are equal, or are not."""
    if node.type != "expression_statement" or node.parent is None:
        return
    if node.parent.type not in ("statement_block", "for_statement", "for_in_statement", "while_statement"):
        return
    for one, other in itertools.combinations(scope.names[:MOST_PAIRED], 2):
        for sign, cost in (("===", 3.3), ("!==", 3.4), ("<", 3.6), (">", 3.6)):
            yield replaced(node, f"if ({one} {sign} {other}) {source(node)}", "condition added", cost)
