"""What Pawl and the process that serves a model say to each other: one line each way, then silence until the end.

The child reads a `Start` from its standard input and answers on its standard output with where it listens or why it
cannot. From then on its standard input is the lifeline: when it ends, so does the child.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """How a model is to be served. It goes through a pipe, because anybody can read the words of a command."""

    path: str
    token: str
    context: int
    threads: int
    kept_prompts: int

    def line(self) -> bytes:
        return _line(asdict(self))

    @classmethod
    def of(cls, line: bytes) -> Start:
        return cls(**json.loads(line))


class Cause(StrEnum):
    """Why a child cannot serve."""

    EXTRA = "extra"
    """The library is not installed."""
    FILE = "file"
    """The library does not take the file."""


@dataclass(frozen=True, slots=True)
class Ready:
    address: str

    def line(self) -> bytes:
        return _line({"ready": self.address})


@dataclass(frozen=True, slots=True)
class Failed:
    cause: Cause
    message: str

    def line(self) -> bytes:
        return _line({"failed": self.cause, "message": self.message})


def reply_of(line: bytes) -> Ready | Failed | None:
    """What a child says; None for what makes no sense."""
    try:
        match json.loads(line):
            case {"ready": str(address)}:
                return Ready(address)
            case {"failed": str(cause), "message": str(message)}:
                return Failed(Cause(cause), message)
    except ValueError:
        pass
    return None


def _line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"
