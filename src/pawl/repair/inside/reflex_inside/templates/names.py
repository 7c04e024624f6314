"""The wrong name, function, method or attribute; and steps of one beside a name."""

from __future__ import annotations

import ast
import builtins
import difflib
from functools import lru_cache

from reflex_inside.facts import SEQUENCES
from reflex_inside.templates.site import Proposals, Site

FUNCTION_FAMILIES = (
    ("min", "max"), ("any", "all"), ("sorted", "reversed", "list", "set", "tuple", "iter"),
    ("int", "float", "round", "str", "abs"), ("sum", "len", "max", "min"), ("ceil", "floor"),
    ("range", "enumerate", "len"), ("ord", "chr", "str"), ("str", "repr"), ("isinstance", "issubclass"),
    ("hex", "bin", "oct"), ("dict", "defaultdict", "OrderedDict", "Counter"), ("zip", "zip_longest", "enumerate"),
    ("getattr", "hasattr"), ("map", "filter"),
)  # fmt: skip
METHOD_FAMILIES = (
    ("append", "extend", "add", "appendleft", "insert"), ("add", "discard", "remove", "update"),
    ("pop", "popleft", "popitem"), ("startswith", "endswith"),
    ("lower", "upper", "swapcase", "title", "capitalize", "casefold"), ("islower", "isupper"),
    ("isdigit", "isalpha", "isalnum", "isspace", "isnumeric", "isdecimal"), ("keys", "values", "items"),
    ("strip", "lstrip", "rstrip"), ("find", "rfind", "index", "rindex", "count"),
    ("split", "rsplit", "splitlines", "partition", "rpartition"),
    ("union", "intersection", "difference", "symmetric_difference"), ("issubset", "issuperset", "isdisjoint"),
    ("get", "pop", "setdefault"), ("ceil", "floor", "trunc"), ("ljust", "rjust", "center", "zfill"),
    ("sort", "reverse"), ("encode", "decode"), ("join", "split"), ("read", "readline", "readlines"),
    ("bisect_left", "bisect_right", "bisect"), ("match", "search", "fullmatch", "findall"), ("sin", "cos", "tan"),
    ("removeprefix", "removesuffix"), ("insort_left", "insort_right"), ("remove", "pop", "discard"),
)  # fmt: skip


@lru_cache(maxsize=8192)
def likeness(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first, second).ratio()


def names(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Name)
    if isinstance(site.parent, ast.Call) and site.parent.func is node:
        yield from _callees(site, node, len(site.parent.args))
        return
    facts = site.facts
    for name in site.scope:
        if name != node.id:
            cost = 2.2 + facts.distance(node.id, name) + 0.6 * (1 - likeness(node.id, name))
            yield from site.replace(cost, "wrong variable", name)
    if facts.numeric(node) and not isinstance(site.parent, ast.Attribute):
        for step in ("+ 1", "- 1"):
            yield from site.replace(2.4, "off by one", f"{node.id} {step}")
        yield from site.replace(3.8, "negated number", f"-{node.id}")
    if not facts.type_of(node.id) or facts.type_of(node.id) & SEQUENCES:
        for part in ("[1:]", "[:-1]", "[0]", "[-1]", "[::-1]"):
            yield from site.replace(4.0, "part of a sequence", node.id + part)
    for constant in ("0", "1", "None", "True", "False", "''", "[]"):
        yield from site.replace(4.4, "constant", constant)
    for attribute in facts.attributes.get(node.id, ()):
        yield from site.replace(4.0, "attribute", f"{node.id}.{attribute}")


def _callees(site: Site, node: ast.Name, arguments: int) -> Proposals:
    callees = site.facts.callees
    for family in FUNCTION_FAMILIES:
        if node.id in family:
            for other in family:
                if other != node.id and (hasattr(builtins, other) or other in callees):
                    yield from site.replace(2.0, "similar function", other)
    for other, count in callees.items():
        if other != node.id:
            yield from site.replace(3.2 + 0.8 * (count != arguments), "other function", other)


def attributes(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Attribute)
    facts, base = site.facts, site.source.text(node.value)
    similar = [other for family in METHOD_FAMILIES if node.attr in family for other in family if other != node.attr]
    for other in dict.fromkeys(similar):
        yield from site.replace(2.1, "similar method", f"{base}.{other}")
    known = facts.attributes.get(ast.unparse(node.value)) or facts.module_attributes
    for other in known:
        if other != node.attr and other not in similar:
            cost = 2.6 + 1.2 * (1 - likeness(node.attr, other)) + 0.6 * (other not in facts.module_attributes)
            yield from site.replace(cost, "wrong attribute", f"{base}.{other}")
    if isinstance(site.parent, ast.Call) and site.parent.func is node:
        return
    yield from site.replace(3.2, "dropped attribute", node.value)
    if isinstance(node.value, ast.Name):
        for name in site.scope:
            if "." in name and name != ast.unparse(node):
                yield from site.replace(2.8 + facts.distance(ast.unparse(node), name), "wrong attribute", name)
    if facts.numeric(node):
        for step in ("+ 1", "- 1"):
            yield from site.replace(3.0, "off by one", f"{ast.unparse(node)} {step}")


def targets(site: Site) -> Proposals:
    """What an assignment or a loop binds."""
    node, facts = site.node, site.facts
    if isinstance(node, ast.Name) and isinstance(site.parent, (ast.Assign, ast.AugAssign, ast.For)):
        for name in site.scope:
            if name != node.id:
                yield from site.replace(3.4 + facts.distance(node.id, name), "wrong target", name)
    yield from _stored_parts(site)
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        first, second = map(ast.unparse, node.elts)
        yield from site.replace(3.0, "swapped targets", f"{second}, {first}")
    if isinstance(node, ast.Attribute):
        for other in facts.attributes.get(ast.unparse(node.value)) or facts.module_attributes:
            yield from site.replace(3.4, "wrong target", f"{ast.unparse(node.value)}.{other}")


def _stored_parts(site: Site) -> Proposals:
    """Another element or attribute, or a variable, as what is assigned to."""
    node, facts = site.node, site.facts
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        for text, ingredient in facts.ingredients.items():
            if isinstance(ingredient, (ast.Subscript, ast.Attribute)):
                yield from site.replace(3.9, "wrong target", text)
        for name in site.scope:
            yield from site.replace(4.6, "wrong target", name)
