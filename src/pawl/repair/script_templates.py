"""Edits that may mend a script: of operators, constants, names, conditions, arguments and statements."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from pawl.core.lazy_dataclass import dataclass
from pawl.repair.script_nodes import (
    EXPRESSIONS,
    FUNCTIONS,
    ScriptProposal,
    each,
    field,
    fields,
    functions_around,
    is_used,
    kinds,
    part_of,
    replaced,
    source,
    tables,
    within,
)

if TYPE_CHECKING:
    from tree_sitter import Node


MOST_NAMES = 14
MOST_INGREDIENTS = 24
MOST_LISTS = 4
MOST_PAIRED = 8
_RICH = kinds("rich")
_SIMPLE = kinds("simple")
_COUNTED = kinds("counted")
_ORDERED = frozenset({"-", "/", "%", "<", ">", "<=", ">=", "**", "+"})
_COMPARED = frozenset({"<", ">", "<=", ">=", "===", "!==", "==", "!="})
_SCALED = frozenset({"*", "/", "%", "**"})
_BINDS = {"+": 1, "-": 1, "*": 2, "/": 2, "%": 2}
_FIRST_VALUES = ("0", "[]", "''", "{}")
_CODES = (47, 48, 57, 58, 64, 65, 90, 91, 96, 97, 122, 123)
"""The letters and digits begin and end here."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names, conditions, expressions and constants that one outermost function offers."""

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
        nodes = list(within(function))
        rich = [node for node in nodes if node.type in _RICH and len(node.text or b"") <= 60]
        named = [node for node in nodes if node.type in kinds("named") and not _is_called(node)]
        own = [name for name in map(source, named) if name not in tables()["kinds"]["globals"]]
        return cls(
            names=_first((*own, *above), MOST_NAMES),
            conditions=_first((source(node) for node in rich if _compares(node)), MOST_INGREDIENTS),
            expressions=_first(map(source, rich), MOST_INGREDIENTS),
            literals=_first((source(node) for node in nodes if node.type in ("number", "string")), MOST_INGREDIENTS),
            properties=_first((source(node) for node in nodes if node.type == "property_identifier"), len(nodes)),
            lists=_first(filter(None, map(_listed, nodes)), MOST_LISTS),
            indexes=_first(filter(None, map(_index, nodes)), MOST_LISTS),
        )


def _first(texts: Iterable[str], most: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))[:most]


def _listed(node: Node) -> str:
    """The name that is counted or taken apart here, if any."""
    holder = field(node, "object")
    if holder is None or holder.type != "identifier":
        return ""
    counted = source(node).endswith((".length", ".at", ".slice", ".push"))
    return source(holder) if counted or node.type == "subscript_expression" else ""


def _index(node: Node) -> str:
    """The name that is counted with here, if any."""
    part = {"update_expression": "argument", "subscript_expression": "index"}.get(node.type)
    index = field(node, part) if part else None
    return source(index) if index is not None and index.type == "identifier" else ""


