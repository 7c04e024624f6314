"""Slips in calls, subscripts, comprehensions and displays."""

from __future__ import annotations

import ast
import builtins
import difflib
import itertools
from functools import lru_cache

from reflex_inside.program import SEQUENCES
from reflex_inside.templates.site import Proposals, Site

KEYS = (
    "len", "abs", "str", "str.lower", "lambda item: item[0]", "lambda item: item[1]", "lambda item: -item",
    "lambda item: (len(item), item)", "lambda item: (-len(item), item)", "lambda item: item[-1]",
)  # fmt: skip
ORDERING = frozenset({"sorted", "max", "min", "sort"})


def calls(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Call)
    function = site.source.text(node.func)
    words = [site.source.text(argument) for argument in node.args]
    keywords = [f"{k.arg}={ast.unparse(k.value)}" if k.arg else f"**{ast.unparse(k.value)}" for k in node.keywords]
    given = words + keywords

    def call(arguments: list[str]) -> str:
        return f"{function}({', '.join(arguments)})"

    for first, second in itertools.combinations(range(len(words)), 2):
        swapped = given[:]
        swapped[first], swapped[second] = swapped[second], swapped[first]
        yield from site.replace(2.0 + 0.3 * (second - first - 1), "swapped arguments", call(swapped))
    for drop in range(len(given)):
        yield from site.replace(2.8, "dropped argument", call(given[:drop] + given[drop + 1 :]))
    if words:
        yield from site.replace(2.2 + 0.4 * (len(words) - 1), "dropped call", node.args[0])
    if len(words) == 2:
        yield from site.replace(3.0, "dropped call", node.args[1])
    if isinstance(node.func, ast.Attribute):
        yield from site.replace(2.8, "dropped call", node.func.value)
    yield from _ordering(site, node, call(given))
    yield from _results(site, node)
    for name in [*site.scope, "0", "1", "2", "-1"]:
        yield from site.replace(4.6, "added argument", call([*words, name, *keywords]))
        if words:
            yield from site.replace(4.8, "added argument", call([name, *given]))


def _results(site: Site, node: ast.Call) -> Proposals:
    """A step beside what a call gives, a part of it, or what it gives when awaited."""
    if site.facts.numeric(node) and not isinstance(site.parent, (ast.Expr, ast.Attribute)):
        for step in ("+ 1", "- 1"):
            yield from site.replace(2.5, "off by one", f"{ast.unparse(node)} {step}")
    if not isinstance(site.parent, ast.Expr):
        for part in ("[1:]", "[:-1]", "[0]", "[-1]", "[::-1]"):
            yield from site.replace(4.4, "part of a sequence", ast.unparse(node) + part)
    if isinstance(site.facts.function.node, ast.AsyncFunctionDef):
        yield from site.replace(2.6, "missing await", f"await {ast.unparse(node)}")


