"""`pawl dev`: starting, finding, reading and ending the dev server of a workspace.

A small private file says which one a workspace has; it is swept when its process is gone.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

from pawl.checks.packages import SECONDS as INSTALL_SECONDS
from pawl.core.errors import NotFound, ServerUnavailable
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import workspace_key, write_private
from pawl.workspace.project import Project

START = "from pawl.checks.supervisor import main; main()"
STAY = b"+"
STOP_SECONDS = 15.0
_BETWEEN_SECONDS = 0.05
_MOST_READ = 256 << 10
"""Bytes of the end of a log."""
_GRACE_SECONDS = 30.0


class ServerState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    ENDED = "ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """One dev server as it is known."""

    workspace: str
    name: str
    pid: int
    born: int
    """When its process was started, which tells it from a later one with the same number."""
    state: ServerState
    port: int = 0
    reason: str = ""
    notice: str = ""
    """Why it is not where it was asked to be."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/" if self.port else ""

    @property
    def is_alive(self) -> bool:
        return self.pid > 0 and born(self.pid) == self.born


def born(pid: int) -> int:
    """When a process was started, in ticks of the system; 0 when it is not there or has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return 0 if fields[0] in "ZX" else int(fields[19])


@dataclass(frozen=True, slots=True)
class ServerRegistry:
    folder: Path

    @classmethod
    def under(cls, state: Path) -> ServerRegistry:
        return cls(state / "dev")

    def log(self, workspace: str) -> Path:
        return self.folder / f"{workspace_key(workspace)}.log"

    def get(self, workspace: str) -> ServerRecord | None:
        return self._read(self._path(workspace))

    def put(self, record: ServerRecord) -> None:
        write_private(self._path(record.workspace), json.dumps(asdict(record)))

    def forget(self, workspace: str) -> None:
        self._path(workspace).unlink(missing_ok=True)

    def sweep(self) -> tuple[ServerRecord, ...]:
        """Forgets servers whose process is gone without a word, and names them."""
        gone = []
        for path in sorted(self.folder.glob("*.json")):
            record = self._read(path)
            waits = record is not None and record.state in (ServerState.STARTING, ServerState.READY)
            if record is not None and waits and not record.is_alive:
                gone.append(record)
                path.unlink(missing_ok=True)
        return tuple(gone)

    def holder(self, port: int) -> str:
        """The server of a workspace that has a port; empty where none does."""
        for path in self.folder.glob("*.json"):
            record = self._read(path)
            if record is not None and record.port == port and record.is_alive:
                return f"{record.name} of {record.workspace!r}"
        return ""

    def _read(self, path: Path) -> ServerRecord | None:
        with suppress(OSError, ValueError, TypeError, KeyError):
            body = json.loads(path.read_text("utf-8"))
            return ServerRecord(**{**body, "state": ServerState(body["state"])})
        return None

    def _path(self, workspace: str) -> Path:
        return self.folder / f"{workspace_key(workspace)}.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DevRequest:
    port: int | None = None
    seconds: float = 60.0
    install: bool = False
    """Packages that are missing may be installed first."""
    secrets: bool = False
    """The server reads `.env` and key files, as the user says."""
    run: str = ""
    """What this run shows is served before it is promoted, or what it has made by now."""


def start(shop: Project, request: DevRequest) -> tuple[ServerRecord, bool]:
    """The server that answers, and whether it was started now; `ServerUnavailable` when it does not come up."""
    registry = ServerRegistry.under(shop.config.state)
    registry.sweep()
    known = registry.get(shop.workspace)
    if known is not None and known.is_alive:
        return known, False
    registry.forget(shop.workspace)
    asked = {"workspace": shop.workspace, **asdict(request)}
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", START, json.dumps(asked)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        cwd="/",
    )
    try:
        grace = _GRACE_SECONDS + INSTALL_SECONDS
        record = _awaited(registry, shop.workspace, process, request.seconds + grace)
    except BaseException:
        process.terminate()
        process.wait(STOP_SECONDS)
        raise
    if record is None or record.state is not ServerState.READY:
        process.terminate()
        process.wait(STOP_SECONDS)
        why = record.reason if record is not None and record.reason else "it did not start"
        name = (record.name if record is not None else "") or "the dev server"
        tail = logs(shop, 20)
        registry.forget(shop.workspace)
        raise ServerUnavailable(f"{name}: {why}", advice=tail or "'pawl verify' shows what is wrong")
    # It goes on without this process; nobody waits for it here. Without this word it ends, because nobody knows of it.
    assert process.stdin is not None
    with suppress(BrokenPipeError):
        process.stdin.write(STAY)
        process.stdin.close()
    process.returncode = 0
    shop.note_if_possible("dev server", {"name": record.name, "port": record.port})
    return record, True


def _awaited(
    registry: ServerRegistry, workspace: str, process: subprocess.Popen[bytes], seconds: float
) -> ServerRecord | None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        record = registry.get(workspace)
        if record is not None and record.pid == process.pid and record.state is not ServerState.STARTING:
            return record
        with suppress(subprocess.TimeoutExpired):
            process.wait(_BETWEEN_SECONDS)
            return registry.get(workspace)
    return registry.get(workspace)


def status(shop: Project) -> ServerRecord | None:
    """The server of the workspace as it is now; one whose process is gone is forgotten."""
    registry = ServerRegistry.under(shop.config.state)
    registry.sweep()
    return registry.get(shop.workspace)


def stop(shop: Project) -> ServerRecord | None:
    """Ends the server with its whole tree; None when there is none."""
    registry = ServerRegistry.under(shop.config.state)
    record = registry.get(shop.workspace)
    if record is None:
        return None
    if record.is_alive:
        with suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGTERM)
        if not _gone(record, STOP_SECONDS):
            with suppress(ProcessLookupError):
                os.kill(record.pid, signal.SIGKILL)
            _gone(record, STOP_SECONDS)
    registry.forget(shop.workspace)
    return record


def _gone(record: ServerRecord, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        while record.is_alive and time.monotonic() < deadline:
            selector.select(_BETWEEN_SECONDS)
    return not record.is_alive


def logs(shop: Project, lines: int) -> str:
    """The last lines that the server printed."""
    path = ServerRegistry.under(shop.config.state).log(shop.workspace)
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _MOST_READ))
            text = file.read(_MOST_READ).decode("utf-8", "replace")
    except FileNotFoundError:
        return ""
    found = text.splitlines()[1 if size > _MOST_READ else 0 :]
    return "\n".join(found[-lines:])


def required(record: ServerRecord | None) -> ServerRecord:
    if record is None:
        raise NotFound("no dev server runs for this workspace", advice="start it with 'pawl dev start'")
    return record


_LISTENS = "0A"


def port_holder(port: int) -> str:
    """The program that listens on a port, with its process; empty where the kernel does not tell this user."""
    wanted = {f"socket:[{inode}]" for inode in _sockets(port)}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if any(os.readlink(file) in wanted for file in os.scandir(process / "fd")):
                return f"{(process / 'comm').read_text('utf-8', 'replace').strip()!r} (process {process.name})"
    return ""


def _sockets(port: int) -> set[str]:
    found = set()
    for table in ("tcp", "tcp6"):
        with suppress(OSError):
            for line in Path("/proc/self/net", table).read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[3] == _LISTENS and int(fields[1].rpartition(":")[2], 16) == port:
                    found.add(fields[9])
    return found
