"""Measures the search for JavaScript on HumanEvalFix: how many bugs get a patch that passes, and how many a right one.

python benchmarks/repair_js.py --data humanevalfix_js.jsonl [--seconds 10] [--counted cpu] [--from N] [--to N]

The rows below 75 were looked at while templates were written, the others were not: both halves are reported apart. With
`--counted cpu` the seconds are those that Node computed, so that a busy machine searches as far as a quiet one.
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

from pawl.repair.ground import parse_event
from pawl.repair.model import Agreement, RepairEnded, RepairStatus
from pawl.repair.script_ground import REQUEST_FILE, WarmRequest, warm_command
from pawl.repair.script_proposals import proposed

HEAD = (
    "const {name} = require('./solution.js');\nconst assert = require('node:assert');\nconsole.assert = assert.ok;\n\n"
)
JUDGE = """
const util = require('node:util');
const vm = require('node:vm');
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
// Where the reference does not end, nothing is compared.
const limited = (call, args) => {
  globalThis.waiting = () => call(...structuredClone(args));
  return util.inspect(vm.runInThisContext('waiting()', { timeout: 300 }), { depth: 6 });
};
let wrong = 0, compared = 0;
for (const args of [...calls, ...more].slice(0, 500)) {
  let wanted;
  try { wanted = limited(right, args); } catch { continue; }
  if (wanted === 'undefined' || wanted === 'NaN') continue;
  compared += 1;
  try { if (limited(found, args) !== wanted) wrong += 1; } catch { wrong += 1; }
}
console.log(JSON.stringify({ wrong, compared }));
"""


LOOKED_AT = 75


@dataclass(frozen=True, kw_only=True)
class Asked:
    seconds: float
    workers: int
    counted: str


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
    margin: float = 0.0
    tried: int = 0
    proposals: int = 0
    seconds: float = 0.0
    cpu: float = 0.0
    row: int = 0

    @property
    def is_flagged(self) -> bool:
        return self.agreement == Agreement.DISPUTED


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


def measure(row: dict[str, str], asked: Asked) -> Line:
    with tempfile.TemporaryDirectory(prefix="reflex-js-") as name:
        folder = Path(name).resolve()
        bug = make(row, folder)
        about = {"name": row["task_id"], "kind": row["bug_type"], "row": int(row["task_id"].split("/")[1])}
        if passes(folder):
            return Line(**about, status="nothing fails")
        started = time.monotonic()
        found = proposed({"solution.js": bug}, {})
        tests = ("solution.test.js",)
        request = WarmRequest(root=str(folder), tests=tests, failing=tests, **asdict(asked))
        (folder / REQUEST_FILE).write_bytes(request.packed(found))
        ended = RepairEnded(status=RepairStatus.ENGINE_FAILED, seconds=0.0)
        words = warm_command(str(folder))
        output = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False).stdout
        for line in output.splitlines():
            event = parse_event(line)
            if isinstance(event, RepairEnded):
                ended = event
        about |= {"status": ended.status, "seconds": round(time.monotonic() - started, 2), "tried": ended.tried}
        about |= {"proposals": len(found.proposals), "cpu": ended.cpu}
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
            margin=ended.margin,
        )


def report(title: str, lines: list[Line]) -> None:
    if not lines:
        return
    plausible = [line for line in lines if line.plausible]
    right = [line for line in plausible if line.right]
    flagged = [line for line in plausible if line.is_flagged]
    silent = [line for line in plausible if not line.right and not line.is_flagged]
    flagged_right = sum(line.right for line in flagged)
    seconds = [line.seconds for line in lines]
    tried = sum(line.tried for line in lines)
    cpu = sum(line.cpu for line in lines)
    print(f"\n{title}: bugs {len(lines)}  plausible {len(plausible)}  right {len(right)}")
    print(f"  flagged {len(flagged)}, of them right {flagged_right}; wrong and not flagged {len(silent)}")
    print(f"  wall seconds median {statistics.median(seconds):.1f}, most {max(seconds):.1f}")
    print(f"  candidates {tried}, per CPU second {tried / max(cpu, 1):.0f}")


def shown(line: Line) -> str:
    words = f"{line.name:16} {line.kind:18} {line.status:14} {'plausible' if line.plausible else '-':10}"
    words += (
        f"{'right' if line.right else '-':6} {line.agreement:9} {line.margin:5.2f} {line.tried:6} of {line.proposals:6}"
    )
    return f"{words} {line.seconds:6.1f} s {line.cpu:6.1f} cpu  {line.template}: {line.patch!r}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--counted", choices=("wall", "cpu"), default="wall")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--to", type=int, default=None, dest="last")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rows = [json.loads(line) for line in args.data.read_text().splitlines()][args.first : args.last]
    asked = Asked(seconds=args.seconds, workers=args.workers, counted=args.counted)
    lines = []
    for row in rows:
        lines.append(measure(row, asked))
        print(shown(lines[-1]), flush=True)
    report(f"rows 0 to {LOOKED_AT - 1}, looked at", [line for line in lines if line.row < LOOKED_AT])
    report(f"rows from {LOOKED_AT}, not looked at", [line for line in lines if line.row >= LOOKED_AT])
    report("all", lines)
    if args.json:
        args.json.write_text(json.dumps([asdict(line) for line in lines], indent=1))


if __name__ == "__main__":
    main()
