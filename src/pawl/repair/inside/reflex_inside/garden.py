"""Expressions grown from the variables in scope, smallest first, and their values in the states of a statement."""

from __future__ import annotations

import ast
import builtins
import copy
import itertools
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from reflex_inside.processes import Catch
from reflex_inside.program import COMPREHENSIONS, Facts, parent_of
from reflex_inside.site import RULES
from reflex_inside.trace import FAILURE, State, fingerprints

MOST_KEPT = 2500
LARGEST_NUMBER = 10**12
LARGEST_RESULT = 2000
FINALS_PER_KIND = 60
FINALS_FROM = 4
BOOLEAN_METHODS = frozenset({".startswith", ".endswith"})
ATOM, POWER, UNARY, PRODUCT, SUM, COMPARISON, NEGATION, AND, OR, ANY = range(10)
CHAINING = frozenset({PRODUCT, SUM, AND, OR})
"""Levels whose operators may stand on the left of one another without parentheses."""
BOOLEAN_LEVELS = frozenset({COMPARISON, AND, OR})


@dataclass(slots=True)
class Grown:
    """An expression with the value it has in every state."""

    text: str
    level: int
    """How loosely its outermost operator binds."""
    size: float
    values: list[Any]
    kind: str
    """The one type of its values, `mixed`, or `none` when it always fails."""

    def within(self, level: int) -> str:
        return self.text if self.level <= level else f"({self.text})"


def kind_of(values: list[Any]) -> str:
    kinds = {type(value).__name__ for value in values if value is not FAILURE and value is not None}
    if not kinds:
        return "none"
    if len(kinds) == 1:
        return kinds.pop()
    return "number" if kinds <= {"int", "float", "bool"} else "mixed"


NUMBERS = frozenset({"int", "float", "number"})
SEQUENCES = frozenset({"list", "str", "tuple", "deque", "bytes"})
SIZED = SEQUENCES | {"dict", "set", "frozenset", "Counter", "defaultdict", "OrderedDict"}

Unary = tuple[str, int, Callable[[Any], Any]]
"""A form with one gap, how tightly the gap binds, and the value of the whole."""
Binary = tuple[str, int, Callable[[Any, Any], Any]]
"""A sign between two expressions, how loosely it binds, and the value of the whole."""


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > 8 or abs(base) > 10**6:
        raise OverflowError
    return base**exponent


def _unary(form: str) -> Unary:
    gap = ATOM if form.startswith("{}") else POWER if form.startswith("-") else ANY
    return form, gap, eval(f"lambda x: {form.format('x')}")


def _binary(group: str, sign: str) -> Binary:
    level = RULES["grown levels"].get(sign, ATOM)
    if sign == "**":
        return sign, level, _power
    if group == "keys":
        # A `defaultdict` must not get a key by being asked.
        return sign, level, dict.__getitem__
    x, y = (Grown(name, ATOM, 1, [], "") for name in "xy")
    return sign, level, eval(f"lambda x, y: {pair_text(sign, level, x, y)}")


