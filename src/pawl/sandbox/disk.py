"""Notices when a command fills the disk: a cheap look at the free space, then an exact count of its own folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

_ENTRY_BYTES = 512
"""What an empty file counts for, so that a flood of them is noticed too."""
_SMALLEST_STEP = 1 << 20
_LONGEST_SILENCE = 2.0
"""Seconds after which the folder is counted even when the free space did not shrink: others may have freed some."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """How much may be stored below `path`, beyond what `baseline` holds."""

    path: str
    limit_bytes: int
    baseline: str = ""


@dataclass(slots=True)
class _Gauge:
    allowance: Allowance
    free: _Free
    trigger: int
    next_count: float
    base: int | None = None

    @property
    def step(self) -> int:
        return max(_SMALLEST_STEP, self.allowance.limit_bytes // 8)


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


class DiskWatch:
    def __init__(self, allowances: Iterable[Allowance]) -> None:
        first = time.monotonic() + _LONGEST_SILENCE
        self._gauges = [_Gauge(allowance, _Free.of(allowance.path), 0, first) for allowance in allowances]
        for gauge in self._gauges:
            gauge.trigger = gauge.step

    def exceeded(self) -> bool:
        return any(self._is_over(gauge) for gauge in self._gauges)

    def _is_over(self, gauge: _Gauge) -> bool:
        now = time.monotonic()
        shrunk = _Free.of(gauge.allowance.path).used_since(gauge.free)
        if shrunk < gauge.trigger and now < gauge.next_count:
            return False
        if gauge.base is None:
            gauge.base = stored_bytes(gauge.allowance.baseline) if gauge.allowance.baseline else 0
        size = stored_bytes(gauge.allowance.path) - gauge.base
        after = time.monotonic()
        gauge.trigger = shrunk + gauge.step
        gauge.next_count = after + max(_LONGEST_SILENCE, 20 * (after - now))
        return size > gauge.allowance.limit_bytes


def stored_bytes(folder: str) -> int:
    """The disk space of everything below a folder; links are not followed, a file with two names counts once."""
    total = 0
    seen: set[tuple[int, int]] = set()
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    info = entry.stat(follow_symlinks=False)
                    if info.st_nlink > 1 and not entry.is_dir(follow_symlinks=False):
                        if (info.st_dev, info.st_ino) in seen:
                            continue
                        seen.add((info.st_dev, info.st_ino))
                    total += max(info.st_blocks * 512, _ENTRY_BYTES)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            # The command is still running: what it removes or locks meanwhile is not counted.
            continue
    return total
