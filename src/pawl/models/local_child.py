"""The process that serves a model file on loopback: `main` is what it does, `Life` how Pawl starts and ends it.

Each life is watched by a thread of its own. The thread also starts the process, because the kernel ends a process with
the thread that started it, and lives exactly as long.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pawl.core.errors import ModelError, ModelTimedOut, Overloaded, UnknownModel, Unreachable
from pawl.core.lazy_dataclass import dataclass
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.settings.installation import with_extra


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStart:
    """How a model is to be served. It goes through a pipe, because anybody can read the words of a command."""

    path: str
    token: str
    context: int
    threads: int
    kept_prompts: int


_KEPT_ERRORS = 16 * 1024
_SHOWN_LINES = 8
_SHOWN_CHARACTERS = 1500
_LONGEST_REPLY = 64 * 1024
_PIECE = 64 * 1024
_END_SECONDS = 5.0
_NOTICE_SECONDS = 1.0
_KILLED = -9


class Life:
    """One process. Whoever uses it holds it, so that it is not ended as idle meanwhile; at first, who started it."""

    def __init__(self, command: Sequence[str], start: ServerStart, *, idle_seconds: float, load_seconds: float) -> None:
        self.token = start.token
        self.address = ""
        self._name = os.path.basename(start.path)
        self._command = tuple(command)
        self._start = start
        self._idle_seconds = idle_seconds
        self._load_seconds = load_seconds
        self._failure: ModelError | None = None
        self._errors = b""
        self._users = 1
        self._is_over = False
        self._is_unwanted = False
        self._since = time.monotonic()
        self._lock = threading.Lock()
        self._settled, self._woken = _signal(self), _signal(self)
        self.process: subprocess.Popen[bytes] | None = None
        self._thread = threading.Thread(target=self._keep, name=f"local model {self._name}", daemon=True)
        self._thread.start()

    def enter(self) -> bool:
        """Holds it; False when it is over."""
        with self._lock:
            if self._is_over:
                return False
            self._users += 1
            return True

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            self._since = time.monotonic()
        os.eventfd_write(self._woken, 1)

    def wait(self, cancel: CancelToken | None) -> None:
        """Returns once it serves; the error says why it does not. After `cancel`, `Cancelled` is raised at once."""
        watched = -1 if cancel is None else cancel.fileno()
        with selectors.DefaultSelector() as selector:
            selector.register(self._settled, selectors.EVENT_READ)
            if watched >= 0:
                selector.register(watched, selectors.EVENT_READ)
            selector.select()
        raise_if_stopped(cancel, "the request to the model was stopped")
        if self._failure is not None:
            raise self._failure

    def death(self) -> ModelError | None:
        """Why it is over, if it is: a broken connection is noticed before the end of the process."""
        self._thread.join(_NOTICE_SECONDS)
        if self._thread.is_alive():
            return None
        return self._failure or Unreachable(
            f"the process of {self._name!r} ended while it answered{self._complaint()}",
            advice="ask again; if it happens again, set a smaller context or use another file",
        )

    def end(self) -> None:
        """Ends the process, whoever uses it."""
        with self._lock:
            self._is_over = self._is_unwanted = True
        os.eventfd_write(self._woken, 1)
        self._thread.join(_END_SECONDS)

    def _keep(self) -> None:
        """Starts the process, takes what it says, and ends it when it is idle or no longer wanted."""
        try:
            self.process = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                # Its Ctrl-C is Pawl's to handle, and it stands in no folder of the user's.
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            self._finish(Unreachable(f"the process for {self._name!r} cannot be started: {error.strerror}"))
            return
        with self.process as process:
            try:
                self._watch(process)
                if not self._is_over:
                    # It ends by itself, and how it does tells why.
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_NOTICE_SECONDS)
            finally:
                process.kill()
                code = process.wait()
                self._drain(process)
                self._finish(None if self.address else self._failure or self._stillbirth(code))

    def _finish(self, failure: ModelError | None) -> None:
        with self._lock:
            self._is_over = True
        self._failure = failure
        os.eventfd_write(self._settled, 1)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        stdin, stdout, stderr = process.stdin, process.stdout, process.stderr
        assert stdin is not None and stdout is not None and stderr is not None
        with suppress(BrokenPipeError):
            stdin.write(_line(asdict(self._start)))
            stdin.flush()
        said = b""
        with selectors.DefaultSelector() as selector:
            for watched in (stdout.fileno(), stderr.fileno(), self._woken):
                selector.register(watched, selectors.EVENT_READ)
            while self._goes_on():
                for key, _ in selector.select(self._seconds_left()):
                    if key.fd == self._woken:
                        os.eventfd_read(self._woken)
                        continue
                    piece = os.read(key.fd, _PIECE)
                    if key.fd == stderr.fileno():
                        self._complain(piece)
                        if not piece:
                            selector.unregister(key.fd)
                    elif not piece or len(said) > _LONGEST_REPLY:
                        return
                    elif not self.address:
                        said += piece
                        if b"\n" in said and not self._hear(said.partition(b"\n")[0]):
                            return

    def _hear(self, line: bytes) -> bool:
        """Whether it serves."""
        try:
            reply = json.loads(line)
        except ValueError:
            return False
        match reply:
            case {"ready": str(address)}:
                self.address = address
                self._since = time.monotonic()
                os.eventfd_write(self._settled, 1)
                return True
            case {"no_library": str(message)}:
                self._failure = UnknownModel(
                    f"local models need the library xllamacpp: {message}",
                    advice=f"install it with: {with_extra('local')}",
                )
            case {"no_model": str(message)}:
                self._failure = UnknownModel(
                    f"{self._name!r} cannot be loaded{self._complaint() or ': ' + message}",
                    advice="download the file again, or use one for a newer or older llama.cpp",
                )
        return False

    def _goes_on(self) -> bool:
        """Whether there is time left. It is over as idle in the same step that makes sure that nobody uses it."""
        with self._lock:
            if self._is_over or self._remaining() > 0:
                return not self._is_over
            if not self.address:
                self._failure = ModelTimedOut(
                    f"{self._name!r} was not loaded after {self._load_seconds:g} s",
                    advice="use a smaller file, or a faster disk",
                )
            self._is_over = True
            return False

    def _seconds_left(self) -> float | None:
        with self._lock:
            remaining = self._remaining()
        return None if remaining == float("inf") else max(0.0, remaining)

    def _remaining(self) -> float:
        if not self.address:
            return self._since + self._load_seconds - time.monotonic()
        if self._users:
            return float("inf")
        return self._since + self._idle_seconds - time.monotonic()

    def _complain(self, piece: bytes) -> None:
        self._errors = (self._errors + piece)[-_KEPT_ERRORS:]

    def _drain(self, process: subprocess.Popen[bytes]) -> None:
        """The last words, as far as they are there; something else can hold the pipe open."""
        assert process.stderr is not None
        os.set_blocking(process.stderr.fileno(), False)
        with suppress(BlockingIOError):
            while piece := os.read(process.stderr.fileno(), _PIECE):
                self._complain(piece)

    def _complaint(self) -> str:
        lines = self._errors.decode("utf-8", "replace").splitlines()[-_SHOWN_LINES:]
        said = "\n".join(line for line in lines if line.strip())[-_SHOWN_CHARACTERS:]
        return f":\n{said}" if said else ""

    def _stillbirth(self, code: int) -> ModelError:
        if self._is_unwanted:
            return Unreachable(f"{self._name!r} was closed while it was loaded")
        if code == _KILLED:
            return Overloaded(
                f"{self._name!r} was killed while it was loaded{self._complaint()}",
                advice="the machine may be out of memory: close something, or use a smaller file",
            )
        return UnknownModel(
            f"{self._name!r} cannot be loaded: its process ended with {code}{self._complaint()}",
            advice="download the file again, or use another one",
        )


def _signal(owner: object) -> int:
    """A descriptor that can be waited on, open as long as its owner is."""
    descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
    weakref.finalize(owner, os.close, descriptor).atexit = False
    return descriptor


_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")


def free_memory(proc: Path = _PROC, groups: Path = _GROUPS) -> int | None:
    """Bytes that can be had without pushing others out; None where the system does not say."""
    found = [_of_machine(proc), *(_of_group(group) for group in _own_groups(proc, groups))]
    return min((free for free in found if free is not None), default=None)


def spare_threads(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """Cores that are not in use: a thread that has to wait for its core holds up all the others."""
    cores = float(len(os.sched_getaffinity(0)))
    for group in _own_groups(proc, groups):
        quota, _, period = _text(group / "cpu.max").partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            cores = min(cores, int(quota) / int(period))
    busy = float((_text(proc / "loadavg") or "0").split()[0])
    return max(1, round(cores) - round(busy))


def _of_machine(proc: Path) -> int | None:
    for line in _text(proc / "meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _of_group(group: Path) -> int | None:
    limit, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
    if not limit.isdigit() or not used.isdigit():
        return None
    # Cached files are counted as used, but go as soon as the memory is wanted.
    cached = (line.split() for line in _text(group / "memory.stat").splitlines())
    reclaimable = sum(int(words[1]) for words in cached if words[0] in ("inactive_file", "active_file"))
    return max(0, int(limit) - int(used) + reclaimable)


def _own_groups(proc: Path, groups: Path) -> Iterator[Path]:
    """The control group of this process and those above it."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        if line.startswith("0::/"):
            own = groups / line.removeprefix("0::/")
            yield own
            yield from (above for above in own.parents if above.is_relative_to(groups))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value).encode() + b"\n"


