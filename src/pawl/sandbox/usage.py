"""Reads from /proc what a process and all its descendants are and use."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterable, Iterator
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


_ENTRY_BYTES = 512
"""What an empty file counts for, so that a flood of them is noticed too."""
_SMALLEST_STEP = 1 << 20
_LONGEST_SILENCE = 2.0
"""Seconds after which is counted even when the free space did not shrink: others may have freed some."""


@dataclass(frozen=True, slots=True)
class DiskAllowance:
    """How much a command may store below a folder."""

    path: str
    limit_bytes: int


@dataclass(frozen=True, slots=True)
class _Free:
    space: int
    entries: int

    @classmethod
    def of(cls, path: str) -> _Free:
        state = os.statvfs(path)
        return cls(state.f_bavail * state.f_frsize, state.f_favail)

    def used_since(self, before: _Free) -> int:
        return max(before.space - self.space, (before.entries - self.entries) * _ENTRY_BYTES)


@dataclass(slots=True)
class _Gauge:
    allowance: DiskAllowance
    free: _Free
    next_count: float
    trigger: int = 0

    def __post_init__(self) -> None:
        self.trigger = self.step

    @property
    def step(self) -> int:
        return max(_SMALLEST_STEP, self.allowance.limit_bytes // 8)


class DiskWatch:
    def __init__(self, *allowances: DiskAllowance) -> None:
        # File systems lag behind by a tick at most, and the sandbox takes longer than that to come up.
        self._since = time.time_ns()
        first = time.monotonic() + _LONGEST_SILENCE
        self._gauges = [_Gauge(allowance, _Free.of(allowance.path), first) for allowance in allowances]

    def exceeded(self, processes: Iterable[int] = ()) -> bool:
        """Whether these processes have stored too much, also in files that have no name any more."""
        return any(self._is_over(gauge, processes) for gauge in self._gauges)

    def _is_over(self, gauge: _Gauge, processes: Iterable[int]) -> bool:
        now = time.monotonic()
        shrunk = _Free.of(gauge.allowance.path).used_since(gauge.free)
        if shrunk < gauge.trigger and now < gauge.next_count:
            return False
        size = stored_bytes(gauge.allowance.path, self._since) + nameless_bytes(processes)
        after = time.monotonic()
        gauge.trigger = shrunk + gauge.step
        gauge.next_count = after + max(_LONGEST_SILENCE, 20 * (after - now))
        return size > gauge.allowance.limit_bytes


def stored_bytes(folder: str, since: int = 0) -> int:
    """The disk space of everything below a folder that was changed since a moment.

    The time of change is one that no command can set. Links are not followed; a file with two names counts once.
    """
    total = 0
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(info.st_mode):
                        waiting.append(entry.path)
                    if info.st_ctime_ns >= since and (info.st_dev, info.st_ino) not in seen:
                        total += max(info.st_blocks * 512, _ENTRY_BYTES)
                        if info.st_nlink > 1:
                            seen.add((info.st_dev, info.st_ino))
        except OSError:
            # The command is still running: what it removes or locks meanwhile is not counted.
            continue
    return total


def nameless_bytes(processes: Iterable[int]) -> int:
    """The space of files that were removed while a process still has them open."""
    sizes: dict[tuple[int, int], int] = {}
    for process in processes:
        try:
            with os.scandir(f"/proc/{process}/fd") as entries:
                for entry in entries:
                    info = os.stat(entry.path)
                    if info.st_nlink == 0 and stat.S_ISREG(info.st_mode):
                        sizes[info.st_dev, info.st_ino] = info.st_blocks * 512
        except OSError:
            continue
    return sum(sizes.values())