def _ordering(site: Site, node: ast.Call, text: str) -> Proposals:
    """Calls that order things may miss their direction or their key."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name not in ORDERING:
        return
    given = {keyword.arg for keyword in node.keywords}
    open_text = text[:-1] + (", " if not text.endswith("()") else "")
    if name.startswith("sort") and "reverse" not in given:
        yield from site.replace(2.8, "reversed order", f"{open_text}reverse=True)")
    if "key" not in given:
        keys = list(KEYS)
        keys += [f"{name}.get" for name in site.scope if "dict" in site.facts.type_of(name)]
        keys += [f"lambda item: {callee}(item)" for callee in site.facts.callees if callee not in ORDERING][:8]
        for rank, key in enumerate(keys):
            yield from site.replace(4.0 + 0.05 * rank, "ordering key", f"{open_text}key={key})")


def subscripts(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, ast.Subscript)
    base = site.source.text(node.value)
    if isinstance(node.slice, ast.Slice):
        yield from _slices(site, node, base)
        return
    index = ast.unparse(node.slice)
    yield from site.replace(3.6, "dropped index", node.value)
    yield from site.replace(4.0, "slice for an index", f"{base}[{index}:]")
    yield from site.replace(4.0, "slice for an index", f"{base}[:{index}]")
    if site.facts.numeric(node):
        for step in ("+ 1", "- 1"):
            yield from site.replace(3.0, "off by one", f"{ast.unparse(node)} {step}")
            if not isinstance(node.slice, (ast.Constant, ast.Tuple, ast.Name)):
                yield from site.replace(2.6, "off by one", f"{base}[{index} {step}]")


def _slices(site: Site, node: ast.Subscript, base: str) -> Proposals:
    part = node.slice
    assert isinstance(part, ast.Slice)
    lower, upper, step = (ast.unparse(x) if x else "" for x in (part.lower, part.upper, part.step))

    def slice_text(low: str, high: str, stride: str) -> str:
        return f"{base}[{low}:{high}{':' + stride if stride else ''}]"

    for low, high, stride in (("", upper, step), (lower, "", step), (lower, upper, "")):
        yield from site.replace(2.6, "dropped bound", slice_text(low, high, stride))
    integers = [name for name in site.scope if site.facts.type_of(name) <= {"int"} and "." not in name]
    shifted = [f"{name} {sign} 1" for name in integers for sign in "+-"]
    for bound in ["1", "-1", *integers, "2", *shifted]:
        if not lower:
            yield from site.replace(3.2, "added bound", slice_text(bound, upper, step))
        if not upper:
            yield from site.replace(3.2, "added bound", slice_text(lower, bound, step))
    if not step:
        yield from site.replace(3.4, "added stride", slice_text(lower, upper, "-1"))
        yield from site.replace(3.8, "added stride", slice_text(lower, upper, "2"))
    yield from site.replace(3.4, "dropped slice", node.value)
    if lower and upper:
        yield from site.replace(2.8, "swapped bounds", slice_text(upper, lower, step))


def comprehensions(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp))
    opening, closing = {ast.ListComp: ("[", "]"), ast.GeneratorExp: ("(", ")"), ast.SetComp: ("{", "}")}[type(node)]
    texts = [ast.unparse(generator).strip() for generator in node.generators]
    element = ast.unparse(node.elt)
    for position, generator in enumerate(node.generators):
        for drop in range(len(generator.ifs)):
            kept = ast.comprehension(
                generator.target, generator.iter, generator.ifs[:drop] + generator.ifs[drop + 1 :], generator.is_async
            )
            parts = [ast.unparse(kept).strip() if place == position else text for place, text in enumerate(texts)]
            yield from site.replace(2.6, "dropped filter", f"{opening}{element} {' '.join(parts)}{closing}")
    if not any(generator.ifs for generator in node.generators):
        for condition in _filters(site, node):
            yield from site.replace(
                4.4, "added filter", f"{opening}{element} {' '.join(texts)} if {condition}{closing}"
            )
    if isinstance(node, ast.ListComp):
        yield from site.replace(4.2, "set for a list", "{" + ast.unparse(node)[1:-1] + "}")


def _filters(site: Site, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> list[str]:
    bound = [n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    found: list[str] = []
    for name in bound:
        found += [name, f"not {name}", f"{name} > 0", f"{name} >= 0", f"{name} < 0", f"{name} % 2 == 0",
                  f"{name} % 2 == 1", f"{name} != 0", f"{name} is not None"]  # fmt: skip
        for other in site.scope:
            if other != name:
                near = site.facts.distance(name, other) < 1
                found += [f"{name} {sign} {other}" for sign in ("!=", "==", "<", ">", "<=", ">=") if near]
                found += [f"{name} in {other}", f"{name} not in {other}"]
    return found


def displays(site: Site) -> Proposals:
    node = site.node
    assert isinstance(node, (ast.Tuple, ast.List))
    texts = [ast.unparse(element) for element in node.elts]
    start, _ = site.source.span(node)
    bare = isinstance(node, ast.Tuple) and site.source.data[start : start + 1] != b"("
    opening, closing = ("", "") if bare else ("[", "]") if isinstance(node, ast.List) else ("(", ")")
    for first, second in itertools.combinations(range(min(len(texts), 5)), 2):
        swapped = texts[:]
        swapped[first], swapped[second] = swapped[second], swapped[first]
        yield from site.replace(2.6, "swapped elements", f"{opening}{', '.join(swapped)}{closing}")
    if isinstance(node, ast.List):
        for drop in range(len(texts)):
            yield from site.replace(3.4, "dropped element", f"[{', '.join(texts[:drop] + texts[drop + 1 :])}]")
        for name in [*site.scope, "[]", "0", "1"]:
            yield from site.replace(3.6, "added element", f"[{', '.join([*texts, name])}]")
            if texts:
                yield from site.replace(3.8, "added element", f"[{', '.join([name, *texts])}]")


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
