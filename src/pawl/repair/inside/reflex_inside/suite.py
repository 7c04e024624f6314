"""A collected suite, whatever framework it came from, and how one of its tests ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Protocol

from reflex_inside.caught import Caught
from reflex_inside.limits import Clock, TimeUp

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
