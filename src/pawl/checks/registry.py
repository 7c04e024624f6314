"""The registry of dev servers: a small private file for each workspace that has one, swept when its process is gone."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

_PRIVATE = 0o700


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
        return self.folder / f"{self._name(workspace)}.log"

    def get(self, workspace: str) -> ServerRecord | None:
        return self._read(self._path(workspace))

    def put(self, record: ServerRecord) -> None:
        self.folder.mkdir(mode=_PRIVATE, parents=True, exist_ok=True)
        path = self._path(record.workspace)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(asdict(record)), "utf-8")
        os.replace(temporary, path)

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
        return self.folder / f"{self._name(workspace)}.json"

    def _name(self, workspace: str) -> str:
        return hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:32]
