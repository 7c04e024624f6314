"""Measures the search for JavaScript on HumanEvalFix: how many bugs get a patch that passes, and how many a right one.

python benchmarks/repair_js.py --data humanevalfix_js.jsonl [--seconds 30] [--step 1] [--from 0] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from pawl.repair.model import Agreement, RepairEnded, Status
from pawl.repair.scripts.asking import REQUEST_FILE, WarmRequest, warm_command
from pawl.repair.scripts.proposing import proposed
from pawl.repair.stream import parse_event, run_locally

HEAD = (
    "const {name} = require('./solution.js');\nconst assert = require('node:assert');\nconsole.assert = assert.ok;\n\n"
)
JUDGE = """
const util = require('node:util');
const calls = [];
const right = require('./right.js');
const found = require('./solution.js');
globalThis.NAME = (...args) => { try { calls.push(structuredClone(args)); } catch {} return right(...args); };
console.assert = () => {};
try { eval(require('node:fs').readFileSync('./cases.js', 'utf8')); } catch {}
const variants = (value) => {
  if (typeof value === 'number') return Number.isInteger(value) ? [value + 1, Math.max(0, value - 1)] : [value + 0.5];
  if (typeof value === 'string') return [value.slice(1), value.slice(0, -1), [...value].reverse().join('')];
  if (!Array.isArray(value) || !value.length) return [];
  return [value.slice(1), value.slice(0, -1), [...value].reverse(), [...value, value[0]]];
};
const others = (args, at) => variants(args[at]).map((other) => args.map((a, i) => (i === at ? other : a)));
const more = calls.flatMap((args) => args.flatMap((_, at) => others(args, at)));
let wrong = 0, compared = 0;
for (const args of [...calls, ...more].slice(0, 500)) {
  let wanted;
  try { wanted = util.inspect(right(...structuredClone(args)), { depth: 6 }); } catch { continue; }
  if (wanted === 'undefined' || wanted === 'NaN') continue;
  compared += 1;
  try { if (util.inspect(found(...structuredClone(args)), { depth: 6 }) !== wanted) wrong += 1; } catch { wrong += 1; }
}
console.log(JSON.stringify({ wrong, compared }));
"""


@dataclass(frozen=True, kw_only=True)
class Line:
    name: str
    kind: str
    status: str
    plausible: bool = False
    right: bool = False
    agreement: str = ""
    template: str = ""
    patch: str = ""
    rivals: int = 0
    tried: int = 0
    proposals: int = 0
    seconds: float = 0.0


def make(row: dict[str, str], folder: Path) -> str:
    """The buggy solution, its tests as an assert script, and the right solution to compare with."""
    name = row["entry_point"]
    export = f"\nmodule.exports = {name};\n"
    # Some solutions use a helper that only the prompt declares.
    head = row["prompt"] if row["declaration"].strip() not in row["prompt"] else row["declaration"]
    bug = head + row["buggy_solution"] + export
    (folder / "solution.js").write_text(bug)
    (folder / "right.js").write_text(head + row["canonical_solution"] + export)
    (folder / "cases.js").write_text(row["test"])
    (folder / "solution.test.js").write_text(HEAD.replace("{name}", name) + row["test"])
    (folder / "judge.js").write_text(JUDGE.replace("NAME", name))
    return bug


def passes(folder: Path) -> bool:
    try:
        done = subprocess.run(["node", "solution.test.js"], cwd=folder, capture_output=True, timeout=20)
        return done.returncode == 0
    except subprocess.TimeoutExpired:
        return False


def is_right(folder: Path) -> bool:
    try:
        done = subprocess.run(["node", "judge.js"], cwd=folder, capture_output=True, timeout=20, text=True)
        said = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.TimeoutExpired, IndexError, ValueError):
        return False
    return said["wrong"] == 0 and said["compared"] > 0


def measure(row: dict[str, str], seconds: float, workers: int) -> Line:
    with tempfile.TemporaryDirectory(prefix="reflex-js-") as name:
        folder = Path(name).resolve()
        bug = make(row, folder)
        about = {"name": row["task_id"], "kind": row["bug_type"]}
        if passes(folder):
            return Line(**about, status="nothing fails")
        started = time.monotonic()
        proposals = proposed({"solution.js": bug}, {})
        request = WarmRequest(root=name, tests=("solution.test.js",), failing=1, seconds=seconds, workers=workers)
        (folder / REQUEST_FILE).write_text(request.to_json(proposals))
        ended = RepairEnded(status=Status.ENGINE_FAILED, seconds=0.0)
        for line in run_locally(warm_command(str(folder))):
            event = parse_event(line)
            if isinstance(event, RepairEnded):
                ended = event
        about |= {"status": ended.status, "seconds": round(time.monotonic() - started, 2), "tried": ended.tried}
        about |= {"proposals": len(proposals)}
        patch = ended.chosen
        if patch is None:
            return Line(**about)
        (folder / "solution.js").write_bytes(patch.applied(bug.encode()))
        plausible = passes(folder)
        return Line(
            **about,
            plausible=plausible,
            right=plausible and is_right(folder),
            agreement=ended.agreement,
            template=patch.template,
            patch=" | ".join(edit.text for edit in patch.edits)[:100],
            rivals=len(ended.patches) - 1,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--step", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.data.read_text().splitlines()][args.first :: args.step]
    lines = []
    for row in rows:
        line = measure(row, args.seconds, args.workers)
        lines.append(line)
        print(
            f"{line.name:16} {line.kind:18} {line.status:14} {'plausible' if line.plausible else '-':10}"
            f"{'right' if line.right else '-':6} {line.agreement:9} {line.tried:6} of {line.proposals:6}"
            f" {line.seconds:6.1f} s  {line.template}: {line.patch!r}",
            flush=True,
        )
    plausible = [line for line in lines if line.plausible]
    silent = [line for line in plausible if not line.right and line.agreement != Agreement.DISPUTED]
    print(f"\nbugs {len(lines)}  plausible {len(plausible)}  right {sum(line.right for line in plausible)}")
    print(f"wrong and not flagged {len(silent)}; flagged {sum(x.agreement == 'disputed' for x in plausible)}")
    print(f"wall seconds median {statistics.median(line.seconds for line in lines):.1f}")
    if args.json:
        args.json.write_text(json.dumps([asdict(line) for line in lines], indent=1))


if __name__ == "__main__":
    main()
