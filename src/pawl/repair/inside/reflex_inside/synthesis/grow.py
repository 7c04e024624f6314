"""Expressions grown from the variables in scope, smallest first; of those with equal values, few are kept."""

from __future__ import annotations

import itertools
import operator
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from reflex_inside.limits import Caught
from reflex_inside.synthesis.record import FAILURE, fingerprints

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
ITERABLES = SIZED

Unary = tuple[str, int, Callable[[Any], Any]]
"""A form with one gap, how tightly the gap binds, and what it does."""

ON_SIZED: tuple[Unary, ...] = (("len({})", ANY, len),)
ON_ITERABLE: tuple[Unary, ...] = (
    ("sorted({})", ANY, sorted), ("set({})", ANY, set), ("sum({})", ANY, sum), ("min({})", ANY, min),
    ("max({})", ANY, max), ("list({})", ANY, list), ("tuple({})", ANY, tuple),
)  # fmt: skip
ON_SEQUENCE: tuple[Unary, ...] = (
    ("{}[0]", ATOM, lambda x: x[0]), ("{}[-1]", ATOM, lambda x: x[-1]), ("{}[1:]", ATOM, lambda x: x[1:]),
    ("{}[:-1]", ATOM, lambda x: x[:-1]), ("{}[::-1]", ATOM, lambda x: x[::-1]), ("{}[1]", ATOM, lambda x: x[1]),
    ("{}[-2]", ATOM, lambda x: x[-2]),
)  # fmt: skip
ON_NUMBER: tuple[Unary, ...] = (
    ("-{}", POWER, operator.neg), ("abs({})", ANY, abs), ("int({})", ANY, int), ("str({})", ANY, str),
    ("round({})", ANY, round),
)  # fmt: skip
ON_TEXT: tuple[Unary, ...] = (
    ("{}.lower()", ATOM, str.lower), ("{}.upper()", ATOM, str.upper), ("{}.strip()", ATOM, str.strip),
    ("{}.split()", ATOM, str.split), ("int({})", ANY, int), ("{}.isdigit()", ATOM, str.isdigit),
    ("{}.isalpha()", ATOM, str.isalpha), ("{}.isupper()", ATOM, str.isupper), ("{}.islower()", ATOM, str.islower),
    ("ord({})", ANY, ord), ("{}.swapcase()", ATOM, str.swapcase), ("{}.isspace()", ATOM, str.isspace),
)  # fmt: skip
ON_MAPPING: tuple[Unary, ...] = (
    ("{}.keys()", ATOM, lambda x: x.keys()), ("{}.values()", ATOM, lambda x: x.values()),
    ("{}.items()", ATOM, lambda x: x.items()),
)  # fmt: skip

Binary = tuple[str, int, Callable[[Any, Any], Any]]


def _power(base: Any, exponent: Any) -> Any:
    if abs(exponent) > 8 or abs(base) > 10**6:
        raise OverflowError
    return base**exponent


ARITHMETIC: tuple[Binary, ...] = (
    ("+", SUM, operator.add), ("-", SUM, operator.sub), ("*", PRODUCT, operator.mul),
    ("//", PRODUCT, operator.floordiv), ("%", PRODUCT, operator.mod), ("/", PRODUCT, operator.truediv),
    ("**", POWER, _power),
)  # fmt: skip
COMPARISONS: tuple[Binary, ...] = (
    ("==", COMPARISON, operator.eq), ("!=", COMPARISON, operator.ne), ("<", COMPARISON, operator.lt),
    ("<=", COMPARISON, operator.le), (">", COMPARISON, operator.gt), (">=", COMPARISON, operator.ge),
)  # fmt: skip


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
                with Caught():
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
            with Caught() as caught:
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
                        self._plant_pair(sign, level, function, (left, right), size)

    def _plant_pair(
        self, sign: str, level: int, function: Callable[..., Any], sides: tuple[Grown, Grown], size: int
    ) -> None:
        left, right = sides
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


def unary_forms(kind: str) -> Iterator[Unary]:
    if kind in SIZED:
        yield from ON_SIZED
        yield from ON_ITERABLE
    if kind in SEQUENCES:
        yield from ON_SEQUENCE
    if kind in NUMBERS:
        yield from ON_NUMBER
    if kind == "str":
        yield from ON_TEXT
    if kind in {"dict", "Counter", "defaultdict", "OrderedDict"}:
        yield from ON_MAPPING


def binary_forms(left: str, right: str) -> Iterator[Binary]:
    """What can be done with two values of these types."""
    if left in NUMBERS and right in NUMBERS:
        yield from ARITHMETIC
        yield from COMPARISONS
        yield ("min", ATOM, min)
        yield ("max", ATOM, max)
    elif left == right and left in SEQUENCES:
        yield ("+", SUM, operator.add)
        yield from COMPARISONS[:4]
    elif left == right and left in {"set", "frozenset"}:
        yield ("&", COMPARISON, operator.and_)
        yield ("|", COMPARISON, operator.or_)
        yield ("-", SUM, operator.sub)
        yield from COMPARISONS[:2]
    elif left == right == "bool":
        yield ("and", AND, lambda x, y: x and y)
        yield ("or", OR, lambda x, y: x or y)
        yield from COMPARISONS[:2]
    elif left == right or "mixed" in {left, right} or "none" in {left, right}:
        yield from COMPARISONS[:2]
    if right in SIZED and (left != right or left == "str"):
        yield ("in", COMPARISON, lambda x, y: x in y)
        yield ("not in", COMPARISON, lambda x, y: x not in y)
    if left in SEQUENCES and right in {"int", "bool"}:
        yield ("[]", ATOM, operator.getitem)
        yield ("[:", ATOM, lambda x, y: x[y:])
        yield (":]", ATOM, lambda x, y: x[:y])
        yield ("*", PRODUCT, operator.mul)
    if left in {"dict", "Counter", "defaultdict"} and right not in SIZED - {"str", "tuple"}:
        yield ("[]", ATOM, lambda x, y: dict.__getitem__(x, y))
    yield from _method_forms(left, right)


def _method_forms(left: str, right: str) -> Iterator[Binary]:
    if left in {"list", "str", "tuple"} and right not in {"list", "dict", "set"}:
        yield (".count", ATOM, lambda x, y: x.count(y))
        yield (".index", ATOM, lambda x, y: x.index(y))
    if left == "str" and right in {"list", "tuple"}:
        yield (".join", ATOM, str.join)
    if left == right == "str":
        yield (".startswith", ATOM, str.startswith)
        yield (".endswith", ATOM, str.endswith)
        yield (".split", ATOM, str.split)
