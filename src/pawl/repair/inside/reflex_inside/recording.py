"""Runs tests under a tracer and keeps the variables at the statements in question, and what calls gave back."""

from __future__ import annotations

import ast
import copy
import linecache
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import BuiltinFunctionType, FrameType, FunctionType, ModuleType
from typing import Any

from reflex_inside.processes import Catch, tracing
from reflex_inside.program import Program
from reflex_inside.suite import Suite

PLAIN = (int, float, bool, str, bytes, complex, type(None))
KEPT = (ModuleType, FunctionType, BuiltinFunctionType, type)
LARGEST = 4000
LONGEST_SHOWN = 600


class Failure:
    """Stands for the value of an expression that raises."""

    def __repr__(self) -> str:
        return "failure"


FAILURE = Failure()


def size_of(value: Any, room: int) -> int:
    """About how many parts the value has, counted until there is no more room."""
    if isinstance(value, (str, bytes)):
        return 1 + len(value) // 200
    if isinstance(value, dict):
        parts = [part for pair in value.items() for part in pair]
    elif isinstance(value, (list, tuple, set, frozenset)):
        parts = list(value)
    else:
        return 1
    total = 1
    for part in parts:
        total += size_of(part, room - total)
        if total > room:
            break
    return total


def snapshot(names: dict[str, Any]) -> dict[str, Any]:
    """The variables as they are now; what cannot be copied is left out."""
    kept: dict[str, Any] = {}
    memo: dict[int, Any] = {}
    for name, value in names.items():
        if isinstance(value, PLAIN + KEPT):
            kept[name] = value
        elif not hasattr(value, "__next__") and size_of(value, LARGEST) <= LARGEST:
            with Catch():
                kept[name] = copy.deepcopy(value, memo)
    return kept


def fingerprint(value: Any) -> Any:
    """Equal for values that a program can hardly tell apart."""
    if isinstance(value, PLAIN):
        # The last digits of a float depend on the order of the steps, which is no difference in behaviour.
        return (type(value), f"{value:.10g}") if isinstance(value, float) else (type(value), value)
    if value is FAILURE:
        return FAILURE
    shown: Any = id(value)
    with Catch():
        if isinstance(value, (set, frozenset)):
            shown = repr(sorted(value, key=repr))[:LONGEST_SHOWN]
        else:
            shown = repr(value)[:LONGEST_SHOWN]
    return (type(value), shown)


def fingerprints(values: list[Any]) -> tuple[Any, ...]:
    return tuple(fingerprint(value) for value in values)


def equal(first: Any, second: Any) -> bool:
    """Equality as an assertion would see it, with some room for floats."""
    with Catch():
        if isinstance(first, float) and isinstance(second, (int, float)):
            return bool(first == second or abs(first - second) <= 1e-9 * max(1.0, abs(first)))
        return bool(first == second)
    return False


PURE = (
    ast.Constant, ast.Name, ast.List, ast.Tuple, ast.Dict, ast.Set, ast.UnaryOp, ast.BinOp, ast.Attribute,
    ast.Subscript, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip
EQUALITIES = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertIs", "assertSetEqual"}
)


def wanted_values(program: Program, path: str, error: BaseException, calls: list[RecordedCall]) -> None:
    """Notes on the call that a failed assertion speaks of what it should have returned."""
    frame, line = _test_frame(error, path)
    if frame is None:
        return
    pair = _assertion(frame, path, line)
    if pair is None:
        return
    subject, wanted = pair
    own = [call for call in calls if call.by_test]
    if isinstance(subject, ast.Call):
        function = _called_function(program, subject, frame)
        own = [call for call in own if call.function == function]
    elif isinstance(subject, ast.Name):
        value = frame.f_locals.get(subject.id)
        own = [call for call in own if type(call.returned) is type(value) and call.returned == value]
    else:
        return
    if own:
        own[-1].wanted = wanted


def _test_frame(error: BaseException, path: str) -> tuple[FrameType | None, int]:
    trace, found, line = error.__traceback__, None, 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            found, line = trace.tb_frame, trace.tb_lineno
        trace = trace.tb_next
    return found, line


def _assertion(frame: FrameType, path: str, line: int) -> tuple[ast.expr, Any] | None:
    """The expression that was judged, and the value it should have had."""
    tree = ast.parse("".join(linecache.getlines(path)))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assert, ast.Expr)) and node.lineno <= line <= (node.end_lineno or line):
            if isinstance(node, ast.Assert):
                return _judged(node.test, frame)
            if isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
                return _method(node.value, frame)
    return None


def _judged(test: ast.expr, frame: FrameType) -> tuple[ast.expr, Any] | None:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return test.operand, False
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.Eq, ast.Is)):
        return _sides(test.left, test.comparators[0], frame)
    return (test, True) if isinstance(test, (ast.Call, ast.Name)) else None


