"""Whether a candidate passes: the failing tests first, then the passing ones that run its function."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from enum import Enum

from reflex_inside.caught import Caught
from reflex_inside.edits import Candidate
from reflex_inside.program import Program
from reflex_inside.suite import Suite
from reflex_inside.swap import install


class Verdict(Enum):
    PLAUSIBLE = "plausible"
    FAILED = "failed"
    SLOW = "slow"
    BROKEN = "broken"
    """It does not compile."""


@dataclass(slots=True)
class Plan:
    """Which tests judge a candidate, in which order and within which limits."""

    failing: list[int]
    passing: dict[int, list[int]]
    """By function: the passing tests that run it, quick ones first."""
    seconds: dict[int, float]
    limit: float
    isolated: bool = False
    """Tests depend on their order: every candidate gets a fresh process and the suite's own order."""
    steady: frozenset[int] = frozenset()
    """The tests that passed every time."""

    def limit_of(self, index: int, wanted: float) -> float:
        return max(wanted or self.limit, 4 * self.seconds.get(index, 0.0) + 0.1)


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    fixed: int = 0
    """How many failing tests passed before the first that did not."""


class Judge:
    def __init__(self, program: Program, suite: Suite, plan: Plan) -> None:
        self.program = program
        self.suite = suite
        self.plan = plan

    def judge(self, candidate: Candidate, limit: float = 0.0) -> Judgement:
        undo = install(self.program, candidate)
        if undo is None:
            return Judgement(Verdict.BROKEN)
        try:
            if self.plan.isolated:
                return self._in_fork(limit)
            return self._here(candidate, limit)
        finally:
            undo()

    def _here(self, candidate: Candidate, limit: float) -> Judgement:
        plan, fixed = self.plan, 0
        for index in plan.failing:
            outcome = self.suite.run(index, limit or plan.limit)
            if not outcome.passed:
                return Judgement(Verdict.SLOW if outcome.timed_out else Verdict.FAILED, fixed)
            fixed += 1
        for index in plan.passing.get(candidate.function, ()):
            outcome = self.suite.run(index, plan.limit_of(index, limit))
            if not outcome.passed:
                return Judgement(Verdict.SLOW if outcome.timed_out else Verdict.FAILED)
        return Judgement(Verdict.PLAUSIBLE, fixed)

    def count_fixed(self, candidate: Candidate) -> int:
        """How many failing tests it fixes, all of them tried; 0 when it breaks a passing one."""
        undo = install(self.program, candidate)
        if undo is None:
            return 0
        try:
            ended = [self.suite.run(index, self.plan.limit).passed for index in self.plan.failing]
            if not any(ended):
                return 0
            passing = self.plan.passing.get(candidate.function, ())
            kept = all(self.suite.run(index, self.plan.limit_of(index, 0.0)).passed for index in passing)
            return sum(ended) if kept else 0
        finally:
            undo()

    def _in_fork(self, limit: float) -> Judgement:
        process = os.fork()
        if process == 0:
            with Caught():
                os._exit(self._ordered(limit))
            os._exit(1)
        return {0: Judgement(Verdict.PLAUSIBLE, len(self.plan.failing)), 2: Judgement(Verdict.SLOW)}.get(
            self._wait(process, max(8.0, limit * 20)), Judgement(Verdict.FAILED)
        )

    def _ordered(self, limit: float) -> int:
        for index in sorted({*self.plan.failing, *self.plan.steady}):
            outcome = self.suite.run(index, self.plan.limit_of(index, limit))
            if not outcome.passed:
                return 2 if outcome.timed_out else 1
        return 0

    @staticmethod
    def _wait(process: int, seconds: float) -> int:
        """The exit code, or 2 for a process that had to be ended."""

        def late(number: int, frame: object) -> None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

        before = signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        started = time.monotonic()
        _, status = os.waitpid(process, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        return 2 if time.monotonic() - started >= seconds else os.waitstatus_to_exitcode(status)
