"""What each test does: the lines it runs and the types its variables hold."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any

from reflex_inside.baseline import Baseline
from reflex_inside.caught import Caught
from reflex_inside.program import Program
from reflex_inside.suite import Outcome, Suite

Line = tuple[str, int]
NOTES_PER_LINE = 3
ATTRIBUTES = 60
HANGING_TRACES = 2
HANGING_SECONDS = 0.15


@dataclass(slots=True)
class Observed:
    """The trace of a run of the suite."""

    outcomes: dict[int, Outcome] = field(default_factory=dict)
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
        sys.settrace(self.enter)
        try:
            yield
        finally:
            sys.settrace(None)


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
        sys.settrace(enter)
        try:
            with Caught():
                suite.run(test, 2.0)
        finally:
            sys.settrace(None)
    return found


def trace_suite(suite: Suite, program: Program, baseline: Baseline, passing: list[int], seconds: float) -> Observed:
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
        with Caught():
            if index in failing or not monitor.available():
                with tracer.following():
                    observed.outcomes[index] = suite.run(index, limit)
                observed.covered[index] = frozenset(tracer.lines)
            else:
                with monitor.following():
                    observed.outcomes[index] = suite.run(index, limit)
                observed.covered[index] = frozenset(monitor.lines)
    return observed
