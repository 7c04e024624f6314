"""What `pawl ask` costs beside a bare loop over httpx2: the first request, each turn, memory and bytes, in one run.

    python benchmarks/asking.py [--rounds 7] [--turns 200]

A model on loopback answers at once with a tool call, and on the last turn with an answer. The time between an answer
and the next request is the overhead of a turn, the tool call included. The last line is JSON for programs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
FILE = "".join(f"def function_{number}(value):\n    return value + {number}\n\n" for number in range(12))


@dataclass(frozen=True)
class Client:
    words: list[str]
    environment: dict[str, str]

    def started(self, port: str, turns: int) -> list[str]:
        """The command for a server on that port, its settings written."""
        if "PAWL_CONFIG" in self.environment:
            Path(self.environment["PAWL_CONFIG"]).write_text(
                f'[models]\ndefault = "here/m"\n[budget]\nturns = {turns + 5}\n'
                f'[providers.here]\nwire = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\nlocal = true\n'
            )
        return [word.replace("PORT", port) for word in self.words]


def measured(client: Client, turns: int, folder: Path) -> dict[str, float]:
    """One run of a client against a fresh server; memory is the system's own account of the finished process."""
    server = subprocess.Popen(
        [sys.executable, str(HERE / "asking_server.py"), str(turns)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdin is not None and server.stdout is not None
    words = client.started(server.stdout.readline().strip(), turns)
    started = time.monotonic()
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            words, cwd=folder, env=client.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=errors,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
        errors.seek(0)
        if status != 0:
            raise SystemExit(errors.read().decode())
    server.stdin.close()
    seen = json.loads(server.stdout.read())
    server.wait()
    gaps = [after - before for before, after in zip(seen["answers"], seen["arrivals"][1:], strict=False)]
    return {
        "first_request_ms": 1000 * (seen["arrivals"][0] - started),
        "first_bytes": seen["sizes"][0],
        "sent_bytes": sum(seen["sizes"]),
        "peak_mb": usage.ru_maxrss / 1024,
        "turn_5_ms": 1000 * statistics.median(gaps[2:8] or [0.0]),
        "last_turns_ms": 1000 * statistics.median(gaps[-10:] or [0.0]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--turns", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        top = Path(name).resolve()
        folder = top / "workspace"
        folder.mkdir()
        for number in range(options.turns + 1):
            (folder / f"f{number}.py").write_text(f"# {number}\n{FILE}")
        base = {"PATH": os.environ["PATH"], "HOME": str(top), "LANG": "C.UTF-8"}
        clients = {
            "bare": Client([sys.executable, str(HERE / "asking_bare.py"), "PORT", str(folder)], base),
            "pawl": Client(
                [sys.executable, "-m", "pawl", "ask", "what is there?"],
                {**base, "PAWL_STATE": str(top / "state"), "PAWL_CONFIG": str(top / "config.toml")},
            ),
        }
        firsts: dict[str, list[float]] = {"bare": [], "pawl": []}
        for _ in range(options.rounds + 1):
            for who, client in clients.items():
                firsts[who].append(measured(client, 1, folder)["first_request_ms"])
        result = {
            who: {**measured(client, options.turns, folder), "first_request_ms": statistics.median(firsts[who][1:])}
            for who, client in clients.items()
        }
    report(result, options.turns)


def report(result: dict[str, dict[str, float]], turns: int) -> None:
    bare, pawl = result["bare"], result["pawl"]
    rows = (
        ("first request on the wire, ms", "first_request_ms"),
        ("gap at turn 5, ms", "turn_5_ms"),
        (f"gap at turn {turns}, ms", "last_turns_ms"),
        ("bytes of the first request", "first_bytes"),
        (f"bytes sent in {turns} turns", "sent_bytes"),
        ("peak memory, MB", "peak_mb"),
    )
    for title, key in rows:
        ratio = pawl[key] / max(bare[key], 1e-9)
        print(f"{title:<34} bare {bare[key]:>12,.1f}   pawl {pawl[key]:>12,.1f}   ratio {ratio:.2f}")
    print(json.dumps(result))


if __name__ == "__main__":
    main()
