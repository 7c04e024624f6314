"""When another attempt is made, and how long the wait before it is."""

from __future__ import annotations

import email.utils
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pawl.models.classify import Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """An attempt that failed for a passing reason, as a strategy of the user's own sees it."""

    attempt: int
    """From 1."""
    code: str
    """Which way it failed, such as `rate_limited`."""
    asked_seconds: float | None
    """The wait that the provider asks for."""
    seconds: float
    """Since the first failure."""


Strategy = Callable[[Failed], float | None]
"""The seconds to wait before the next attempt; None for no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Exponential with full jitter, unless the provider says how long or the user has a strategy of their own."""

    tries: int = 5
    seconds: float = 120.0
    """From the first failure on; no attempt starts later."""
    base: float = 0.5
    longest_asked: float = 60.0
    """A provider that asks for a longer wait is not waited for: the user decides."""
    random: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], Awaitable[None]] | None = None
    """How a wait is done; `asyncio.sleep` unless set."""
    strategy: Strategy | None = None
    """Chooses the waits; which failures are tried again, how often and for how long stays as it is."""

    def pause(self, attempt: int, fault: Fault, since_first_failure: float) -> float | None:
        """The wait before the next attempt after this one failed; None when there is to be none."""
        if not fault.again or attempt >= self.tries:
            return None
        asked = fault.wait_seconds
        if asked is not None and asked > self.longest_asked:
            return None
        wait: float | None = asked
        if self.strategy is not None:
            code, since = fault.error.code, since_first_failure
            wait = self.strategy(Failed(attempt=attempt, code=code, asked_seconds=asked, seconds=since))
        elif asked is None:
            wait = self.random() * self.base * 2.0 ** (attempt - 1)
        return wait if wait is not None and since_first_failure + wait <= self.seconds else None


def asked_wait(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """The wait that `retry-after-ms` or `retry-after` ask for; None for what makes no sense."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return seconds
    until = _moment(value)
    if until is None:
        return None
    # By the server's own clock where it says its time, because this machine's can be wrong.
    there = _moment(headers.get("date", ""))
    return max(0.0, until - (now() if there is None else there))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _moment(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
