"""New statements from grown expressions: assignments, steps, returns and guards that change what failing tests see."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from reflex_inside.facts import Facts, is_document
from reflex_inside.synthesis.grow import Garden, Grown, kind_of
from reflex_inside.synthesis.holes import bool_of, fits
from reflex_inside.synthesis.record import NOTHING, Recording
from reflex_inside.synthesis.values import FAILURE, equal, fingerprint
from reflex_inside.templates.insertions import CONSTANTS, Spot, spots
from reflex_inside.templates.site import Proposal

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