_PR_SET_PDEATHSIG = 1
_FIRST_TO_GO = "800"
_WARNINGS = 2
_MEBIBYTE = 1024**2
_PING_SECONDS = 10


def main() -> int:
    """Serves the model that the line on the standard input names, until that input ends."""
    parent = os.getppid()
    replies = os.dup(1)
    # What the library writes belongs to the errors; replies have their own descriptor.
    os.dup2(2, 1)
    _die_with_parent(parent)
    _go_first_when_memory_ends()
    start = ServerStart(**json.loads(sys.stdin.buffer.readline()))
    try:
        library = importlib.import_module("xllamacpp")
    except ImportError as error:
        os.write(replies, _line({"no_library": str(error)}))
        return 1
    try:
        server = library.Server(_parameters(library, start))
    except RuntimeError as error:
        os.write(replies, _line({"no_model": str(error)}))
        return 1
    os.write(replies, _line({"ready": server.listening_address}))
    while os.read(0, 1):
        pass
    return 0


def _parameters(library: Any, start: ServerStart) -> Any:
    parameters = library.CommonParams()
    parameters.model.path = start.path
    parameters.model_alias = {Path(start.path).name}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = 0
    parameters.api_keys = [start.token]
    parameters.ui = False
    parameters.endpoint_slots = False
    parameters.offline = True
    parameters.warmup = False
    # Above warnings come the texts of requests.
    parameters.verbosity = _WARNINGS
    parameters.n_ctx = start.context
    parameters.n_parallel = 1
    parameters.cpuparams.n_threads = start.threads
    parameters.cpuparams_batch.n_threads = start.threads
    parameters.cache_ram_mib = start.kept_prompts // _MEBIBYTE
    parameters.sse_ping_interval = _PING_SECONDS
    # Fitting loads the file twice and is only of use where there is a device to fit it to.
    parameters.fit_params = len(library.get_device_info()) > 1
    return parameters


def _die_with_parent(parent: int) -> None:
    """The lifeline alone would do nothing while the library loads, because it holds the interpreter's lock."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def _go_first_when_memory_ends() -> None:
    """When memory runs out, this process goes, not Pawl or the user's editor."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_GO)


if __name__ == "__main__":
    # Taking the library down in order can wait for ever for its own threads.
    os._exit(main())
