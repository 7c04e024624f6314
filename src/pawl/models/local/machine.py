"""What this machine has left for a model: memory and cores, within the limits of its control groups."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")


def free_memory(proc: Path = _PROC, groups: Path = _GROUPS) -> int | None:
    """Bytes that can be had without pushing others out; None where the system does not say."""
    found = [_of_machine(proc), *(_of_group(group) for group in _own_groups(proc, groups))]
    return min((free for free in found if free is not None), default=None)


def spare_threads(proc: Path = _PROC, groups: Path = _GROUPS) -> int:
    """Cores that are not in use: a thread that has to wait for its core holds up all the others."""
    cores = float(len(os.sched_getaffinity(0)))
    for group in _own_groups(proc, groups):
        quota, _, period = _text(group / "cpu.max").partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            cores = min(cores, int(quota) / int(period))
    busy = float((_text(proc / "loadavg") or "0").split()[0])
    return max(1, round(cores) - round(busy))


def _of_machine(proc: Path) -> int | None:
    for line in _text(proc / "meminfo").splitlines():
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            return int(value.split()[0]) * 1024
    return None


def _of_group(group: Path) -> int | None:
    limit, used = _text(group / "memory.max").strip(), _text(group / "memory.current").strip()
    if not limit.isdigit() or not used.isdigit():
        return None
    # Cached files are counted as used, but go as soon as the memory is wanted.
    cached = (line.split() for line in _text(group / "memory.stat").splitlines())
    reclaimable = sum(int(words[1]) for words in cached if words[0] in ("inactive_file", "active_file"))
    return max(0, int(limit) - int(used) + reclaimable)


def _own_groups(proc: Path, groups: Path) -> Iterator[Path]:
    """The control group of this process and those above it."""
    for line in _text(proc / "self" / "cgroup").splitlines():
        if line.startswith("0::/"):
            own = groups / line.removeprefix("0::/")
            yield own
            yield from (above for above in own.parents if above.is_relative_to(groups))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError:
        return ""
