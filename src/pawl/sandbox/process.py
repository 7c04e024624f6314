"""A sandbox that has been started and holds its command back at a gate.

The process inside says on its standard output that it is up, and starts the command only after it has read a line on
its standard input. When Pawl dies before that, the line never comes and the command never runs. In between Pawl
sets the limits, on the very process that becomes the command. The programs that build a sandbox are looked up in the
system's own folders only.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import select
import selectors
import shutil
import signal
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import ClassVar, Self

from pawl.core.errors import PawlError, SandboxUnavailable, UsageError
from pawl.core.execution import Captured, Completed, Confinement, Ending, Execution, Limits, Stream, View
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.process_limits import (
    DiskWatch,
    Group,
    children,
    process_pool,
    proportional_bytes,
    set_ceilings,
    tree_use,
)
from pawl.sandbox.visibility import Surroundings, check_words

_TRUSTED = "/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/run/current-system/sw/bin"
ENVIRONMENT = {"PATH": _TRUSTED, "LANG": "C.UTF-8"}
"""The environment of these programs themselves: nothing of the caller's or the command's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """Paths; None for what is not installed."""

    bubblewrap: str | None
    unshare: str | None
    mount: str | None
    shell: str = "/bin/sh"

    @classmethod
    def installed(cls) -> Programs:
        def find(name: str) -> str | None:
            return shutil.which(name, path=_TRUSTED)

        return cls(bubblewrap=find("bwrap"), unshare=find("unshare"), mount=find("mount"))


INSTALL_BUBBLEWRAP = (
    "install bubblewrap 0.8 or newer: `apt install bubblewrap`, `dnf install bubblewrap` or `pacman -S bubblewrap`"
)
ALLOW_NAMESPACES = (
    "allow user namespaces. Ubuntu 24.04 and newer: `sudo cp "
    "/usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && "
    "sudo apparmor_parser -r /etc/apparmor.d/bwrap-userns-restrict`. Docker: start the container with "
    "`--security-opt seccomp=unconfined --security-opt apparmor=unconfined`. "
    "Elsewhere: `sudo sysctl kernel.unprivileged_userns_clone=1 user.max_user_namespaces=15000`"
)
SHOW_PROC = "start the container with `--security-opt systempaths=unconfined`, so that a new /proc can be mounted"
ALLOW_FILTERS = "use a kernel with CONFIG_SECCOMP_FILTER, and a container that may load its own filters"
NEWER_KERNEL = "use Linux 6.2 or newer with Landlock enabled (`lsm=landlock,…` on the kernel command line)"
SHOW_PROCESSES = "mount /proc without hidepid, and use a kernel with CONFIG_PROC_CHILDREN"
MOVE_STATE = (
    "keep Pawl's state on an ordinary file system (ext4, xfs, btrfs, tmpfs) that belongs to you; "
    "until then benches are copies, which is slower and otherwise the same"
)
GROUPS = (
    "optional: run Pawl as root, or under `systemd-run --user --scope`, for limits that the kernel enforces at once"
)

_BY_COMPLAINT = (
    ("unknown option", INSTALL_BUBBLEWRAP),
    ("seccomp", ALLOW_FILTERS),
    ("mount proc", SHOW_PROC),
    ("max_user_namespaces", SHOW_PROC),
    ("namespace", ALLOW_NAMESPACES),
    ("uid map", ALLOW_NAMESPACES),
    ("rtm_newaddr", ALLOW_NAMESPACES),
    ("unshare", ALLOW_NAMESPACES),
    ("operation not permitted", ALLOW_NAMESPACES),
    ("permission denied", ALLOW_NAMESPACES),
)


def remedy_for(complaint: str) -> str:
    """The remedy for what bubblewrap or unshare said."""
    said = complaint.lower()
    for words, remedy in _BY_COMPLAINT:
        if words in said:
            return remedy
    return "run `pawl doctor` to see what this machine lacks"


UP = b"R"
_SETUP_SECONDS = 30.0
_DYING_SECONDS = 10.0
_MOST_COMPLAINT = 1 << 16


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


def memory_file(name: str, data: bytes, stack: contextlib.ExitStack) -> int:
    """A file without a name, to be handed to a launcher; the stack closes it."""
    file = os.memfd_create(f"pawl-{name}")
    stack.callback(os.close, file)
    with os.fdopen(os.dup(file), "wb") as stream:
        stream.write(data)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def piped(execution: Execution) -> tuple[int, ...]:
    return () if execution.pipe is None else (execution.pipe,)


