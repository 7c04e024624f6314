"""Slips in expressions: comparisons, arithmetic, logic, constants, names, calls, subscripts, comprehensions."""

from __future__ import annotations

import ast
import builtins
import difflib
import itertools
import re
from collections.abc import Iterator
from functools import lru_cache

from reflex_inside.program import NUMBERS, SEQUENCES, SIZED, Facts, field_of
from reflex_inside.site import RULES, Proposals, Site, atomic, enclosed

SIGNS: dict[str, str] = RULES["signs"]
NEAR_SIGNS: dict[str, list[str]] = RULES["near signs"]
OPERATORS: dict[str, str] = RULES["operators"]
NEAR_OPERATORS: dict[str, list[str]] = RULES["near operators"]
BITWISE = frozenset({"&", "|", "^"})
COMMON_STRINGS: list[str] = RULES["common strings"]
ORDERING = frozenset(RULES["ordering functions"])


def comparisons(site: Site, node: ast.Compare) -> Proposals:
    sides = [node.left, *node.comparators]
    for operator, pair in zip(node.ops, itertools.pairwise(sides), strict=True):
        old = SIGNS[type(operator).__name__]
        for rank, new in enumerate(NEAR_SIGNS[old]):
            yield from site.between(1.2 + 0.25 * rank, "comparison", pair, (old, new))
    if len(sides) == 2:
        left, right = map(ast.unparse, sides)
        yield from site.forms("comparison", left=left, right=right, sign=SIGNS[type(node.ops[0]).__name__])
    else:
        without_first = ast.Compare(sides[1], node.ops[1:], sides[2:])
        without_last = ast.Compare(sides[0], node.ops[:-1], node.comparators[:-1])
        yield from site.each(3.0, "shorter comparison", map(ast.unparse, (without_first, without_last)))


def arithmetic(site: Site, node: ast.BinOp) -> Proposals:
    old = OPERATORS[type(node.op).__name__]
    pair = (node.left, node.right)
    for rank, new in enumerate(NEAR_OPERATORS[old]):
        yield from site.between(1.8 + 0.3 * rank, "arithmetic operator", pair, (old, new))
    numeric = site.facts.numeric(node)
    if site.facts.guess(node) <= NUMBERS:
        for new in OPERATORS.values():
            if new not in NEAR_OPERATORS[old] and new not in {old, "@", "<<", ">>"}:
                across = (new in BITWISE) is not (old in BITWISE)
                yield from site.between(5.2 if across else 3.6, "arithmetic operator", pair, (old, new))
    if old != "*" or not numeric:
        yield from site.replace(2.4, "swapped operands", f"{enclosed(node.right)} {old} {enclosed(node.left)}")
    yield from site.forms("operands", left=site.source.text(node.left), right=site.source.text(node.right))
    if numeric:
        yield from site.forms("one off a sum")
    yield from _regrouped(site, node, old)


def _regrouped(site: Site, node: ast.BinOp, old: str) -> Proposals:
    if isinstance(inner := node.left, ast.BinOp):
        operator = OPERATORS[type(inner.op).__name__]
        text = f"{enclosed(inner.left)} {operator} ({enclosed(inner.right)} {old} {enclosed(node.right)})"
        yield from site.replace(3.0, "regrouped", text)
    if isinstance(inner := node.right, ast.BinOp):
        operator = OPERATORS[type(inner.op).__name__]
        text = f"({enclosed(node.left)} {old} {enclosed(inner.left)}) {operator} {enclosed(inner.right)}"
        yield from site.replace(3.0, "regrouped", text)


def logic(site: Site, node: ast.BoolOp) -> Proposals:
    old, new = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    for pair in itertools.pairwise(node.values):
        yield from site.between(1.5, "logical operator", pair, (old, new))
    texts = [
        f"({ast.unparse(value)})" if not isinstance(value, ast.Compare) else ast.unparse(value) for value in node.values
    ]
    if len(texts) > 2:
        yield from site.replace(2.4, "logical operators", f" {new} ".join(texts))
    yield from site.each(2.0, "dropped condition", (f" {old} ".join(kept) for kept in one_dropped(texts)))
    if len(texts) == 2:
        yield from site.replace(3.0, "swapped conditions", f" {old} ".join(reversed(texts)))
    for negated in range(len(texts)):
        changed = [f"not {text}" if place == negated else text for place, text in enumerate(texts)]
        yield from site.replace(2.8, "negated condition", f" {old} ".join(changed))


