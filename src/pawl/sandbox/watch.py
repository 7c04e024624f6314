"""Follows a command from its release to its end: output, time, memory, processes, disk and the user's wish to stop."""

from __future__ import annotations

import os
import selectors
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from pawl.core.execution import Completed, Confinement, Ending, Limits, Stream
from pawl.core.ports import Cancel
from pawl.sandbox.capture import StreamCapture
from pawl.sandbox.disk import DiskWatch
from pawl.sandbox.groups import Seat
from pawl.sandbox.launched import Launched
from pawl.sandbox.process_tree import proportional_bytes, tree_use

_FIRST_TICK = 0.01
_TICK = 0.05
_CHUNK = 1 << 16
_DRAIN_SECONDS = 1.0
_SIGNAL_BASE = 128
_SIGNALS = frozenset(map(int, signal.valid_signals()))
_SLACK = 4
"""The kernel's own process limits may count the launchers; a fork that they refuse must not look like one too many."""

OnOutput = Callable[[Stream, bytes], None]


@dataclass(slots=True, kw_only=True)
class Watch:
    launched: Launched
    root: int
    """The process whose descendants are the command's tree."""
    limits: Limits
    disk: DiskWatch
    seat: Seat | None = None
    on_output: OnOutput | None = None
    cancel: Cancel | None = None
    _captures: dict[Stream, StreamCapture] = field(init=False)
    _peak: int = field(init=False, default=0)
    _kills_before: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._captures = {stream: StreamCapture(self.limits.output_bytes) for stream in Stream}
        self._kills_before = self.seat.out_of_memory_kills() if self.seat is not None else 0

    def run(self, confinement: Confinement, notices: tuple[str, ...]) -> Completed:
        start = time.monotonic()
        with selectors.DefaultSelector() as selector:
            selector.register(self.launched.out, selectors.EVENT_READ, Stream.STDOUT)
            selector.register(self.launched.err, selectors.EVENT_READ, Stream.STDERR)
            selector.register(self.launched.exited, selectors.EVENT_READ)
            if self.cancel is not None:
                selector.register(self.cancel.fileno(), selectors.EVENT_READ)
            self.launched.release()
            ending = self._until_the_end(selector, start + self.limits.seconds)
            if ending is not None:
                self.launched.stop()
            code = self.launched.reap()
            self._drain(selector)
        if ending is None and self._ran_out_of_memory():
            ending = Ending.MEMORY_LIMIT
        if ending is not None:
            notices = (*notices, _explain(ending, self.limits)) if ending in _REASONS else notices
        plain = _plain_ending(code)
        return Completed(
            ending=ending or plain[0],
            code=None if ending is not None else plain[1],
            signal=None if ending is not None else plain[2],
            stdout=self._captures[Stream.STDOUT].captured(),
            stderr=self._captures[Stream.STDERR].captured(),
            seconds=time.monotonic() - start,
            peak_memory_bytes=self._peak,
            confinement=confinement,
            notices=notices,
        )

    def _until_the_end(self, selector: selectors.BaseSelector, deadline: float) -> Ending | None:
        """Why the command has to be stopped; None when it ended by itself."""
        tick = time.monotonic() + _FIRST_TICK
        while True:
            now = time.monotonic()
            over = False
            for key, _ in selector.select(max(0.0, min(deadline, tick) - now)):
                if isinstance(key.data, Stream):
                    self._read(selector, key)
                over = over or key.fd == self.launched.exited
            if over:
                return None
            if self.cancel is not None and self.cancel.requested:
                return Ending.CANCELLED
            now = time.monotonic()
            if now >= deadline:
                return Ending.TIMED_OUT
            if now >= tick:
                ending = self._over_a_limit()
                if ending is not None:
                    return ending
                # A large tree takes long to look at; looking never takes more than a sixth of the time.
                tick = time.monotonic() + max(_TICK, 5 * (time.monotonic() - now))

    def _over_a_limit(self) -> Ending | None:
        use = tree_use(self.root)
        self._peak = max(self._peak, use.private_bytes)
        if use.resident_bytes > self.limits.memory_bytes and proportional_bytes(use) > self.limits.memory_bytes:
            return Ending.MEMORY_LIMIT
        if self._ran_out_of_memory():
            return Ending.MEMORY_LIMIT
        if use.tasks > self.limits.processes + _SLACK:
            return Ending.PROCESS_LIMIT
        return Ending.DISK_LIMIT if self.disk.exceeded(use.processes) else None

    def _ran_out_of_memory(self) -> bool:
        return self.seat is not None and self.seat.out_of_memory_kills() > self._kills_before

    def _read(self, selector: selectors.BaseSelector, key: selectors.SelectorKey) -> None:
        try:
            data = os.read(key.fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            selector.unregister(key.fd)
            return
        self._captures[key.data].feed(data)
        if self.on_output is not None:
            self.on_output(key.data, data)

    def _drain(self, selector: selectors.BaseSelector) -> None:
        """Reads what is left in the pipes, for a bounded moment: someone else may hold them open."""
        for file in [key.fd for key in selector.get_map().values() if not isinstance(key.data, Stream)]:
            selector.unregister(file)
        deadline = time.monotonic() + _DRAIN_SECONDS
        while selector.get_map() and (left := deadline - time.monotonic()) > 0:
            for key, _ in selector.select(left):
                self._read(selector, key)


_REASONS = {
    Ending.TIMED_OUT: "stopped after {0.seconds:g} s",
    Ending.MEMORY_LIMIT: "stopped: its processes together used more than {0.memory_bytes} bytes of memory",
    Ending.PROCESS_LIMIT: "stopped: it started more than {0.processes} processes and threads",
    Ending.DISK_LIMIT: "stopped: it stored more than {0.disk_bytes} bytes",
}


def _explain(ending: Ending, limits: Limits) -> str:
    return _REASONS[ending].format(limits)


def _plain_ending(code: int) -> tuple[Ending, int | None, int | None]:
    """A launcher passes a signal on the way shells do, as 128 and its number."""
    number = -code if code < 0 else code - _SIGNAL_BASE
    if code < 0 or number in _SIGNALS:
        return Ending.SIGNALLED, None, number
    return Ending.EXITED, code, None
