"""A command as data: what to run, how the workspace is shown to it, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from pawl.core.lazy_dataclass import dataclass


class Network(StrEnum):
    OFF = "off"
    ON = "on"


class Secrets(StrEnum):
    """Whether files that hold secrets (.env, keys) can be read by the command."""

    HIDDEN = "hidden"
    """Those in which a value looks like a secret, and all that git does not track."""
    MASKED = "masked"
    """All that are named like one: for what is sent to a model."""
    SHOWN = "shown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a command; each is enforced for the whole process tree unless it says otherwise."""

    seconds: float = 30.0
    memory_bytes: int = 4 << 30
    processes: int = 512
    output_bytes: int = 1 << 20
    """Kept of each stream, half from its start and half from its end; the rest is counted and dropped."""
    file_bytes: int = 1 << 30
    """Per file."""
    disk_bytes: int = 4 << 30
    """How much the bench may grow."""
    scratch_bytes: int = 512 << 20
    """The size of /tmp."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    argv: tuple[str, ...]
    directory: str = ""
    """Relative to the workspace; empty is its root."""
    network: Network = Network.OFF
    secrets: Secrets = Secrets.HIDDEN
    environment: Mapping[str, str] = field(default_factory=dict)
    """Added to the clean environment."""
    limits: Limits = field(default_factory=Limits)
    writable_git: bool = False
    given: bytes = b""
    """Its standard input."""
    pipe: int | None = None
    """An open pipe that is its standard input instead, for a command that is talked with."""
    files: tuple[int, ...] = ()
    """Open files that the command inherits under their numbers; refused where it has no network of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlayView:
    """The workspace as the lower layer, `upper` on top of it, shown at the workspace's own path."""

    workspace: str
    upper: str
    work: str
    merged: str
    masks: str = ""
    """A layer right above the workspace with what stands in the place of secrets; empty where there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyView:
    """A full copy; shown at the workspace's own path where namespaces allow, else at its own."""

    workspace: str
    copy: str


View = OverlayView | CopyView


class Ending(StrEnum):
    EXITED = "exited"
    SIGNALLED = "signalled"
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    MEMORY_LIMIT = "memory limit"
    PROCESS_LIMIT = "process limit"
    DISK_LIMIT = "disk limit"


class Stream(StrEnum):
    STDOUT = "stdout"
    STDERR = "stderr"


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """The kept part of a stream: its start, its end, and how much there was in all."""

    head: bytes = b""
    tail: bytes = b""
    total: int = 0

    @property
    def dropped(self) -> int:
        return self.total - len(self.head) - len(self.tail)

    @property
    def text(self) -> str:
        middle = f"\n[… {self.dropped} bytes left out …]\n".encode() if self.dropped else b""
        return (self.head + middle + self.tail).decode("utf-8", "replace")


class Confinement(StrEnum):
    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completed:
    """How a command ended."""

    ending: Ending
    code: int | None
    """The exit code; None when it did not exit by itself."""
    signal: int | None = None
    stdout: Captured = Captured()
    stderr: Captured = Captured()
    seconds: float = 0.0
    peak_memory_bytes: int = 0
    confinement: Confinement = Confinement.NAMESPACES
    notices: tuple[str, ...] = ()
    """Notes for a person about how it ran, such as a weaker protection."""

    @property
    def ok(self) -> bool:
        return self.ending is Ending.EXITED and self.code == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One line of what `pawl doctor` reports about this machine."""

    name: str
    works: bool
    detail: str
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """The protection that this machine gives to a command."""

    confinement: Confinement
    overlay: bool
    probes: tuple[Probe, ...] = ()
