"""Start of `pawl --version` and `pawl --help` against a bare `python -c pass`, interleaved in the same run.

usage: python benchmarks/startup.py [--rounds N]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path


def timed(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=40)
    rounds = parser.parse_args().rounds
    pawl = str(Path(sys.executable).with_name("pawl"))
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "pawl --version": [pawl, "--version"],
        "pawl --help": [pawl, "--help"],
        "pawl run --help": [pawl, "run", "--help"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(timed(command))
    medians = {name: statistics.median(values) for name, values in times.items()}
    bare = medians["python -c pass"]
    for name, value in medians.items():
        print(f"{name:18} {value:7.1f} ms   {value / bare:5.2f} × bare")
    ratios = {name: value / bare for name, value in medians.items()}
    print(json.dumps({"rounds": rounds, "ms": medians, "ratio": ratios}))


if __name__ == "__main__":
    main()
