"""Measures what it costs to read a one-file change off a bench of a small and of a large workspace.

    python benchmarks/capture.py [--files 100000] [--repeats 7]

The last line is JSON. The aim is a ratio of at most 1.5: the time depends on the change, not on the tree.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
import tracemalloc
from pathlib import Path

from pawl.core.execution import Execution
from pawl.sandbox.choice import ChosenSandbox
from pawl.sandbox.visibility import Surroundings
from pawl.settings.guardrails import preset
from pawl.store import Store
from pawl.workspace.bench import Bench

AIM = 1.5
PER_FOLDER = 100


def lay(root: Path, files: int) -> Path:
    for number in range(files):
        folder = root / f"package{number // PER_FOLDER // 30}" / f"module{number // PER_FOLDER}"
        if number % PER_FOLDER == 0:
            folder.mkdir(parents=True)
        (folder / f"file{number}.py").write_text(f"value = {number}\n")
    (root / ".gitignore").write_text("*.log\nbuild/\n")
    return root


def measure(workspace: Path, place: Path, repeats: int) -> dict[str, float]:
    """Medians in milliseconds of making a bench, running a command that edits one file, capturing, and discarding."""
    blobs = Store.open(place.with_name(f"{place.name}-state")).blobs
    sandbox = ChosenSandbox(Surroundings(home=os.path.expanduser("~")))
    times: dict[str, list[float]] = {"create": [], "run": [], "capture": [], "discard": []}
    peak = 0
    for _ in range(repeats):
        marks = [time.perf_counter()]
        bench = Bench.create(workspace, place, sandbox, blobs, preset("standard"))
        marks.append(time.perf_counter())
        done = bench.run(Execution(argv=("sh", "-c", "echo changed >> package0/module0/file0.py")))
        assert done.ok, done.stderr.text
        marks.append(time.perf_counter())
        captured = bench.capture()
        assert captured.changes.paths == {"package0/module0/file0.py"}, captured
        marks.append(time.perf_counter())
        tracemalloc.start()
        bench.capture()
        peak = max(peak, tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        before = time.perf_counter()
        bench.discard()
        times["discard"].append(time.perf_counter() - before)
        for name, start, end in zip(("create", "run", "capture"), marks, marks[1:], strict=False):
            times[name].append(end - start)
    found = {f"{name}_ms": round(statistics.median(values) * 1000, 3) for name, values in times.items()}
    return {**found, "capture_peak_kib": round(peak / 1024, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    results: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="pawl-benchmark-") as name:
        folder = Path(name).resolve()
        for files in (100, options.files):
            workspace = lay(folder / f"workspace{files}", files)
            measure(workspace, folder / "benches", 1)
            results[str(files)] = measure(workspace, folder / "benches", options.repeats)
            print(f"{files:>7} files: {results[str(files)]}", flush=True)
    small, large = results["100"], results[str(options.files)]
    ratio = round(large["capture_ms"] / small["capture_ms"], 2)
    print(json.dumps({"benchmark": "capture", "ratio": ratio, "aim": AIM, "met": ratio <= AIM, "files": results}))


if __name__ == "__main__":
    main()
