"""Expressions of a statement exchanged for grown ones; those that change nothing in some failing test are left out."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from reflex_inside.edits import field_of, parent_of
from reflex_inside.generate import own_expressions
from reflex_inside.limits import Caught
from reflex_inside.program import Facts, is_document
from reflex_inside.synthesis.grow import AND, OR, Garden, Grown, is_constant, kind_of
from reflex_inside.synthesis.plot import HOLE, Plot, enclosing_comprehensions, pure_roots, replaced_text, with_hole
from reflex_inside.synthesis.record import FAILURE, NOTHING, Recording, equal, fingerprint
from reflex_inside.templates.missing import CONSTANTS, Spot, spots
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


MOST_GUARDS = 120
MOST_VALUES = 60
MOST_RETURNED = 1500


class Sprouts:
    """Proposals to insert something before the statement at a place of a block."""

    def __init__(self, facts: Facts, recording: Recording, block: list[ast.stmt], place: int) -> None:
        self.facts = facts
        self.recording = recording
        self.statement = block[place]
        self.place = (facts.source.path, self.statement.lineno)
        self.states = recording.states.get(self.place, [])
        self.spots = [] if is_document(self.statement) else [s for s in spots(facts, block, place) if not s.behind]

    def proposals(self, garden: Garden) -> Iterator[Proposal]:
        if not self.states or not self.spots:
            return
        spot = self.spots[0]
        guards = list(self._guards(garden))
        yield from self._returns(spot, garden, guards)
        yield from self._assignments(spot, garden, guards)
        yield from self._leaving(spot, guards)

    def _guards(self, garden: Garden) -> Iterator[tuple[Grown, tuple[bool, ...]]]:
        """Conditions that hold somewhere in each fully recorded failing test, but not everywhere."""
        seen: dict[tuple[bool, ...], int] = {}
        count = 0
        for grown in sorted(garden.all, key=lambda each: each.size):
            if grown.kind != "bool" and grown.size > 2:
                continue
            holds = tuple(value is not FAILURE and bool_of(value) for value in grown.values)
            if seen.get(holds, 0) >= 2 or all(holds) or not self._touches(holds):
                continue
            seen[holds] = seen.get(holds, 0) + 1
            count += 1
            yield grown, holds
            if count >= MOST_GUARDS:
                return

    def _touches(self, holds: tuple[bool, ...]) -> bool:
        touched: dict[int, bool] = {}
        for state, held in zip(self.states, holds, strict=True):
            if state.failing and self.recording.complete(self.place, state.test):
                touched[state.test] = touched.get(state.test, False) or held
        return any(holds) and all(touched.values())

    def _returns(self, spot: Spot, garden: Garden, guards: list[tuple[Grown, tuple[bool, ...]]]) -> Iterator[Proposal]:
        """`return E`, alone or under a guard, where E is what the tests want."""
        always = tuple(True for _ in self.states)
        for grown in garden.all[:MOST_RETURNED]:
            if self._returning(grown, always):
                cost = (2.6 if spot.at_end else 3.4) + 0.35 * grown.size
                yield from spot.insert(cost, "added return", f"return {grown.text}")
            for guard, holds in guards:
                if self._returning(grown, holds):
                    cost = 3.4 + 0.25 * guard.size + 0.3 * grown.size - 0.4 * spot.at_top
                    yield from spot.insert(cost, "added guard", f"if {guard.text}:\n    return {grown.text}")

    def _returning(self, grown: Grown, holds: tuple[bool, ...]) -> bool:
        """Whether all calls whose result is known would return it at the first state where the guard holds."""
        decided: set[int] = set()
        fixed: set[int] = set()
        for state, held, value in zip(self.states, holds, grown.values, strict=True):
            call = self.recording.calls[state.call]
            if not held or state.call in decided:
                continue
            decided.add(state.call)
            goal = call.wanted if state.failing else (call.returned if call.by_test else NOTHING)
            if goal is NOTHING or goal is FAILURE:
                continue
            if value is FAILURE or not equal(value, goal) or type(value) is not type(goal):
                return False
            if state.failing:
                fixed.add(state.test)
        known = {self.recording.calls[state.call].test for state in self.states if self._is_known(state.call)}
        return bool(fixed) and fixed >= known

    def _is_known(self, call: int) -> bool:
        return self.recording.calls[call].wanted is not NOTHING

    def _assignments(
        self, spot: Spot, garden: Garden, guards: list[tuple[Grown, tuple[bool, ...]]]
    ) -> Iterator[Proposal]:
        by_text = {grown.text: grown for grown in garden.all}
        for name in self.facts.outer_scope():
            target = by_text.get(name)
            if target is None or ("." in name and target.kind == "none"):
                continue
            values = [each for each in garden.all if each.text != name][: MOST_VALUES * 4]
            for grown in values:
                yield from self._step(spot, target, grown)
            close = [each for each in values if fits(each.kind, target.kind) and self._differs(each, target)][:12]
            for guard, _ in guards[:30]:
                for grown in close:
                    cost = 4.4 + 0.25 * guard.size + 0.35 * grown.size
                    yield from spot.insert(cost, "guarded assignment", f"if {guard.text}:\n    {name} = {grown.text}")

    def _step(self, spot: Spot, target: Grown, grown: Grown) -> Iterator[Proposal]:
        name, price = target.text, 3.5 + 0.4 * grown.size
        if fits(grown.kind, target.kind) and self._differs(grown, target):
            yield from spot.insert(price, "added assignment", f"{name} = {grown.text}")
        if target.kind in {"int", "float", "number", "str"} and fits(grown.kind, target.kind) and grown.size <= 3:
            yield from spot.insert(price + 0.2, "added step", f"{name} += {grown.text}")
            if target.kind != "str":
                yield from spot.insert(price + 0.5, "added step", f"{name} -= {grown.text}")
        if target.kind in {"list", "deque", "set"} and grown.size <= 3 and fits(grown.kind, element_kind(target)):
            method = "add" if target.kind == "set" else "append"
            yield from spot.insert(price, "added append", f"{name}.{method}({grown.text})")

    def _differs(self, first: Grown, second: Grown) -> bool:
        pairs = zip(self.states, first.values, second.values, strict=True)
        return any(fingerprint(a) != fingerprint(b) and a is not FAILURE for state, a, b in pairs if state.failing)

    def _leaving(self, spot: Spot, guards: list[tuple[Grown, tuple[bool, ...]]]) -> Iterator[Proposal]:
        """Guards with an ending that needs no value from the states."""
        known = any(self._is_known(state.call) for state in self.states)
        actions = ["continue", "break"] if spot.looping else []
        actions += [ast.unparse(each) for each in self.facts.statements if isinstance(each, (ast.Return, ast.Raise))]
        if not known:
            actions += [f"return {constant}" for constant in CONSTANTS]
            actions += [f"return {name}" for name in self.facts.outer_scope()[:8]]
        actions += [ast.unparse(each) for each in self.facts.statements if isinstance(each, (ast.Expr, ast.AugAssign))]
        for guard, _ in guards:
            for rank, action in enumerate(dict.fromkeys(actions)):
                cost = 4.0 + 0.3 * guard.size + 0.04 * rank - 0.3 * spot.at_top
                yield from spot.insert(cost, "added guard", f"if {guard.text}:\n    {action}")


def element_kind(grown: Grown) -> str:
    """The type of what the collections hold."""
    return kind_of(
        [element for value in grown.values if value is not FAILURE and value is not None for element in value]
    )
