"""Stopping what is under way: at the user's word, or when its time is up."""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from math import inf

from pawl.core.errors import Cancelled, OutOfTime


class CancelToken:
    """A request to stop that can be waited on together with pipes. Once requested it stays requested.

    A token ends with the one above it, and when its own time or that of one above is up. The time counts from
    `since`, by the monotonic clock, or from now.
    """

    def __init__(self, *, above: CancelToken | None = None, seconds: float = inf, since: float | None = None) -> None:
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._close = weakref.finalize(self, os.close, self._event)
        self._requested = False
        self._below: weakref.WeakSet[CancelToken] = weakref.WeakSet()
        self._timer: threading.Timer | None = None
        own = (time.monotonic() if since is None else since) + seconds
        self.deadline, self._seconds = own, seconds
        """By the monotonic clock."""
        if above is not None:
            above._below.add(self)
            if above.deadline <= own:
                self.deadline, self._seconds = above.deadline, above._seconds
            if above._requested:
                self.request()
        if self.deadline < inf:
            wake = weakref.WeakMethod(self._wake)
            self._timer = threading.Timer(max(0.0, self.left), lambda: (wake() or int)())
            self._timer.daemon = True
            self._timer.start()

    def fileno(self) -> int:
        return self._event

    @property
    def requested(self) -> bool:
        return self._requested or self.timed_out

    @property
    def timed_out(self) -> bool:
        return time.monotonic() >= self.deadline

    @property
    def left(self) -> float:
        """Seconds; infinite where there is no limit."""
        return self.deadline - time.monotonic()

    def wait(self, seconds: float) -> bool:
        """Until it is requested, at most so long; whether it is."""
        select.select([self], [], [], seconds)
        return self.requested

    def request(self) -> None:
        self._requested = True
        self._wake()
        for token in tuple(self._below):
            token.request()

    def error(self, words: str = "stopped by the user") -> Cancelled:
        """Why it stops; `words` where it was the user."""
        if self._requested:
            return Cancelled(words)
        return OutOfTime(
            f"the time is up: {self._seconds:g} s", advice="allow more with --seconds, or [budget] seconds"
        )

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._close()

    def _wake(self) -> None:
        if self._close.alive:
            os.eventfd_write(self._event, 1)


def raise_if_stopped(cancel: CancelToken | None, words: str = "stopped by the user") -> None:
    """Raise `Cancelled` or `OutOfTime` where the token asks for it."""
    if cancel is not None and cancel.requested:
        raise cancel.error(words)
