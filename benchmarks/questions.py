"""Asks a model twenty questions about small projects: are the right places cited, in how many requests?

    python benchmarks/questions.py --model local:FILE.gguf [--out LINES.jsonl] [--only PROJECT] [--threads N]

Everything goes through `pawl ask --json`, each question in a fresh workspace and conversation. An answer is right when
it cites a line of every place that `questions.toml` gives (of one of them with `any`) and has one of its words. A run
that was stopped goes on: questions whose line is in the file of `--out` are not asked again. The projects take turns.
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
import tomllib
from itertools import zip_longest
from pathlib import Path

DATA = Path(__file__).with_name("questions.toml")


def asked(options: argparse.Namespace, question: dict, files: dict[str, str]) -> dict:
    with tempfile.TemporaryDirectory(prefix="questions-") as name:
        room = Path(name).resolve()
        for path, text in files.items():
            (room / "project" / path).parent.mkdir(parents=True, exist_ok=True)
            (room / "project" / path).write_text(text.lstrip("\n"))
        (room / "config.toml").write_text(f"[local]\nthreads = {options.threads}\n")
        surroundings = {"PAWL_STATE": str(room / "state"), "PAWL_CONFIG": str(room / "config.toml")}
        words = [sys.executable, "-m", "pawl", "-C", str(room / "project"), "--json", "ask", "--model", options.model]
        started = time.monotonic()
        ran = subprocess.run(
            [*words, question["text"]], capture_output=True, text=True, env={**os.environ, **surroundings}
        )
        seconds = time.monotonic() - started
    try:
        said = json.loads(ran.stdout)
    except ValueError:
        said = {"answer": "", "requests": 0, "citations": [], "message": ran.stderr[-300:]}
    return {**judged(question, said), "seconds": round(seconds, 1), "load": round(os.getloadavg()[0], 1)}


def judged(question: dict, said: dict) -> dict:
    answer = str(said.get("answer", ""))
    cited = [(one["path"], one["line"]) for one in said.get("citations", ())]
    hits = [any(_meets(place, one) for one in cited) for place in question["at"]]
    return {
        "project": question["project"],
        "question": question["text"],
        "requests": said.get("requests", 0),
        "cited": any(hits) if question.get("any") else all(hits),
        "elsewhere": sum(not any(_meets(place, one) for place in question["at"]) for one in cited),
        "worded": any(word.lower() in answer.lower() for word in question["says"]),
        "citations": [f"{path}:{line}" for path, line in cited],
        "answer": answer or str(said.get("message", "")),
    }


def _meets(place: str, cited: tuple[str, int]) -> bool:
    path, _, lines = place.partition(":")
    first, _, last = lines.partition("-")
    return cited[0] == path and int(first) <= cited[1] <= int(last or first)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", help="questions about this project")
    parser.add_argument("--threads", type=int, default=1, help="of a local model")
    options = parser.parse_args()
    data = tomllib.loads(DATA.read_text())
    known = []
    if options.out and options.out.exists():
        known = [json.loads(line) for line in options.out.read_text().splitlines()]
    columns = [[one for one in data["question"] if one["project"] == name] for name in data["projects"]]
    lines = []
    for question in (one for row in zip_longest(*columns) for one in row if one is not None):
        if options.only and question["project"] != options.only:
            continue
        line = next((one for one in known if one["question"] == question["text"]), None)
        if line is None:
            line = asked(options, question, data["projects"][question["project"]])
            print(json.dumps(line), flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(line) + "\n")
        lines.append(line)
    if not lines:
        return
    right = sum(one["cited"] and one["worded"] for one in lines)
    requests = [one["requests"] for one in lines]
    print(
        f"\n{len(lines)} questions: right {right}, places cited {sum(one['cited'] for one in lines)}, "
        f"words {sum(one['worded'] for one in lines)}, other citations {sum(one['elsewhere'] for one in lines)}; "
        f"in one or two requests {sum(0 < one <= 2 for one in requests)}, most {max(requests)}; "
        f"median {statistics.median(one['seconds'] for one in lines):.0f} s"
    )


if __name__ == "__main__":
    main()
