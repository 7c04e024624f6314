"""Measures the librarian's index on one folder: making it, one changed file, a query, its size, the memory it takes.

    python benchmarks/index.py FOLDER ["TEXT"]

The folder is not changed but for one file, which is written again with a comment and put back. Times are wall times,
with the processor time of this process beside them, because other programs may be running; the load says how many.
`pawl locate` is started as a person starts it.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from pawl.code.code_model import Query
from pawl.code.languages import kind_by_name
from pawl.code.librarian import CodeLibrarian
from pawl.settings.files import Tree
from pawl.settings.guardrails import preset
from pawl.workspace.bench_files import WorkspaceFiles

TEXT = "TypeError: cannot serialize a nested class\nThe path of inner classes is wrong when they are written to a file."
ROUNDS = 7


def main() -> None:
    folder = Path(sys.argv[1]).resolve()
    text = sys.argv[2] if len(sys.argv) > 2 else TEXT
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory(prefix="pawl-index-") as made, Tree(folder) as tree:
        index = Path(made) / "index.db"
        files = WorkspaceFiles(tree, preset("standard"))
        paths = [stamp.path for stamp in files.stamps() if kind_by_name(stamp.path) is not None]
        print(f"{len(paths):,} files of text, {sum(lines(folder / path) for path in paths):,} lines")
        with CodeLibrarian(index, files) as librarian:
            timed("cold index", librarian.refresh)
        spent = resource.getrusage(resource.RUSAGE_CHILDREN)
        print(f"cold index, in the parsers: {(spent.ru_utime + spent.ru_stime) * 1000:,.0f} ms processor")
        with CodeLibrarian(index, files) as librarian:
            size = sum(path.stat().st_size for path in index.parent.iterdir())
            print(f"index on disk: {size / 1e6:.1f} MB")
            timed("nothing has changed", librarian.refresh, ROUNDS)
            target = largest_python(folder, paths)
            before = target.read_bytes()
            try:
                rounds(target, before, librarian, str(target.relative_to(folder)))
            finally:
                target.write_bytes(before)
            librarian.refresh()
            timed("query, warm", lambda: librarian.locate(Query(text=text), 10), ROUNDS)
        self_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        child_mb = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"peak memory: {self_mb:.0f} MB here, {child_mb:.0f} MB in the largest parser")
        whole_process(folder, text, Path(made) / "state")


def rounds(target: Path, before: bytes, librarian: CodeLibrarian, path: str) -> None:
    number = iter(range(1000))

    def change() -> None:
        target.write_bytes(before + f"\n# changed {next(number)}\n".encode())

    timed(f"one changed file, told which ({len(before):,} bytes)", lambda: librarian.refresh([path]), ROUNDS, change)
    timed("one changed file, found by a walk", librarian.refresh, ROUNDS, change)


def timed(name: str, work: Callable[[], object], count: int = 1, first: Callable[[], None] | None = None) -> None:
    walls, here = [], []
    for _ in range(count):
        if first is not None:
            first()
        wall, own = time.perf_counter(), time.process_time()
        work()
        walls.append(time.perf_counter() - wall)
        here.append(time.process_time() - own)
    print(
        f"{name}: {statistics.median(walls) * 1000:,.0f} ms ({statistics.median(here) * 1000:,.0f} ms processor here)"
    )


def whole_process(folder: Path, text: str, state: Path) -> None:
    environment = {**os.environ, "PAWL_STATE": str(state)}
    command = [str(Path(sys.executable).with_name("pawl")), "locate", "-C", str(folder), "--json", text]
    names = ("pawl locate, cold", "pawl locate, warm")
    for name, count in zip(names, (1, ROUNDS), strict=True):
        timed(name, lambda: subprocess.run(command, env=environment, check=True, capture_output=True), count)


def lines(path: Path) -> int:
    try:
        return path.read_bytes().count(b"\n")
    except OSError:
        return 0


def largest_python(folder: Path, paths: list[str]) -> Path:
    every = [folder / path for path in paths if path.endswith(".py") and "test" not in path]
    every.sort(key=lambda path: path.stat().st_size)
    # One that is larger than most, and not the strangest of all.
    return every[len(every) * 95 // 100]


if __name__ == "__main__":
    main()
