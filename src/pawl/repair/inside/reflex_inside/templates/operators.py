"""Slips in comparisons, arithmetic and logic."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from reflex_inside.edits import field_of
from reflex_inside.program import NUMBERS, SIZED, Facts
from reflex_inside.templates.site import Proposals, Site, atomic, enclosed

COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
NEAR_COMPARE = {
    "<": ("<=", ">", ">=", "==", "!="), "<=": ("<", ">=", ">", "=="), ">": (">=", "<", "<=", "==", "!="),
    ">=": (">", "<=", "<", "=="), "==": ("!=", "<=", ">=", "<", ">", "in", "is"),
    "!=": ("==", "<", ">", "not in", "is not"),
    "is": ("==", "is not"), "is not": ("!=", "is"), "in": ("not in", "=="), "not in": ("in", "!="),
}  # fmt: skip
BINARY: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>", ast.MatMult: "@",
}  # fmt: skip
NEAR_BINARY = {
    "+": ("-", "*", "|"), "-": ("+", "%", "*"), "*": ("+", "**", "/", "//"), "/": ("//", "*", "%"),
    "//": ("/", "%", "*", ">>"), "%": ("//", "/", "-"), "**": ("*", "+"), "&": ("|", "^", "-"),
    "|": ("&", "^", "+"), "^": ("&", "|", "-"), "<<": (">>",), ">>": ("<<",), "@": (),
}  # fmt: skip


def comparisons(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Compare)
    sides = [node.left, *node.comparators]
    for position, operator in enumerate(node.ops):
        old = COMPARE[type(operator)]
        pair = (sides[position], sides[position + 1])
        for rank, new in enumerate(NEAR_COMPARE[old]):
            yield from site.between(1.2 + 0.25 * rank, "comparison", pair, (old, new))
    if len(sides) == 2:
        left, right = map(ast.unparse, sides)
        old = COMPARE[type(node.ops[0])]
        yield from site.replace(3.0, "swapped comparison", f"{right} {old} {left}")
        yield from site.replace(4.0, "absolute comparison", f"abs({left}) {old} {right}")
    else:
        for drop in (0, -1):
            kept = ast.Compare(sides[1], node.ops[1:], sides[2:]) if drop == 0 else None
            kept = kept or ast.Compare(sides[0], node.ops[:-1], node.comparators[:-1])
            yield from site.replace(3.0, "shorter comparison", ast.unparse(kept))


def arithmetic(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.BinOp)
    old = BINARY[type(node.op)]
    pair = (node.left, node.right)
    for rank, new in enumerate(NEAR_BINARY[old]):
        yield from site.between(1.8 + 0.3 * rank, "arithmetic operator", pair, (old, new))
    numeric = site.facts.numeric(node)
    if site.facts.guess(node) <= NUMBERS:
        for new in BINARY.values():
            if new not in NEAR_BINARY[old] and new not in {old, "@", "<<", ">>"}:
                yield from site.between(3.6, "arithmetic operator", pair, (old, new))
    if old != "*" or not numeric:
        yield from site.replace(2.4, "swapped operands", f"{enclosed(node.right)} {old} {enclosed(node.left)}")
    yield from site.replace(2.4, "dropped operand", node.left)
    yield from site.replace(2.4, "dropped operand", node.right)
    if numeric:
        for step in ("+ 1", "- 1"):
            yield from site.replace(2.6, "off by one", f"{ast.unparse(node)} {step}")
    yield from _regrouped(site, node, old)


def _regrouped(site: Site, node: ast.BinOp, old: str) -> Proposals:
    if isinstance(node.left, ast.BinOp):
        inner = node.left
        operator = BINARY[type(inner.op)]
        text = f"{enclosed(inner.left)} {operator} ({enclosed(inner.right)} {old} {enclosed(node.right)})"
        yield from site.replace(3.0, "regrouped", text)
    if isinstance(node.right, ast.BinOp):
        inner = node.right
        operator = BINARY[type(inner.op)]
        text = f"({enclosed(node.left)} {old} {enclosed(inner.left)}) {operator} {enclosed(inner.right)}"
        yield from site.replace(3.0, "regrouped", text)


def logic(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.BoolOp)
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for left, right in zip(node.values, node.values[1:], strict=False):
        yield from site.between(1.5, "logical operator", (left, right), (old, new))
    texts = [
        f"({ast.unparse(value)})" if not isinstance(value, ast.Compare) else ast.unparse(value) for value in node.values
    ]
    if len(texts) > 2:
        yield from site.replace(2.4, "logical operators", f" {new} ".join(texts))
    for drop in range(len(texts)):
        yield from site.replace(2.0, "dropped condition", f" {old} ".join(texts[:drop] + texts[drop + 1 :]))
    if len(texts) == 2:
        yield from site.replace(3.0, "swapped conditions", f" {old} ".join(reversed(texts)))
    for negated in range(len(texts)):
        changed = [f"not {text}" if place == negated else text for place, text in enumerate(texts)]
        yield from site.replace(2.8, "negated condition", f" {old} ".join(changed))


def signs(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.UnaryOp)
    yield from site.replace(1.8, "dropped sign", node.operand)


def choices(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.IfExp)
    body, other, test = map(ast.unparse, (node.body, node.orelse, node.test))
    yield from site.replace(2.2, "swapped choice", f"{other} if {test} else {body}")
    yield from site.replace(2.8, "picked choice", node.body)
    yield from site.replace(2.8, "picked choice", node.orelse)


NUMBER_TESTS = (
    (0.2, "{} == 0"), (0.3, "{} > 0"), (0.3, "{} < 0"), (0.4, "{} == 1"), (0.4, "{} != 0"), (0.4, "{} <= 0"),
    (0.4, "{} >= 0"), (0.5, "{} > 1"), (0.5, "{} < 2"), (0.5, "{} % 2 == 0"), (0.5, "{} % 2 == 1"),
)  # fmt: skip
SIZE_TESTS = ((0.6, "len({}) == 0"), (0.6, "len({}) == 1"), (0.6, "len({}) > 1"), (0.6, "len({}) <= 1"))
TEXT_TESTS = (
    (0.7, "{}.isdigit()"), (0.7, "{}.isalpha()"), (0.7, "{}.isupper()"), (0.7, "{}.islower()"), (0.8, "{} == ' '"),
    (0.8, "{} != ' '"),
)  # fmt: skip


def is_condition(node: ast.AST, parent: ast.AST) -> bool:
    field = field_of(node)
    if isinstance(parent, (ast.If, ast.While, ast.IfExp, ast.Assert)):
        return field == "test"
    if isinstance(parent, ast.comprehension):
        return field == "ifs"
    if isinstance(parent, ast.BoolOp) or (isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not)):
        return True
    if isinstance(parent, (ast.Return, ast.Assign)):
        return isinstance(node, (ast.Compare, ast.BoolOp)) or (
            isinstance(node, ast.Constant) and isinstance(node.value, bool)
        )
    return isinstance(parent, ast.GeneratorExp) and isinstance(node, ast.Compare)


def tests_of(facts: Facts, scope: list[str]) -> list[tuple[float, str]]:
    """Conditions on the names in scope, each with its own cost."""
    found = {text: (cost, text) for cost, text in reversed(list(_tests(facts, scope)))}
    return list(found.values())


def _tests(facts: Facts, scope: list[str]) -> Iterator[tuple[float, str]]:
    for name in scope:
        types = facts.type_of(name)
        yield from ((0.0, name), (0.0, f"not {name}"), (0.2, f"{name} is None"), (0.3, f"{name} is not None"))
        if not types or types & NUMBERS:
            yield from ((cost, form.format(name)) for cost, form in NUMBER_TESTS)
        if not types or types & SIZED:
            yield from ((cost, form.format(name)) for cost, form in SIZE_TESTS)
        if "str" in types:
            yield from ((cost, form.format(name)) for cost, form in TEXT_TESTS)
    for first, second in itertools.permutations(scope[:9], 2):
        distance = facts.distance(first, second)
        if distance < 1:
            yield from ((0.5 + distance * 0.3, f"{first} {sign} {second}") for sign in ("==", "!=", "<", "<="))
        if facts.type_of(second) & SIZED:
            yield from ((0.6, f"{first} in {second}"), (0.6, f"{first} not in {second}"))
    yield from ((0.2, condition) for condition in facts.conditions)


def negations(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.expr)
    if not is_condition(node, site.parent):
        return
    text = ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from site.replace(1.6, "negated condition", node.operand)
    else:
        yield from site.replace(2.2, "negated condition", f"not {text}" if atomic(node) else f"not ({text})")
    for constant in ("True", "False"):
        yield from site.replace(3.6, "constant condition", constant)


def joined(site: Site) -> Proposals:
    """The condition replaced by another, or joined with one."""
    node = site.node
    assert isinstance(node, ast.expr)
    if not is_condition(node, site.parent):
        return
    text = ast.unparse(node)
    whole = f"({text})" if isinstance(node, (ast.BoolOp, ast.IfExp)) else text
    base = 3.9 if isinstance(site.parent, (ast.Return, ast.Assign)) else 3.5
    for cost, test in tests_of(site.facts, site.scope):
        yield from site.replace(base + cost, "other condition", test)
        if isinstance(node, ast.Constant) or isinstance(site.parent, ast.BoolOp):
            continue
        for word in ("or", "and"):
            yield from site.replace(base + cost - 0.1, "added condition", f"{test} {word} {whole}")
            yield from site.replace(base + cost, "added condition", f"{whole} {word} {test}")


COMMON_INTEGERS = (0, 1, 2, -1, 3, 10, 100, 26, 32, 97, 65, 48)
COMMON_STRINGS = ("", " ", ",", ", ", "_", "-", ".", ":", "\n", "0", "1")


def constants(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Constant)
    value = node.value
    if isinstance(value, bool):
        yield from site.replace(1.5, "flipped flag", str(not value))
        yield from site.replace(3.6, "constant", "None")
        for name in site.scope:
            yield from site.replace(3.3, "constant for a variable", name)
    elif isinstance(value, int):
        yield from _integers(site, value)
    elif isinstance(value, float):
        for number in (value + 1, value - 1, -value, value * 2, value / 2, value * 10, value / 10, 0.0, 1.0, 0.5):
            yield from site.replace(2.6, "wrong number", repr(number))
    elif isinstance(value, str) and len(value) < 80:
        yield from _strings(site, value)
    elif value is None:
        for other in ["[]", "0", "True", "False", "''", "{}", "-1", "1", *site.scope]:
            yield from site.replace(3.0, "constant", other)


def _integers(site: Site, value: int) -> Proposals:
    for other in (value + 1, value - 1):
        yield from site.replace(1.9 if other >= 0 else 2.5, "off by one", str(other))
    for other in dict.fromkeys((*site.facts.integers,)):
        yield from site.replace(2.7, "wrong number", str(other))
    scaled = (-value, value * 2, value // 2, value * 10, value // 10, value + 2, value - 2)
    for other in dict.fromkeys((*COMMON_INTEGERS, *scaled)):
        yield from site.replace(2.9, "wrong number", str(other))
    for name in site.scope:
        types = site.facts.type_of(name)
        if not types or types & NUMBERS:
            yield from site.replace(3.3, "constant for a variable", name)
        if types & SIZED:
            yield from site.replace(3.8, "constant for a length", f"len({name})")
    for other_text in ("None", "True", "False", "float('inf')", "-float('inf')", "0.5"):
        yield from site.replace(4.2, "constant", other_text)


def _strings(site: Site, value: str) -> Proposals:
    for other in site.facts.texts:
        yield from site.replace(2.5, "wrong string", repr(other))
    variants = (
        value[:-1], value[1:], value.strip(), value.lower(), value.upper(), value.capitalize(), value + " ",
        " " + value, value[:1], value[::-1], value.swapcase(), value.replace(" ", ""), value + value,
        *COMMON_STRINGS,
    )  # fmt: skip
    for other in dict.fromkeys(variants):
        yield from site.replace(3.1, "wrong string", repr(other))
    for other in site.facts.strings:
        yield from site.replace(3.8, "string from the tests", repr(other))
    for name in site.scope:
        types = site.facts.type_of(name)
        if not types or "str" in types:
            yield from site.replace(3.6, "constant for a variable", name)
    if 2 < len(value) <= 30:
        for position in range(len(value)):
            yield from site.replace(4.2, "string without a character", repr(value[:position] + value[position + 1 :]))
        for character in _neighbours(value):
            yield from site.replace(4.4, "string with another character", repr(value + character))


def _neighbours(value: str) -> list[str]:
    """Characters that an alphabet-like string could miss: those between its smallest and largest, and its cases."""
    letters = sorted(value)
    low, high = ord(letters[0]), ord(letters[-1])
    between = [chr(code) for code in range(max(32, low - 1), min(126, high + 1) + 1)] if high - low < 64 else []
    cases = [character.swapcase() for character in value]
    return [each for each in dict.fromkeys(between + cases) if each not in value]
