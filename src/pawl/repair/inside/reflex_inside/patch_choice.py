"""The end of a search: what keeps the whole suite, how the patches differ, and which one is meant."""

from __future__ import annotations

import ast
import copy
import doctest
import io
import itertools
import math
import os
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any

from reflex_inside.import_edits import Definitions
from reflex_inside.patch_search import PatchSearch, install
from reflex_inside.processes import Catch, Clock, TimeUp, forked, tracing
from reflex_inside.program import Candidate, Function, Program
from reflex_inside.suite import Suite, SuiteBaseline
from reflex_inside.trace import fingerprint, snapshot

if TYPE_CHECKING:
    from reflex_inside.engine import Engine


CLEAR_MARGIN = 1.5
EXAMPLE_COST = 6.0
TROUBLE_COST = 3.0
KEPT_BONUS = 0.5
INVENTED_COST = 3.0
FEW_TESTS = 3
SLOW_TEST = 0.5


@dataclass(slots=True)
class BehaviourGroup:
    """Candidates that did the same on every input."""

    candidates: list[Candidate]
    behaviour: Behaviour
    failed_examples: int
    score: float = 0.0
    bare: float = 0.0
    """The score without clues."""


@dataclass(slots=True)
class Ranking:
    groups: list[BehaviourGroup] = field(default_factory=list)
    agreement: str = "sole"
    reason: str = ""
    margin: float = 0.0

    def ordered(self) -> list[tuple[int, Candidate]]:
        """Candidates with the number of their group: the best of each group first, then the rest.

        Those that change the same line to the same effect are one idea, and the cheapest stands for it.
        """
        ideas: list[list[Candidate]] = []
        for group in self.groups:
            places: dict[tuple[str, int], Candidate] = {}
            for each in group.candidates:
                places.setdefault((each.path, each.line), each)
            ideas.append(list(places.values()))
        heads = [(number, group[0]) for number, group in enumerate(ideas)]
        tails = [(number, each) for number, group in enumerate(ideas) for each in group[1:]]
        near = [pair for pair in tails if pair[0] == 0][:2]
        return heads[:1] + near + heads[1:] + [pair for pair in tails if pair not in near]


def rank(candidates: list[Candidate], comparison: Comparison | None, *, few: bool = False) -> Ranking:
    """The patches that behave alike in groups, the best first; few examples speak for no number that is made up."""
    if comparison is None or len(comparison.behaviours) != len(candidates) + 1:
        return Ranking([BehaviourGroup([each], (), 0, each.cost) for each in candidates], *_unknown(candidates))
    groups = grouped(candidates, comparison)
    original = comparison.behaviours[-1]
    for group in groups:
        invented = INVENTED_COST * (few and "invented" in group.candidates[0].seen)
        group.score = scored(group, groups, original, lambda each: each.cost) + invented
        group.bare = scored(group, groups, original, lambda each: each.cost - each.clues) + invented
    groups.sort(key=lambda group: group.score)
    if len(candidates) == 1:
        return Ranking(groups, "sole", "no other patch passes the tests", math.inf)
    if len(groups) == 1:
        return Ranking(groups, "alike", f"{len(candidates)} patches behave alike", math.inf)
    return decided(groups)


def _unknown(candidates: list[Candidate]) -> tuple[str, str, float]:
    if len(candidates) == 1:
        return "sole", "no other patch passes the tests", math.inf
    return "disputed", "the patches could not be compared", 0.0


def grouped(candidates: list[Candidate], comparison: Comparison) -> list[BehaviourGroup]:
    groups: list[BehaviourGroup] = []
    pairs = zip(candidates, comparison.behaviours, comparison.failed_examples, strict=False)
    for candidate, behaviour, failed in sorted(pairs, key=lambda pair: pair[0].cost):
        own = next(
            (group for group in groups if alike(group.behaviour, behaviour) and group.failed_examples == failed), None
        )
        if own is None:
            groups.append(BehaviourGroup([candidate], behaviour, failed))
        else:
            own.candidates.append(candidate)
    return groups


def alike(first: Behaviour, second: Behaviour) -> bool:
    """Equal wherever both were looked at."""
    return all(one == other or one is None or other is None for one, other in zip(first, second, strict=True))