def started_in(group: Group | None, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
    """Starts a launcher, in a control group where there is one."""
    try:
        return start() if group is None else group.start(start)
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise UsageError("the command is longer than the kernel takes", advice="put it into a file") from error
        raise SandboxUnavailable(f"cannot start the sandbox: {error}", advice="run `pawl doctor`") from error


class Launched:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        self.pid = process.pid
        self.out = process.stdout.fileno()
        self.err = process.stderr.fileno()
        self.exited = os.pidfd_open(process.pid)
        self._process = process
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

    def wait_until_up(self, cancel: CancelToken | None) -> bool:
        """Whether the command waits at its gate now; not where it failed, took too long or was cancelled."""
        poll = select.poll()
        poll.register(self.out, select.POLLIN)
        if cancel is not None:
            poll.register(cancel.fileno(), select.POLLIN)
        deadline = time.monotonic() + _SETUP_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            ready = [file for file, _ in poll.poll(left * 1000)]
            if cancel is not None and cancel.requested:
                return False
            if self.out in ready:
                return os.read(self.out, 1) == UP
        return False

    def follow(self, first: int) -> None:
        """Names the process whose end is the end of the whole tree: killing the launched one ends it too."""
        self._first = os.pidfd_open(first)

    def release(self) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(b"\n")

    def stop(self) -> None:
        """Ends the tree. Where none is followed, closing the gate does: the launched process ends its descendants."""
        if self._process.returncode is not None:
            return
        if self._first is None:
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
    disks: Sequence[DiskWatch]
    group: Group | None = None
    on_output: OnOutput | None = None
    cancel: CancelToken | None = None
    _captures: dict[Stream, StreamCapture] = field(init=False)
    _peak: int = field(init=False, default=0)
    _kills_before: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self._captures = {stream: StreamCapture(self.limits.output_bytes) for stream in Stream}
        self._kills_before = self.group.out_of_memory_kills() if self.group is not None else 0

    def run(self) -> Completed:
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
        ended, exit_code, number = _plain_ending(code) if ending is None else (ending, None, None)
        return Completed(
            ending=ended,
            code=exit_code,
            signal=number,
            stdout=self._captures[Stream.STDOUT].captured(),
            stderr=self._captures[Stream.STDERR].captured(),
            seconds=time.monotonic() - start,
            peak_memory_bytes=self._peak,
            notices=(_REASONS[ended].format(self.limits),) if ended in _REASONS else (),
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
        return Ending.DISK_LIMIT if any(disk.exceeded(use.processes) for disk in self.disks) else None

    def _ran_out_of_memory(self) -> bool:
        return self.group is not None and self.group.out_of_memory_kills() > self._kills_before

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


def _plain_ending(code: int) -> tuple[Ending, int | None, int | None]:
    """A launcher passes a signal on the way shells do, as 128 and its number."""
    number = -code if code < 0 else code - _SIGNAL_BASE
    if code < 0 or number in _SIGNALS:
        return Ending.SIGNALLED, None, number
    return Ending.EXITED, code, None


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """The process to start for a command."""

    words: Sequence[str]
    files: Sequence[int]
    disk_bytes: Mapping[str, int]
    """How much the command may store below each folder."""


class GatedSandbox(ABC):
    """Runs commands behind a gate; what confines them is up to the launcher that is started."""

    confinement: ClassVar[Confinement]

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._notices: tuple[str, ...] = ()

    @abstractmethod
    def _prepared(self, view: View, execution: Execution, stack: contextlib.ExitStack) -> Launch:
        """Refuses whatever can be refused before a process is started; the stack holds what the run needs."""

    @abstractmethod
    def _explained(self, code: int, complaint: str) -> PawlError:
        """Why the sandbox did not come up. The command has not run."""

    def _root(self, launched: Launched) -> int:
        """The process whose only child, once it is up, waits at the gate."""
        return launched.pid

    def run(
        self, view: View, execution: Execution, *, on_output: OnOutput | None = None, cancel: CancelToken | None = None
    ) -> Completed:
        check_words(execution)
        with contextlib.ExitStack() as stack:
            launch = self._prepared(view, execution, stack)
            disks = [DiskWatch(folder, most) for folder, most in launch.disk_bytes.items()]
            group = stack.enter_context(process_pool().lent(execution.limits))
            start = functools.partial(start_process, launch.words, launch.files)
            launched = stack.enter_context(Launched(started_in(group, start)))
            if not launched.wait_until_up(cancel):
                if cancel is not None and cancel.requested:
                    return Completed(ending=Ending.CANCELLED, code=None, confinement=self.confinement)
                raise self._explained(*launched.complaint())
            watch = CommandWatch(
                launched=launched,
                root=self._limited(launched, execution.limits, group),
                limits=execution.limits,
                disks=disks,
                group=group,
                on_output=on_output,
                cancel=cancel,
            )
            done = watch.run()
        return replace(done, confinement=self.confinement, notices=(*self._notices, *done.notices))

    def _limited(self, launched: Launched, limits: Limits, group: Group | None) -> int:
        """Sets the limits while the command waits at its gate; returns the root of its tree."""
        try:
            root = self._root(launched)
            waiting = children(root)
            if len(waiting) != 1:
                raise SandboxUnavailable(f"process {root} has no single child in /proc", advice=SHOW_PROCESSES)
            set_ceilings(waiting[0], limits, namespaced=self.confinement is Confinement.NAMESPACES)
            if group is not None:
                group.admit(waiting[0])
        except OSError as error:
            raise SandboxUnavailable(f"cannot limit the command: {error}", advice="run `pawl doctor`") from error
        return root