class Garden:
    """Grows expressions over the states of one place."""

    def __init__(self, count: int, seconds: float) -> None:
        # Few states cannot tell expressions apart that differ elsewhere: then more of them are kept.
        self.kept_alike = 4 if count <= 6 else 3 if count <= 14 else 2
        self.deadline = time.process_time() + seconds
        self.all: list[Grown] = []
        self.by_size: dict[int, list[Grown]] = {}
        self.seen: dict[tuple[Any, ...], int] = {}

    def plant(self, text: str, size: float, values: list[Any], level: int = ATOM) -> Grown | None:
        """Keeps an expression unless an equal one is kept already or it says nothing."""
        kind = kind_of(values)
        if kind == "none" and any(value is FAILURE for value in values):
            return None
        # A constant may equal an expression by chance in all states; it must not stand in for it.
        prints = (is_constant(text), *fingerprints(values))
        known = self.seen.get(prints, 0)
        if known >= self.kept_alike or len(self.all) >= MOST_KEPT:
            return None
        self.seen[prints] = known + 1
        grown = Grown(text, level, size, values, kind)
        self.all.append(grown)
        if not known:
            self.by_size.setdefault(int(size), []).append(grown)
        return grown

    @property
    def late(self) -> bool:
        return time.process_time() > self.deadline or len(self.all) >= MOST_KEPT

    def apply(self, function: Callable[..., Any], *vectors: list[Any]) -> list[Any]:
        values: list[Any] = []
        for arguments in zip(*vectors, strict=True):
            value: Any = FAILURE
            if not any(argument is FAILURE for argument in arguments):
                with Catch():
                    value = function(*arguments)
                    if (isinstance(value, int) and abs(value) > LARGEST_NUMBER) or (
                        isinstance(value, (str, list, tuple)) and len(value) > LARGEST_RESULT
                    ):
                        value = FAILURE
            values.append(value)
        return values

    def grow(self, largest: int) -> None:
        """Adds all expressions up to a size."""
        for size in range(2, largest + 1):
            for base in list(self.by_size.get(size - 1, ())):
                if self.late:
                    return
                self._unary(base, size)
            for first in range(1, size - 1):
                self._pairs(first, size - 1 - first, size)
                if self.late:
                    return

    def finals(self, check: Callable[[int, Any], bool], result: type, seconds: float) -> Iterator[Grown]:
        """Larger expressions of two kept ones, of which only those with the right value in every state are made."""
        deadline = time.process_time() + seconds
        by_kind: dict[str, list[Grown]] = {}
        for grown in sorted(self.all, key=lambda grown: grown.size):
            if len(by_kind.setdefault(grown.kind, [])) < FINALS_PER_KIND:
                by_kind[grown.kind].append(grown)
        chosen = [grown for group in by_kind.values() for grown in group]
        for left, right in sorted(itertools.permutations(chosen, 2), key=lambda pair: pair[0].size + pair[1].size):
            if time.process_time() > deadline:
                return
            if left.size + right.size < FINALS_FROM:
                continue
            for sign, level, function in binary_forms(left.kind, right.kind):
                if (result is bool) == (level in BOOLEAN_LEVELS or sign in BOOLEAN_METHODS):
                    values = self._checked(function, left.values, right.values, check)
                    if values is not None:
                        size = left.size + right.size + 1
                        yield Grown(pair_text(sign, level, left, right), level, size, values, kind_of(values))

    @staticmethod
    def _checked(
        function: Callable[..., Any], left: list[Any], right: list[Any], check: Callable[[int, Any], bool]
    ) -> list[Any] | None:
        """The values, or None from the first one on that is not right."""
        values: list[Any] = []
        for position, (one, other) in enumerate(zip(left, right, strict=True)):
            if one is FAILURE or other is FAILURE:
                return None
            with Catch() as caught:
                values.append(function(one, other))
            if caught.error is not None or not check(position, values[-1]):
                return None
        return values

    def _unary(self, base: Grown, size: int) -> None:
        for form, level, function in unary_forms(base.kind):
            text = form.format(base.within(level))
            outer = UNARY if form.startswith("-") else ATOM
            self.plant(text, size, self.apply(function, base.values), outer)
        if base.kind == "bool":
            self.plant(f"not {base.within(NEGATION)}", size, self.apply(operator.not_, base.values), NEGATION)

    def _pairs(self, first: int, second: int, size: int) -> None:
        for left in list(self.by_size.get(first, ())):
            for right in list(self.by_size.get(second, ())):
                if self.late:
                    return
                if left is not right:
                    for sign, level, function in binary_forms(left.kind, right.kind):
                        values = self.apply(function, left.values, right.values)
                        self.plant(pair_text(sign, level, left, right), size, values, level)


