"""Who has a port of this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"


def holder(port: int) -> str:
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
