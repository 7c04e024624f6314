"""Measures the plan of many tasks over the import graph of a real repository, and holds it against the graph.

    python benchmarks/waves.py FOLDER [TASKS] [UNDER]

`pawl spec orchestrate` is started as a person starts it, over a copy of the folder: before anything is indexed, and
when the index is there. Each task may run beside all others and changes one source file below UNDER or two, by a fixed
seed. Times are wall times with the processor time of all processes beside them, because other programs may be running;
the load says how many.
"""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pawl.code.librarian import workspace_import_graph
from pawl.settings.config import load
from pawl.workspace.project import Project

ROUNDS = 5
SEED = 22
TASKS = Path("specs/001-waves/tasks.md")
PAWL = str(Path(sys.executable).with_name("pawl"))


def main() -> None:
    folder, number = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 200
    with tempfile.TemporaryDirectory(prefix="pawl-waves-") as made:
        copy = Path(made) / "copy"
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv", "node_modules"))
        subprocess.run(["git", "init", "-q", copy], check=True)
        files = tasks_of(copy, number, sys.argv[3] if len(sys.argv) > 3 else "")
        environment = {**os.environ, "PAWL_STATE": str(Path(made) / "state")}
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        cold = planned(copy, environment)
        print(f"{number} tasks: {len(cold['waves'])} waves")
        print(f"without an index: {cold['wall']:.2f} s, {cold['processor']:.2f} s processor")
        subprocess.run([PAWL, "locate", "-C", str(copy), "x"], env=environment, check=True, capture_output=True)
        warm = [planned(copy, environment) for _ in range(ROUNDS)]
        print(
            "with one: {:.2f} s, {:.2f} s processor".format(
                *(statistics.median(one[name] for one in warm) for name in ("wall", "processor"))
            )
        )
        assert all(one["waves"] == cold["waves"] for one in warm), "the same tasks gave another plan"
        held_against_the_graph(copy, environment, cold["waves"], files)


def tasks_of(copy: Path, number: int, under: str) -> dict[str, list[str]]:
    """Writes the tasks; the files of each."""
    paths = sorted(str(path.relative_to(copy)) for path in (copy / under).rglob("*.py"))
    chance = random.Random(SEED)
    files = {f"T{at:03d}": sorted(chance.sample(paths, chance.randint(1, 2))) for at in range(1, number + 1)}
    lines = [f"- [ ] {name} [P] Change it\n  - Files: {', '.join(some)}" for name, some in files.items()]
    (copy / TASKS).parent.mkdir(parents=True)
    (copy / TASKS).write_text("\n".join(("# Tasks", "", "## Phase 1: All", *lines, "")))
    return files


def planned(copy: Path, environment: Mapping[str, str]) -> dict:
    before, wall = processor(), time.perf_counter()
    command = [PAWL, "spec", "orchestrate", "-C", str(copy), "--json", "--dry-run"]
    done = subprocess.run(command, env=environment, check=True, capture_output=True)
    return {**json.loads(done.stdout), "wall": time.perf_counter() - wall, "processor": processor() - before}


def processor() -> float:
    """Of all processes that have ended, their own included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def held_against_the_graph(
    copy: Path, environment: Mapping[str, str], waves: Sequence[Sequence[str]], files: Mapping[str, Sequence[str]]
) -> None:
    """No two tasks of a wave touch the same file, or a file that imports, however far, what the other changes."""
    with Project.open(load(environment), copy) as shop:
        importers = workspace_import_graph(shop).importers
    reached = {name: dependents(some, importers) for name, some in files.items()}
    wrong = [
        (one, two)
        for wave in waves
        for at, one in enumerate(wave)
        for two in wave[:at]
        if reached[one].intersection(files[two]) or reached[two].intersection(files[one])
    ]
    pairs = sum(len(wave) * (len(wave) - 1) // 2 for wave in waves)
    print(f"{len(importers)} files in the graph; {pairs} pairs of tasks side by side, {len(wrong)} of them overlap")
    assert not wrong, wrong
    assert sorted(name for wave in waves for name in wave) == sorted(files), "each task once"


def dependents(paths: Iterable[str], importers: Mapping[str, Iterable[str]]) -> set[str]:
    found, waiting = set(paths), list(paths)
    while waiting:
        new = set(importers.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


if __name__ == "__main__":
    main()
