"""A collected suite and how its tests end."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Protocol

from reflex_inside.processes import Catch, Clock, TimeUp, forked, forked_each

MESSAGE_LENGTH = 400
ENDED = "Ended"
LONG_WAIT = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    passed: bool
    kind: str = ""
    """The name of the exception's type."""
    message: str = ""
    frames: tuple[tuple[str, int], ...] = ()
    """File and line of each frame, outermost first."""
    seconds: float = 0.0
    """Of CPU time."""
    wall: float = 0.0

    @property
    def timed_out(self) -> bool:
        return self.kind == "TimeUp"

    @property
    def ended_all(self) -> bool:
        """Whether it ended the process that ran it."""
        return self.kind == ENDED

    @property
    def waits(self) -> bool:
        """Whether most of its time went by without work: it sleeps, or waits for a thread or a socket."""
        return self.wall > LONG_WAIT and self.seconds < self.wall / 2


@dataclass(frozen=True, slots=True)
class Problem:
    """Why something could not be collected."""

    place: str
    kind: str
    message: str
    frames: tuple[tuple[str, int], ...] = ()


class Case(Protocol):
    """One test. `run` raises what the test raises."""

    name: str
    path: str

    def run(self) -> None: ...

    @property
    def function(self) -> Callable[..., object] | None: ...


class Skipped(Exception):
    """The test said that it does not apply."""


@dataclass(slots=True)
class Suite:
    cases: list[Case] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    error: BaseException | None = None
    """Raised by the last failing test, with its traceback."""

    def run(self, index: int, seconds: float) -> Outcome:
        """Runs one test under a limit of CPU time."""
        started, began = time.process_time(), time.monotonic()
        with Catch() as caught, Clock(seconds):
            self.cases[index].run()
        Clock.disarm()
        spent, wall = time.process_time() - started, time.monotonic() - began
        self.error = caught.error
        if caught.error is None or isinstance(caught.error, Skipped):
            return Outcome(passed=True, seconds=spent, wall=wall)
        return replace(failed_outcome(caught.error, spent), wall=wall)


def failed_outcome(error: BaseException, seconds: float) -> Outcome:
    if isinstance(error, TimeUp):
        return Outcome(passed=False, kind="TimeUp", seconds=seconds)
    message = ""
    with Catch():
        message = str(error)[:MESSAGE_LENGTH]
    return Outcome(False, type(error).__name__, message, frames_of(error.__traceback__), seconds)


def frames_of(trace: TracebackType | None) -> tuple[tuple[str, int], ...]:
    frames: list[tuple[str, int]] = []
    while trace is not None:
        frames.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    # An endless recursion repeats itself; the two ends say all there is.
    return tuple(frames) if len(frames) <= 60 else tuple(frames[:20] + frames[-40:])


TEST_SECONDS = 0.6
TEST_SECONDS_AFTER_HANGS = 0.2
PATIENT_SECONDS = 2.5
QUICK_SECONDS = 0.05
HANGS_BEFORE_HURRY = 2
CHEAP_SHARE = 0.12


@dataclass(slots=True)
class SuiteBaseline:
    outcomes: dict[int, Outcome]
    failing: list[int]
    passing: list[int]
    flaky: list[int] = field(default_factory=list)
    ordered: list[int] = field(default_factory=list)
    """Tests whose ending depends on what ran before them."""
    ending: list[int] = field(default_factory=list)
    """Tests that end the process: no patch is looked for that mends them, and none is judged by them."""
    complete: bool = True
    elsewhere: list[int] = field(default_factory=list)
    """Failing tests that seem to have another cause than the one looked for."""

    @property
    def seconds(self) -> float:
        return sum(outcome.seconds for outcome in self.outcomes.values())


def run_all(suite: Suite, order: list[int], deadline: float, patience: float = 1.0) -> list[tuple[int, Outcome]]:
    return list(run_each(suite, order, deadline, patience))


def run_each(suite: Suite, order: list[int], deadline: float, patience: float = 1.0) -> Iterator[tuple[int, Outcome]]:
    """Runs the tests in this order until the deadline."""
    hangs = 0
    for index in order:
        if index != order[0] and time.monotonic() > deadline:
            break
        limit = TEST_SECONDS if hangs < HANGS_BEFORE_HURRY else TEST_SECONDS_AFTER_HANGS
        outcome = suite.run(index, limit * patience)
        hangs += outcome.timed_out
        yield index, outcome


