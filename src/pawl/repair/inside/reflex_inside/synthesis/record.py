"""Runs tests under a tracer and keeps the variables at the statements in question, and what calls gave back."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

from reflex_inside.caught import Caught
from reflex_inside.program import Program
from reflex_inside.suite import Suite
from reflex_inside.synthesis.values import FAILURE, snapshot
from reflex_inside.synthesis.wanted import wanted_values

STATES_PER_TEST = 12
STATES_PER_LINE = 48
NOTHING = object()


@dataclass(slots=True)
class Call:
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
    calls: list[Call] = field(default_factory=list)
    states: dict[tuple[str, int], list[State]] = field(default_factory=dict)
    cut: set[tuple[tuple[str, int], int]] = field(default_factory=set)
    """Places and tests where some states were left out."""

    def complete(self, place: tuple[str, int], test: int) -> bool:
        return (place, test) not in self.cut


class Recorder:
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
        sys.settrace(self._enter)
        try:
            with Caught():
                self.suite.run(test, seconds)
        finally:
            sys.settrace(None)
        if failing and self.suite.error is not None:
            with Caught():
                wanted_values(self.program, self.suite.cases[test].path, self.suite.error, self.recording.calls[first:])

    def _enter(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        function = self.starts.get((code.co_filename, code.co_firstlineno))
        if function is None:
            return self._step if code.co_filename in self.program.sources and id(frame.f_back) in self.frames else None
        caller = frame.f_back.f_code.co_filename if frame.f_back is not None else ""
        self.frames[id(frame)] = len(self.recording.calls)
        by_test = caller == self.suite.cases[self.test].path
        self.recording.calls.append(Call(function, self.test, by_test))
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
    recorder = Recorder(program, suite, places)
    deadline = time.process_time() + seconds
    for test, failing in tests:
        if time.process_time() > deadline:
            break
        recorder.record(test, failing=failing, seconds=max(0.3, seconds / 3))
    return recorder.recording
