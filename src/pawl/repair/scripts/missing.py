"""What is easily forgotten: a comparator, a first value, a guard, an `await`, brackets, a second argument."""

from __future__ import annotations

import functools
import itertools
import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import TYPE_CHECKING, Any

from pawl.repair.scripts.places import Scope
from pawl.repair.scripts.proposal import EXPRESSIONS, ScriptEdit, field, function_around, is_used, replaced, source

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


def operators(node: Node) -> Iterator[ScriptEdit]:
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


def assignments(node: Node) -> Iterator[ScriptEdit]:
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


def constants(node: Node) -> Iterator[ScriptEdit]:
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


def bounds(node: Node) -> Iterator[ScriptEdit]:
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


def members(node: Node) -> Iterator[ScriptEdit]:
    """Another method or property of the same shape."""
    if node.type in ("property_identifier", "shorthand_property_identifier"):
        for other, cost in swaps()["members"].get(source(node), {}).items():
            yield replaced(node, other, "member", cost)


def unary(node: Node) -> Iterator[ScriptEdit]:
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


def wraps(node: Node) -> Iterator[ScriptEdit]:
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


MOST_PAIRED = 8
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_FIRST_VALUES = ("0", "[]", "''", "{}")
_CODES = (47, 48, 57, 58, 64, 65, 90, 91, 96, 97, 122, 123)
"""The letters and digits begin and end here."""


def comparators(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
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


def regrouped(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
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


def received(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
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


def twice(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """A call of a function on its own result."""
    if node.type != "call_expression":
        return
    function, given = field(node, "function"), field(node, "arguments")
    if function is None or given is None or function.type != "identifier" or len(given.named_children) != 1:
        return
    yield replaced(node, f"{source(function)}({source(node)})", "called twice", 2.8)


def awaited(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """An `await` before a call, where one may stand."""
    if node.type != "call_expression" or node.parent is None or node.parent.type == "await_expression":
        return
    around = function_around(node)
    if around is not None and any(child.type == "async" for child in around.children):
        text = f"await {source(node)}"
        inside = node.parent.type in ("member_expression", "binary_expression")
        yield replaced(node, f"({text})" if inside else text, "await", 1.8)


def first_values(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """A value for a variable that is declared without one; another empty one for one that has an empty one."""
    if node.type != "variable_declarator":
        return
    name, value = field(node, "name"), field(node, "value")
    loops = node.parent is not None and node.parent.parent is not None and "for_in" in node.parent.parent.type
    if value is None and name is not None and name.type == "identifier" and not loops:
        for other in _FIRST_VALUES:
            yield ScriptEdit(node.end_byte, node.end_byte, f" = {other}", "first value", 2.4)
    elif value is not None and source(value) in ("0", "1", "[]", "''", '""', "null", "-1"):
        for other in ("0", "1", "[]", "''", "Infinity", "-Infinity"):
            if other != source(value):
                yield replaced(value, other, "first value", 2.6)


def codes(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """The code of another letter where a number may be one."""
    text = source(node)
    if node.type == "number" and text.isdigit() and 40 <= int(text) <= 130:
        for code in _CODES:
            if code != int(text):
                yield replaced(node, str(code), "constant", 2.4)


def items(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
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


def guarded(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """A statement that is only meant where two values are equal, or are not."""
    if node.type != "expression_statement" or node.parent is None:
        return
    if node.parent.type not in ("statement_block", "for_statement", "for_in_statement", "while_statement"):
        return
    for one, other in itertools.combinations(scope.names[:MOST_PAIRED], 2):
        for sign, cost in (("===", 3.3), ("!==", 3.4), ("<", 3.6), (">", 3.6)):
            yield replaced(node, f"if ({one} {sign} {other}) {source(node)}", "condition added", cost)