def run_apart(suite: Suite, order: list[int], deadline: float, seconds: float) -> list[tuple[int, Outcome]]:
    """Runs the tests in this order in other processes: one that ends its process is noted, and the rest goes on."""
    ended: list[tuple[int, Outcome]] = []
    while len(ended) < len(order):
        left = order[len(ended) :]
        ended += forked_each(lambda left=left: run_each(suite, left, deadline), seconds)  # type: ignore[misc]
        if time.monotonic() > deadline or len(ended) == len(order):
            break
        ended.append((order[len(ended)], Outcome(passed=False, kind=ENDED, message="it ends the interpreter")))
    return ended


def take_baseline(suite: Suite, seconds: float) -> SuiteBaseline | None:
    """Runs everything once, and again twice where that is cheap; None when the run itself died."""
    everything = list(range(len(suite.cases)))
    deadline = time.monotonic() + seconds * 0.4
    started = time.monotonic()
    first = run_apart(suite, everything, deadline, seconds * 0.5 + 5)
    if not first:
        return None
    first = _look_again_at_hangs(suite, first, deadline)
    spent = time.monotonic() - started
    outcomes = dict(first)
    ending = [index for index, outcome in first if outcome.ended_all]
    failing = [index for index, outcome in first if not outcome.passed and not outcome.ended_all]
    passing = [index for index, outcome in first if outcome.passed]
    baseline = SuiteBaseline(outcomes, failing, passing, ending=ending, complete=len(first) == len(everything))
    if failing and spent < seconds * CHEAP_SHARE:
        _compare_orders(suite, baseline, seconds)
    return baseline


def _look_again_at_hangs(suite: Suite, first: list[tuple[int, Outcome]], deadline: float) -> list[tuple[int, Outcome]]:
    """A test that took long may be slow, not stuck: one of them gets more time, and all do if that one ends."""
    stuck = [index for index, outcome in first if outcome.timed_out]
    if not stuck:
        return first
    # Where all others are quick, a second look need not be a long one.
    slowest = max((outcome.seconds for _, outcome in first if outcome.passed), default=0.0)
    seconds = PATIENT_SECONDS if slowest > QUICK_SECONDS else PATIENT_SECONDS / 2
    probe = forked(lambda: suite.run(stuck[0], seconds), seconds * 9 + 5)
    if probe is None or probe.timed_out:
        return first
    left = max(1.0, deadline - time.monotonic())
    again = forked(lambda: run_all(suite, stuck, deadline, PATIENT_SECONDS * 4), left + PATIENT_SECONDS * 40)
    merged = {**dict(first), stuck[0]: probe, **dict(again or ())}
    return sorted(merged.items())


def _compare_orders(suite: Suite, baseline: SuiteBaseline, seconds: float) -> None:
    """Same order once more for flakiness; then, in one process, failing tests first and twice for order."""
    quick = [
        index
        for index, outcome in baseline.outcomes.items()
        if not (outcome.timed_out or outcome.waits or outcome.ended_all)
    ]
    deadline = time.monotonic() + seconds * CHEAP_SHARE
    again = forked(lambda: run_all(suite, quick, deadline), seconds * 0.2 + 2)
    turned = sorted(quick, key=lambda index: (baseline.outcomes[index].passed, -index))
    shuffled = forked(lambda: run_all(suite, turned, deadline) + run_all(suite, turned, deadline), seconds * 0.2 + 2)
    for index, outcome in again or ():
        if outcome.passed != baseline.outcomes[index].passed:
            baseline.flaky.append(index)
    for index, outcome in shuffled or ():
        known = index in baseline.flaky or index in baseline.ordered
        if outcome.passed != baseline.outcomes[index].passed and not known:
            baseline.ordered.append(index)
    baseline.failing = [index for index in baseline.failing if index not in baseline.flaky]
    baseline.passing = [index for index in baseline.passing if index not in baseline.flaky]
    for index, outcome in again or ():
        if outcome.seconds < baseline.outcomes[index].seconds and outcome.passed == baseline.outcomes[index].passed:
            baseline.outcomes[index] = outcome


Work = Callable[[Suite], None]


@dataclass(frozen=True, kw_only=True)
class EngineRequest:
    """The fields of the host's `RepairRequest`, which cannot be imported here."""

    root: str
    targets: tuple[str, ...]
    tests: tuple[str, ...]
    script: tuple[str, ...]
    seconds: float
    workers: int
    memory_bytes: int
    framework: str
    mend: tuple[str, ...]
    words: tuple[str, ...]
    test_paths: str
    """Matches the paths of test files from the root on."""

    @classmethod
    def parse(cls, text: str) -> EngineRequest:
        given: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in json.loads(text).items()
        }
        return cls(**given)


class EventPipe:
    """Writes events to a descriptor of its own, so that what tests print cannot mix with them."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, event: str, /, **values: Any) -> None:
        line = json.dumps({"event": event, **values}, separators=(",", ":")) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self.descriptor, data) :]