def _is_called(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type == "call_expression" and field(parent, "function") == node


def _compares(node: Node) -> bool:
    operator = field(node, "operator")
    return operator is not None and operator.type in _COMPARED


Template = Callable[["Node", Scope], Iterator[ScriptProposal]]
TEMPLATES: list[tuple[frozenset[str], Template]] = []
"""With the kinds of nodes that each is for; none for any."""


def template(*types: str) -> Callable[[Template], Template]:
    def keep(function: Template) -> Template:
        TEMPLATES.append((frozenset(types), function))
        return function

    return keep


def edits_of(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """The edits that all templates propose for a node; one that was not parsed in full may lack its parts."""
    for types, make in TEMPLATES:
        if not types or (node.type in types and not node.has_error):
            yield from make(node, scope)


@template("binary_expression")
def operators(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Another operator, the operands exchanged, or one operand alone."""
    left, operator, right = fields(node, "left", "operator", "right")
    for other, cost in tables()["binary"].get(operator.type, {}).items():
        yield replaced(operator, other, "operator", cost)
    if operator.type in _ORDERED:
        between = part_of(node, left.end_byte, right.start_byte)
        yield replaced(node, f"{source(right)}{between}{source(left)}", "operands exchanged", 2.0)
    yield replaced(node, source(left), "operand removed", 2.0)
    yield replaced(node, source(right), "operand removed", 2.1)


@template(*kinds("assigning"))
def assignments(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Another operator of an assignment, a step in the other direction, an end of a loop for another."""
    if node.type in ("augmented_assignment_expression", "assignment_expression"):
        for child in node.children:
            for other, cost in tables()["assignment"].get(child.type, {}).items():
                yield replaced(child, other, "assignment", cost)
    elif node.type == "update_expression":
        operator, argument = fields(node, "operator", "argument")
        yield replaced(operator, "--" if operator.type == "++" else "++", "step", 1.5)
        yield replaced(node, f"{source(argument)} {operator.type[0]}= 2", "step", 2.4)
    elif node.type == "break_statement":
        yield replaced(node, "continue;", "break", 2.0)
    elif node.type == "continue_statement":
        yield replaced(node, "break;", "continue", 2.0)


@template("true", "false", "number", "string")
def constants(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
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
        yield from each(node, (f"{quote}{inner}{quote}" for inner in ("", " ", ",", ", ")), "text", 2.4)


@template()
def bounds(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
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
    """The cost of one more or less, by what holds the value; nothing where nothing is counted."""
    if parent.type == "subscript_expression" and field(parent, "index") == node:
        return 1.6
    if parent.type in ("arguments", "return_statement"):
        return 2.0
    assigned = ("variable_declarator", "assignment_expression", "augmented_assignment_expression")
    if parent.type in assigned and node in (field(parent, "value"), field(parent, "right")):
        return 2.2
    return 0.0


@template("property_identifier", "shorthand_property_identifier")
def members(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Another method or property of the same shape."""
    for other, cost in tables()["members"].get(source(node), {}).items():
        yield replaced(node, other, "member", cost)


@template("unary_expression", "await_expression")
def unary(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A sign that is too many."""
    for argument in fields(node, "argument"):
        yield replaced(node, source(argument), "unary removed", 1.5)


@template("call_expression")
def calls(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A call that is too many."""
    function, given = fields(node, "function", "arguments")
    inside = given.named_children
    if len(inside) == 1 and inside[0].type in EXPRESSIONS:
        yield replaced(node, source(inside[0]), "call removed", 2.4)
    holder = field(function, "object")
    if function.type == "member_expression" and holder is not None and source(holder) not in ("Math", "Object"):
        yield replaced(node, source(holder), "call removed", 2.4)


@template()
def wraps(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
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
    for form, cost in tables()["wraps"].items():
        whole = form.format(f"({text})" if tight and not form.endswith("({})") and form != "[{}]" else text)
        yield replaced(node, whole, "wrapped", cost)


@template()
def names(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Another name of the same function, or a property that is called nearly the same."""
    if node.type == "property_identifier":
        own = source(node)
        close = difflib.get_close_matches(own, [one for one in scope.properties if one != own], n=3, cutoff=0.6)
        yield from each(node, close, "property", 2.0)
    if is_used(node) and not _is_called(node):
        yield from each(node, scope.names, "name", 2.0)


@template("number", "string")
def literals(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Another constant of the same function, or a name in the place of one."""
    if node.parent is not None and node.parent.type != "import_statement":
        yield from each(node, scope.literals, "constant", 2.3)
        yield from each(node, scope.names, "constant", 2.9)


@template()
def ingredients(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Another expression of the same function in the place of a value."""
    if node.type not in _RICH and not is_used(node):
        return
    if _is_called(node) or _is_target(node):
        return
    yield from each(node, scope.expressions, "expression", 3.2 if node.type in _RICH else 3.4)
    if node.type in _RICH:
        yield from each(node, (*scope.names, "0", "1"), "expression", 3.0)


def _is_target(node: Node) -> bool:
    """Whether something is assigned here, or called here as a method."""
    parent = node.parent
    if parent is None:
        return True
    if "assignment" in parent.type and field(parent, "left") == node:
        return True
    return parent.type in ("call_expression", "new_expression") and node != field(parent, "arguments")


@template(*kinds("tested"))
def conditions(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A condition negated, always or never met, or with another one beside it."""
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


@template("arguments")
def arguments(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Arguments exchanged, dropped, or one more."""
    given = node.named_children
    texts = [source(one) for one in given]
    for first, second in itertools.pairwise(range(len(texts))):
        swapped = [*texts]
        swapped[first], swapped[second] = texts[second], texts[first]
        yield replaced(node, f"({', '.join(swapped)})", "arguments exchanged", 1.8)
    if len(texts) > 1:
        for dropped in range(len(texts)):
            kept = [text for number, text in enumerate(texts) if number != dropped]
            yield replaced(node, f"({', '.join(kept)})", "argument removed", 2.6)
    if len(texts) < 3 and not any(one.type in FUNCTIONS for one in given):
        longer = (f"({', '.join([*texts, other])})" for other in (*scope.names[:6], "0", "1"))
        yield from each(node, longer, "argument added", 3.2)


@template("array", "call_expression", "statement_block")
def exchanges(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
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
            start = position = truths[0].start_byte
            text = ""
            for one in truths:
                text += part_of(node, position, one.start_byte) + ("false" if one.type == "true" else "true")
                position = one.end_byte
            yield ScriptProposal(start, position, text, "truths exchanged", 2.4)


@template()
def statements(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A statement returned, removed, doubled, exchanged with the next; a result that is another."""
    if node.type == "return_statement":
        value = node.named_children[0] if node.named_children else None
        if value is not None and value.type in EXPRESSIONS:
            others = (*scope.names, "true", "false", "[]", "''", "0", "-1", "null", "undefined")
            yield from each(value, others, "result", 2.9)
    if node.type == "statement_block" and node.parent is not None and node.parent.type in FUNCTIONS:
        for name in scope.names[:8]:
            yield ScriptProposal(node.end_byte - 1, node.end_byte - 1, f"  return {name};\n", "return added", 2.6)
    if node.type not in _SIMPLE or node.parent is None or node.parent.type not in ("statement_block", "switch_case"):
        return
    text = source(node)
    yield replaced(node, "", "statement removed", 2.5)
    if node.type == "expression_statement":
        yield replaced(node, f"return {text}", "return added", 2.2)
        yield replaced(node, f"{text} {text}", "statement doubled", 3.4)
    following = node.next_named_sibling
    if following is not None and following.type != "comment":
        whole = f"{source(following)}{part_of(node.parent, node.end_byte, following.start_byte)}{text}"
        yield ScriptProposal(node.start_byte, following.end_byte, whole, "statements exchanged", 2.8)


@template("return_statement")
def returned_early(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A result one level further out or in: a return that stands at the end of a loop moves behind it."""
    if node.parent is None or node.parent.type != "statement_block":
        return
    loop = node.parent.parent
    if loop is not None and node.next_named_sibling is None and loop.type in ("for_statement", "for_in_statement"):
        moved = part_of(loop, loop.start_byte, node.start_byte) + part_of(loop, node.end_byte, loop.end_byte)
        yield replaced(loop, f"{moved}\n{source(node)}", "return moved", 2.4)
    guarded_ones = (f"if ({other}) {source(node)}" for other in scope.conditions[:8])
    yield from each(node, guarded_ones, "condition added", 3.3)


@template("call_expression")
def comparators(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """Numbers sorted as numbers, a first value for a sum, the largest of more than one."""
    function, given = fields(node, "function", "arguments")
    method = source(member) if (member := field(function, "property")) is not None else ""
    inside = [source(one) for one in given.named_children]
    if method in ("sort", "toSorted") and not inside:
        yield replaced(given, "((a, b) => a - b)", "comparator", 1.6)
        yield replaced(given, "((a, b) => b - a)", "comparator", 2.2)
    if method == "reduce" and len(inside) == 1:
        yield from each(given, (f"({inside[0]}, {value})" for value in _FIRST_VALUES), "first value", 2.2)
    if method in ("max", "min") and len(inside) == 1:
        for pair in itertools.combinations(scope.names[:MOST_PAIRED], 2):
            yield replaced(given, f"({', '.join(pair)})", "arguments", 3.2)
        yield replaced(given, f"(...{inside[0]})", "arguments", 2.0)


@template("binary_expression")
def regrouped(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """The same operands with brackets around others: `a - b / c` as `(a - b) / c` or as `a / c - b`, and back."""
    left, operator, right = fields(node, "left", "operator", "right")
    if operator.type not in _BINDS:
        return
    sign = operator.type
    inner = field(right, "operator") if right.type == "binary_expression" else None
    if inner is not None and _BINDS.get(inner.type, 0) > _BINDS[sign]:
        first, second = map(source, fields(right, "left", "right"))
        yield replaced(node, f"({source(left)} {sign} {first}) {inner.type} {second}", "regrouped", 2.0)
        yield replaced(node, f"{source(left)} {inner.type} {second} {sign} {first}", "regrouped", 2.6)
    inner = field(left, "operator") if left.type == "binary_expression" else None
    if inner is not None and inner.type in _BINDS:
        first, second = map(source, fields(left, "left", "right"))
        yield replaced(node, f"{first} {inner.type} ({second} {sign} {source(right)})", "regrouped", 2.2)


@template()
def received(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """The owner of a method, first copied, without doubles, sorted; a member that may be of nothing."""
    parent = node.parent
    if parent is None or parent.type != "member_expression" or field(parent, "object") != node:
        return
    if node.type == "identifier" and source(node) in ("Math", "Object", "Array", "JSON", "console", "Number"):
        return
    for form, cost in tables()["receivers"].items():
        yield replaced(node, form.format(source(node)), "wrapped", cost)
    member = field(parent, "property")
    if member is not None and "?." not in source(parent):
        yield replaced(parent, f"{source(node)}?.{source(member)}", "optional member", 2.9)


@template("call_expression")
def twice(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A call of a function on its own result."""
    function, given = fields(node, "function", "arguments")
    if function.type == "identifier" and len(given.named_children) == 1:
        yield replaced(node, f"{source(function)}({source(node)})", "called twice", 2.8)


@template("call_expression")
def awaited(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """An `await` before a call, where one may stand."""
    if node.parent is None or node.parent.type == "await_expression":
        return
    around = functions_around(node)[:1]
    if any(child.type == "async" for function in around for child in function.children):
        text = f"await {source(node)}"
        inside = node.parent.type in ("member_expression", "binary_expression")
        yield replaced(node, f"({text})" if inside else text, "await", 1.8)


@template("variable_declarator")
def first_values(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A value for a variable that is declared without one; another empty one for one that has an empty one."""
    name, value = field(node, "name"), field(node, "value")
    loops = node.parent is not None and node.parent.parent is not None and "for_in" in node.parent.parent.type
    if value is None and name is not None and name.type == "identifier" and not loops:
        for other in _FIRST_VALUES:
            yield ScriptProposal(node.end_byte, node.end_byte, f" = {other}", "first value", 2.4)
    elif value is not None and source(value) in ("0", "1", "[]", "''", '""', "null", "-1"):
        yield from each(value, ("0", "1", "[]", "''", "Infinity", "-Infinity"), "first value", 2.6)


@template("number")
def codes(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """The code of another letter where a number may be one."""
    text = source(node)
    if text.isdigit() and 40 <= int(text) <= 130:
        yield from each(node, map(str, _CODES), "constant", 2.4)


@template()
def items(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """An item of a list in the place of a name, or a part of what the name stands for."""
    if not is_used(node) or node.parent is None or _is_target(node) or source(node) == "undefined":
        return
    for held, index in itertools.product(scope.lists, scope.indexes):
        if held != index:
            yield replaced(node, f"{held}[{index}]", "item", 3.1)
    if node.parent.type in ("arguments", "return_statement", "for_in_statement"):
        for name in scope.names[:MOST_PAIRED]:
            if name != source(node):
                yield replaced(node, f"{source(node)}.slice({name})", "part", 3.3)
                yield replaced(node, f"{source(node)}.slice(0, {name})", "part", 3.4)


@template("expression_statement")
def guarded(node: Node, scope: Scope) -> Iterator[ScriptProposal]:
    """A statement that is only meant where two values are equal, or are not."""
    if node.parent is None:
        return
    if node.parent.type not in ("statement_block", "for_statement", "for_in_statement", "while_statement"):
        return
    for one, other in itertools.combinations(scope.names[:MOST_PAIRED], 2):
        for sign, cost in (("===", 3.3), ("!==", 3.4), ("<", 3.6), (">", 3.6)):
            yield replaced(node, f"if ({one} {sign} {other}) {source(node)}", "condition added", cost)