def pair_text(sign: str, level: int, left: Grown, right: Grown) -> str:
    """Two expressions and what joins them."""
    if sign == "[]":
        return f"{left.within(ATOM)}[{right.text}]"
    if sign in {"min", "max"}:
        return f"{sign}({left.text}, {right.text})"
    if sign in {"[:", ":]"}:
        return left.within(ATOM) + (f"[{right.text}:]" if sign == "[:" else f"[:{right.text}]")
    if sign.startswith("."):
        return f"{left.within(ATOM)}{sign}({right.text})"
    outer = level if level in CHAINING else level - 1
    return f"{left.within(outer)} {sign} {right.within(level - 1)}"


def is_constant(text: str) -> bool:
    """Whether no name occurs in the expression."""
    return not any(character.isalpha() for character in text) or text[0] in "'\"" or text in {"None", "True", "False"}


UNARY_FORMS = {kind: [_unary(form) for form in forms] for kind, forms in RULES["grown of one"].items()}
BINARY_FORMS = {kind: [_binary(kind, sign) for sign in signs] for kind, signs in RULES["grown of two"].items()}


def unary_forms(kind: str) -> Iterator[Unary]:
    if kind in SIZED:
        yield from UNARY_FORMS["sized"]
    if kind in SEQUENCES:
        yield from UNARY_FORMS["sequences"]
    if kind in NUMBERS:
        yield from UNARY_FORMS["numbers"]
    if kind == "str":
        yield from UNARY_FORMS["texts"]
    if kind in {"dict", "Counter", "defaultdict", "OrderedDict"}:
        yield from UNARY_FORMS["mappings"]


def binary_forms(left: str, right: str) -> Iterator[Binary]:
    """The operations on two values of these types."""
    groups = {
        "members": right in SIZED and (left != right or left == "str"),
        "indexes": left in SEQUENCES and right in {"int", "bool"},
        "keys": left in {"dict", "Counter", "defaultdict"} and right not in SIZED - {"str", "tuple"},
        "items": left in {"list", "str", "tuple"} and right not in {"list", "dict", "set"},
        "joined": left == "str" and right in {"list", "tuple"},
        "texts": left == right == "str",
    }
    for group in (_common(left, right), *(group for group, fits in groups.items() if fits)):
        yield from BINARY_FORMS.get(group, ())


def _common(left: str, right: str) -> str:
    """The group of forms for values that are alike; none for those that are not."""
    if left in NUMBERS and right in NUMBERS:
        return "numbers"
    if left == right and left in SEQUENCES:
        return "sequences"
    if left == right and left in {"set", "frozenset"}:
        return "sets"
    if left == right == "bool":
        return "flags"
    return "others" if left == right or {"mixed", "none"} & {left, right} else ""


HOLE = "_hole_"
UNSEEN_SIZE = 1.6
"""How large a constant counts that the function does not mention."""
PURE_CALLS = frozenset(RULES["pure calls"])
PURE_METHODS = frozenset(RULES["pure methods"])
IMPURE_NODES = (ast.Yield, ast.YieldFrom, ast.Await, ast.NamedExpr, ast.Starred, ast.Lambda)


def is_pure(node: ast.AST) -> bool:
    """Whether evaluating the expression on a copy of the variables harms nothing."""
    for inner in ast.walk(node):
        if isinstance(inner, IMPURE_NODES):
            return False
        if isinstance(inner, ast.Call):
            function = inner.func
            named = isinstance(function, ast.Name) and function.id in PURE_CALLS
            method = isinstance(function, ast.Attribute) and function.attr in PURE_METHODS
            if not named and not method:
                return False
    return True


def pure_roots(statement: ast.stmt) -> Iterator[ast.expr]:
    """The largest pure expressions of a statement that belong to no inner statement."""
    pending = [child for child in ast.iter_child_nodes(statement) if not isinstance(child, ast.stmt)]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.expr) and isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and is_pure(node):
            yield node
        elif not isinstance(node, (ast.Lambda, ast.excepthandler)):
            pending.extend(child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt))


