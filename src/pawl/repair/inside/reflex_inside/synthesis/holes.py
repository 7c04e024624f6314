"""Expressions of a statement exchanged for grown ones; those that change nothing in some failing test are left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reflex_inside.caught import Caught
from reflex_inside.edits import field_of, parent_of
from reflex_inside.facts import Facts
from reflex_inside.generate import own_expressions
from reflex_inside.synthesis.grow import AND, OR, Garden, is_constant, kind_of
from reflex_inside.synthesis.plot import HOLE, Plot, enclosing_comprehensions, pure_roots, replaced_text, with_hole
from reflex_inside.synthesis.record import NOTHING, Recording
from reflex_inside.synthesis.values import FAILURE, equal, fingerprint
from reflex_inside.templates.site import Proposal, Site

LARGEST = 5
LARGEST_INSIDE = 3
MOST_INSIDE = 400
MOST_INNER = 1200
KEPT_ALIKE = 2
ALIKE_COST = 0.4
NUMBERS = frozenset({"int", "float", "number", "bool"})


@dataclass(slots=True)
class Offer:
    """A text for a hole, not yet worth a proposal."""

    cost: float
    key: tuple[Any, ...]
    hole: ast.expr
    template: str
    text: str


class Holes:
    """Proposals for one statement."""

    def __init__(self, facts: Facts, recording: Recording, statement: ast.stmt, seconds: float) -> None:
        self.facts = facts
        self.recording = recording
        self.statement = statement
        self.place = (facts.source.path, statement.lineno)
        self.states = recording.states.get(self.place, [])
        self.plot = Plot(facts, self.states, seconds)
        self.garden: Garden | None = None

    def proposals(self) -> Iterator[Proposal]:
        """The cheapest texts for each set of values that the statement could have."""
        if not self.states:
            return
        names = [name for name in self.facts.outer_scope() if not name.startswith("__")]
        self.garden = self.plot.garden(self.plot.scopes, names, LARGEST)
        for root in pure_roots(self.statement):
            original = self._prints(self.plot.values_of(root), root)
            counts: dict[tuple[Any, ...], int] = {}
            for offer in sorted(self._offers(root, original), key=lambda offer: offer.cost):
                counts[offer.key] = counts.get(offer.key, 0) + 1
                if counts[offer.key] <= KEPT_ALIKE:
                    cost = offer.cost + ALIKE_COST * (counts[offer.key] - 1)
                    yield from Site(self.facts, offer.hole).replace(cost, offer.template, offer.text)

    def _offers(self, root: ast.expr, original: tuple[Any, ...]) -> Iterator[Offer]:
        assert self.garden is not None
        if is_test(root):
            yield from self._joined(root, original)
        wanted = self._expectations(root)
        if wanted:
            yield from self._finals(root, wanted)
        for hole in [root, *own_expressions(root)]:
            if isinstance(hole, (ast.Slice, ast.JoinedStr, ast.Starred)) or _is_callee(hole):
                continue
            if enclosing_comprehensions(hole):
                yield from self._inside(root, hole, original)
            else:
                yield from self._exchanged(root, hole, original)

    def _exchanged(self, root: ast.expr, hole: ast.expr, original: tuple[Any, ...]) -> Iterator[Offer]:
        assert self.garden is not None
        code = with_hole(root, hole)
        kind = kind_of(self.plot.values_of(hole))
        wanted = self._expectations(root)
        for grown in self.garden.all if root is hole else self.garden.all[:MOST_INNER]:
            if not fits(grown.kind, kind) and root is not hole:
                continue
            for scope, value in zip(self.plot.scopes, grown.values, strict=True):
                scope[HOLE] = value
            values = grown.values if root is hole else self._with_holes(code)
            priced = self._price(root, values, original, wanted)
            if priced is not None:
                apart = 0.0 if fits(grown.kind, kind) else 1.0
                cost = 2.9 + priced[0] + apart + 0.45 * grown.size
                key = (is_constant(grown.text), *priced[1])
                yield Offer(cost, key, hole, "grown expression", grown.text)

    def _finals(self, root: ast.expr, wanted: list[Any]) -> Iterator[Offer]:
        """Larger expressions for what is returned, where the tests say what that should be."""
        assert self.garden is not None
        goals = [
            goal if goal is not NOTHING else self._returned(state.call)
            for goal, state in zip(wanted, self.states, strict=True)
        ]

        def check(position: int, value: Any) -> bool:
            goal = goals[position]
            return goal is NOTHING or (type(value) is type(goal) and equal(value, goal))

        result = next((type(goal) for goal in wanted if goal is not NOTHING), object)
        for grown in self.garden.finals(check, result, self.plot.seconds):
            key = (False, *self._prints(grown.values, root))
            yield Offer(1.7 + 0.45 * grown.size, key, root, "grown expression", grown.text)

    def _returned(self, call: int) -> Any:
        known = self.recording.calls[call]
        return known.returned if known.by_test and known.returned is not FAILURE else NOTHING

    def _with_holes(self, code: Any) -> list[Any]:
        values: list[Any] = []
        for scope in self.plot.scopes:
            value: Any = FAILURE
            if scope[HOLE] is not FAILURE:
                with Caught():
                    value = eval(code, self.plot.globals, scope)
            values.append(value)
        return values

    def _inside(self, root: ast.expr, hole: ast.expr, original: tuple[Any, ...]) -> Iterator[Offer]:
        """Holes that see the variables of a comprehension."""
        scopes = self.plot.inner_scopes(hole)
        if not scopes:
            return
        garden = self.plot.garden(scopes, self.facts.scope(hole), LARGEST_INSIDE)
        kind = kind_of(self.plot.values_of(hole, scopes))
        wanted = self._expectations(root)
        for grown in garden.all[:MOST_INSIDE]:
            if not fits(grown.kind, kind):
                continue
            text = replaced_text(root, hole, grown.text)
            with Caught():
                code = compile(f"({text})", "grown", "eval")
                priced = self._price(root, self.plot.evaluate(code, self.plot.scopes), original, wanted)
                if priced is not None:
                    cost = 2.9 + priced[0] + 0.45 * grown.size
                    yield Offer(cost, (is_constant(grown.text), *priced[1]), hole, "grown expression", grown.text)

    def _joined(self, root: ast.expr, original: tuple[Any, ...]) -> Iterator[Offer]:
        """The condition joined with a grown one by `and` or `or`."""
        assert self.garden is not None
        text = ast.unparse(root)
        values = [value is not FAILURE and bool_of(value) for value in self.plot.values_of(root)]
        whole = f"({text})" if isinstance(root, (ast.BoolOp, ast.IfExp, ast.Lambda)) else text
        for grown in self.garden.all:
            if grown.kind != "bool" and grown.size > 2:
                continue
            for word, level in (("and", AND), ("or", OR)):
                other = [value is not FAILURE and bool_of(value) for value in grown.values]
                both = [x and y if word == "and" else x or y for x, y in zip(values, other, strict=True)]
                priced = self._price(root, both, original, [])
                if priced is None:
                    continue
                part = grown.within(level)
                price = 3.0 + priced[0] + 0.3 * grown.size
                key = (word, *priced[1])
                yield Offer(price, key, root, "added condition", f"{whole} {word} {part}")
                yield Offer(price + 0.6, key, root, "added condition", f"{part} {word} {whole}")

    def _prints(self, values: list[Any], root: ast.expr) -> tuple[Any, ...]:
        if is_test(root):
            return tuple(value if value is FAILURE else bool_of(value) for value in values)
        return tuple(fingerprint(value) for value in values)

    def _price(
        self, root: ast.expr, values: list[Any], original: tuple[Any, ...], wanted: list[Any]
    ) -> tuple[float, tuple[Any, ...]] | None:
        """What the values at the root say: None for none that could help, less for those that tests ask for."""
        prints = self._prints(values, root)
        if prints == original or not self._helps(prints, original):
            return None
        kept = self._kept(prints, original)
        if not wanted:
            return kept, prints
        pairs = [(value, goal) for value, goal in zip(values, wanted, strict=True) if goal is not NOTHING]
        if any(value is FAILURE or not equal(value, goal) for value, goal in pairs):
            return None
        same = all(type(value) is type(goal) for value, goal in pairs)
        return kept - (1.2 if same else 0.0), prints

    def _helps(self, prints: tuple[Any, ...], original: tuple[Any, ...]) -> bool:
        """Whether something differs in each failing test that was recorded in full."""
        changed: dict[int, bool] = {}
        for state, new, old in zip(self.states, prints, original, strict=True):
            if state.failing and self.recording.complete(self.place, state.test):
                changed[state.test] = changed.get(state.test, False) or new != old
        return all(changed.values())

    def _kept(self, prints: tuple[Any, ...], original: tuple[Any, ...]) -> float:
        """A little more for each change that passing tests would notice."""
        passing = [
            new != old for state, new, old in zip(self.states, prints, original, strict=True) if not state.failing
        ]
        return 0.8 * sum(passing) / len(passing) if passing else 0.0

    def _expectations(self, root: ast.expr) -> list[Any]:
        """For a returned expression: the value that each state should give, as far as the tests say."""
        if not isinstance(self.statement, ast.Return) or self.statement.value is not root:
            return []
        found = [self.recording.calls[state.call].wanted for state in self.states]
        return found if any(goal is not NOTHING for goal in found) else []


def is_test(root: ast.AST) -> bool:
    return isinstance(parent_of(root), (ast.If, ast.While, ast.IfExp, ast.Assert)) and field_of(root) == "test"


def bool_of(value: Any) -> bool:
    with Caught():
        return bool(value)
    return False


def fits(first: str, second: str) -> bool:
    """Whether a value of one type may stand where one of the other does."""
    if first == second or "mixed" in {first, second} or "none" in {first, second}:
        return True
    return first in NUMBERS and second in NUMBERS


def _is_callee(node: ast.expr) -> bool:
    parent = parent_of(node)
    return isinstance(parent, ast.Call) and parent.func is node