def scored(
    group: BehaviourGroup, groups: list[BehaviourGroup], original: Behaviour, cost_of: Callable[[Candidate], float]
) -> float:
    """The cost of the group: its cheapest members, its troubles, and how far it leaves the old behaviour."""
    cheapest = min(map(cost_of, group.candidates))
    votes = math.log(sum(math.exp(cheapest - cost) for cost in opinions(group.candidates, cost_of)))
    fewest = min(each.failed_examples for each in groups)
    looked = [(own, old) for own, old in zip(group.behaviour, original, strict=True) if own is not None]
    trouble = sum(troubled(own) and not troubled(old) for own, old in looked) / max(1, len(looked))
    kept = sum(own == old for own, old in looked) / max(1, len(looked))
    examples = EXAMPLE_COST * (group.failed_examples - fewest)
    return float(cheapest - votes + examples + TROUBLE_COST * trouble - KEPT_BONUS * kept)


def opinions(candidates: list[Candidate], cost_of: Callable[[Candidate], float]) -> Iterator[float]:
    """What the independent ones cost: variants of one template, and ways to put one place right, are one opinion."""
    templates: set[str] = set()
    places: set[tuple[str, int]] = set()
    for each in sorted(candidates, key=cost_of):
        place = each.path, each.line
        if each.template not in templates and place not in places:
            templates.add(each.template)
            places.add(place)
            yield cost_of(each)


def troubled(ending: object) -> bool:
    return ending == "time" or (isinstance(ending, tuple) and ending[0] == "raised")


def decided(groups: list[BehaviourGroup]) -> Ranking:
    first, second = groups[0], groups[1]
    # Clues tell rivals apart; for one that stays behind they are no reason to ask.
    margin = max(second.score - first.score, min(group.bare for group in groups[1:]) - first.bare)
    if all(group.failed_examples > first.failed_examples for group in groups[1:]):
        return Ranking(groups, "decided", "only this one meets the documented examples", margin)
    if margin >= CLEAR_MARGIN:
        return Ranking(groups, "decided", f"simpler than {len(groups) - 1} others that behave differently", margin)
    return Ranking(groups, "disputed", f"{len(groups)} patches pass the tests and behave differently", margin)


MOST_COMPARED = 30
MOST_OFFERED = 8
MOST_WHOLE = 12
LEAST_WHOLE = 2
WHOLE_SHARE = 0.08
"""Of the time: for running the whole suite with each of the best candidates, beyond the first few."""


