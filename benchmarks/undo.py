"""A change of 5,000 files made by a command: captured, promoted, undone; against `cp -r` and `git checkout`.

usage: python benchmarks/undo.py [--files N]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from pawl.settings.config import load
from pawl.workspace.benches import CommandRequest, land, run_on_bench
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

T = TypeVar("T")


class Clock:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def timed(self, name: str, action: Callable[[], T]) -> T:
        start = time.perf_counter()
        result = action()
        self.seconds[name] = time.perf_counter() - start
        return result


def fill(root: Path, files: int) -> None:
    for number in range(files):
        path = root / f"d{number // 100}" / f"f{number}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"line of {number}\n" * 20)


def git(root: Path, *words: str) -> None:
    subprocess.run(["git", "-c", "user.name=b", "-c", "user.email=b@example.invalid", *words], cwd=root, check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=5000)
    files = parser.parse_args().files
    room = Path(tempfile.mkdtemp(prefix="pawl-undo-"))
    os.environ["PAWL_STATE"] = str(room / "state")
    workspace, plain = room / "workspace", room / "plain"
    clock = Clock()
    try:
        fill(workspace, files)
        shutil.copytree(workspace, plain)
        git(plain, "init", "-q")
        git(plain, "add", "-A")
        git(plain, "commit", "-qm", "start")
        script = "find . -name '*.txt' -exec sed -i s/line/LINE/ {} +"
        subprocess.run(["sh", "-c", script], cwd=plain, check=True)
        clock.timed("git checkout", lambda: git(plain, "checkout", "-q", "--", "."))
        clock.timed("cp -r", lambda: subprocess.run(["cp", "-r", workspace, room / "copy"], check=True))
        with Project.open(load(), workspace) as shop:
            ran = clock.timed(
                "run and capture", lambda: run_on_bench(shop, CommandRequest(argv=("sh", "-c", script), seconds=300))
            )
            landing = clock.timed("promote", lambda: land(shop, ran, allow_protected=False))
            assert landing.promotion is not None
            assert len(landing.promotion.changes) == files
            clock.timed("undo", lambda: shop.undo(None, Wish()))
        same = subprocess.run(["diff", "-r", workspace, room / "copy"], check=False).returncode == 0
    finally:
        shutil.rmtree(room, ignore_errors=True)
    bare = clock.seconds["git checkout"]
    for name, seconds in clock.seconds.items():
        print(f"{name:16} {seconds:7.2f} s   {seconds / bare:6.2f} × git checkout")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory      {peak:7.0f} MB   tree as before: {same}")
    print(json.dumps({"files": files, "seconds": clock.seconds, "peak_mb": peak, "same": same}))


if __name__ == "__main__":
    main()
