"""Edits with many variants: wrapping a value, adding an operation, and using another expression of the function."""

from __future__ import annotations

import ast

from reflex_inside.facts import NUMBERS, SEQUENCES
from reflex_inside.templates.site import Proposals, Site, atomic, enclosed

WRAPPERS = (
    "abs", "len", "sorted", "list", "set", "int", "str", "sum", "max", "min", "tuple", "round", "reversed", "bool",
    "float", "any", "all", "ord", "chr",
)  # fmt: skip
RARE_WRAPPERS = frozenset({"max", "min", "bool", "float", "any", "all", "ord", "chr"})
FOR_COLLECTIONS = frozenset({"len", "sorted", "list", "set", "tuple", "reversed", "sum", "any", "all", "max", "min"})
FOR_NUMBERS = frozenset({"abs", "round", "chr", "float"})
TEXT_METHODS = ("lower()", "upper()", "strip()", "split()")


def wide(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.expr)
    if isinstance(node, (ast.Starred, ast.JoinedStr, ast.Slice)):
        return
    if isinstance(site.parent, ast.Call) and site.parent.func is node:
        return
    if isinstance(site.parent, ast.Attribute) and isinstance(node, ast.Name) and node.id == "self":
        return
    extra = 0.15 * min(6.0, len(ast.unparse(node)) / 12) + (0.6 if isinstance(node, ast.Constant) else 0.0)
    yield from _wrapped(site, node, extra)
    yield from _operated(site, node, extra)
    yield from _exchanged(site, node)


def _wrapped(site: Site, node: ast.expr, extra: float) -> Proposals:
    text, types = ast.unparse(node), site.facts.guess(node)
    around = site.parent.func.id if isinstance(site.parent, ast.Call) and isinstance(site.parent.func, ast.Name) else ""
    for wrapper in WRAPPERS:
        if wrapper == around or (types and types <= NUMBERS and wrapper in FOR_COLLECTIONS):
            continue
        if types and not types & NUMBERS and wrapper in FOR_NUMBERS:
            continue
        yield from site.replace(
            3.6 + extra + 0.5 * (wrapper in RARE_WRAPPERS), "wrapped in a call", f"{wrapper}({text})"
        )
    for function, count in site.facts.callees.items():
        if function not in WRAPPERS and count == 1:
            yield from site.replace(4.4 + extra, "wrapped in a call", f"{function}({text})")
    if not types or types & SEQUENCES or isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        mappings = [f"{name}.get" for name in site.scope if "dict" in site.facts.type_of(name)]
        for key in ("len", *mappings):
            yield from site.replace(4.4 + extra, "ordering key", f"sorted({text}, key={key})")
        yield from site.replace(4.2 + extra, "ordering key", f"sorted({text}, reverse=True)")
    if not types or "str" in types:
        for method in TEXT_METHODS:
            yield from site.replace(4.4 + extra, "wrapped in a call", f"{enclosed(node)}.{method}")


def _operated(site: Site, node: ast.expr, extra: float) -> Proposals:
    facts, types = site.facts, site.facts.guess(node)
    if isinstance(node, ast.Compare) or (types and types <= {"bool"}):
        return
    text = ast.unparse(node)
    whole = text if atomic(node) else f"({text})"
    numeric = facts.numeric(node)
    if numeric and not isinstance(node, ast.Constant):
        yield from site.replace(4.0 + extra, "squared", f"{whole} ** 2")
    for name in [*site.scope, "0", "1", "2"]:
        other = facts.type_of(name)
        constant = name in {"0", "1", "2"}
        if name == text or (types and other and not types & other and not types | other <= NUMBERS):
            continue
        if numeric:
            yield from _numeric(site, (text, whole, name), extra)
        if not constant:
            yield from site.replace(4.5 + extra, "added operand", f"{name} + {whole}")
            yield from site.replace(4.5 + extra, "added operand", f"{whole} + {name}")
    yield from site.replace(4.6 + extra, "wrapped in a list", f"[{text}]")


def _numeric(site: Site, words: tuple[str, str, str], extra: float) -> Proposals:
    text, whole, name = words
    for bound in ("max", "min"):
        if name != "2":
            yield from site.replace(4.1 + extra, "bounded number", f"{bound}({name}, {text})")
    if name == "0":
        return
    for sign in ("-", "*", "%", "/"):
        yield from site.replace(4.9 + extra, "added operand", f"{whole} {sign} {name}")
    for sign in ("//", "**"):
        yield from site.replace(5.2 + extra, "added operand", f"{whole} {sign} {name}")
    if name not in {"1", "2"}:
        yield from site.replace(5.2 + extra, "added operand", f"{name} - {whole}")


def _exchanged(site: Site, node: ast.expr) -> Proposals:
    facts, types, text = site.facts, site.facts.guess(node), ast.unparse(node)
    if isinstance(node, (ast.Call, ast.BinOp, ast.Subscript, ast.Attribute, ast.IfExp, ast.ListComp)):
        for name in site.scope:
            other = facts.type_of(name)
            cost = 0.0 if other & types else 0.4 if not types or not other else 1.6
            yield from site.replace(3.3 + cost, "variable for an expression", name)
    for other_text, ingredient in facts.ingredients.items():
        if other_text == text or len(other_text) > 50 or isinstance(ingredient, ast.Name):
            continue
        other = facts.guess(ingredient)
        apart = bool(types and other and not types & other and not types | other <= NUMBERS)
        cost = 3.3 + 0.02 * len(other_text) + 0.7 * (type(ingredient) is not type(node)) + 1.5 * apart
        yield from site.replace(cost + 0.5 * isinstance(node, ast.Constant), "other expression", other_text)
