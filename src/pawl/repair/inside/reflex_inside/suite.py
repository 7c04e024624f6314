"""A collected suite, whatever framework it came from, and how one of its tests ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol

from reflex_inside.limits import Caught, Clock, TimeUp, forked

MESSAGE_LENGTH = 400
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
    """What the last failing test raised, with its traceback."""

    def run(self, index: int, seconds: float) -> Outcome:
        """Runs one test under a limit of CPU time."""
        started, began = time.process_time(), time.monotonic()
        with Caught() as caught, Clock(seconds):
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
    with Caught():
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
class Baseline:
    outcomes: dict[int, Outcome]
    failing: list[int]
    passing: list[int]
    flaky: list[int] = field(default_factory=list)
    ordered: list[int] = field(default_factory=list)
    """Tests whose ending depends on what ran before them."""
    complete: bool = True
    elsewhere: list[int] = field(default_factory=list)
    """Failing tests that seem to have another cause than the one looked for."""

    @property
    def seconds(self) -> float:
        return sum(outcome.seconds for outcome in self.outcomes.values())


def run_all(suite: Suite, order: list[int], deadline: float, patience: float = 1.0) -> list[tuple[int, Outcome]]:
    """Runs the tests in this order until the deadline."""
    ended: list[tuple[int, Outcome]] = []
    hangs = 0
    for index in order:
        if ended and time.monotonic() > deadline:
            break
        limit = TEST_SECONDS if hangs < HANGS_BEFORE_HURRY else TEST_SECONDS_AFTER_HANGS
        outcome = suite.run(index, limit * patience)
        hangs += outcome.timed_out
        ended.append((index, outcome))
    return ended


def take_baseline(suite: Suite, seconds: float) -> Baseline | None:
    """Runs everything once, and again twice where that is cheap; None when the run itself died."""
    everything = list(range(len(suite.cases)))
    deadline = time.monotonic() + seconds * 0.4
    started = time.monotonic()
    first = forked(lambda: run_all(suite, everything, deadline), seconds * 0.5 + 5)
    if first is None:
        return None
    first = _look_again_at_hangs(suite, first, deadline)
    spent = time.monotonic() - started
    outcomes = dict(first)
    failing = [index for index, outcome in first if not outcome.passed]
    passing = [index for index, outcome in first if outcome.passed]
    baseline = Baseline(outcomes, failing, passing, complete=len(first) == len(everything))
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


def _compare_orders(suite: Suite, baseline: Baseline, seconds: float) -> None:
    """Same order once more for flakiness; then, in one process, failing tests first and twice for order."""
    quick = [index for index, outcome in baseline.outcomes.items() if not outcome.timed_out and not outcome.waits]
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
