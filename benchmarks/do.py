"""What `pawl do` costs on loopback: a file is read, one line mended, the tests run, the work finished and verified.

    python benchmarks/do.py [--rounds 5] [--turns 200] [--answer SECONDS]
                            [--workspace REPOSITORY [--bug PATH RIGHT WRONG]]

The model answers at once, or after SECONDS, which are not counted. Overhead is the wall time without the model's and
that of the test runs: the one that the model asks for and that of the verification, each as long as the same command
takes by itself. The tests without the change run beside the model: one that answers at once is waited for no longer
than they take, one that takes its time hides them. The tail is from the last answer to the exit, the verification
included; less the test run it is `tail_less_tests_s`. Then the run of many turns, in each of which the command `true`
is run. Tokens are bytes by four. The last line is JSON for programs.

With --workspace the two files stand in a clone of that repository, which was indexed before; every run begins in it as
it was cloned, and there is none of many turns. With --bug the wrong text stands there instead of the right one, the
model mends that, and Pawl finds the tests of the project itself and runs them for five seconds; the packages that they
need are those of the PATH.

On a busy machine wall times say little. `first_cpu_s` is the processor time of Pawl's own process until the first
request, and the last column holds each time against the same kind of time of `python -c pass` in the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent
FILES = {
    "calc.py": "def after(number):\n    return number + 2\n",
    "test_calc.py": (
        "import unittest\n\nfrom calc import after\n\n\nclass TestAfter(unittest.TestCase):\n"
        "    def test_after(self):\n        self.assertEqual(after(2), 3)\n"
    ),
}
TESTS = "python3 -m unittest -q test_calc"
FIX = [
    {"name": "file_read", "arguments": {"path": "calc.py"}},
    {"name": "strict_patch", "arguments": {"path": "calc.py", "old": "number + 2", "new": "number + 1"}},
    {"name": "run_command", "arguments": {"command": TESTS}},
]
TEST_RUNS = 2
"""The model's own, and the verification."""
SETTINGS = """\
review = "off"
[models]
default = "here/m"
[budget]
turns = {turns}
[providers.here]
wire = "openai"
base_url = "http://127.0.0.1:{port}/v1"
local = true
"""
BUG_SETTINGS = "[verify]\nbudget = 5.0\n"


@dataclass(frozen=True)
class Task:
    """What the model does, for which request, and how the tests are run."""

    request: str
    calls: list[dict[str, object]]
    files: dict[str, tuple[str, str]] = field(default_factory=dict)
    """A text of the repository, and what stands there instead."""
    settings: str = ""
    test: tuple[str, ...] = ("--test", TESTS)


def mending(path: str, right: str, wrong: str) -> Task:
    read = {"name": "file_read", "arguments": {"path": path}}
    patch = {"name": "strict_patch", "arguments": {"path": path, "old": wrong, "new": right}}
    return Task(f"fix the bug in {path}", [read, patch], {path: (right, wrong)}, BUG_SETTINGS, ())


FIX_AFTER = Task("fix the bug in after", FIX)


def laid(top: Path, repository: Path | None, task: Task = FIX_AFTER) -> Path:
    """A workspace with the two files or the bug: a folder of its own, or the one clone of the repository."""
    folder = top / "clone" if repository else Path(tempfile.mkdtemp(dir=top))
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    if repository and not folder.exists():
        subprocess.run(["git", "clone", "-q", "--local", str(repository), str(folder)], check=True)
    for name, text in FILES.items() if not task.files else ():
        (folder / name).write_text(text)
    for name, (right, wrong) in task.files.items():
        (folder / name).write_text((folder / name).read_text().replace(right, wrong))
    if repository:
        own = task.files or FILES
        for words in (["add", "-f", *own], ["commit", "-q", "--allow-empty", "-m", "a"], ["clean", "-qfdx"]):
            subprocess.run([*git, *words], check=True)
    return folder


def indexed(top: Path, repository: Path, task: Task) -> None:
    """The index as daily work leaves it."""
    (top / "config.toml").write_text("")
    laid(top, repository, task)
    words = [sys.executable, "-m", "pawl", "locate", "after"]
    for _ in range(2):
        subprocess.run(words, cwd=top / "clone", env=surroundings(top), check=False, stdout=subprocess.DEVNULL)


def surroundings(top: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"], "HOME": str(top), "LANG": "C.UTF-8",
        "PAWL_STATE": str(top / "state"), "PAWL_CONFIG": str(top / "config.toml"),
    }  # fmt: skip