def one_dropped(texts: list[str]) -> Iterator[list[str]]:
    for place in range(len(texts)):
        yield texts[:place] + texts[place + 1 :]


def two_swapped(texts: list[str], most: int) -> Iterator[tuple[int, list[str]]]:
    """The texts with two of the first ones in each other's place, and how far these stand apart."""
    for first, second in itertools.combinations(range(most), 2):
        swapped = texts[:]
        swapped[first], swapped[second] = swapped[second], swapped[first]
        yield second - first - 1, swapped


def signs(site: Site, node: ast.UnaryOp) -> Proposals:
    yield from site.replace(1.8, "dropped sign", node.operand)


def choices(site: Site, node: ast.IfExp) -> Proposals:
    body, other, test = map(ast.unparse, (node.body, node.orelse, node.test))
    first, second = site.source.text(node.body), site.source.text(node.orelse)
    yield from site.forms("choice", body=body, other=other, test=test, first=first, second=second)


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
        numbers = ["number tests"] if not types or types & NUMBERS else []
        sizes = ["size tests"] if not types or types & SIZED else []
        for kind in ("any tests", *numbers, *sizes, *(["text tests"] if "str" in types else [])):
            yield from ((cost, form.format(name)) for cost, form in RULES[kind])
        yield from ((0.6, f"{callee}({name})") for callee, wanted in facts.uncalled.items() if wanted == 1)
    for first, second in itertools.permutations(scope[:9], 2):
        distance = facts.distance(first, second)
        if distance < 1:
            yield from ((0.5 + distance * 0.3, f"{first} {sign} {second}") for sign in ("==", "!=", "<", "<="))
        if facts.type_of(second) & SIZED:
            yield from ((0.6, f"{first} in {second}"), (0.6, f"{first} not in {second}"))
    yield from ((0.2, condition) for condition in facts.conditions)


def negations(site: Site, node: ast.expr) -> Proposals:
    if not is_condition(node, site.parent):
        return
    text = ast.unparse(node)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from site.replace(1.6, "negated condition", node.operand)
    else:
        yield from site.replace(2.2, "negated condition", f"not {text}" if atomic(node) else f"not ({text})")
    yield from site.forms("constant condition")


APART = 0.3
"""What a condition about something else costs more."""
NAME = re.compile(r"[A-Za-z_]\w*")


def joined(site: Site, node: ast.expr) -> Proposals:
    """The condition replaced by another, or joined with one."""
    if not is_condition(node, site.parent):
        return
    text = ast.unparse(node)
    whole = f"({text})" if isinstance(node, (ast.BoolOp, ast.IfExp)) else text
    base = 3.9 if isinstance(site.parent, (ast.Return, ast.Assign)) else 3.5
    own = set(NAME.findall(text))
    for cost, test in tests_of(site.facts, site.scope):
        yield from site.replace(base + cost, "other condition", test)
        if isinstance(node, ast.Constant) or isinstance(site.parent, ast.BoolOp):
            continue
        apart = APART * own.isdisjoint(NAME.findall(test))
        for word in ("or", "and"):
            yield from site.replace(base + cost + apart - 0.1, "added condition", f"{test} {word} {whole}")
            yield from site.replace(base + cost + apart, "added condition", f"{whole} {word} {test}")


def constants(site: Site, node: ast.Constant) -> Proposals:
    value = node.value
    if isinstance(value, bool):
        yield from site.replace(1.5, "flipped flag", str(not value))
        yield from site.replace(3.6, "constant", "None")
        yield from site.each(3.3, "constant for a variable", site.scope)
    elif isinstance(value, int):
        yield from _integers(site, value)
    elif isinstance(value, float):
        near = (value + 1, value - 1, -value, value * 2, value / 2, value * 10, value / 10, 0.0, 1.0, 0.5)
        yield from site.each(2.6, "wrong number", map(repr, near))
    elif isinstance(value, str) and len(value) < 80:
        yield from _strings(site, value)
    elif value is None:
        yield from site.each(3.0, "constant", [*RULES["for None"], *site.scope])


