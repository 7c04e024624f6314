"""Measures the reflex on public bug sets: how many bugs it repairs, how many of the patches are right, how fast.

python benchmarks/repair.py --data DIR [--set quixbugs|humanevalfix|mutants|fixes] [--seconds 60] [--limit N] [--jobs 1]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from repair_fixes import fixes
from repair_mutants import mutants
from repair_sets import Bug, humanevalfix, quixbugs

from pawl.repair.ground import command, parse_event
from pawl.repair.model import Agreement, RepairEnded, RepairRequest

SETS = {"quixbugs": quixbugs, "humanevalfix": humanevalfix, "mutants": mutants, "fixes": fixes}


@dataclass(frozen=True, kw_only=True)
class Line:
    """What came of one bug."""

    name: str
    kind: str
    status: str
    plausible: bool = False
    right: bool = False
    flagged: bool = False
    seconds: float = 0.0
    tried: int = 0
    cpu: float = 0.0
    template: str = ""
    patch: str = ""
    rivals: int = 0
    rival_right: int = -1
    """The place of the first right patch among all that were offered."""
    agreement: str = ""
    margin: float = 0.0
    note: str = ""


def measure(bug: Bug, seconds: float, workers: int) -> Line:
    with tempfile.TemporaryDirectory(prefix="reflex-") as name:
        folder = Path(name).resolve()
        bug.make(folder)
        request = RepairRequest(root=str(folder), tests=bug.tests, seconds=seconds, workers=workers)
        started = time.monotonic()
        words = ["env", f"PYTHONPATH={import_path(bug, folder)}", *command(request, bug.python)]
        lines = subprocess.run(words, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False).stdout.splitlines()
        ended = parse_event(lines[-1])
        assert isinstance(ended, RepairEnded)
        return judge(bug, folder, ended, time.monotonic() - started)


def judge(bug: Bug, folder: Path, ended: RepairEnded, seconds: float) -> Line:
    line = Line(
        name=bug.name,
        kind=bug.kind,
        status=ended.status,
        seconds=round(seconds, 2),
        tried=ended.tried,
        cpu=ended.cpu,
        rivals=len(ended.patches),
        agreement=ended.agreement,
        margin=ended.margin,
        note=ended.error or ended.reason,
    )
    patch = ended.chosen
    if patch is None:
        return line
    texts = []
    for each in ended.patches:
        before = (folder / each.path).read_bytes()
        texts.append((each.path, each.applied(before).decode()))
    before_text = (folder / patch.path).read_text()
    (folder / patch.path).write_text(texts[0][1])
    plausible = passes(bug, folder)
    (folder / patch.path).write_text(before_text)
    verdicts, rights = [], [False]
    for path, text in texts[:4]:
        verdicts.append(bug.judge(text) if path == bug.target else {"compared": 0, "wrong": 1, "example": path})
        rights = [verdict["wrong"] == 0 and verdict["compared"] > 0 for verdict in verdicts]
        if rights[-1]:
            break
    return Line(
        **{
            **asdict(line),
            "plausible": plausible,
            "right": plausible and rights[0],
            "flagged": ended.agreement is Agreement.DISPUTED,
            "template": patch.template,
            "patch": " | ".join(edit.text for edit in patch.edits)[:160],
            "rival_right": rights.index(True) if True in rights else -1,
            "note": line.note if rights[0] else f"{line.note} {verdicts[0]['example']}",
        }
    )


def passes(bug: Bug, folder: Path) -> bool:
    """Whether the whole suite passes in a fresh process."""
    try:
        return subprocess.run(plain_pytest(bug, folder), cwd=folder, capture_output=True, timeout=180).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def plain_pytest(bug: Bug, folder: Path) -> list[str]:
    words = [bug.python, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    return ["env", f"PYTHONPATH={import_path(bug, folder)}", *words, *bug.tests]


def import_path(bug: Bug, folder: Path) -> str:
    return ":".join(str(folder / path) for path in (*bug.import_paths, "."))


def report(lines: list[Line]) -> None:
    plausible = [line for line in lines if line.plausible]
    right = [line for line in plausible if line.right]
    silent = [line for line in plausible if not line.right and not line.flagged]
    walls = sorted(line.seconds for line in lines) or [0.0]
    tried, cpu = sum(line.tried for line in lines), sum(line.cpu for line in lines)
    print(f"\nbugs {len(lines)}  plausible {len(plausible)}  right {len(right)}")
    print(f"wrong and not flagged {len(silent)} ({len(silent) / max(1, len(plausible)):.1%} of plausible)")
    flagged = [line for line in plausible if line.flagged]
    print(f"flagged {len(flagged)}, of which right {sum(line.right for line in flagged)}")
    print(f"wall seconds median {statistics.median(walls):.1f}  max {walls[-1]:.1f}")
    print(f"candidates {tried}, per CPU second {tried / max(cpu, 0.001):.0f}")
    for kind in sorted({line.kind for line in lines if line.kind}):
        own = [line for line in lines if line.kind == kind]
        print(f"  {kind}: plausible {sum(x.plausible for x in own)}, right {sum(x.right for x in own)} of {len(own)}")


def pytest_seconds(bug: Bug) -> float | None:
    """CPU seconds of one plain pytest process on the bug: what a candidate costs without the warm runner.

    None for a suite that hangs: it would flatter the warm runner.
    """
    import resource

    with tempfile.TemporaryDirectory(prefix="reflex-") as name:
        folder = Path(name)
        bug.make(folder)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        try:
            subprocess.run(plain_pytest(bug, folder), cwd=folder, capture_output=True, timeout=10)
        except subprocess.TimeoutExpired:
            return None
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def chosen_bugs(options: argparse.Namespace) -> Iterator[Bug]:
    bugs = list(mutants(options.data, options.seed) if options.set == "mutants" else SETS[options.set](options.data))
    if options.only:
        wanted = set(options.only.split(","))
        bugs = [bug for bug in bugs if bug.name in wanted or bug.name.rpartition("/")[2] in wanted]
    for bug in bugs[options.offset :: options.every][: options.limit or None]:
        yield replace(bug, python=bug.python or options.python)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(SETS), default="quixbugs")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="take every n-th bug")
    parser.add_argument("--offset", type=int, default=0)
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--seed", type=int, default=20, help="which mutants are chosen")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--python", default=sys.executable, help="an interpreter with pytest, as a project has it")
    parser.add_argument("--out", type=Path, help="a file for the lines as JSON")
    options = parser.parse_args()
    bugs = list(chosen_bugs(options))
    lines: list[Line] = []
    with ThreadPoolExecutor(options.jobs) as threads:
        for line in threads.map(lambda bug: measure(bug, options.seconds, options.workers), bugs):
            lines.append(line)
            words = [line.name, line.status, "plausible" if line.plausible else "-", "right" if line.right else "-"]
            words += [
                f"{line.agreement} {line.margin}" if line.plausible else "",
                f"{line.seconds:.1f}s tried {line.tried} cpu {line.cpu:.1f}",
            ]
            words += [f"first right {line.rival_right} of {line.rivals}", line.template, repr(line.patch), line.note]
            print(" · ".join(words), flush=True)
            if options.out:
                options.out.write_text(json.dumps([asdict(each) for each in lines], indent=1))
    report(lines)
    plain = [seconds for bug in bugs[:: max(1, len(bugs) // 5)] if (seconds := pytest_seconds(bug)) is not None]
    if plain:
        alone = statistics.median(plain)
        warm = sum(line.tried for line in lines) / max(0.001, sum(line.cpu for line in lines))
        print(f"a plain pytest process takes {alone:.2f} CPU s: the warm runner is {warm * alone:.0f} times faster")


if __name__ == "__main__":
    main()