class Plot:
    """Evaluates expressions in the recorded states."""

    def __init__(self, facts: Facts, states: list[State], seconds: float) -> None:
        self.facts = facts
        self.states = states
        self.globals = facts.function.namespace
        self.seconds = seconds
        self.scopes = [dict(state.names) for state in states]

    def values_of(self, node: ast.expr) -> list[Any]:
        # The links of the node to its parents would drag the module along.
        code = compile(f"({ast.unparse(node)})", "grown", "eval")
        values: list[Any] = []
        for scope in self.scopes:
            value: Any = FAILURE
            with Catch():
                value = eval(code, self.globals, scope)
            values.append(value)
        return values

    def garden(self, names: list[str], largest: int) -> Garden:
        """Everything that grows from the names and constants at hand."""
        scopes = self.scopes
        garden = Garden(len(scopes), self.seconds)
        for name in names:
            owner, _, attribute = name.partition(".")
            if attribute:
                values = [getattr(scope.get(owner, FAILURE), attribute, FAILURE) for scope in scopes]
            else:
                values = [scope.get(name, FAILURE) for scope in scopes]
            garden.plant(name, 1, values)
        self._plant_constants(garden, len(scopes))
        self._plant_attributes(garden, names)
        self._plant_calls(garden, names)
        for text, node in self.facts.ingredients.items():
            if not isinstance(node, ast.Name) and is_pure(node) and len(text) < 40:
                garden.plant(text, 2 + 0.05 * len(text), self.values_of(node), 9)
        garden.grow(largest)
        return garden

    def _plant_constants(self, garden: Garden, count: int) -> None:
        for number in self.facts.integers:
            if abs(number) < 10**6:
                garden.plant(str(number), 1, [number] * count, 0 if number >= 0 else 2)
        for text in self.facts.texts[:8]:
            garden.plant(repr(text), 1, [text] * count)
        for text in RULES["grown constants"]:
            garden.plant(text, UNSEEN_SIZE, [ast.literal_eval(text)] * count, 2 if text.startswith("-") else 0)

    def _plant_attributes(self, garden: Garden, names: list[str]) -> None:
        for name in names:
            for attribute in self.facts.attributes.get(name, ())[:20]:
                if attribute in self.facts.module_attributes:
                    values = [getattr(scope.get(name), attribute, FAILURE) for scope in self.scopes]
                    if not any(callable(value) for value in values):
                        garden.plant(f"{name}.{attribute}", 2, values)

    def _plant_calls(self, garden: Garden, names: list[str]) -> None:
        """Calls of the module's own small functions with one variable each."""
        scopes = self.scopes
        for callee, count in self.facts.callees.items():
            function: Any = (scopes[0].get(callee) or self.globals.get(callee)) if scopes else None
            own = isinstance(function, FunctionType) and function is not self.facts.function.main
            if own and count == 1 and not hasattr(builtins, callee):
                for name in [each for each in names if "." not in each]:
                    values = [scope.get(name, FAILURE) for scope in scopes]
                    called = garden.apply(lambda value: function(copy.deepcopy(value)), values)  # noqa: B023
                    garden.plant(f"{callee}({name})", 2, called)


def sees_inner_names(node: ast.AST) -> bool:
    """Whether variables of a comprehension can be read at the node."""
    child, parent = node, parent_of(node)
    while not isinstance(parent, ast.stmt):
        if isinstance(parent, COMPREHENSIONS) and not isinstance(child, ast.comprehension):
            return True
        if isinstance(parent, ast.comprehension) and child is not parent.iter:
            return True
        child, parent = parent, parent_of(parent)
    return False


def with_hole(root: ast.expr, node: ast.expr) -> CodeType:
    """The root's code with the node replaced by a name that can be bound to any value."""
    return compile(f"({ast.unparse(_holed(root, node))})", "hole", "eval")


def _holed(tree: ast.AST, node: ast.AST) -> Any:
    """A copy, because the tree is shared, with a name in the place of the node."""
    if tree is node:
        return ast.Name(HOLE, ast.Load())
    fresh = copy.copy(tree)
    for field, value in ast.iter_fields(tree):
        if isinstance(value, list):
            setattr(fresh, field, [_holed(each, node) if isinstance(each, ast.AST) else each for each in value])
        elif isinstance(value, ast.AST):
            setattr(fresh, field, _holed(value, node))
    return fresh
