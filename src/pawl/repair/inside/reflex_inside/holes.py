"""Statements with grown expressions in them or before them; a process of its own makes and sends them."""

from __future__ import annotations

import ast
import select
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from reflex_inside.clues import weigh
from reflex_inside.garden import (
    AND,
    HOLE,
    OR,
    Garden,
    Grown,
    Plot,
    is_constant,
    kind_of,
    pure_roots,
    sees_inner_names,
    with_hole,
)
from reflex_inside.generator import CONSTANTS, Generator, Spot, blocks_of, header_lines, own_expressions, spots
from reflex_inside.processes import Catch, Child, limit_memory, send, silence
from reflex_inside.program import Candidate, Facts, Program, field_of, is_document, parent_of
from reflex_inside.site import Proposal, Site
from reflex_inside.suite import Suite, SuiteBaseline
from reflex_inside.trace import FAILURE, NOTHING, Recording, equal, fingerprint, record_states

LARGEST = 5
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


class Recorded:
    """A statement with the states in which it ran."""

    def __init__(self, facts: Facts, recording: Recording, statement: ast.stmt) -> None:
        self.facts = facts
        self.recording = recording
        self.statement = statement
        self.place = (facts.source.path, statement.lineno)
        self.states = recording.states.get(self.place, [])

    def in_each_failing(self, flags: Iterable[bool]) -> bool:
        """Whether a flag is set for some state of each failing test that was recorded in full."""
        found: dict[int, bool] = {}
        for state, flag in zip(self.states, flags, strict=True):
            if state.failing and self.recording.complete(self.place, state.test):
                found[state.test] = found.get(state.test, False) or flag
        return all(found.values())


class Holes(Recorded):
    """Proposals for one statement."""

    def __init__(self, generator: Generator, recording: Recording, statement: ast.stmt, seconds: float) -> None:
        facts = generator.facts
        super().__init__(facts, recording, statement)
        self.clues = generator.clues
        self.plot = Plot(facts, self.states, seconds)
        self.garden: Garden | None = None

    def proposals(self) -> Iterator[Proposal]:
        """The cheapest texts for each set of values that the statement could have."""
        if not self.states:
            return
        names = [name for name in self.facts.outer_scope() if not name.startswith("__")]
        self.garden = self.plot.garden(names, LARGEST)
        for root in pure_roots(self.statement):
            original = self._prints(self.plot.values_of(root), root)
            counts: dict[tuple[Any, ...], int] = {}
            for offer in sorted(self._offers(root, original), key=self._price_of):
                counts[offer.key] = counts.get(offer.key, 0) + 1
                if counts[offer.key] <= KEPT_ALIKE:
                    cost = offer.cost + ALIKE_COST * (counts[offer.key] - 1)
                    yield from Site(self.facts, offer.hole).replace(cost, offer.template, offer.text)

    def _price_of(self, offer: Offer) -> float:
        return offer.cost + weigh(self.clues.of(ast.unparse(offer.hole), offer.text, self.statement.lineno))

    def _offers(self, root: ast.expr, original: tuple[Any, ...]) -> Iterator[Offer]:
        assert self.garden is not None
        if is_test(root):
            yield from self._joined(root, original)
        wanted = self._expectations(root)
        if wanted:
            yield from self._finals(root, wanted)
        for hole in [root, *own_expressions(root)]:
            if isinstance(hole, (ast.Slice, ast.JoinedStr, ast.Starred)) or field_of(hole) == "func":
                continue
            if not sees_inner_names(hole):
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
                with Catch():
                    value = eval(code, self.plot.globals, scope)
            values.append(value)
        return values

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
        """A price for the values at the root: None for those that cannot help, less for those that tests ask for."""
        prints = self._prints(values, root)
        changed = [new != old for new, old in zip(prints, original, strict=True)]
        if not any(changed) or not self.in_each_failing(changed):
            return None
        kept = self._kept(prints, original)
        if not wanted:
            return kept, prints
        pairs = [(value, goal) for value, goal in zip(values, wanted, strict=True) if goal is not NOTHING]
        if any(value is FAILURE or not equal(value, goal) for value, goal in pairs):
            return None
        same = all(type(value) is type(goal) for value, goal in pairs)
        return kept - (1.2 if same else 0.0), prints

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
    with Catch():
        return bool(value)
    return False


def fits(first: str, second: str) -> bool:
    """Whether a value of one type may stand where one of the other does."""
    if first == second or "mixed" in {first, second} or "none" in {first, second}:
        return True
    return first in NUMBERS and second in NUMBERS


