"""Reads from /proc what a process and all its descendants are and use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")
_PROPORTIONAL = re.compile(rb"^Pss:\s+(\d+) kB$", re.MULTILINE)
_FILTERS = re.compile(rb"^Seccomp_filters:\s+(\d+)$", re.MULTILINE)
_FILTERED = re.compile(rb"^Seccomp:\s+2$", re.MULTILINE)
_GONE = (FileNotFoundError, ProcessLookupError)


@dataclass(frozen=True, slots=True)
class TreeUse:
    processes: tuple[int, ...] = ()
    tasks: int = 0
    """Processes and their threads; this is what the kernel's own limits count."""
    resident_bytes: int = 0
    """Shared pages are counted once per process, so this is never too small."""
    private_bytes: int = 0


def children(pid: int) -> tuple[int, ...]:
    return tuple(child for task in _tasks(pid) for child in _children_of_task(pid, task))


def tree_use(root: int) -> TreeUse:
    """What the descendants of `root` use, without `root` itself."""
    found: list[int] = []
    tasks = resident = private = 0
    waiting = list(children(root))
    while waiting:
        pid = waiting.pop()
        names = _tasks(pid)
        if not names:
            continue
        found.append(pid)
        tasks += len(names)
        total, shared = _pages(pid)
        resident += total
        private += total - shared
        waiting.extend(child for task in names for child in _children_of_task(pid, task))
    return TreeUse(tuple(found), tasks, resident * _PAGE, private * _PAGE)


def proportional_bytes(use: TreeUse) -> int:
    """The memory of the tree with shared pages counted once in all; slow, so only asked for in doubt."""
    total = 0
    for pid in use.processes:
        try:
            match = _PROPORTIONAL.search(Path(f"/proc/{pid}/smaps_rollup").read_bytes())
        except (*_GONE, PermissionError):
            match = None
        resident, shared = _pages(pid)
        total += int(match[1]) * 1024 if match else (resident - shared) * _PAGE
    return total


def filter_count(pid: int) -> int:
    """How many system call filters the process runs under; kernels that do not count say one or none."""
    try:
        status = Path(f"/proc/{pid}/status").read_bytes()
    except _GONE:
        return 0
    match = _FILTERS.search(status)
    return int(match[1]) if match else int(_FILTERED.search(status) is not None)


def started_at(pid: int) -> str:
    """When the process started, in ticks since boot; with the number this names a process for good."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (*_GONE, PermissionError):
        return ""


def _tasks(pid: int) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")
    except (*_GONE, PermissionError):
        return []


def _children_of_task(pid: int, task: str) -> Iterator[int]:
    try:
        yield from map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
    except _GONE:
        return


def _pages(pid: int) -> tuple[int, int]:
    """Resident and, of those, shared pages."""
    try:
        fields = Path(f"/proc/{pid}/statm").read_bytes().split()
    except (*_GONE, PermissionError):
        return 0, 0
    return int(fields[1]), int(fields[2])
