"""Memory and cores that are left for a model."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pawl.models.local_child import free_memory, spare_threads

pytestmark = pytest.mark.spec("F10")


@pytest.fixture
def machine(tmp_path: Path) -> tuple[Path, Path]:
    """A /proc and a tree of control groups with 8 GB free and no load."""
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    (proc / "self").mkdir(parents=True)
    (groups / "user" / "app").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text("0::/user/app\n")
    (proc / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    (proc / "loadavg").write_text("0.10 0.20 0.30 1/200 4711\n")
    return proc, groups


def limit(group: Path, most: str, used: int = 0, cached: int = 0) -> None:
    (group / "memory.max").write_text(f"{most}\n")
    (group / "memory.current").write_text(f"{used}\n")
    (group / "memory.stat").write_text(f"anon 5\ninactive_file {cached}\nactive_file 0\n")


def test_without_limits_the_machine_says_what_is_free(machine):
    proc, groups = machine
    limit(groups / "user", "max")
    assert free_memory(proc, groups) == 8_000_000 * 1024


def test_the_tightest_control_group_counts_and_cached_files_are_free(machine):
    proc, groups = machine
    limit(groups / "user", "1000000", used=900_000, cached=300_000)
    limit(groups / "user" / "app", "2000000", used=100)
    assert free_memory(proc, groups) == 400_000


def test_a_system_that_says_nothing_is_not_guessed_at(tmp_path):
    assert free_memory(tmp_path, tmp_path) is None
    assert spare_threads(tmp_path, tmp_path) == len(os.sched_getaffinity(0))


def test_busy_cores_and_quotas_leave_fewer_threads_but_always_one(machine):
    proc, groups = machine
    cores = len(os.sched_getaffinity(0))
    assert spare_threads(proc, groups) == cores
    (groups / "user" / "cpu.max").write_text("max 100000\n")
    assert spare_threads(proc, groups) == cores
    (groups / "user" / "cpu.max").write_text("100000 100000\n")
    assert spare_threads(proc, groups) == 1
    (groups / "user" / "cpu.max").unlink()
    (proc / "loadavg").write_text(f"{cores - 1}.2 0 0 1/200 1\n")
    assert spare_threads(proc, groups) == 1
    (proc / "loadavg").write_text("90.0 0 0 1/200 1\n")
    assert spare_threads(proc, groups) == 1
