"""Runs one hook: on a bench in the sandbox, or on this machine, where the user's own settings ask for it.

On this machine it is bounded in output and time and ended with its whole tree, and neither its program, its words, its
folder nor its variables lead into the workspace.
"""

from __future__ import annotations

import os
import re
import secrets
import select
import signal
import stat
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pawl.core.errors import ConfigError
from pawl.core.execution import Completed, Ending, Execution, Limits
from pawl.core.ports import Cancel
from pawl.sandbox.process_tree import tree_use
from pawl.sandbox.surroundings import is_below
from pawl.workspace.bench import Bench

MOST_BYTES = 1 << 20
"""Kept of each stream."""
MARK = "PAWL_HOOK"
_AFTER_EXIT_SECONDS = 0.5
"""How long output that is already written is waited for, when something that the hook left keeps the pipe open."""
_ROUNDS = 100
_MOST_LINKS = 40
# On a machine without namespaces the bench stands at another path, which only the command itself sees.
_INSIDE = 'export PAWL_PROJECT_DIR="$PWD" CLAUDE_PROJECT_DIR="$PWD"; exec "$@"'
_STOPPED = {Ending.CANCELLED: "it was stopped", Ending.TIMED_OUT: "its time was up"}
_KEPT_VARIABLES = frozenset(
    {"HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TERM", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY"}
    | {"XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_SESSION_TYPE"}
    | {"DBUS_SESSION_BUS_ADDRESS"}
)
"""What a hook on this machine gets of the user's variables, beside `LC_*` and PATH: nothing that loads code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a hook ended."""

    code: int | None
    """None when it was stopped."""
    stdout: str = ""
    stderr: str = ""
    stopped: str = ""
    """Why, when it did not end by itself."""


def run_on_bench(
    bench: Bench, argv: Sequence[str], payload: bytes, limits: Limits, cancel: Cancel | None = None
) -> Ended:
    """Runs the command in the sandbox, as any command of the run."""
    execution = Execution(argv=("/bin/sh", "-c", _INSIDE, "hook", *argv), given=payload, limits=limits)
    done = bench.run(execution, cancel=cancel)
    stopped = "" if done.ending is Ending.EXITED else _STOPPED.get(done.ending) or _why(done)
    return Ended(code=done.code, stdout=done.stdout.text, stderr=done.stderr.text, stopped=stopped)


def _why(done: Completed) -> str:
    return done.notices[-1] if done.notices else f"{done.ending} {done.signal or ''}".strip()


def run_on_host(
    argv: Sequence[str],
    payload: bytes,
    *,
    seconds: float,
    environment: Mapping[str, str],
    cancel: Cancel | None = None,
) -> Ended:
    """Runs the command on this machine until it ends, its time is up, or the user stops it."""
    mark = secrets.token_hex(16)
    with tempfile.TemporaryFile() as given:
        given.write(payload)
        given.seek(0)
        try:
            process = subprocess.Popen(
                list(argv),
                stdin=given,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd="/",
                env={**environment, MARK: mark},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Ended(code=None, stopped=f"it cannot be started: {error}")
    with process:
        return _Following(process, mark, time.monotonic() + seconds, cancel).until_its_end()


def host_words(argv: Sequence[str], *, workspace: str, home: str) -> tuple[str, ...]:
    """The words that are started on this machine, the program by its real path; `ConfigError` where it may not be."""
    program, *words = argv
    program = home.rstrip("/") + program[1:] if program.startswith("~/") else program
    inside = [word for word in words if _leads_into(word, workspace)]
    if inside:
        raise ConfigError(f"its word {inside[0]!r:.200} leads into the workspace", advice="leave it out")
    return (_checked_program(program, workspace), *words)


def host_environment(environment: Mapping[str, str], workspace: str) -> dict[str, str]:
    """What a hook on this machine may know of the user's variables: no key, no code, no folder of the workspace."""
    kept = {name: value for name, value in environment.items() if name in _KEPT_VARIABLES or name.startswith("LC_")}
    entries = environment.get("PATH", os.defpath).split(":")
    path = [one for one in entries if os.path.isabs(one) and not _leads_into(one, workspace)]
    return {**kept, "PATH": ":".join(path), "PAWL_PROJECT_DIR": workspace, "CLAUDE_PROJECT_DIR": workspace}


def _leads_into(word: str, workspace: str) -> bool:
    """Whether the word names something in the workspace, by its spelling or through links."""
    named = re.search(rf"{re.escape(workspace)}(?![\w.-])", word) is not None
    return named or (os.path.isabs(word) and any(is_below(one, workspace) for one in _way(word)))


def _way(path: str) -> list[str]:
    """Every place that the kernel passes on its way to what the path names, each without links above it."""
    passed, left, at = [], path.split("/")[::-1], "/"
    links = 0
    while left:
        name = left.pop()
        at = os.path.dirname(at) if name == ".." else os.path.join(at, name) if name not in ("", ".") else at
        passed.append(at)
        if os.path.islink(at):
            links += 1
            if links > _MOST_LINKS:
                break
            target = os.readlink(at)
            at = "/" if target.startswith("/") else os.path.dirname(at)
            left += target.split("/")[::-1]
    return passed


def _checked_program(program: str, workspace: str) -> str:
    way = _way(program)
    if any(is_below(one, workspace) for one in (os.path.normpath(program), *way)):
        raise ConfigError(f"{program!r} leads through the workspace", advice="keep it outside of any workspace")
    real = os.path.realpath(program)
    try:
        status = os.stat(real)
    except OSError as error:
        why = error.strerror or "it cannot be looked at"
        raise ConfigError(f"{program!r}: {why}", advice="put its words into args; no shell reads it") from error
    if not stat.S_ISREG(status.st_mode) or not os.access(real, os.X_OK):
        raise ConfigError(f"{program!r} is not a program", advice="name a file that can be executed")
    if status.st_mode & 0o022 or status.st_uid not in (0, os.getuid()):
        raise ConfigError(f"others can write {real!r}", advice=f"chmod go-w {real}, and own it")
    for place in way:
        folder = os.path.dirname(place)
        found = os.stat(folder)
        writable = found.st_mode & (0o002 if found.st_uid == 0 else 0o022)
        if found.st_uid not in (0, os.getuid()) or (writable and not found.st_mode & stat.S_ISVTX):
            raise ConfigError(f"others can put another program into {folder!r}", advice="keep it in a folder of yours")
    return real


class _Following:
    """Reads what a hook writes while it waits for its end."""

    def __init__(self, process: subprocess.Popen[bytes], mark: str, deadline: float, cancel: Cancel | None) -> None:
        assert process.stdout is not None and process.stderr is not None
        self._process = process
        self._mark = mark
        self._deadline = deadline
        self._cancel = cancel
        self._out, self._err = process.stdout.fileno(), process.stderr.fileno()
        self._kept = {self._out: bytearray(), self._err: bytearray()}
        self._open = {self._out, self._err}
        self._poll = select.poll()
        for descriptor in self._open:
            os.set_blocking(descriptor, False)
            self._poll.register(descriptor, select.POLLIN)
        if cancel is not None:
            self._poll.register(cancel.fileno(), select.POLLIN)

    def until_its_end(self) -> Ended:
        exited = os.pidfd_open(self._process.pid)
        self._poll.register(exited, select.POLLIN)
        try:
            stopped = self._wait(exited)
            if stopped:
                end_tree(self._process.pid, self._mark)
            else:
                self._poll.unregister(exited)
                self._deadline = time.monotonic() + _AFTER_EXIT_SECONDS
                self._drain()
            code = self._process.wait()
        except BaseException:
            end_tree(self._process.pid, self._mark)
            raise
        finally:
            os.close(exited)
        texts = [bytes(self._kept[one]).decode("utf-8", "replace") for one in (self._out, self._err)]
        return Ended(code=None if stopped else code, stdout=texts[0], stderr=texts[1], stopped=stopped)

    def _wait(self, exited: int) -> str:
        """Until it has ended; why it has to be stopped, if it has."""
        while True:
            ready = self._ready()
            if self._cancel is not None and self._cancel.requested:
                return "it was stopped"
            if exited in ready:
                return ""
            if not ready and time.monotonic() >= self._deadline:
                return "its time was up"

    def _drain(self) -> None:
        """What is still in the pipes; nobody waits for what a hook left behind."""
        while self._open and (self._ready() or time.monotonic() < self._deadline):
            if self._cancel is not None and self._cancel.requested:
                return

    def _ready(self) -> list[int]:
        left = max(0.0, self._deadline - time.monotonic())
        ready = [descriptor for descriptor, _ in self._poll.poll(left * 1000)]
        for descriptor in self._open.intersection(ready):
            data = os.read(descriptor, 65_536)
            kept = self._kept[descriptor]
            kept += data[: max(0, MOST_BYTES - len(kept))]
            if not data:
                self._open.discard(descriptor)
                self._poll.unregister(descriptor)
        return ready


def end_tree(pid: int, mark: str) -> None:
    """Kills the process and all that came of it, also what left its group or its parent."""
    pause = threading.Event()
    for _ in range(_ROUNDS):
        alive = {*tree_use(pid).processes, *_marked(mark)}
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)
        for one in alive:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(one, signal.SIGKILL)
        if not alive:
            return
        pause.wait(0.01)


def _marked(mark: str) -> set[int]:
    """Processes with the hook's mark in their environment."""
    wanted, found = f"{MARK}={mark}".encode(), set()
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if wanted in (folder / "environ").read_bytes().split(b"\0"):
                    found.add(int(folder.name))
    return found