MOST_GUARDS = 120
MOST_VALUES = 60
MOST_RETURNED = 1500


class Sprouts(Recorded):
    """Proposals to insert something before the statement at a place of a block."""

    def __init__(self, facts: Facts, recording: Recording, block: list[ast.stmt], place: int) -> None:
        super().__init__(facts, recording, block[place])
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
            if seen.get(holds, 0) >= 2 or all(holds) or not any(holds) or not self.in_each_failing(holds):
                continue
            seen[holds] = seen.get(holds, 0) + 1
            count += 1
            yield grown, holds
            if count >= MOST_GUARDS:
                return

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
        held = [value for value in target.values if value is not FAILURE and value is not None]
        if target.kind not in {"list", "deque", "set"} or grown.size > 3:
            return
        if fits(grown.kind, kind_of([element for value in held for element in value])):
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


MOST_FUNCTIONS = 5
MOST_STATEMENTS = 60
FAILING_TESTS = 6
PASSING_TESTS = 6
PORTION = 500
GARDEN_SECONDS = 0.5

Place = tuple[float, Generator, list[ast.stmt], int]


class Nursery:
    """Grows candidates for the most suspicious statements."""

    def __init__(self, program: Program, suite: Suite, generators: list[Generator]) -> None:
        self.program = program
        self.suite = suite
        self.generators = generators[:MOST_FUNCTIONS]

    def places(self) -> list[Place]:
        """Suspicious statements, the most suspicious first."""
        found: list[Place] = []
        for generator in self.generators:
            for block, place in blocks_of(generator.facts.function.node.body):
                lines = header_lines(block[place])
                score = max((generator.suspicion.get(line, 0.0) for line in lines), default=0.0)
                if score > 0:
                    found.append((score, generator, block, place))
        found.sort(key=lambda each: -each[0])
        return found[:MOST_STATEMENTS]

    def record(self, baseline: SuiteBaseline, passing: dict[int, list[int]], places: list[Place]) -> Recording:
        hanging = [index for index in baseline.failing if baseline.outcomes[index].timed_out]
        failing = [index for index in baseline.failing if index not in hanging][:FAILING_TESTS]
        tests = [(index, True) for index in failing + hanging[: 1 if failing else 2]]
        functions = {generator.facts.function.index for _, generator, _, _ in places}
        others = [index for function in functions for index in passing.get(function, ())[:PASSING_TESTS]]
        tests += [(index, False) for index in dict.fromkeys(others)]
        lines = {(generator.facts.source.path, block[at].lineno) for _, generator, block, at in places}
        return record_states(self.program, self.suite, lines, tests, 3.0)

    def candidates(self, recording: Recording, places: list[Place]) -> Iterator[list[Candidate]]:
        for score, generator, block, at in places:
            holes = Holes(generator, recording, block[at], GARDEN_SECONDS)
            found: list[Candidate] = []
            with Catch():
                found += [generator.candidate(proposal, score) for proposal in holes.proposals()]
            yield found
            if holes.garden is not None:
                sprouts = Sprouts(generator.facts, recording, block, at)
                grown: list[Candidate] = []
                with Catch():
                    for proposal in sprouts.proposals(holes.garden):
                        grown.append(generator.candidate(proposal, score))
                yield grown

    def work(self, outbox: int, baseline: SuiteBaseline, passing: dict[int, list[int]]) -> None:
        places = self.places()
        recording = self.record(baseline, passing, places)
        for candidates in self.candidates(recording, places):
            for start in range(0, len(candidates), PORTION):
                send(outbox, candidates[start : start + PORTION])


class CandidateStream:
    """The other end: candidates that have arrived."""

    def __init__(self, nursery: Nursery, baseline: SuiteBaseline, passing: dict[int, list[int]], memory: int) -> None:
        def work(_: int, outbox: int) -> None:
            silence()
            limit_memory(memory)
            nursery.work(outbox, baseline, passing)

        self.child = Child(work)
        self.open = True

    def arrived(self, seconds: float = 0.0) -> list[Candidate]:
        """Those that are there now, or come first within some seconds."""
        found: list[Candidate] = []
        while self.open:
            ready, _, _ = select.select([self.child.inbox], [], [], 0.0 if found else seconds)
            if not ready:
                break
            portion = self.child.receive()
            if portion is None:
                self.close()
                break
            found += portion
        return found

    def close(self) -> None:
        if self.open:
            self.open = False
            self.child.close()