@dataclass(slots=True)
class Choice:
    engine: Engine
    suite: Suite
    program: Program
    baseline: SuiteBaseline
    definitions: Definitions
    verified: set[Candidate] = field(default_factory=set)

    def finish(self, search: PatchSearch) -> None:
        """Ends the request with what the search has found."""
        engine, suite, program, baseline = self.engine, self.suite, self.program, self.baseline
        values: dict[str, Any] = {"tried": search.pool.tried, "cpu": round(search.pool.cpu, 3)}
        values["tests"] = [suite.cases[index].name for index in baseline.failing]
        if not search.plausible:
            late = search.cut or engine.left < engine.request.seconds * 0.1
            quickest = min((baseline.outcomes[index].wall for index in baseline.failing), default=0.0)
            took = f"; the quickest failing test takes {quickest:.1f} s" if quickest >= SLOW_TEST else ""
            spent = f"; {engine.spent()}" if engine.spent() else ""
            values["reason"] = f"{search.pool.tried} candidates tried{spent}{took}" if late else ""
            engine.finish("out of time" if late else "no patch", **values)
            return
        candidates = sorted(search.plausible, key=lambda candidate: candidate.cost)[:MOST_COMPARED]
        candidates = self._mending_most(self._kept_whole(candidates))
        if not candidates:
            engine.finish("no patch", **values)
            return
        engine.stage("compare")
        tests = baseline.failing[:10] + baseline.passing[:30]
        seconds = max(1.0, min(4.0, engine.request.seconds * 0.08))
        compared = forked(lambda: compare(program, suite, candidates, tests, seconds), seconds * 8 + 20)
        few = len(baseline.failing) + len(baseline.elsewhere) < FEW_TESTS
        ranking = rank(candidates, compared if isinstance(compared, Comparison) else None, few=few)
        ordered = ranking.ordered()[:MOST_OFFERED]
        patches = [{**self._patch(candidate), "group": group} for group, candidate in ordered]
        spoken = forked(lambda: support(program, suite, ordered[0][1], tests, seconds * 0.25), seconds * 4 + 10)
        patches[0]["support"] = spoken if isinstance(spoken, int) else None
        margin = round(min(ranking.margin, 99.0), 3)
        engine.finish(
            "repaired", patches=patches, agreement=ranking.agreement, reason=ranking.reason, margin=margin, **values
        )

    def _kept_whole(self, candidates: list[Candidate]) -> list[Candidate]:
        """Without the candidates that break a passing test which no trace connected with them."""
        engine, baseline = self.engine, self.baseline
        order = sorted(baseline.failing + baseline.passing)
        seconds = max(5.0, 4 * baseline.seconds) + 5
        kept: list[Candidate] = []
        until = time.monotonic() + WHOLE_SHARE * engine.request.seconds
        for candidate in candidates:
            late = len(kept) >= LEAST_WHOLE and time.monotonic() > until
            if not late and engine.left > 0 and len(kept) < MOST_WHOLE:
                passed: bool | None
                if candidate.at_import:
                    passed = engine.zygotes[0].passes(replace(self.definitions.last(candidate), seconds=seconds * 2))
                else:
                    passed = self._passes(candidate, order, seconds)
                if passed is False:
                    continue
                if passed and (candidate.at_import or baseline.complete):
                    self.verified.add(candidate)
            kept.append(candidate)
        return kept

    def _passes(self, candidate: Candidate, tests: list[int], seconds: float) -> bool | None:
        """Whether these tests pass in a fork; None when that cannot be told."""
        limits = {index: 4 * self.baseline.outcomes[index].seconds + 1.0 for index in tests}
        passed: bool | None = forked(lambda: whole(self.suite, self.program, candidate, limits), seconds)
        return passed

    def _mending_most(self, candidates: list[Candidate]) -> list[Candidate]:
        """Only those that mend the other failures too, where there are any: then one cause explains them all."""
        engine, elsewhere = self.engine, self.baseline.elsewhere
        if not elsewhere:
            return candidates
        seconds = max(5.0, sum(4 * self.baseline.outcomes[index].seconds + 1.0 for index in elsewhere))
        names = tuple(self.suite.cases[index].name for index in elsewhere)
        found: list[Candidate] = []
        until = time.monotonic() + WHOLE_SHARE * engine.request.seconds
        for candidate in candidates:
            if time.monotonic() > until:
                break
            if candidate.at_import:
                task = replace(self.definitions.last(candidate), names=names, seconds=seconds, whole=False)
                mended = engine.zygotes[0].passes(task)
            else:
                mended = bool(self._passes(candidate, elsewhere, seconds))
            if mended:
                found.append(candidate)
        return found or candidates

    def _patch(self, candidate: Candidate) -> dict[str, Any]:
        program = self.program
        function = program.functions[candidate.function].name if candidate.function >= 0 else ""
        return {
            "path": os.path.relpath(candidate.path, self.engine.request.root),
            "edits": [program.sources[candidate.path].trimmed(edit) for edit in sorted(candidate.edits)],
            "template": candidate.template,
            "function": function,
            "line": candidate.line,
            "cost": round(candidate.cost - candidate.clues, 2),
            "verified": candidate in self.verified,
        }


def whole(suite: Suite, program: Program, candidate: Candidate, limits: dict[int, float]) -> bool:
    """Whether all tests pass in their own order."""
    return install(program, candidate) is not None and all(suite.run(i, limit).passed for i, limit in limits.items())


