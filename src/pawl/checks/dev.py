"""`pawl dev`: starting, finding, reading and ending the dev server of a workspace."""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass

from pawl.checks.packages import SECONDS as INSTALL_SECONDS
from pawl.checks.registry import ServerRecord, ServerRegistry, ServerState
from pawl.core.errors import NotFound, ServerUnavailable
from pawl.workspace.project import Project

START = "from pawl.checks.supervisor import main; main()"
STAY = b"+"
STOP_SECONDS = 15.0
_BETWEEN_SECONDS = 0.05
_MOST_READ = 256 << 10
"""Bytes of the end of a log."""
_GRACE_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DevRequest:
    port: int | None = None
    seconds: float = 60.0
    install: bool = False
    """Packages that are missing may be installed first."""
    secrets: bool = False
    """The server reads `.env` and key files, as the user says."""


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
        [sys.executable, "-c", START, json.dumps(asked)],
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
        why = record.reason if record is not None and record.reason else "it did not come up"
        name = (record.name if record is not None else "") or "the dev server"
        tail = logs(shop, 8)
        registry.forget(shop.workspace)
        raise ServerUnavailable(f"{name}: {why}", advice=tail or "see 'pawl verify' for what is wrong")
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
        raise NotFound("no dev server of this workspace is known", advice="start it with 'pawl dev start'")
    return record
