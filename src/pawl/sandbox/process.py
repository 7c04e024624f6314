"""A sandbox that has been started and holds its command back at a gate.

The process inside says on its standard output that it is up, and starts the command only after it has read a line on
its standard input. When Pawl dies before that, the line never comes and the command never runs. In between Pawl
sets the limits, on the very process that becomes the command.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Self

from pawl.core.errors import SandboxUnavailable, UsageError
from pawl.core.execution import Captured, Completed, Confinement, Ending, Limits, Stream
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.groups import GroupSeat
from pawl.sandbox.programs import ENVIRONMENT
from pawl.sandbox.usage import DiskWatch, proportional_bytes, tree_use

UP = b"R"
_SETUP_SECONDS = 30.0
_DYING_SECONDS = 10.0
_MOST_COMPLAINT = 1 << 16


class Arrival(Enum):
    UP = "up"
    FAILED = "failed"
    CANCELLED = "cancelled"
    LATE = "late"


class Stopping(Enum):
    """What ends the whole tree."""

    KILL = "kill the launched process: its namespace dies with it"
    CLOSE = "close the gate: the launched process sweeps its descendants and exits"


def start_process(words: Sequence[str], files: Sequence[int]) -> subprocess.Popen[bytes]:
    """Starts a launcher in a session of its own, so that Ctrl-C reaches Pawl and not the command."""
    return subprocess.Popen(
        words,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        pass_fds=files,
        cwd="/",
        env=ENVIRONMENT,
        start_new_session=True,
    )


@contextlib.contextmanager
def memory_file(name: str, data: bytes) -> Iterator[int]:
    """A file without a name, to be handed to a launcher."""
    file = os.memfd_create(f"pawl-{name}")
    try:
        with os.fdopen(os.dup(file), "wb") as stream:
            stream.write(data)
        os.lseek(file, 0, os.SEEK_SET)
        yield file
    finally:
        os.close(file)


def started_in(seat: GroupSeat | None, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Starts a launcher, in a control group where there is one."""
    try:
        return start() if seat is None else seat.start(start)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise UsageError("the command is longer than the kernel takes", advice="put it into a file") from error
        raise SandboxUnavailable(f"cannot start the sandbox: {error}", advice="run `pawl doctor`") from error


class Launched:
    def __init__(self, process: subprocess.Popen[bytes], stopping: Stopping) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.pid = process.pid
        self.out = process.stdout.fileno()
        self.err = process.stderr.fileno()
        self.exited = os.pidfd_open(process.pid)
        self._process = process
        self._stopping = stopping
        self._first: int | None = None
        for file in (self.out, self.err):
            os.set_blocking(file, False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.reap()
        os.close(self.exited)
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()

    def wait_until_up(self, cancel: CancelToken | None) -> Arrival:
        poll = select.poll()
        poll.register(self.out, select.POLLIN)
        if cancel is not None:
            poll.register(cancel.fileno(), select.POLLIN)
        deadline = time.monotonic() + _SETUP_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            ready = [file for file, _ in poll.poll(left * 1000)]
            if cancel is not None and cancel.requested:
                return Arrival.CANCELLED
            if self.out in ready:
                return Arrival.UP if os.read(self.out, 1) == UP else Arrival.FAILED
        return Arrival.LATE

    def follow(self, first: int) -> None:
        """Names the process whose end is the end of the whole tree, beside the launched one."""
        self._first = os.pidfd_open(first)

    def release(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")

    def stop(self) -> None:
        """Ends the tree. Before the command was released, closing the gate is enough and leaves nothing behind."""
        if self._process.returncode is not None:
            return
        if self._stopping is Stopping.CLOSE or self._first is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            if _is_over(self.exited, _DYING_SECONDS):
                return
        signal.pidfd_send_signal(self.exited, signal.SIGKILL)

    def reap(self) -> int:
        """Waits until every process of the tree is gone; the exit code is negative for a signal."""
        if self._process.returncode is None:
            self._process.wait()
        if self._first is not None:
            # The first process of a namespace ends only after all others in it.
            _is_over(self._first, _DYING_SECONDS)
            os.close(self._first)
            self._first = None
        return self._process.returncode

    def complaint(self) -> tuple[int, str]:
        """The exit code and the message of a sandbox that did not come up."""
        said = bytearray()
        deadline = time.monotonic() + _DYING_SECONDS
        poll = select.poll()
        poll.register(self.err, select.POLLIN)
        while len(said) < _MOST_COMPLAINT and poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            data = os.read(self.err, _MOST_COMPLAINT)
            if not data:
                break
            said += data
        self.stop()
        return self.reap(), said.decode("utf-8", "replace").strip()


def _is_over(process: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(process, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


class StreamCapture:
    def __init__(self, limit: int) -> None:
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimmed only when twice too long, so that a flood costs one move per byte and not one per chunk.
        if len(self._tail) > 2 * self._tail_limit:
            self._trim()

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_limit)]

    def captured(self) -> Captured:
        self._trim()
        return Captured(head=bytes(self._head), tail=bytes(self._tail), total=self._total)


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
class CommandWatch:
    launched: Launched
    root: int
    """The process whose descendants are the command's tree."""
    limits: Limits
    disk: DiskWatch
    seat: GroupSeat | None = None
    on_output: OnOutput | None = None
    cancel: CancelToken | None = None
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
