"""Notices when a command fills the disk: a cheap look at the free space, then an exact count of what it stored."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass

_ENTRY_BYTES = 512
"""What an empty file counts for, so that a flood of them is noticed too."""
_SMALLEST_STEP = 1 << 20
_LONGEST_SILENCE = 2.0
"""Seconds after which is counted even when the free space did not shrink: others may have freed some."""


@dataclass(frozen=True, slots=True)
class Allowance:
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
    allowance: Allowance
    free: _Free
    next_count: float
    trigger: int = 0

    def __post_init__(self) -> None:
        self.trigger = self.step

    @property
    def step(self) -> int:
        return max(_SMALLEST_STEP, self.allowance.limit_bytes // 8)


class DiskWatch:
    def __init__(self, *allowances: Allowance) -> None:
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
