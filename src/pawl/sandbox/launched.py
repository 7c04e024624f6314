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
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Self

from pawl.core.errors import SandboxUnavailable, UsageError
from pawl.core.ports import Cancel
from pawl.sandbox.groups import Seat
from pawl.sandbox.programs import ENVIRONMENT

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


def started_in(seat: Seat | None, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
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

    def wait_until_up(self, cancel: Cancel | None) -> Arrival:
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
