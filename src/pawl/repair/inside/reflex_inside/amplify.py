"""Plausible patches compared by what they do on inputs that no test has: mutations of recorded arguments."""

from __future__ import annotations

import ast
import copy
import doctest
import io
import itertools
import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import FrameType
from typing import Any

from reflex_inside.edits import Candidate
from reflex_inside.judge import install
from reflex_inside.limits import Caught, Clock, TimeUp
from reflex_inside.program import Function, Program
from reflex_inside.suite import Suite
from reflex_inside.synthesis.record import fingerprint, snapshot


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
    """What each candidate does on the inputs; the last behaviour is that of the program as it is."""

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

    def record(self, tests: list[int], seconds: float) -> None:
        deadline = time.process_time() + seconds
        for test in tests:
            if time.process_time() > deadline:
                break
            self.path = self.suite.cases[test].path
            sys.settrace(self.enter)
            try:
                with Caught():
                    self.suite.run(test, 0.5)
            finally:
                sys.settrace(None)

    def calls(self) -> dict[int, list[Arguments]]:
        """Calls by tests where there are any, else calls from inside."""
        return self.by_tests or self.inner


def compare(
    program: Program, suite: Suite, candidates: list[Candidate], tests: list[int], seconds: float, seed: int
) -> Comparison:
    """Runs every candidate on recorded and mutated inputs."""
    recorder = CallRecorder(program, suite, {candidate.function for candidate in candidates})
    recorder.record(tests, seconds * 0.25)
    rng = random.Random(seed)
    inputs = [
        (program.functions[index], given)
        for index, calls in recorder.calls().items()
        for given in amplified(calls, rng, MUTATED // max(1, len(recorder.calls())))
    ]
    examples = [example for function in program.functions for example in documented(function, recorder)]
    comparison = Comparison(inputs=len(inputs))
    deadline = time.process_time() + seconds * 0.75
    alive = list(range(len(inputs)))
    for candidate in [*candidates, None]:
        undo = install(program, candidate) if candidate is not None else None
        share = (deadline - time.process_time()) / 3
        comparison.behaviours.append(behaviour(inputs, alive, time.process_time() + max(0.2, share)))
        comparison.failed_examples.append(sum(not example() for example in examples))
        if undo is not None:
            undo()
    return comparison


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


def behaviour(inputs: list[tuple[Function, Arguments]], alive: list[int], deadline: float) -> Behaviour:
    """How each call ends; inputs past the deadline count as not looked at."""
    ended: list[Any] = []
    for position in alive:
        function, given = inputs[position]
        ended.append(one_ending(function, given) if time.process_time() < deadline else None)
    return tuple(ended)


def one_ending(function: Function, given: Arguments) -> Any:
    with Caught() as copied:
        own = copy.deepcopy(given)
        positional, keyword = arranged(function, own)
    if copied.error is not None:
        return None
    value: Any = None
    with Caught() as caught, Clock(CALL_SECONDS):
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
    with Caught():
        names = function.namespace
        for example in doctest.DocTestParser().get_examples(text)[:20]:
            found.append(partial(example_holds, example, names))
    return found


def example_holds(example: doctest.Example, names: dict[str, Any]) -> bool:
    single = doctest.DocTest([example], dict(names), "example", None, 0, None)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    with Caught(), Clock(CALL_SECONDS * 3):
        runner.run(single, out=io.StringIO().write, clear_globs=False)
    Clock.disarm()
    results = runner.summarize(verbose=False)
    return results.failed == 0 and results.attempted > 0
