"""Start of `pawl --version` and `pawl --help` against a bare `python -c pass`, interleaved in the same run.

`pawl session` is the time until its input line stands in a terminal; what to hold it against is the import of the
library that reads keys, `import prompt_toolkit`.

usage: python benchmarks/startup.py [--rounds N]
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time
from pathlib import Path

PROMPT = "›".encode()


def timed(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - start) * 1000


def until_prompt(command: list[str], folder: str) -> float:
    """Milliseconds until the input line of a session stands."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 0, 0))
    environment = {**os.environ, "PAWL_STATE": f"{folder}/state", "TERM": "xterm-256color"}
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdin=slave, stdout=slave, stderr=slave, cwd=f"{folder}/work", env=environment, start_new_session=True
    )
    os.close(slave)
    seen = b""
    while PROMPT not in seen:
        seen += os.read(master, 65536)
    took = (time.perf_counter() - start) * 1000
    os.write(master, b"\x04")
    process.wait(30)
    os.close(master)
    return took


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
        "import prompt_toolkit": [sys.executable, "-c", "import prompt_toolkit"],
    }
    times: dict[str, list[float]] = {name: [] for name in (*commands, "pawl session")}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "work").mkdir()
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(timed(command))
            times["pawl session"].append(until_prompt([pawl], folder))
    medians = {name: statistics.median(values) for name, values in times.items()}
    bare = medians["python -c pass"]
    for name, value in medians.items():
        print(f"{name:22} {value:7.1f} ms   {value / bare:5.2f} × bare")
    ratios = {name: value / bare for name, value in medians.items()}
    print(json.dumps({"rounds": rounds, "ms": medians, "ratio": ratios}))


if __name__ == "__main__":
    main()
