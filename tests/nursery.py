"""Pawl as processes that are forked off one that has loaded its modules: most of a short call is loading them.

Such a process is one of its own in all that tests look at: words, folder, variables, streams, signals, exit code. What
depends on how Python itself starts (imports, closed streams) is tested with `python -m pawl` and with the script.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import functools
import gc
import importlib
import inspect
import json
import os
import pkgutil
import select
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

PATIENCE = 60.0
"""Seconds until something that never comes is a failure; nothing waits this long when all is well."""
OTHER = os.environ.get("TESTED_PAWL", "")  # noqa: TID251
"""The program of another Pawl that is tested in place of this one, such as that of an earlier commit."""
_LARGEST = 1 << 20
_LAZY = (
    "genai_prices",
    "httpx2",
    "prompt_toolkit",
    "prompt_toolkit.application",
    "pydantic",
    "rich.console",
    "rich.live",
    "rich.markdown",
    "rich.syntax",
    "rich.table",
    "yaml",
)
"""What Pawl loads when it is first needed."""


class Forked:
    """A Pawl under way, with what is used of `subprocess.Popen`."""

    def __init__(
        self,
        words: Sequence[str | bytes],
        cwd: Path,
        streams: tuple[int, int, int],
        *,
        leads: bool = False,
    ) -> None:
        variables = dict(os.environ)  # noqa: TID251
        call = {"words": [os.fsdecode(word) for word in words], "cwd": str(cwd), "variables": variables, "leads": leads}
        body = json.dumps(call).encode()
        self.returncode: int | None = None
        self._line = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._line.connect(_nursery())
        assert len(body) < _LARGEST
        self._line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _LARGEST)
        try:
            socket.send_fds(self._line, [body], streams)
            self.pid = int(self._line.recv(64))
        except OSError:
            self._line.close()
            raise

    def poll(self) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float = PATIENCE) -> int:
        if self.returncode is None:
            ready, _, _ = select.select([self._line], [], [], timeout)
            if not ready:
                raise subprocess.TimeoutExpired("pawl", timeout)
            self.returncode = int(self._line.recv(64))
            self._line.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def started(
    words: Sequence[str | bytes], cwd: Path, streams: tuple[int, int, int], *, leads: bool = False
) -> Forked | subprocess.Popen:
    """A Pawl under way; `leads`: in a session of its own, with the terminal that its stdin is."""
    if not OTHER and not _shapes_python(os.environ):  # noqa: TID251
        return Forked(words, cwd, streams, leads=leads)
    stdin, stdout, stderr = streams
    return subprocess.Popen(
        [*([OTHER] if OTHER else [sys.executable, "-m", "pawl"]), *words],
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        start_new_session=leads,
        preexec_fn=(lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0)) if leads else None,
    )


def run(
    words: Sequence[str | bytes], cwd: Path, given: bytes = b"", *, joined: bool = False
) -> tuple[int, bytes, bytes]:
    """Exit code, stdout and stderr of a call with pipes; `joined` streams are both stdout."""
    stdin, feed = os.pipe()
    out, stdout = os.pipe()
    err, stderr = os.pipe()
    try:
        process = started(words, cwd, (stdin, stdout, stdout if joined else stderr))
    finally:
        for end in (stdin, stdout, stderr):
            os.close(end)
    try:
        found = _exchanged(feed, given, (out, err))
        return process.wait(), found[out], found[err]
    finally:
        process.kill()


def _exchanged(feed: int, given: bytes, ends: Sequence[int]) -> dict[int, bytes]:
    """Writes what is given while everything is read that comes."""
    found = dict.fromkeys(ends, b"")
    os.set_blocking(feed, False)
    with selectors.DefaultSelector() as selector:
        selector.register(feed, selectors.EVENT_WRITE)
        for end in ends:
            selector.register(end, selectors.EVENT_READ)
        try:
            while selector.get_map():
                ready = selector.select(PATIENCE)
                assert ready, f"nothing came any more after {found}"
                for key, _ in ready:
                    if key.fd == feed:
                        with contextlib.suppress(BrokenPipeError):
                            given = given[os.write(feed, given[:65536]) :] if given else b""
                        more = bool(given)
                    else:
                        data = os.read(key.fd, 65536)
                        found[key.fd] += data
                        more = bool(data)
                    if not more:
                        selector.unregister(key.fd)
                        os.close(key.fd)
        finally:
            for left in list(selector.get_map().values()):
                os.close(left.fd)
    return found


def _shapes_python(variables: Mapping[str, str]) -> bool:
    """Whether the variables decide how Python itself starts, so that only a start of Python will do."""
    own = any(name.startswith("PYTHON") and name != "PYTHONPATH" for name in variables)
    locales = (value for name, value in variables.items() if name == "LANG" or name.startswith("LC_"))
    return own or any(not value.lower().endswith(("utf-8", "utf8")) for value in locales)


@functools.cache
def _nursery() -> str:
    folder = tempfile.mkdtemp(prefix="pawl-nursery-")
    address = f"{folder}/line"
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(address)
    listening.listen(64)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME")}  # noqa: TID251
    process = subprocess.Popen(
        [sys.executable, __file__, str(listening.fileno())],
        stdin=subprocess.PIPE,
        pass_fds=[listening.fileno()],
        env={**kept, "LANG": "C.UTF-8"},
        cwd="/",
    )
    listening.close()
    atexit.register(_close, process, folder)
    return address


def _close(process: subprocess.Popen, folder: str) -> None:
    process.stdin.close()
    process.wait()
    os.unlink(f"{folder}/line")
    os.rmdir(folder)


def _load() -> None:
    import pawl

    for found in pkgutil.walk_packages(pawl.__path__, "pawl."):
        if not {"inside", "langgraph", "local"} & set(found.name.split(".")) and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    for name in _LAZY:
        importlib.import_module(name)
    _warm()
    assert threading.active_count() == 1, "a fork would lose threads"
    gc.collect()
    gc.freeze()


def _warm() -> None:
    """Makes the tables, patterns and methods that each Pawl makes at first use: most of what a short run computes."""
    from pawl.agent import request_scope
    from pawl.core.lazy_dataclass import _Unwritten

    for found in gc.get_objects():
        if isinstance(found, _Unwritten):
            found.write()
    loaded = [module for name, module in sys.modules.items() if name.partition(".")[0] == "pawl"]
    tables = {
        held for module in loaded for held in vars(module).values() if isinstance(held, functools._lru_cache_wrapper)
    }
    for table in tables:
        if not inspect.signature(table).parameters:
            table()
    request_scope.scope_of("make it", "/", bool)


def _serve(listening: socket.socket) -> list[str] | None:
    """Forks a Pawl for each call. Returns in each of those with its words; in the nursery itself when it is closed."""
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(wake)
    lines: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([0, listening, woken], [], [])
        if 0 in ready:
            return None
        if woken in ready:
            os.read(woken, 4096)
            _tell_ended(lines)
        if listening in ready:
            line, _ = listening.accept()
            data, fds, _, _ = socket.recv_fds(line, _LARGEST, 3)
            if not data:
                line.close()
                continue
            pid = os.fork()
            if pid == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return _entered(json.loads(data), fds)
            for fd in fds:
                os.close(fd)
            line.send(str(pid).encode())
            lines[pid] = line


def _tell_ended(lines: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            line = lines.pop(ended[0])
            with contextlib.suppress(BrokenPipeError):
                line.send(str(os.waitstatus_to_exitcode(ended[1])).encode())
            line.close()


def _entered(call: Mapping[str, object], fds: Sequence[int]) -> list[str]:
    """Becomes the process that was asked for."""
    os.environ.clear()  # noqa: TID251
    os.environ.update(call["variables"])  # noqa: TID251
    if call["leads"]:
        os.setsid()
        fcntl.ioctl(fds[0], termios.TIOCSCTTY, 0)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
    os.closerange(3, 4096)
    sys.path[:1] = filter(None, call["variables"].get("PYTHONPATH", "").split(os.pathsep))
    os.chdir(call["cwd"])
    encoding = sys.stdout.encoding
    sys.stdin = open(0, encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding=encoding, closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding=encoding, errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    return call["words"]


def main() -> int:
    _load()
    words = _serve(socket.socket(fileno=int(sys.argv[1])))
    if words is None:
        return 0
    import pawl.__main__

    sys.argv = [pawl.__main__.__file__, *words]
    return _ended(pawl.__main__.main)


def _tell_defect(kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> bool:
    if kind is not None:
        sys.excepthook(kind, error, trace)
    return True


def _ended(call: Callable[[], int]) -> int:
    """As Python ends, but for taking every module apart, which costs more than many a call."""
    code = 1
    with contextlib.ExitStack() as told:
        told.push(_tell_defect)
        code = call()
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    sys.exit(main())
