"""What comes in and what goes out: one request as JSON, then events as JSON lines."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Request:
    root: str
    targets: tuple[str, ...] = ()
    """Files that may be edited, relative to the root; empty means every source that the tests import."""
    tests: tuple[str, ...] = ()
    """Words for pytest after its options: files, folders, ids; also options of the workspace's own."""
    seconds: float = 60.0
    workers: int = 2
    memory: int = 3 << 30
    seed: int = 0
    framework: str = "pytest"
    paths: tuple[str, ...] = ()
    """Folders put on the import path, relative to the root."""
    mend: tuple[str, ...] = ()
    """The failing tests to be mended, by their ids; other failures are left alone. Empty means all of them."""

    @classmethod
    def parse(cls, text: str) -> Request:
        given = json.loads(text)
        known = {field.name for field in fields(cls)}
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in given.items()
        }
        return cls(**{name: value for name, value in values.items() if name in known})


class Wire:
    """Writes events to a descriptor of its own, so that what tests print cannot mix with them."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def send(self, event: str, /, **values: Any) -> None:
        line = json.dumps({"event": event, **values}, separators=(",", ":")) + "\n"
        data = line.encode()
        while data:
            data = data[os.write(self.descriptor, data) :]
