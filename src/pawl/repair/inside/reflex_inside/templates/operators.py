"""Slips in comparisons, arithmetic and logic."""

from __future__ import annotations

import ast

from reflex_inside.facts import NUMBERS
from reflex_inside.templates.site import Proposals, Site, enclosed

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