def _integers(site: Site, value: int) -> Proposals:
    for other in (value + 1, value - 1):
        yield from site.replace(1.9 if other >= 0 else 2.5, "off by one", str(other))
    yield from site.each(2.7, "wrong number", map(str, site.facts.integers))
    scaled = (-value, value * 2, value // 2, value * 10, value // 10, value + 2, value - 2)
    yield from site.each(2.9, "wrong number", map(str, dict.fromkeys((*RULES["common integers"], *scaled))))
    for name in site.scope:
        types = site.facts.type_of(name)
        if not types or types & NUMBERS:
            yield from site.replace(3.3, "constant for a variable", name)
        if types & SIZED:
            yield from site.replace(3.8, "constant for a length", f"len({name})")
    yield from site.each(4.2, "constant", RULES["for integers"])


def _strings(site: Site, value: str) -> Proposals:
    yield from site.each(2.5, "wrong string", map(repr, site.facts.texts))
    variants = (
        value[:-1], value[1:], value.strip(), value.lower(), value.upper(), value.capitalize(), value + " ",
        " " + value, value[:1], value[::-1], value.swapcase(), value.replace(" ", ""), value + value,
        *COMMON_STRINGS,
    )  # fmt: skip
    yield from site.each(3.1, "wrong string", map(repr, dict.fromkeys(variants)))
    yield from site.each(3.8, "string from the tests", map(repr, site.facts.strings))
    texts = [name for name in site.scope if not site.facts.type_of(name) or "str" in site.facts.type_of(name)]
    yield from site.each(3.6, "constant for a variable", texts)


def calls(site: Site, node: ast.Call) -> Proposals:
    function = site.source.text(node.func)
    words = [site.source.text(argument) for argument in node.args]
    keywords = [f"{k.arg}={ast.unparse(k.value)}" if k.arg else f"**{ast.unparse(k.value)}" for k in node.keywords]
    given = words + keywords

    def call(arguments: list[str]) -> str:
        return f"{function}({', '.join(arguments)})"

    for apart, swapped in two_swapped(given, len(words)):
        yield from site.replace(2.0 + 0.3 * apart, "swapped arguments", call(swapped))
    yield from site.each(2.8, "dropped argument", map(call, one_dropped(given)))
    yield from _dropped(site, node)
    yield from _ordering(site, node, call(given))
    yield from _results(site, node)
    for name in [*site.scope, *RULES["added arguments"]]:
        yield from site.replace(4.6, "added argument", call([*words, name, *keywords]))
        if words:
            yield from site.replace(4.8, "added argument", call([name, *given]))


def _results(site: Site, node: ast.Call) -> Proposals:
    """A step beside what a call gives, a part of it, or what it gives when awaited."""
    if site.facts.numeric(node) and not isinstance(site.parent, (ast.Expr, ast.Attribute)):
        yield from site.forms("one off a call")
    if not isinstance(site.parent, ast.Expr):
        yield from site.each(4.4, "part of a sequence", (ast.unparse(node) + part for part in RULES["parts"]))
    if isinstance(site.facts.function.node, ast.AsyncFunctionDef):
        yield from site.replace(2.6, "missing await", f"await {ast.unparse(node)}")


def _dropped(site: Site, node: ast.Call) -> Proposals:
    parts = [(2.2 + 0.4 * (len(node.args) - 1), each) for each in node.args[:1]]
    parts += [(3.0, each) for each in node.args[1:] if len(node.args) == 2]
    parts += [(2.8, node.func.value)] if isinstance(node.func, ast.Attribute) else []
    for cost, part in parts:
        if isinstance(part, ast.Call) or not isinstance(site.parent, ast.Expr):  # else a value that nobody uses
            yield from site.replace(cost, "dropped call", part)


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
        keys = list(RULES["ordering keys"])
        keys += [f"{name}.get" for name in site.scope if "dict" in site.facts.type_of(name)]
        keys += [f"lambda item: {callee}(item)" for callee in site.facts.callees if callee not in ORDERING][:8]
        for rank, key in enumerate(keys):
            yield from site.replace(4.0 + 0.05 * rank, "ordering key", f"{open_text}key={key})")


def subscripts(site: Site, node: ast.Subscript) -> Proposals:
    base = site.source.text(node.value)
    if isinstance(node.slice, ast.Slice):
        yield from _slices(site, node, base)
        return
    index = ast.unparse(node.slice)
    yield from site.forms("index", base=base, index=index)
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


def comprehensions(site: Site, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Proposals:
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
        start = f"{opening}{element} {' '.join(texts)} if "
        yield from site.each(4.4, "added filter", (start + condition + closing for condition in _filters(site, node)))
    if isinstance(node, ast.ListComp):
        yield from site.replace(4.2, "set for a list", "{" + ast.unparse(node)[1:-1] + "}")


def _filters(site: Site, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> list[str]:
    bound = [n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)]
    found: list[str] = []
    for name in bound:
        found += [form.format(name) for form in RULES["filters"]]
        for other in site.scope:
            if other != name:
                near = site.facts.distance(name, other) < 1
                found += [f"{name} {sign} {other}" for sign in ("!=", "==", "<", ">", "<=", ">=") if near]
                found += [f"{name} in {other}", f"{name} not in {other}"]
    return found


def displays(site: Site, node: ast.Tuple | ast.List) -> Proposals:
    texts = [ast.unparse(element) for element in node.elts]
    start, _ = site.source.span(node)
    bare = isinstance(node, ast.Tuple) and site.source.data[start : start + 1] != b"("
    opening, closing = ("", "") if bare else ("[", "]") if isinstance(node, ast.List) else ("(", ")")
    for _, swapped in two_swapped(texts, min(len(texts), 5)):
        yield from site.replace(2.6, "swapped elements", f"{opening}{', '.join(swapped)}{closing}")
    if isinstance(node, ast.List):
        yield from site.each(3.4, "dropped element", (f"[{', '.join(kept)}]" for kept in one_dropped(texts)))
        for name in [*site.scope, *RULES["added elements"]]:
            yield from site.replace(3.6, "added element", f"[{', '.join([*texts, name])}]")
            if texts:
                yield from site.replace(3.8, "added element", f"[{', '.join([name, *texts])}]")


@lru_cache(maxsize=8192)
def likeness(first: str, second: str) -> float:
    return difflib.SequenceMatcher(None, first, second).ratio()


def names(site: Site, node: ast.Name) -> Proposals:
    if isinstance(site.parent, ast.Call) and site.parent.func is node:
        yield from _callees(site, node, len(site.parent.args))
        return
    facts = site.facts
    for name in site.scope:
        if name != node.id:
            cost = 2.2 + facts.distance(node.id, name) + 0.6 * (1 - likeness(node.id, name))
            yield from site.replace(cost, "wrong variable", name)
    if facts.numeric(node) and not isinstance(site.parent, ast.Attribute):
        yield from site.forms("number")
    if not facts.type_of(node.id) or facts.type_of(node.id) & SEQUENCES:
        yield from site.each(4.0, "part of a sequence", (node.id + part for part in RULES["parts"]))
    yield from site.each(4.4, "constant", RULES["for names"])
    yield from site.each(4.0, "attribute", (f"{node.id}.{each}" for each in facts.attributes.get(node.id, ())))


def _callees(site: Site, node: ast.Name, arguments: int) -> Proposals:
    callees = site.facts.callees
    similar = _family(node.id, "function families")
    known = [other for other in similar if hasattr(builtins, other) or other in callees]
    yield from site.each(2.0, "similar function", known)
    for other, count in callees.items():
        if other != node.id:
            yield from site.replace(3.2 + 0.8 * (count != arguments), "other function", other)


def _family(name: str, families: str) -> list[str]:
    """Names that are easily taken for this one."""
    return [other for family in RULES[families] if name in family for other in family if other != name]


def attributes(site: Site, node: ast.Attribute) -> Proposals:
    facts, base = site.facts, site.source.text(node.value)
    similar = _family(node.attr, "method families")
    yield from site.each(2.1, "similar method", (f"{base}.{other}" for other in dict.fromkeys(similar)))
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
        yield from site.forms("one off a part")


def targets(site: Site, node: ast.expr) -> Proposals:
    """Other things that an assignment or a loop may bind."""
    facts = site.facts
    if isinstance(node, ast.Name) and isinstance(site.parent, (ast.Assign, ast.AugAssign, ast.For)):
        for name in site.scope:
            if name != node.id:
                yield from site.replace(3.4 + facts.distance(node.id, name), "wrong target", name)
    if isinstance(node, (ast.Subscript, ast.Attribute)):
        kinds = (ast.Subscript, ast.Attribute)
        parts = [text for text, ingredient in facts.ingredients.items() if isinstance(ingredient, kinds)]
        yield from site.each(3.9, "wrong target", parts)
        yield from site.each(4.6, "wrong target", site.scope)
    if isinstance(node, ast.Tuple) and len(node.elts) == 2:
        first, second = map(ast.unparse, node.elts)
        yield from site.replace(3.0, "swapped targets", f"{second}, {first}")
    if isinstance(node, ast.Attribute):
        base = ast.unparse(node.value)
        others = facts.attributes.get(base) or facts.module_attributes
        yield from site.each(3.4, "wrong target", (f"{base}.{other}" for other in others))
