"""What the page of `pawl web` costs a browser: a run of some 2,000 events, a file of 50,000 lines, every pane.

    python benchmarks/page.py [--events 2000] [--lines 50000]

A scripted model makes the run; Chromium opens the page over loopback (web/dev/measure.mjs) and traces what it does.
`cold` is with an empty cache, `warm` with the scripts in it; a second run is watched as it comes.
`longest_cpu_ms` is the processor time of the longest task of the page's main thread, `longest_clock_ms` the same by the
clock, which other programs lengthen; the load of the machine stands beside it. The last line is JSON for programs.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import signal
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "src/pawl/ui/web/page"
PAWL = (sys.executable, "-m", "pawl")
TURNS = 40


def script(events: int) -> str:
    """Many calls, and commands that print lines, for two requests."""
    said = "Some **words**, a `name` and\\n\\n- a list\\n- of two\\n\\n```python\\nvalue = 1\\n```\\n"
    turns = []
    for words in ("look at everything", "once more"):
        for number in range(TURNS):
            command = f"echo {number}; seq {events // TURNS - 8}"
            call = f'{{ name = "run_command", arguments = {{ command = "{command}" }} }}'
            answer = f'{{ text = "{said} {number}", calls = [{call}] }}'
            turns.append(f'[[turn]]\nmatch = {{ user = "{words}" }}\nanswer = {answer}\n')
        turns.append(f'[[turn]]\nmatch = {{ user = "{words}" }}\nanswer = "Done."\n')
    return "".join(turns) + '[[turn]]\ntimes = 0\nanswer = "Done."\n'


def zipped(names: list[str]) -> int:
    """Bytes of scripts, gzipped."""
    return sum(len(gzip.compress((PAGE / "assets" / name).read_bytes())) for name in names)


def measured(folder: Path, events: int, lines: int) -> dict[str, Any]:
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "small.py").write_text("value = 1\n")
    (workspace / "large.py").write_text(
        "".join(f"def name_{n}(value):\n    return value + {n}\n" for n in range(lines // 2))
    )
    (folder / "script.toml").write_text(script(events))
    environment = {**os.environ, "PAWL_STATE": str(folder / "state"), "HOME": str(folder)}
    model = ("--model", f"scripted:{folder / 'script.toml'}")
    server = subprocess.Popen(
        [*PAWL, "web", "--no-open", "--json", *model],
        cwd=workspace, env=environment, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        address = json.loads(server.stdout.readline())["url"]
        events_made = carried(address)
        done = subprocess.run(
            ["node", "dev/measure.mjs", address, "large.py"],
            cwd=ROOT / "web", capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait()
    return {"events": events_made, **json.loads(done.stdout.splitlines()[-1])}


def carried(address: str) -> int:
    """Carry the run; the number of its events."""
    origin, _, token = address.partition("/#token=")
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"text": "look at everything"}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{origin}/api/requests", body, headers)).read()
    seen = 0
    with urllib.request.urlopen(urllib.request.Request(f"{origin}/api/events?after=0", headers=headers)) as stream:
        for line in stream:
            seen += line.startswith(b"id: ")
            if b'"type": "RunEnded"' in line:
                return seen
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2000)
    parser.add_argument("--lines", type=int, default=50_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pawl-page-", ignore_cleanup_errors=True) as folder:
        found = measured(Path(folder), options.events, options.lines)
    found = {**found, "first_load_gzip_bytes": zipped(found.pop("scripts")), "load_average": os.getloadavg()[0]}
    for name, value in found.items():
        print(f"{name:34} {value}")
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
