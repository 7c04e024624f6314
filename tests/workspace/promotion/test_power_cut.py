"""A power cut at every call that changes something: only what reached the disk is there at the next start.

The workspace and the state lie on an ext4 image. At the cut the image file is copied, which leaves out everything that
is still in memory; the copy is mounted, which replays the file system's journal, and Pawl recovers on it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from workspace.promotion.crash_driver import OLD
from workspace.promotion.test_crash import CALLS, DRIVER, SOURCE
from world import snapshot

from pawl.settings.files import Tree
from pawl.store.store import Store
from pawl.workspace.promotion import Promoter

pytestmark = [
    pytest.mark.hostile,
    pytest.mark.root,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace injects the faults"),
    pytest.mark.skipif(shutil.which("mkfs.ext4") is None, reason="the disk is an ext4 image"),
]


@contextmanager
def mounted(image: Path, at: Path, options: str) -> Iterator[Path]:
    at.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", options, image, at], check=True)
    try:
        yield at
    finally:
        subprocess.run(["umount", at], check=True)


class Disk:
    """A small disk that can be started afresh, cut, and looked at. Every start is a new image file: a loop device
    may still write to the old one."""

    def __init__(self, root: Path, action: str) -> None:
        self.root, self.action, self.number = root, action, 0
        self.mount = root / "disk"
        self.base = root / "base.img"
        subprocess.run(["truncate", "-s", "24M", self.base], check=True)
        subprocess.run(["mkfs.ext4", "-q", "-F", self.base], check=True)
        with mounted(self.base, self.mount, "loop"):
            self._lay()
            self.old = snapshot(self.mount / "w")
        image = self._copy()
        with mounted(image, self.mount, "loop"):
            self.drive()
            self.new = snapshot(self.mount / "w")
        assert self.old != self.new

    def _lay(self) -> None:
        for name, (data, mode) in OLD.items():
            path = self.mount / "w" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.chmod(mode)
        (self.mount / "s").mkdir(mode=0o700)
        if self.action == "undo":
            self.drive(action="promote")

    def _copy(self) -> Path:
        self.number += 1
        image = self.root / f"{self.number}.img"
        shutil.copyfile(self.base, image)
        return image

    def drive(self, tracer: tuple[str, ...] = (), *, action: str = "") -> bool:
        words = [SOURCE, action or self.action, self.mount / "s", self.mount / "w", 16]
        command = [*tracer, sys.executable, "-I", "-S", "-B", str(DRIVER), *map(str, words)]
        return b"acknowledged" in subprocess.run(command, capture_output=True).stdout

    def points(self) -> list[tuple[str, int]]:
        image = self._copy()
        trace = self.root / "trace"
        with mounted(image, self.mount, "loop"):
            assert self.drive(("strace", "-f", "-qq", "-o", str(trace), "-e", "trace=" + ",".join(CALLS)))
        image.unlink()
        names = [match[1] for match in re.finditer(r"^\d+\s+(\w+)\(", trace.read_text(), re.MULTILINE)]
        return [(name, number + 1) for name, count in Counter(names).items() for number in range(count)]

    def after_cut(self, name: str, number: int, *, recover: bool) -> str:
        """What the cut leaves: old, new, mixed, or lost when it was acknowledged and is not there."""
        image, cut = self._copy(), self.root / f"{self.number}.cut"
        inject = f"inject={name}:signal=SIGKILL:when={number}"
        tracer = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", f"trace={name}", "-e", inject)
        with mounted(image, self.mount, "loop,commit=300"):
            acknowledged = self.drive(tracer if name != "end" else ())
            shutil.copyfile(image, cut)
        with mounted(cut, self.mount, "loop"):
            if recover:
                with Store.open(self.mount / "s") as store, Tree(self.mount / "w") as tree:
                    Promoter(tree, store.journal, store.blobs, self.mount / "s" / "locks").recover()
            now = snapshot(self.mount / "w")
        image.unlink()
        cut.unlink()
        state = "old" if now == self.old else "new" if now == self.new else "mixed"
        return "lost" if acknowledged and state != "new" else state


@pytest.mark.slow
@pytest.mark.spec("F2", "B9")
@pytest.mark.parametrize("action", ["promote", "undo"])
def test_a_power_cut_at_any_call_leaves_the_tree_old_or_new(tmp_path: Path, action: str) -> None:
    disk = Disk(tmp_path, action)
    outcomes = Counter(disk.after_cut(*point, recover=True) for point in [*disk.points(), ("end", 0)])
    assert set(outcomes) == {"old", "new"}


@pytest.mark.slow
@pytest.mark.spec("F2")
def test_without_recovery_a_power_cut_leaves_the_tree_mixed(tmp_path: Path) -> None:
    disk = Disk(tmp_path, "promote")
    steps = [point for point in disk.points() if point[0] in ("rename", "renameat", "unlinkat", "mkdirat", "fsync")]
    assert Counter(disk.after_cut(*point, recover=False) for point in steps)["mixed"] > 0


@pytest.mark.spec("F2")
def test_a_power_cut_right_after_the_acknowledgement_loses_nothing(tmp_path: Path) -> None:
    assert Disk(tmp_path, "promote").after_cut("end", 0, recover=True) == "new"