def mutated(value: Any, rng: random.Random) -> Any:
    """A value of the same type, near the given one; what is not understood stays as it is."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, 0, 1, value * 2, value // 2, rng.randint(0, 20), value))
    if isinstance(value, float):
        return rng.choice((value + 1.0, value - 0.5, -value, 0.0, value * 2, round(value), value))
    if isinstance(value, str):
        return _text(value, rng)
    if isinstance(value, (list, tuple)):
        return type(value)(_items(list(value), rng)) if type(value) in {list, tuple} else value
    if isinstance(value, dict) and type(value) is dict:
        return _mapping(dict(value), rng)
    if isinstance(value, set):
        return set(_items(sorted(value, key=repr), rng))
    return value


def _text(value: str, rng: random.Random) -> str:
    place = rng.randint(0, max(0, len(value) - 1))
    letter = rng.choice(value or "ab ")
    return rng.choice(
        (
            value[:place] + value[place + 1 :],
            value[:place] + letter + value[place:],
            "".join(rng.sample(value, len(value))),
            value[::-1],
            value + value[:place],
            value.swapcase(),
            value[: place + 1],
            "",
        )
    )


def _items(items: list[Any], rng: random.Random) -> list[Any]:
    if not items:
        return items
    place = rng.randrange(len(items))
    choice = rng.randint(0, 7)
    if choice == 0:
        del items[place]
    elif choice == 1:
        items.insert(place, mutated(items[place], rng))
    elif choice == 2:
        rng.shuffle(items)
    elif choice == 3:
        items.append(rng.choice(items))
    elif choice == 4:
        items = items[: place + 1]
    elif choice == 5:
        items.reverse()
    else:
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(items))
            items[place] = mutated(items[place], rng)
    return items


def _mapping(items: dict[Any, Any], rng: random.Random) -> dict[Any, Any]:
    if not items:
        return items
    key = rng.choice(list(items))
    choice = rng.randint(0, 2)
    if choice == 0:
        del items[key]
    elif choice == 1:
        items[key] = mutated(items[key], rng)
    else:
        items[mutated(key, rng)] = items[key]
    return items


RECORDED = 40
MUTATED = 160
CALL_SECONDS = 0.1
LONGEST_GENERATED = 500

Arguments = dict[str, Any]
Behaviour = tuple[Any, ...]


@dataclass(slots=True)
class Comparison:
    """The behaviour of each candidate on the inputs; the last one is that of the program as it is."""

    behaviours: list[Behaviour] = field(default_factory=list)
    failed_examples: list[int] = field(default_factory=list)
    """By candidate: how many documented examples of the code it does not meet."""
    inputs: int = 0


class CallRecorder:
    """Keeps the arguments of calls to some functions."""

    def __init__(self, program: Program, suite: Suite, touched: set[int]) -> None:
        self.program = program
        self.suite = suite
        self.touched = touched
        self.starts = {(f.path, f.first_line): f.index for f in program.functions}
        self.by_tests: dict[int, list[Arguments]] = {}
        self.inner: dict[int, list[Arguments]] = {}
        self.unknown: set[int] = set()
        """Functions with a call whose arguments could not be kept."""
        self.path = ""

    def enter(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        index = self.starts.get((code.co_filename, code.co_firstlineno))
        if index is None or frame.f_back is None:
            return
        by_test = frame.f_back.f_code.co_filename == self.path
        if not by_test and index not in self.touched:
            return
        kept = (self.by_tests if by_test else self.inner).setdefault(index, [])
        if len(kept) < RECORDED:
            given = snapshot(frame.f_locals)
            if len(given) == len(frame.f_locals):
                kept.append(given)
            else:
                self.unknown.add(index)

    def record(self, tests: list[int], seconds: float) -> None:
        deadline = time.process_time() + seconds
        for test in tests:
            if time.process_time() > deadline:
                break
            self.path = self.suite.cases[test].path
            with tracing(self.enter):
                self.suite.run(test, 0.5)

    def calls(self) -> dict[int, list[Arguments]]:
        """Calls by tests where there are any, else calls from inside."""
        return self.by_tests or self.inner

    def examples(self, index: int) -> int | None:
        """How many different inputs of the function were seen; None where that says nothing."""
        calls = [*self.by_tests.get(index, ()), *self.inner.get(index, ())]
        if index in self.unknown or not calls or not calls[0].keys() - {"self", "cls"}:
            return None
        return len({fingerprint(tuple(given.values())) for given in calls})


def compare(
    program: Program, suite: Suite, candidates: list[Candidate], tests: list[int], seconds: float
) -> Comparison:
    """Runs every candidate on recorded and mutated inputs."""
    recorder = CallRecorder(program, suite, {candidate.function for candidate in candidates})
    recorder.record(tests, seconds * 0.25)
    rng = random.Random(0)
    inputs = [
        (program.functions[index], given)
        for index, calls in recorder.calls().items()
        for given in amplified(calls, rng, MUTATED // max(1, len(recorder.calls())))
    ]
    examples = [example for function in program.functions for example in documented(function, recorder)]
    comparison = Comparison(inputs=len(inputs))
    deadline = time.process_time() + seconds * 0.75
    for candidate in [*candidates, None]:
        undo = install(program, candidate) if candidate is not None else None
        share = (deadline - time.process_time()) / 3
        comparison.behaviours.append(behaviour(inputs, time.process_time() + max(0.2, share)))
        comparison.failed_examples.append(sum(not example() for example in examples))
        if undo is not None:
            undo()
    return comparison


def support(program: Program, suite: Suite, candidate: Candidate, tests: list[int], seconds: float) -> int | None:
    """How many different examples of tests and docstrings speak for the candidate; 0 where one of its docstring speaks
    against it, None where that cannot be counted."""
    recorder = CallRecorder(program, suite, {candidate.function})
    if candidate.function < 0 or install(program, candidate) is None:
        return None
    recorder.record(tests, seconds)
    seen = recorder.examples(candidate.function)
    if seen is None:
        return None
    own = [example() for example in documented(program.functions[candidate.function], recorder)]
    return max(seen, len(own)) if all(own) else 0


def amplified(calls: list[Arguments], rng: random.Random, count: int) -> list[Arguments]:
    found = list(calls)
    for number in range(count if calls else 0):
        given = copy.deepcopy(calls[number % len(calls)])
        names = [name for name in given if name not in {"self", "cls"}]
        for _ in range(rng.randint(1, 2)):
            for name in names:
                if len(names) == 1 or rng.random() < 0.6:
                    given[name] = mutated(given[name], rng)
        found.append(given)
    return found


def behaviour(inputs: list[tuple[Function, Arguments]], deadline: float) -> Behaviour:
    """How each call ends; inputs past the deadline count as not looked at."""
    return tuple(one_ending(*each) if time.process_time() < deadline else None for each in inputs)


def one_ending(function: Function, given: Arguments) -> Any:
    with Catch() as copied:
        own = copy.deepcopy(given)
        positional, keyword = arranged(function, own)
    if copied.error is not None:
        return None
    value: Any = None
    with Catch() as caught, Clock(CALL_SECONDS):
        value = function.main(*positional, **keyword)
        if hasattr(value, "__next__"):
            value = list(itertools.islice(value, LONGEST_GENERATED))
    Clock.disarm()
    if isinstance(caught.error, TimeUp):
        return "time"
    if caught.error is not None:
        return ("raised", type(caught.error).__name__)
    after = tuple(fingerprint(argument) for argument in own.values() if isinstance(argument, (list, dict, set)))
    return ("value", fingerprint(value), after)


def arranged(function: Function, given: Arguments) -> tuple[list[Any], dict[str, Any]]:
    """The recorded arguments as a call takes them."""
    arguments = function.node.args
    positional = [given[each.arg] for each in [*arguments.posonlyargs, *arguments.args] if each.arg in given]
    if arguments.vararg is not None:
        positional += given.get(arguments.vararg.arg, ())
    keyword = {each.arg: given[each.arg] for each in arguments.kwonlyargs if each.arg in given}
    if arguments.kwarg is not None:
        keyword.update(given.get(arguments.kwarg.arg, {}))
    return positional, keyword


def documented(function: Function, recorder: CallRecorder) -> list[Callable[[], bool]]:
    """The examples in the docstrings of functions that were called, as checks."""
    if function.index not in recorder.by_tests and function.index not in recorder.touched:
        return []
    text = ast.get_docstring(function.node) or ""
    found: list[Callable[[], bool]] = []
    with Catch():
        names = function.namespace
        for example in doctest.DocTestParser().get_examples(text)[:20]:
            found.append(partial(example_holds, example, names))
    return found


def example_holds(example: doctest.Example, names: dict[str, Any]) -> bool:
    single = doctest.DocTest([example], dict(names), "example", None, 0, None)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    with Catch(), Clock(CALL_SECONDS * 3):
        runner.run(single, out=io.StringIO().write, clear_globs=False)
    Clock.disarm()
    results = runner.summarize(verbose=False)
    return results.failed == 0 and results.attempted > 0
