"""A collected suite, whatever framework it came from, and how one of its tests ends."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Protocol

from reflex_inside.caught import Caught
from reflex_inside.limits import Clock, TimeUp

MESSAGE_LENGTH = 400


@dataclass(frozen=True, slots=True)
class Outcome:
    passed: bool
    kind: str = ""
    """The name of the exception's type."""
    message: str = ""
    frames: tuple[tuple[str, int], ...] = ()
    """File and line of each frame, outermost first."""
    seconds: float = 0.0

    @property
    def timed_out(self) -> bool:
        return self.kind == "TimeUp"


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
        started = time.process_time()
        with Caught() as caught, Clock(seconds):
            self.cases[index].run()
        Clock.disarm()
        spent = time.process_time() - started
        self.error = caught.error
        if caught.error is None or isinstance(caught.error, Skipped):
            return Outcome(passed=True, seconds=spent)
        return failed_outcome(caught.error, spent)


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
