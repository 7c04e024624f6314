"""How long and how large one run of a test may be: CPU time, because other work on the machine is not its fault."""

from __future__ import annotations

import contextlib
import resource
import signal
from types import FrameType, TracebackType

REAL_FACTOR = 8.0
REAL_EXTRA = 4.0


class TimeUp(BaseException):
    """Raised in the code that took too long; not an Exception, so that few handlers swallow it."""


class Clock:
    """Interrupts the block after some CPU seconds, and after many more real ones for code that only waits."""

    armed = False

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGPROF, Clock._ring)
        signal.signal(signal.SIGALRM, Clock._ring)
        Clock.armed = True
        # The timers repeat: a candidate may catch everything inside its endless loop.
        signal.setitimer(signal.ITIMER_PROF, self.seconds, 0.05)
        signal.setitimer(signal.ITIMER_REAL, self.seconds * REAL_FACTOR + REAL_EXTRA, 0.5)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Clock.disarm()

    @staticmethod
    def disarm() -> None:
        Clock.armed = False
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)

    @staticmethod
    def _ring(number: int, frame: FrameType | None) -> None:
        if Clock.armed:
            raise TimeUp


def limit_memory(size: int) -> None:
    """Caps what this process may allocate on top of nothing: a runaway candidate ends with MemoryError."""
    with contextlib.suppress(ValueError, OSError):
        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        ceiling = size if hard == resource.RLIM_INFINITY else min(size, hard)
        resource.setrlimit(resource.RLIMIT_AS, (ceiling, hard))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
