"""Measures the ladder on public bug sets: what each tier solves, what it costs, and what the reflex saves.

    python benchmarks/ladder.py --data DIR [--set quixbugs|humanevalfix] [--model local:FILE] [--no-reflex] [--limit N]

Without a model the tier above the reflex is an oracle: a script that answers with the function of the reference, so
that the figures show the ladder and not a model. Its tokens are Pawl's own estimates, at the stated price.
Everything runs through `Session`, as `pawl loop` does, in a fresh workspace for each bug; nothing is sent anywhere.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from repair_sets import Bug, humanevalfix, quixbugs

from pawl.app.config import load
from pawl.app.doing.session import Session
from pawl.app.looping.ordering import LoopWish, loop_order
from pawl.app.workshop import Workshop
from pawl.core.run import DeliveryState
from pawl.core.tiers import AttemptEnd, Climb, Ladder, Tier, TierMode

SETS = {"quixbugs": quixbugs, "humanevalfix": humanevalfix}
PRICE_IN, PRICE_OUT = 3.0, 15.0
"""US dollars for a million tokens, of the oracle."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """What came of one bug."""

    name: str
    tier: str
    """The one that solved it; empty when none did."""
    right: bool
    attempts: int
    input_tokens: int
    output_tokens: int
    cost: float
    seconds: float
    why: str = ""


def oracle(options: argparse.Namespace, bug: Bug) -> str:
    """The reference as an answer in one code block."""
    if options.set == "quixbugs":
        return (options.data / "quixbugs" / "correct_python_programs" / Path(bug.target).name).read_text()
    rows = map(json.loads, (options.data / "humanevalfix_python.jsonl").read_text().splitlines())
    row = next(row for row in rows if row["task_id"] == bug.name)
    return f"{row['prompt'].rstrip()}\n{row['canonical_solution'].rstrip()}\n"


def ladder(options: argparse.Namespace) -> Ladder:
    reflex = () if options.no_reflex else (Tier(name="reflex", mode=TierMode.REFLEX, max_minutes=options.seconds / 60),)
    asked = Tier(
        name="model",
        mode=TierMode.SIMPLE,
        iterations=options.iterations,
        samples=options.samples,
        draft=True,
    )
    return Ladder(tiers=(*reflex, asked), max_minutes=30)


def measure(options: argparse.Namespace, bug: Bug, room: Path) -> Line:
    folder = room / "workspace"
    folder.mkdir()
    bug.make(folder)
    model = options.model
    if not model:
        script = room / "oracle.jsonl"
        answer = f"```python\n{oracle(options, bug)}```"
        script.write_text(json.dumps({"answer": {"text": answer}, "times": 0}) + "\n")
        model = f"scripted:{script}"
    command = ("python", "-m", "pytest", "-q", *bug.tests)
    wish = LoopWish(model=model, test_command=command, target=bug.target)
    started = time.monotonic()
    with Workshop.open(load(_environment(room, options)), folder) as shop:
        report = Session(shop).do(loop_order(wish, ladder(options)))
    text = (folder / bug.target).read_text()
    solved = report.delivery is DeliveryState.DONE
    verdict: Mapping[str, int] = bug.judge(text) if solved else {"compared": 0, "wrong": 1}
    cost = (report.input_tokens * PRICE_IN + report.output_tokens * PRICE_OUT) / 1e6 if not options.model else 0.0
    return Line(
        name=bug.name,
        tier=_solved_by(report.climb) if solved else "",
        right=verdict["wrong"] == 0 and verdict["compared"] > 0,
        attempts=len(report.climb.attempts) if report.climb else 0,
        input_tokens=report.input_tokens,
        output_tokens=report.output_tokens,
        cost=round(cost, 6),
        seconds=round(time.monotonic() - started, 1),
        why="" if solved else report.trouble.message if report.trouble else "; ".join(report.refused),
    )


def _solved_by(climb: Climb | None) -> str:
    won = [one for one in climb.attempts if one.end is AttemptEnd.VERIFIED] if climb else []
    return climb.ladder.tiers[won[0].at.tier].name if climb and won else ""


def _environment(room: Path, options: argparse.Namespace) -> dict[str, str]:
    home = Path(options.python).parent
    (room / "config.toml").write_text('review = "off"\nrun_seconds = 60.0\n')
    return {
        **os.environ,
        "PAWL_STATE": str(room / "state"),
        "PAWL_CONFIG": str(room / "config.toml"),
        "VIRTUAL_ENV": str(home.parent),
        "PATH": f"{home}:/usr/local/bin:/usr/bin:/bin",
    }


def report(options: argparse.Namespace, lines: list[Line]) -> None:
    count = max(1, len(lines))
    print(f"\n{options.set}: {len(lines)} bugs, model {options.model or 'oracle'}")
    for tier in dict.fromkeys(("reflex", "model")):
        own = [line for line in lines if line.tier == tier]
        seconds = statistics.median(line.seconds for line in own) if own else 0.0
        print(
            f"  {tier}: {len(own)} solved ({len(own) / count:.0%}), {sum(line.right for line in own)} right, "
            f"${sum(line.cost for line in own):.4f}, median {seconds:.1f} s"
        )
    print(f"  not solved: {sum(not line.tier for line in lines)}")
    tokens = sum(line.input_tokens for line in lines), sum(line.output_tokens for line in lines)
    print(f"  tokens in {tokens[0]:,}, out {tokens[1]:,}; at ${PRICE_IN:g} and ${PRICE_OUT:g} a million ", end="")
    print(f"${(tokens[0] * PRICE_IN + tokens[1] * PRICE_OUT) / 1e6:.4f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(SETS), default="humanevalfix")
    parser.add_argument("--model", default="", help="asked in the place of the oracle")
    parser.add_argument("--no-reflex", action="store_true", help="what the model's tier costs by itself")
    parser.add_argument("--seconds", type=float, default=30, help="of the reflex")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--limit", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="take every n-th bug")
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with pytest, as a project has it")
    parser.add_argument("--out", type=Path, help="a file for the lines as JSON")
    options = parser.parse_args()
    bugs = list(SETS[options.set](options.data))
    if options.only:
        wanted = set(options.only.split(","))
        bugs = [bug for bug in bugs if bug.name in wanted]
    lines: list[Line] = []
    for bug in bugs[:: options.every][: options.limit or None]:
        with tempfile.TemporaryDirectory(prefix="ladder-") as name:
            lines.append(measure(options, bug, Path(name).resolve()))
        print(json.dumps(asdict(lines[-1])), flush=True)
        if options.out:
            options.out.write_text(json.dumps([asdict(line) for line in lines], indent=1))
    report(options, lines)


if __name__ == "__main__":
    main()
