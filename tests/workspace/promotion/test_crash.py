"""A promotion or an undo that is killed, or meets a full or broken disk, at every call that changes something."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from workspace.promotion.crash_driver import OLD
from world import Snapshot, snapshot

from pawl.settings.files import Tree
from pawl.store.store import Store
from pawl.workspace.promotion import Promoter
from pawl.workspace.reversal import History, Wish

SOURCE = Path(__file__).parents[3] / "src"
DRIVER = Path(__file__).with_name("crash_driver.py")
CALLS = (
    *("write", "pwrite64", "ftruncate", "fsync", "fdatasync", "syncfs"),
    *("rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "unlink", "unlinkat"),
    *("mkdir", "mkdirat", "rmdir", "chmod", "fchmod", "fchmodat", "fchown", "fchownat"),
)
INJECTIONS = {"kill": "signal=SIGKILL", "full": "error=ENOSPC", "broken": "error=EIO"}

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace injects the faults"),
]


class Ground:
    """A workspace and state that can be set back to the start, to before and after the action."""

    def __init__(self, root: Path, action: str, sync_each: int = 16) -> None:
        self.root, self.action, self.sync_each = root, action, sync_each
        self.workspace, self.state, self.start = root / "w", root / "s", root / "start"
        self._make_start()
        self.old = snapshot(self.workspace)
        self._driver(check=True)
        self.new = snapshot(self.workspace)
        assert self.old != self.new

    def _make_start(self) -> None:
        self.workspace.mkdir(parents=True)
        self.state.mkdir(mode=0o700)
        for name, (data, mode) in OLD.items():
            path = self.workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        if self.action == "undo":
            self._driver(check=True, action="promote")
        for part in (self.workspace, self.state):
            shutil.copytree(part, self.start / part.name, symlinks=True)

    def reset(self) -> None:
        for part in (self.workspace, self.state):
            shutil.rmtree(part)
            shutil.copytree(self.start / part.name, part, symlinks=True)

    def _driver(
        self, tracer: tuple[str, ...] = (), *, check: bool = False, action: str = ""
    ) -> subprocess.CompletedProcess[str]:
        words = [SOURCE, action or self.action, self.state, self.workspace, self.sync_each]
        command = [*tracer, sys.executable, "-I", "-S", "-B", str(DRIVER), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=check)

    def points(self) -> list[tuple[str, int]]:
        """Every mutating system call of the action: its name, and the how-manieth of that name it is."""
        self.reset()
        trace = self.root / "trace"
        self._driver(("strace", "-f", "-qq", "-o", str(trace), "-e", "trace=" + ",".join(CALLS)), check=True)
        names = [match[1] for match in re.finditer(r"^\d+\s+(\w+)\(", trace.read_text(), re.MULTILINE)]
        return [(name, number + 1) for name, count in Counter(names).items() for number in range(count)]

    def strike(self, fault: str, name: str, number: int) -> bool:
        """Runs the action with the fault at that call; True when it still said that it was done."""
        return "acknowledged" in self.struck(fault, name, number).stdout

    def struck(self, fault: str, name: str, number: int) -> subprocess.CompletedProcess[str]:
        self.reset()
        inject = f"inject={name}:{INJECTIONS[fault]}:when={number}"
        tracer = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject)
        return self._driver(tracer)

    def recover(self) -> None:
        with Store.open(self.state) as store, Tree(self.workspace) as tree:
            Promoter(tree, store.journal, store.blobs, self.state / "locks").recover()

    def take_back(self) -> Snapshot:
        with Store.open(self.state) as store, Tree(self.workspace) as tree:
            promoter = Promoter(tree, store.journal, store.blobs, self.state / "locks")
            newest = next(entry for entry in store.journal.entries(str(self.workspace)) if entry.state == "done")
            History(tree, promoter, store.journal, store.blobs, "r3").undo(newest.id, Wish())
        return snapshot(self.workspace)


def bad_states(ground: Ground, fault: str, points: list[tuple[str, int]]) -> list[str]:
    bad = []
    for name, number in points:
        acknowledged = ground.strike(fault, name, number)
        ground.recover()
        now = snapshot(ground.workspace)
        if now not in (ground.old, ground.new):
            bad.append(f"{name} {number}: mixed")
        elif acknowledged and now != ground.new:
            bad.append(f"{name} {number}: acknowledged and lost")
        elif now == ground.new and ground.take_back() != ground.old:
            bad.append(f"{name} {number}: cannot be undone")
    return bad


@pytest.mark.spec("F2", "B9")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("action", ["promote", "undo"])
@pytest.mark.parametrize("fault", INJECTIONS)
def test_the_tree_is_old_or_new_after_a_fault_at_some_calls(memory: Path, action: str, fault: str) -> None:
    ground = Ground(memory, action)
    points = ground.points()
    assert len(points) > 50
    assert bad_states(ground, fault, points[:: 14 if fault == "kill" else 28]) == []


@pytest.mark.slow
@pytest.mark.spec("F2", "B9")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("sync_each", [0, 16])
@pytest.mark.parametrize("action", ["promote", "undo"])
@pytest.mark.parametrize("fault", INJECTIONS)
def test_the_tree_is_old_or_new_after_a_fault_at_every_call(
    memory: Path, action: str, fault: str, sync_each: int
) -> None:
    ground = Ground(memory, action, sync_each)
    assert bad_states(ground, fault, ground.points()) == []


def broken_words(ground: Ground, fault: str, points: list[tuple[str, int]]) -> list[str]:
    """Where the action said that it failed and the next start carried it out all the same."""
    broken = []
    for name, number in points:
        said = ground.struck(fault, name, number)
        ground.recover()
        is_told = "acknowledged" in said.stdout or "so did the rollback" in said.stderr
        if not is_told and snapshot(ground.workspace) != ground.old:
            broken.append(f"{name} {number}: {said.stderr.splitlines()[-1:]}")
    return broken


@pytest.mark.spec("F2")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("fault", ["full", "broken"])
def test_what_was_said_to_have_failed_at_some_call_is_not_carried_out_later(memory: Path, fault: str) -> None:
    ground = Ground(memory, "promote")
    assert broken_words(ground, fault, ground.points()[3::14]) == []


@pytest.mark.slow
@pytest.mark.spec("F2")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("action", ["promote", "undo"])
@pytest.mark.parametrize("fault", ["full", "broken"])
def test_what_was_said_to_have_failed_at_any_call_is_not_carried_out_later(
    memory: Path, action: str, fault: str
) -> None:
    ground = Ground(memory, action)
    assert broken_words(ground, fault, ground.points()) == []


@pytest.mark.spec("F2")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("action", ["promote", "undo"])
def test_without_recovery_some_kill_leaves_the_tree_mixed(memory: Path, action: str) -> None:
    ground = Ground(memory, action)
    visible = ("rename", "renameat", "renameat2", "unlinkat", "mkdirat")
    renames = [point for point in ground.points() if point[0] in visible]
    mixed = 0
    for name, number in renames[::3]:
        ground.strike("kill", name, number)
        mixed += snapshot(ground.workspace) not in (ground.old, ground.new)
    assert mixed > 1
