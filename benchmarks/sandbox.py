"""What the sandbox costs: the same command bare and confined, interleaved in one run, as medians.

    python benchmarks/sandbox.py [--rounds 40] [--test-rounds 15]

The last line is JSON for programs; the table above it is for people.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pawl.core.execution import Completed, CopyView, Execution, OverlayView, View
from pawl.sandbox.choice import LandlockSandbox
from pawl.sandbox.namespaces import NamespaceSandbox
from pawl.sandbox.visibility import Surroundings

TESTS = "".join(f"def test_{number}():\n    assert {number} + 1 == {number + 1}\n\n" for number in range(10))
PYTEST = (sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider")


class Place:
    """A small workspace with its bench."""

    def __init__(self, folder: Path) -> None:
        self.workspace = folder / "workspace"
        names = ("workspace", "upper", "work", "merged")
        for name in names:
            (folder / name).mkdir()
        (self.workspace / "test_small.py").write_text(TESTS)
        (self.workspace / "pytest.ini").write_text("[pytest]\n")
        subprocess.run(["git", "init", "-q", str(self.workspace)], check=True)
        shutil.copytree(self.workspace, folder / "copy")
        self.overlay = OverlayView(**{name: str(folder / name) for name in names})
        self.copy = CopyView(workspace=str(self.workspace), copy=str(folder / "copy"))

    def bare(self, argv: tuple[str, ...]) -> None:
        done = subprocess.run(argv, cwd=self.workspace, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


def confined(run: Callable[[View, Execution], Completed], view: View) -> Callable[[tuple[str, ...]], None]:
    def go(argv: tuple[str, ...]) -> None:
        completed = run(view, Execution(argv=argv))
        assert completed.ok, completed

    return go


def variants(place: Place) -> dict[str, Callable[[tuple[str, ...]], None]]:
    prefixes = (sys.prefix, sys.base_prefix)
    surroundings = Surroundings(home=str(Path.home()), path=os.environ["PATH"], extra_readonly=prefixes)
    namespaces, landlock = NamespaceSandbox(surroundings), LandlockSandbox(surroundings)
    return {
        "bare": place.bare,
        "overlay + namespaces": confined(namespaces.run, place.overlay),
        "copy + namespaces": confined(namespaces.run, place.copy),
        "copy + Landlock": confined(landlock.run, place.copy),
    }


def measure(ways: dict[str, Callable[[tuple[str, ...]], None]], argv: tuple[str, ...], rounds: int) -> dict:
    """Each round runs every way once, so that a busy moment of the machine hits all of them."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for round_number in range(rounds + 2):
        for name, way in ways.items():
            start = time.perf_counter()
            way(argv)
            if round_number >= 2:
                times[name].append((time.perf_counter() - start) * 1000)
    bare = statistics.median(times["bare"])
    return {
        name: {
            "median_ms": round(statistics.median(taken), 2),
            "p10_ms": round(sorted(taken)[len(taken) // 10], 2),
            "over_bare_ms": round(statistics.median(taken) - bare, 2),
            "ratio": round(statistics.median(taken) / bare, 3),
        }
        for name, taken in times.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--test-rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pawl-bench-", ignore_cleanup_errors=True) as folder:
        place = Place(Path(folder).resolve())
        ways = variants(place)
        results = {
            "true": measure(ways, ("true",), options.rounds),
            "pytest": measure(ways, PYTEST, options.test_rounds),
        }
        os.chmod(Path(folder) / "work/work", 0o700)
    print(f"{'command':10}{'way':24}{'median ms':>12}{'p10 ms':>10}{'over bare':>12}{'ratio':>9}")
    for command, rows in results.items():
        for name, row in rows.items():
            numbers = f"{row['median_ms']:12.2f}{row['p10_ms']:10.2f}{row['over_bare_ms']:12.2f}{row['ratio']:9.2f}"
            print(f"{command:10}{name:24}{numbers}")
    print(json.dumps({"benchmark": "sandbox", "user": os.getuid(), "load": os.getloadavg()[0], "results": results}))


if __name__ == "__main__":
    main()
