"""Tests run under a tracer: their lines and the suspicion that follows, types, variables, and what calls gave back."""

from __future__ import annotations

import ast
import copy
import linecache
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import BuiltinFunctionType, CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from reflex_inside.processes import Catch, tracing
from reflex_inside.program import Program, definitions
from reflex_inside.suite import Suite, SuiteBaseline

Line = tuple[str, int]
NOTES_PER_LINE = 3
ATTRIBUTES = 60
HANGING_TRACES = 2
HANGING_SECONDS = 0.15


@dataclass(slots=True)
class Observed:
    """The trace of a run of the suite."""

    covered: dict[int, frozenset[Line]] = field(default_factory=dict)
    types: dict[int, dict[str, set[str]]] = field(default_factory=dict)
    """Of each function, by its index: what its variables were seen to be; `self.x` counts as a variable."""
    attributes: dict[int, dict[str, list[str]]] = field(default_factory=dict)


class Tracer:
    """Follows execution in the program's own files only."""

    def __init__(self, program: Program) -> None:
        self.observed = Observed()
        self.lines: set[Line] = set()
        self.notes: dict[Line, int] = {}
        self.owner: dict[str, dict[int, int]] = {path: {} for path in program.sources}
        for function in program.functions:
            lines = self.owner[function.path]
            for line in range(function.first_line, function.last_line + 1):
                lines[line] = function.index

    def enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        return self.step if frame.f_code.co_filename in self.owner else None

    def step(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        place = (frame.f_code.co_filename, frame.f_lineno)
        if event == "line":
            self.lines.add(place)
        if event in {"line", "return"}:
            count = self.notes.get(place, 0)
            if count < NOTES_PER_LINE:
                self.notes[place] = count + 1
                self._note(frame)
        return self.step

    def _note(self, frame: FrameType) -> None:
        index = self.owner[frame.f_code.co_filename].get(frame.f_lineno)
        if index is None:
            return
        types = self.observed.types.setdefault(index, {})
        attributes = self.observed.attributes.setdefault(index, {})
        for name, value in frame.f_locals.items():
            types.setdefault(name, set()).add(type(value).__name__)
            if type(value).__module__ == "builtins" or isinstance(value, (ModuleType, FunctionType)):
                continue
            if name not in attributes:
                attributes[name] = [each for each in dir(type(value)) if not each.startswith("_")][:ATTRIBUTES]
            own = getattr(value, "__dict__", None)
            if isinstance(own, dict):
                for key, held in list(own.items())[:ATTRIBUTES]:
                    types.setdefault(f"{name}.{key}", set()).add(type(held).__name__)
                    if key not in attributes[name]:
                        attributes[name].append(key)

    @contextmanager
    def following(self) -> Iterator[None]:
        self.lines, self.notes = set(), {}
        with tracing(self.enter):
            yield


class LineMonitor:
    """Line coverage by `sys.monitoring`: each line costs one event a test."""

    def __init__(self, program: Program) -> None:
        self.files = frozenset(program.sources)
        self.lines: set[Line] = set()
        self.monitoring: Any = getattr(sys, "monitoring", None)

    def available(self) -> bool:
        return self.monitoring is not None and self.monitoring.get_tool(self.monitoring.COVERAGE_ID) is None

    def _hit(self, code: CodeType, line: int) -> Any:
        if code.co_filename in self.files:
            self.lines.add((code.co_filename, line))
        return self.monitoring.DISABLE

    @contextmanager
    def following(self) -> Iterator[None]:
        self.lines = set()
        tool = self.monitoring.COVERAGE_ID
        self.monitoring.use_tool_id(tool, "reflex")
        self.monitoring.register_callback(tool, self.monitoring.events.LINE, self._hit)
        self.monitoring.restart_events()
        self.monitoring.set_events(tool, self.monitoring.events.LINE)
        try:
            yield
        finally:
            self.monitoring.set_events(tool, 0)
            self.monitoring.free_tool_id(tool)


def files_run(suite: Suite, tests: list[int], seconds: float) -> set[str]:
    """The files whose functions these tests enter."""
    found: set[str] = set()
    deadline = time.monotonic() + seconds

    def enter(frame: FrameType, event: str, argument: Any) -> None:
        found.add(frame.f_code.co_filename)

    for test in tests:
        if found and time.monotonic() > deadline:
            break
        with tracing(enter):
            suite.run(test, 2.0)
    return found


def trace_suite(
    suite: Suite, program: Program, baseline: SuiteBaseline, passing: list[int], seconds: float
) -> Observed:
    """Traces the failing tests with values, then as many passing ones as the time allows."""
    failing = baseline.failing
    hanging = [index for index in failing if baseline.outcomes[index].timed_out]
    tracer, monitor = Tracer(program), LineMonitor(program)
    observed = tracer.observed
    deadline = time.monotonic() + seconds
    order = sorted(failing + passing) if baseline.ordered else failing + passing
    for count, index in enumerate(order):
        left = deadline - time.monotonic()
        if count and left <= 0:
            break
        # What hangs repeats itself: a short look at a few such tests shows all their lines.
        if index in hanging[HANGING_TRACES:]:
            continue
        limit = HANGING_SECONDS if index in hanging else max(0.5, min(4.0, left / 4))
        exact = index in failing or not monitor.available()
        follower: Tracer | LineMonitor = tracer if exact else monitor
        with Catch(), follower.following():
            suite.run(index, limit)
        observed.covered[index] = frozenset(follower.lines)
    return observed


CRASH_BONUS = 1.3
INDIRECT = 0.5


@dataclass(slots=True)
class LineSuspicion:
    lines: dict[Line, float]
    functions: dict[int, dict[int, float]] = field(default_factory=dict)
    """By function index: the suspicious lines of its body."""
    globals: dict[str, dict[int, float]] = field(default_factory=dict)
    """By path: lines outside functions that suspicious functions depend on."""

    def ordered_functions(self) -> list[int]:
        return sorted(self.functions, key=lambda index: -max(self.functions[index].values()))

    def top(self, count: int) -> list[tuple[Line, float]]:
        return sorted(self.lines.items(), key=lambda item: (-item[1], item[0]))[:count]


def suspect(program: Program, baseline: SuiteBaseline, observed: Observed) -> LineSuspicion:
    """Scores each line that a failing test runs by how much it belongs to failing tests alone."""
    failed: Counter[Line] = Counter()
    passed: Counter[Line] = Counter()
    failing = [index for index in baseline.failing if index in observed.covered]
    for index, covered in observed.covered.items():
        (failed if index in failing else passed).update(covered)
    scores = {line: count / math.sqrt(len(failing) * (count + passed[line])) for line, count in failed.items()}
    for index in failing:
        crash = next((frame for frame in reversed(baseline.outcomes[index].frames) if frame in scores), None)
        if crash is not None and baseline.outcomes[index].kind != "AssertionError":
            scores[crash] = min(1.0, scores[crash] * CRASH_BONUS)
    suspicion = LineSuspicion(scores)
    for function in program.functions:
        body = range(function.node.body[0].lineno, function.last_line + 1)
        lines = {line: scores[function.path, line] for line in body if (function.path, line) in scores}
        if lines:
            suspicion.functions[function.index] = lines
    _spread_to_globals(program, suspicion)
    return suspicion


def _spread_to_globals(program: Program, suspicion: LineSuspicion) -> None:
    """A name that suspicious lines read makes the line that defines it suspicious too, though less."""
    used: dict[str, dict[str, float]] = {}
    for index, lines in suspicion.functions.items():
        function = program.functions[index]
        names = used.setdefault(function.path, {})
        for node in ast.walk(function.node):
            name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else None
            if name is not None:
                score = lines.get(getattr(node, "lineno", 0), 0.0) * INDIRECT
                names[name] = max(names.get(name, 0.0), score)
    for path, names in used.items():
        found: dict[int, float] = {}
        for block, place, _ in definitions(program.sources[path].tree.body, ()):
            statement = block[place]
            targets = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
            score = max((names.get(name, 0.0) for name in targets), default=0.0)
            if score:
                found[statement.lineno] = score
        if found:
            suspicion.globals[path] = found


def clusters(program: Program, baseline: SuiteBaseline, observed: Observed) -> list[list[int]]:
    """The failing tests in groups that share no suspicious function, the largest first.

    A function that more passing than failing tests run joins nobody: it is common ground. A test of which no trace
    tells what it ran (one that hangs, say) joins the largest group.
    """
    ran = {index: _functions(program, observed, index) for index in (*baseline.failing, *baseline.passing)}
    failed = Counter(function for index in baseline.failing for function in ran[index])
    passed = Counter(function for index in baseline.passing for function in ran[index])
    groups: list[tuple[set[int], list[int]]] = []
    untold = [index for index in baseline.failing if not ran[index]]
    for index in baseline.failing:
        if not ran[index]:
            continue
        origin = _origin(program, baseline, index)
        telling = {function for function in ran[index] if failed[function] >= passed[function]} or ran[index]
        # Two tests that broke at the same line broke for the same reason, whoever else runs it.
        telling = telling | ({origin} if origin is not None else set())
        joined = [group for group in groups if not group[0].isdisjoint(telling)]
        functions = telling.union(*(group[0] for group in joined))
        tests = [test for group in joined for test in group[1]] + [index]
        groups = [group for group in groups if group not in joined] + [(functions, tests)]
    ordered = sorted((sorted(tests) for _, tests in groups), key=lambda tests: (-len(tests), tests))
    if not ordered:
        return [untold]
    return [sorted(ordered[0] + untold), *ordered[1:]]


def _origin(program: Program, baseline: SuiteBaseline, index: int) -> int | None:
    """The function of the program in which the test's exception was raised."""
    frames = [frame for frame in baseline.outcomes[index].frames if frame[0] in program.sources]
    function = program.function_at(*frames[-1]) if frames else None
    return function.index if function is not None else None


def _functions(program: Program, observed: Observed, index: int) -> set[int]:
    lines = observed.covered.get(index, frozenset())
    return {
        function.index
        for function in program.functions
        if any((function.path, line) in lines for line in range(function.node.body[0].lineno, function.last_line + 1))
    }


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
