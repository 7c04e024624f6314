"""Runs one hook as a child with the user's own rights: bounded in output and time, and ended with its whole tree."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pawl.core.ports import Cancel
from pawl.sandbox.process_tree import tree_use

MOST_BYTES = 1 << 20
"""Kept of each stream."""
MARK = "PAWL_HOOK"
_AFTER_EXIT_SECONDS = 0.5
"""How long output that is already written is waited for, when something that the hook left keeps the pipe open."""
_ROUNDS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a hook ended."""

    code: int | None
    """None when it was stopped."""
    stdout: str = ""
    stderr: str = ""
    stopped: str = ""
    """Why, when it did not end by itself."""


def run_hook(
    argv: Sequence[str],
    payload: bytes,
    *,
    seconds: float,
    directory: str,
    environment: Mapping[str, str],
    cancel: Cancel | None = None,
) -> Ended:
    """Runs the command until it ends, its time is up, or the user stops it."""
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
                cwd=directory,
                env={**environment, MARK: mark},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            return Ended(code=None, stopped=f"it cannot be started: {error}")
    with process:
        return _Following(process, mark, time.monotonic() + seconds, cancel).until_its_end()


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