def measured(top: Path, task: Task, answer: float = 0.0, repository: Path | None = None) -> dict[str, float]:
    """One run in a fresh workspace against a fresh server."""
    folder, calls = laid(top, repository, task), task.calls
    (top / "calls.json").write_text(json.dumps(calls))
    server = subprocess.Popen(
        [sys.executable, str(HERE / "model_server.py"), str(top / "calls.json"), str(answer)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    port = server.stdout.readline().strip()
    (top / "config.toml").write_text(SETTINGS.format(port=port, turns=len(calls) + 9) + task.settings)
    environment = surroundings(top)
    words = [sys.executable, "-m", "pawl", "do", task.request, "--approve", "never", *task.test, "--seconds", "600"]
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.monotonic()
    process = subprocess.Popen(
        words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    peak = Watch(process.pid)
    out, _ = process.communicate()
    ended = time.monotonic()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    server.stdin.close()
    seen = json.loads(server.stdout.read())
    server.wait()
    if process.returncode not in (0, 1) or len(seen["arrivals"]) != len(calls) + 1:
        raise SystemExit(out.decode())
    gaps = [after - before for before, after in zip(seen["answers"], seen["arrivals"][1:], strict=False)]
    return {
        "wall_s": ended - started - answer * len(seen["answers"]),
        "tail_s": ended - seen["answers"][-1],
        "cpu_s": used.ru_utime + used.ru_stime - spent.ru_utime - spent.ru_stime,
        "first_request_s": seen["arrivals"][0] - started,
        "first_cpu_s": peak.cpu_at(seen["arrivals"][0]),
        "gaps_ms": [1000 * gap for gap in gaps],
        "first_bytes": seen["sizes"][0],
        "sent_bytes": sum(seen["sizes"]),
        "peak_mb": peak.megabytes(),
        "done": float(process.returncode == 0),
    }


class Watch:
    """The largest resident size of a process itself, without what it starts, and its processor time as it goes."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")
        self._kilobytes = 0
        self._cpu: list[tuple[float, float]] = []
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        pause = threading.Event()
        while True:
            try:
                lines = (self._folder / "status").read_text().splitlines()
                spent = [(one / "schedstat").read_text() for one in (self._folder / "task").iterdir()]
            except (FileNotFoundError, ProcessLookupError):
                if not self._folder.exists():
                    return
                continue  # A thread has ended meanwhile.
            found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
            if not found:
                return
            self._kilobytes = int(found[0])
            self._cpu.append((time.monotonic(), sum(int(line.split()[0]) for line in spent) / 1e9))
            pause.wait(0.01)

    def cpu_at(self, moment: float) -> float:
        """Seconds of the processor until then, to the nearest look."""
        self._thread.join()
        return min(self._cpu, key=lambda look: abs(look[0] - moment))[1]

    def megabytes(self) -> float:
        self._thread.join()
        return self._kilobytes / 1024


def bare(rounds: int) -> dict[str, float]:
    """What a start of the interpreter costs: by the clock, and of the processor."""
    walls, spent = [], []
    for _ in range(rounds):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        walls.append(time.monotonic() - started)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"bare_s": statistics.median(walls), "bare_cpu_s": min(spent)}


def tests_alone(top: Path, rounds: int) -> float:
    folder = laid(top, None)
    times = []
    for _ in range(rounds):
        started = time.monotonic()
        subprocess.run(TESTS.split(), cwd=folder, capture_output=True, check=False)
        times.append(time.monotonic() - started)
    return statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--answer", type=float, default=0.0, help="seconds that each answer of the model takes")
    parser.add_argument("--workspace", type=Path, help="a repository in whose clone the runs take place")
    parser.add_argument("--bug", nargs=3, metavar=("PATH", "RIGHT", "WRONG"), help="what is put in there and mended")
    options = parser.parse_args()
    task = mending(*options.bug) if options.bug else FIX_AFTER
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        tests, start = tests_alone(top, options.rounds), bare(2 * options.rounds)
        if options.workspace:
            indexed(top, options.workspace, task)
        runs = [measured(top, task, options.answer, options.workspace) for _ in range(options.rounds + 1)][1:]
        true = [{"name": "run_command", "arguments": {"command": f"true {n}"}} for n in range(options.turns)]
        many = None if options.workspace else measured(top, Task("write nothing at all into calc.py", true))
    wall = statistics.median(run["wall_s"] for run in runs)
    result = {
        "load": os.getloadavg()[0],
        **start,
        "tests_s": tests,
        "wall_s": wall,
        "overhead_s": wall - TEST_RUNS * tests,
        "cpu_s": min(run["cpu_s"] for run in runs),
        "first_request_s": statistics.median(run["first_request_s"] for run in runs),
        "first_cpu_s": min(run["first_cpu_s"] for run in runs),
        "tail_s": statistics.median(run["tail_s"] for run in runs),
        "tail_less_tests_s": statistics.median(run["tail_s"] for run in runs) - tests,
        "gap_ms": statistics.median(gap for run in runs for gap in run["gaps_ms"]),
        "read_gap_ms": statistics.median(run["gaps_ms"][0] for run in runs),
        "sent_bytes": runs[-1]["sent_bytes"],
        "tokens": runs[-1]["sent_bytes"] / 4,
        "peak_mb": max(run["peak_mb"] for run in runs),
        "done": min(run["done"] for run in runs),
    }
    if many is not None:
        result |= {
            "gap_at_5_ms": statistics.median(many["gaps_ms"][2:8]),
            "gap_at_end_ms": statistics.median(many["gaps_ms"][-10:]),
            "many_peak_mb": many["peak_mb"],
        }
    for key, value in result.items():
        unit = "bare_cpu_s" if "cpu" in key else "bare_s"
        print(f"{key:<18} {value:>12,.3f}" + (f"   {value / start[unit]:>7.1f} × bare" if key.endswith("_s") else ""))
    print(json.dumps(result))


if __name__ == "__main__":
    main()
