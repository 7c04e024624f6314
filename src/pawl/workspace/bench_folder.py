"""The folder a bench lives in, who owns it, and the removal of those whose owner is gone."""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pawl.core.errors import ConfigError
from pawl.workspace.surface import empty

_OWNER = "owner.json"
_LOCK = "lock"
_UNCLAIMED_SECONDS = 3600
"""How long a folder without an owner is taken for one that is being made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Owner:
    """A process, told apart from any other that had or will have its number."""

    pid: int
    started: int
    boot: str
    namespace: str
    """Process numbers mean something only among processes of one namespace."""
    workspace: str

    @classmethod
    def this_process(cls, workspace: str) -> Owner:
        return cls(
            pid=os.getpid(),
            started=_started(os.getpid()),
            boot=_boot(),
            namespace=_namespace(),
            workspace=workspace,
        )

    @property
    def is_dead(self) -> bool:
        if self.boot != _boot() or self.namespace != _namespace():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass
        return _started(self.pid) != self.started


class BenchFolder:
    """A private folder that is locked while its owner lives."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock = lock

    @classmethod
    def create(cls, place: Path, identity: str, workspace: str) -> BenchFolder:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        _check_private(place)
        path = place / identity
        path.mkdir(mode=0o700)
        lock = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        draft = path / f"{_OWNER}.new"
        draft.write_text(json.dumps(asdict(Owner.this_process(workspace)), indent=2) + "\n", "utf-8")
        draft.rename(path / _OWNER)
        return cls(path, lock)

    def discard(self) -> None:
        """Removes the folder with everything in it, whatever a command did to it."""
        try:
            remove(self.path)
        finally:
            os.close(self._lock)


def _check_private(place: Path) -> None:
    """Whoever can write here can swap what a bench is made of."""
    status = place.lstat()
    if status.st_uid != os.geteuid() or status.st_mode & 0o022 or not stat.S_ISDIR(status.st_mode):
        raise ConfigError(
            f"{str(place)!r} is not a folder that only you can write",
            advice="remove it, or set another state folder",
        )


def new_identity() -> str:
    return f"b{secrets.token_hex(6)}"


def remove(path: Path) -> None:
    """Removes a bench's folder; who owns it stays known until the end."""
    path.chmod(0o700)
    for part in path.iterdir():
        if part.is_dir() and not part.is_symlink():
            part.chmod(0o700)
            fd = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                empty(fd)
            finally:
                os.close(fd)
            part.rmdir()
    for part in sorted(path.iterdir(), key=lambda part: part.name == _OWNER):
        part.unlink()
    path.rmdir()


def benches(place: Path) -> list[Path]:
    """The folders of benches in a place; none where others can write: they could plant what is then removed."""
    try:
        _check_private(place)
        return [path for path in sorted(place.iterdir()) if path.is_dir() and not path.is_symlink()]
    except (OSError, ConfigError):
        return []


def sweep(place: Path) -> int:
    """Removes every bench whose owner is dead; returns how many there were."""
    count = 0
    for path in benches(place):
        if not _is_abandoned(path):
            continue
        # One that belongs to another user, such as root after sudo, does not keep the others from going.
        with suppress(OSError):
            remove(path)
            count += 1
    return count


def _is_abandoned(path: Path) -> bool:
    """A held lock means a living owner, wherever its process number counts."""
    if _is_locked(path / _LOCK):
        return False
    try:
        owner = Owner(**json.loads((path / _OWNER).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        with suppress(FileNotFoundError):
            return time.time() - path.stat().st_mtime > _UNCLAIMED_SECONDS
        return False
    return owner.is_dead


def _is_locked(path: Path) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return os.readlink("/proc/self/ns/pid")
    except OSError:
        return ""


def _started(pid: int) -> int:
    """When the process began, in clock ticks since the machine did; -1 where that cannot be known."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return -1
    return int(status.rpartition(")")[2].split()[19])
