"""Exchanges that need the surroundings: other names, other expressions, conditions, arguments, whole statements."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pawl.repair.scripts.proposal import EXPRESSIONS, FUNCTIONS, ScriptEdit, field, is_used, replaced, source, within

if TYPE_CHECKING:
    from tree_sitter import Node


MOST_NAMES = 14
MOST_INGREDIENTS = 24
MOST_LISTS = 4
_SIMPLE = frozenset({"expression_statement", "return_statement", "if_statement", "for_statement", "for_in_statement"})
_TESTED = frozenset({"if_statement", "while_statement", "ternary_expression", "do_statement"})
_RICH = frozenset({"binary_expression", "call_expression", "member_expression", "subscript_expression"})


@dataclass(frozen=True, slots=True)
class Scope:
    """What one outermost function offers: its names, its conditions, its expressions, its constants."""

    names: tuple[str, ...]
    conditions: tuple[str, ...]
    expressions: tuple[str, ...]
    literals: tuple[str, ...]
    properties: tuple[str, ...]
    lists: tuple[str, ...]
    """Names that are counted or taken apart."""
    indexes: tuple[str, ...]
    """Names that a loop counts with."""

    @classmethod
    def of(cls, function: Node, above: tuple[str, ...]) -> Scope:
        names: dict[str, None] = {}
        conditions: dict[str, None] = {}
        expressions: dict[str, None] = {}
        literals: dict[str, None] = {}
        properties: dict[str, None] = {}
        for node in within(function):
            if node.type in ("identifier", "shorthand_property_identifier_pattern") and not _is_called(node):
                names[source(node)] = None
            elif node.type in _RICH and len(node.text or b"") <= 60:
                expressions[source(node)] = None
                if node.type == "binary_expression" and _compares(node):
                    conditions[source(node)] = None
            elif node.type in ("number", "string"):
                literals[source(node)] = None
            elif node.type == "property_identifier":
                properties[source(node)] = None
        own = [name for name in names if name not in ("undefined", "Math", "console", "Object", "Array", "JSON")]
        found = tuple(dict.fromkeys((*own, *above)))[:MOST_NAMES]
        return cls(
            names=found,
            conditions=tuple(conditions)[:MOST_INGREDIENTS],
            expressions=tuple(expressions)[:MOST_INGREDIENTS],
            literals=tuple(literals)[:MOST_INGREDIENTS],
            properties=tuple(properties),
            lists=tuple(dict.fromkeys(_lists(function)))[:MOST_LISTS],
            indexes=tuple(dict.fromkeys(_indexes(function)))[:MOST_LISTS],
        )


def _lists(function: Node) -> Iterator[str]:
    for node in within(function):
        holder = field(node, "object")
        if holder is None or holder.type != "identifier":
            continue
        if node.type == "subscript_expression" or source(node).endswith((".length", ".at", ".slice", ".push")):
            yield source(holder)


def _indexes(function: Node) -> Iterator[str]:
    for node in within(function):
        argument = field(node, "argument") if node.type == "update_expression" else None
        index = field(node, "index") if node.type == "subscript_expression" else argument
        if index is not None and index.type == "identifier":
            yield source(index)


def _is_called(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type == "call_expression" and field(parent, "function") == node


def _compares(node: Node) -> bool:
    operator = field(node, "operator")
    return operator is not None and operator.type in ("<", ">", "<=", ">=", "===", "!==", "==", "!=")


def names(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """Another name of the same function, or a property that is called nearly the same."""
    if node.type == "property_identifier":
        own = source(node)
        for other in difflib.get_close_matches(own, [one for one in scope.properties if one != own], n=3, cutoff=0.6):
            yield replaced(node, other, "property", 2.0)
    if not is_used(node) or _is_called(node):
        return
    for other in scope.names:
        if other != source(node):
            yield replaced(node, other, "name", 2.0)


def literals(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """Another constant of the same function, or a name in the place of one."""
    own = source(node)
    if node.type in ("number", "string") and node.parent is not None and node.parent.type != "import_statement":
        for other in scope.literals:
            if other != own:
                yield replaced(node, other, "constant", 2.3)
        for other in scope.names:
            yield replaced(node, other, "constant", 2.9)


def ingredients(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """Another expression of the same function in the place of a value."""
    own = source(node)
    if node.type not in _RICH and not is_used(node):
        return
    if _is_called(node) or _is_target(node):
        return
    for other in scope.expressions:
        if other != own:
            yield replaced(node, other, "expression", 3.2 if node.type in _RICH else 3.4)
    if node.type in _RICH:
        for other in (*scope.names, "0", "1"):
            yield replaced(node, other, "expression", 3.0)


def _is_target(node: Node) -> bool:
    """Whether something is assigned here, or called here as a method."""
    parent = node.parent
    if parent is None:
        return True
    if "assignment" in parent.type and field(parent, "left") == node:
        return True
    return parent.type in ("call_expression", "new_expression") and node != field(parent, "arguments")


def conditions(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """A condition negated, always or never met, or with another one beside it."""
    if node.type not in _TESTED:
        return
    tested = field(node, "condition")
    if tested is None:
        return
    text = source(tested)
    inner = text[1:-1] if tested.type == "parenthesized_expression" else text
    form = "({})" if tested.type == "parenthesized_expression" else "{}"
    yield replaced(tested, form.format(f"!({inner})"), "condition negated", 1.5)
    if node.type != "while_statement":
        yield replaced(tested, form.format("true"), "condition removed", 2.8)
        yield replaced(tested, form.format("false"), "condition removed", 2.8)
    for other in scope.conditions:
        if other != inner:
            yield replaced(tested, form.format(f"({inner}) && {other}"), "condition added", 3.0)
            yield replaced(tested, form.format(f"({inner}) || {other}"), "condition added", 3.0)
            yield replaced(tested, form.format(other), "condition replaced", 3.2)


def exchanges(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """Elements of a list exchanged, or what a method belongs to with what it is given; every truth turned around."""
    if node.type == "array" and 2 <= len(node.named_children) <= 3:
        texts = [source(one) for one in node.named_children]
        yield replaced(node, f"[{', '.join([texts[1], texts[0], *texts[2:]])}]", "elements exchanged", 2.4)
    called = field(node, "function") if node.type == "call_expression" else None
    holder, method = (field(called, part) for part in ("object", "property")) if called is not None else (None, None)
    given = field(node, "arguments")
    if holder is not None and method is not None and given is not None and len(given.named_children) == 1:
        inside = source(given.named_children[0])
        yield replaced(node, f"{inside}.{source(method)}({source(holder)})", "receiver exchanged", 2.2)
    if node.type == "statement_block" and node.parent is not None and node.parent.type in FUNCTIONS:
        truths = [one for one in within(node) if one.type in ("true", "false")]
        if len(truths) > 1:
            text, start = node.text or b"", truths[0].start_byte
            parts, position = [], start
            for one in truths:
                parts += [text[position - node.start_byte : one.start_byte - node.start_byte]]
                parts += [b"false" if one.type == "true" else b"true"]
                position = one.end_byte
            yield ScriptEdit(start, position, b"".join(parts).decode("utf-8", "replace"), "truths exchanged", 2.4)


def arguments(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """Arguments exchanged, dropped, or one more."""
    if node.type != "arguments":
        return
    given = node.named_children
    texts = [source(one) for one in given]
    for first, second in zip(range(len(texts)), range(1, len(texts)), strict=False):
        swapped = [*texts]
        swapped[first], swapped[second] = texts[second], texts[first]
        yield replaced(node, f"({', '.join(swapped)})", "arguments exchanged", 1.8)
    if len(texts) > 1:
        for dropped in range(len(texts)):
            kept = [text for number, text in enumerate(texts) if number != dropped]
            yield replaced(node, f"({', '.join(kept)})", "argument removed", 2.6)
    if len(texts) < 3 and not any(one.type in FUNCTIONS for one in given):
        for other in (*scope.names[:6], "0", "1"):
            yield replaced(node, f"({', '.join([*texts, other])})", "argument added", 3.2)


def statements(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """A statement returned, removed, doubled, exchanged with the next; a result that is another."""
    if node.type == "return_statement":
        value = node.named_children[0] if node.named_children else None
        if value is not None and value.type in EXPRESSIONS:
            for other in (*scope.names, "true", "false", "[]", "''", "0", "-1", "null", "undefined"):
                if other != source(value):
                    yield replaced(value, other, "result", 2.9)
    if node.type == "statement_block" and node.parent is not None and node.parent.type in FUNCTIONS:
        for name in scope.names[:8]:
            yield ScriptEdit(node.end_byte - 1, node.end_byte - 1, f"  return {name};\n", "return added", 2.6)
    if node.type not in _SIMPLE or node.parent is None or node.parent.type not in ("statement_block", "switch_case"):
        return
    text = source(node)
    yield replaced(node, "", "statement removed", 2.5)
    if node.type == "expression_statement":
        yield replaced(node, f"return {text}", "return added", 2.2)
        yield replaced(node, f"{text} {text}", "statement doubled", 3.4)
    following = node.next_named_sibling
    if following is not None and following.type != "comment":
        between = (node.parent.text or b"")[
            node.end_byte - node.parent.start_byte : following.start_byte - node.parent.start_byte
        ].decode("utf-8", "replace")
        whole = f"{source(following)}{between}{text}"
        yield ScriptEdit(node.start_byte, following.end_byte, whole, "statements exchanged", 2.8)


def returned_early(node: Node, scope: Scope) -> Iterator[ScriptEdit]:
    """A result one level further out or in: a return that stands at the end of a loop moves behind it."""
    if node.type != "return_statement" or node.parent is None or node.parent.type != "statement_block":
        return
    loop = node.parent.parent
    if loop is not None and node.next_named_sibling is None and loop.type in ("for_statement", "for_in_statement"):
        start = node.start_byte - loop.start_byte
        end = node.end_byte - loop.start_byte
        whole = loop.text or b""
        moved = (whole[:start] + whole[end:]).decode("utf-8", "replace")
        yield replaced(loop, f"{moved}\n{source(node)}", "return moved", 2.4)
    for other in scope.conditions[:8]:
        yield replaced(node, f"if ({other}) {source(node)}", "condition added", 3.3)