def _method(call: ast.Call, frame: FrameType) -> tuple[ast.expr, Any] | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name in EQUALITIES and len(call.args) >= 2:
        return _sides(call.args[0], call.args[1], frame)
    if name in {"assertTrue", "assertFalse"} and call.args:
        return call.args[0], name == "assertTrue"
    return None


def _sides(left: ast.expr, right: ast.expr, frame: FrameType) -> tuple[ast.expr, Any] | None:
    for subject, other in ((left, right), (right, left)):
        if isinstance(subject, (ast.Call, ast.Name)) and all(isinstance(node, PURE) for node in ast.walk(other)):
            value: list[Any] = []
            with Catch():
                value.append(eval(compile(ast.Expression(other), "wanted", "eval"), frame.f_globals, frame.f_locals))
            if value:
                return subject, value[0]
    return None


def _called_function(program: Program, call: ast.Call, frame: FrameType) -> int:
    found: list[Any] = []
    with Catch():
        found.append(eval(compile(ast.Expression(call.func), "called", "eval"), frame.f_globals, frame.f_locals))
    thing: Any = getattr(found[0], "__func__", found[0]) if found else None
    while hasattr(thing, "__wrapped__"):
        thing = thing.__wrapped__
    code = getattr(thing, "__code__", None)
    for function in program.functions:
        if code is not None and (code.co_filename, code.co_firstlineno) == (function.path, function.first_line):
            return function.index
    return -1


STATES_PER_TEST = 12
STATES_PER_LINE = 48
NOTHING = object()


@dataclass(slots=True)
class RecordedCall:
    """One call of a function by anyone: what it returned, and what a failing test wanted instead."""

    function: int
    test: int
    by_test: bool
    returned: Any = FAILURE
    wanted: Any = NOTHING


@dataclass(slots=True)
class State:
    """The variables when a statement was about to run."""

    names: dict[str, Any]
    test: int
    failing: bool
    call: int
    """Index of the call in whose frame it was."""


@dataclass(slots=True)
class Recording:
    calls: list[RecordedCall] = field(default_factory=list)
    states: dict[tuple[str, int], list[State]] = field(default_factory=dict)
    cut: set[tuple[tuple[str, int], int]] = field(default_factory=set)
    """Places and tests where some states were left out."""

    def complete(self, place: tuple[str, int], test: int) -> bool:
        return (place, test) not in self.cut


class StateRecorder:
    def __init__(self, program: Program, suite: Suite, places: set[tuple[str, int]]) -> None:
        self.program = program
        self.suite = suite
        self.places = places
        self.recording = Recording()
        self.test = 0
        self.failing = False
        self.counts: dict[tuple[str, int], int] = {}
        self.frames: dict[int, int] = {}
        self.starts = {
            (function.path, function.first_line): function.index
            for function in program.functions
            if any(path == function.path and function.first_line <= line <= function.last_line for path, line in places)
        }

    def record(self, test: int, *, failing: bool, seconds: float) -> None:
        self.test, self.failing = test, failing
        self.counts, self.frames = {}, {}
        first = len(self.recording.calls)
        with tracing(self._enter):
            self.suite.run(test, seconds)
        if failing and self.suite.error is not None:
            with Catch():
                wanted_values(self.program, self.suite.cases[test].path, self.suite.error, self.recording.calls[first:])

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        function = self.starts.get((code.co_filename, code.co_firstlineno))
        if function is None:
            return self._step if code.co_filename in self.program.sources and id(frame.f_back) in self.frames else None
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        self.frames[id(frame)] = len(self.recording.calls)
        by_test = caller == self.suite.cases[self.test].path
        self.recording.calls.append(RecordedCall(function, self.test, by_test))
        return self._step

    def _step(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "line":
            place = (frame.f_code.co_filename, frame.f_lineno)
            call = self.frames.get(id(frame))
            if place in self.places and call is not None:
                self._keep(place, frame, call)
        elif event == "return":
            call = self.frames.pop(id(frame), None)
            if call is not None:
                self.recording.calls[call].returned = snapshot({"value": argument}).get("value", FAILURE)
        return self._step

    def _keep(self, place: tuple[str, int], frame: FrameType, call: int) -> None:
        states = self.recording.states.setdefault(place, [])
        count = self.counts.get(place, 0)
        if count >= STATES_PER_TEST or len(states) >= STATES_PER_LINE:
            self.recording.cut.add((place, self.test))
            return
        self.counts[place] = count + 1
        states.append(State(snapshot(frame.f_locals), self.test, self.failing, call))


def record_states(
    program: Program, suite: Suite, places: set[tuple[str, int]], tests: list[tuple[int, bool]], seconds: float
) -> Recording:
    """States at the places, from failing tests and then from passing ones."""
    recorder = StateRecorder(program, suite, places)
    deadline = time.process_time() + seconds
    for test, failing in tests:
        if time.process_time() > deadline:
            break
        recorder.record(test, failing=failing, seconds=max(0.3, seconds / 3))
    return recorder.recording
