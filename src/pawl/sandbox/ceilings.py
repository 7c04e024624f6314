"""Sets the kernel's per-process limits on a command that waits at its gate."""

from __future__ import annotations

import os
import resource
from types import MappingProxyType

from pawl.core.execution import Limits

_OPEN_FILES = 4096
_NAMESPACED_COUNT = (5, 14)
"""Since this kernel RLIMIT_NPROC counts per user namespace; before, it counted everything the user runs."""


def set_ceilings(pid: int, limits: Limits) -> None:
    ceilings = {
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: _OPEN_FILES,
        resource.RLIMIT_DATA: limits.memory_bytes,
    }
    for which, value in MappingProxyType(ceilings).items():
        _lower(pid, which, value)


def set_process_ceiling(pid: int, limits: Limits) -> None:
    """Holds for a command in a user namespace of its own; the kernel exempts the superuser."""
    if kernel_version() >= _NAMESPACED_COUNT:
        _lower(pid, resource.RLIMIT_NPROC, limits.processes)


def kernel_version() -> tuple[int, int]:
    major, minor = os.uname().release.split(".")[:2]
    return int(major), int("".join(character for character in minor if character.isdigit()) or 0)


def _lower(pid: int, which: int, value: int) -> None:
    _, hard = resource.prlimit(pid, which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.prlimit(pid, which, (value, value))
