"""Conditions: negated, fixed, or joined with another that the names in scope suggest."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator

from reflex_inside.edits import field_of
from reflex_inside.facts import NUMBERS, SIZED, Facts
from reflex_inside.templates.site import Proposals, Site, atomic

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
