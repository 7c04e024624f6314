"""Measures the ladder on public bug sets: what each tier solves, what it costs, and what the reflex saves.

    python benchmarks/ladder.py --data DIR [--set quixbugs humanevalfix humanevalfix-js] [--model local:FILE]
                                [--no-reflex] [--out LINES.jsonl] [--left-by LINES.jsonl] [--limit N]

Without a model the tier above the reflex is an oracle: a script that answers with the function of the reference, so
that the figures show the ladder and not a model. Its tokens are Pawl's own estimates, at the stated price.
Everything runs through `Session`, as `pawl loop` does, in a fresh workspace for each bug; nothing is sent anywhere.
A run that was stopped goes on: bugs whose line is in the file of `--out` are not measured again. `--left-by` takes the
lines of an earlier run and measures what its reflex left.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from pathlib import Path

from repair_sets import Bug, humanevalfix, humanevalfix_js, quixbugs

from pawl.agent.escalation import LoopWish, loop_order
from pawl.agent.session import Session
from pawl.core.errors import PawlError
from pawl.core.run import DeliveryState, Report
from pawl.core.tiers import AttemptEnd, Escalation, Tier, TierMode
from pawl.settings.config import load
from pawl.workspace.project import Project

SETS: Mapping[str, Callable[[Path], Iterator[Bug]]] = {
    "quixbugs": quixbugs,
    "humanevalfix": humanevalfix,
    "humanevalfix-js": humanevalfix_js,
}
TIERS = ("reflex", "model")
PRICE_IN, PRICE_OUT = 3.0, 15.0
"""US dollars for a million tokens, of the oracle and for the comparison of what runs on this machine."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """What came of one bug."""

    set: str
    name: str
    tier: str = ""
    """The one that solved it; empty when none did."""
    right: bool = False
    attempts: int = 0
    """Of the tier that asks."""
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    """At the stated price."""
    seconds: float = 0.0
    reflex_seconds: float = 0.0
    model_seconds: float = 0.0
    load: float = 0.0
    """Of the machine when it ended: processes that wanted to run, over the last minute."""
    why: str = ""


def ladder(options: argparse.Namespace) -> Escalation:
    reflex = () if options.no_reflex else (Tier(name="reflex", mode=TierMode.REFLEX, max_minutes=options.seconds / 60),)
    asked = Tier(
        name="model",
        mode=TierMode.SIMPLE,
        iterations=options.iterations,
        samples=options.samples,
        draft=True,
    )
    return Escalation(tiers=(*reflex, asked), max_minutes=options.minutes)


def measure(options: argparse.Namespace, of_set: str, bug: Bug, room: Path) -> Line:
    folder = room / "workspace"
    folder.mkdir()
    bug.make(folder)
    wish = LoopWish(
        model=options.model or _oracle(bug, room), test_command=(*bug.command, *bug.tests), target=bug.target
    )
    started = time.monotonic()
    try:
        with Project.open(load(_environment(room, options)), folder) as shop:
            report = Session(shop).do(loop_order(wish, ladder(options)))
    except PawlError as error:
        return Line(set=of_set, name=bug.name, why=error.message, seconds=round(time.monotonic() - started, 1))
    return _line(of_set, bug, report, (folder / bug.target).read_text(), time.monotonic() - started)


def _line(of_set: str, bug: Bug, report: Report, text: str, seconds: float) -> Line:
    solved = report.delivery is DeliveryState.DONE
    verdict: Mapping[str, int] = bug.judge(text) if solved else {"compared": 0, "wrong": 1}
    made = report.climb.attempts if report.climb else ()
    won = next((one for one in made if one.end is AttemptEnd.VERIFIED), None)
    asked = [one for one in made if one.mode is not TierMode.REFLEX]
    return Line(
        set=of_set,
        name=bug.name,
        tier="" if not solved or won is None else TIERS[won.mode is not TierMode.REFLEX],
        right=verdict["wrong"] == 0 and verdict["compared"] > 0,
        attempts=len(asked),
        input_tokens=report.input_tokens,
        output_tokens=report.output_tokens,
        cost=round((report.input_tokens * PRICE_IN + report.output_tokens * PRICE_OUT) / 1e6, 6),
        seconds=round(seconds, 1),
        reflex_seconds=round(sum(one.seconds for one in made if one.mode is TierMode.REFLEX), 1),
        model_seconds=round(sum(one.seconds for one in asked), 1),
        load=round(os.getloadavg()[0], 1),
        why="" if solved else report.trouble.message if report.trouble else "; ".join(report.refused),
    )


def _oracle(bug: Bug, room: Path) -> str:
    """A scripted model that answers each request with the reference in one code block."""
    script = room / "oracle.jsonl"
    script.write_text(json.dumps({"answer": {"text": f"```\n{bug.reference()}```"}, "times": 0}) + "\n")
    return f"scripted:{script}"


def _environment(room: Path, options: argparse.Namespace) -> dict[str, str]:
    home = Path(options.python).parent
    # A bug that makes its test hang would take all the time before anybody is asked.
    local = f"[local]\nthreads = {options.threads}\n" if options.threads else ""
    (room / "config.toml").write_text(f'review = "off"\nrun_seconds = 60.0\n[verify]\nseconds = 60.0\n{local}')
    return {
        **os.environ,
        "PAWL_STATE": str(room / "state"),
        "PAWL_CONFIG": str(room / "config.toml"),
        "VIRTUAL_ENV": str(home.parent),
        "PATH": f"{home}:/usr/local/bin:/usr/bin:/bin",
    }


def report(options: argparse.Namespace, lines: Sequence[Line]) -> None:
    """Each set, and all together."""
    sets = list(dict.fromkeys(line.set for line in lines))
    for name in sets:
        _summary(name, options, [line for line in lines if line.set == name])
    if len(sets) > 1:
        _summary(" and ".join(sets), options, lines)


def _summary(title: str, options: argparse.Namespace, lines: Sequence[Line]) -> None:
    count = len(lines)
    loads = [line.load for line in lines]
    print(
        f"\n{title}: {count} bugs, {'model alone' if options.no_reflex else 'reflex, then model'}, model "
        f"{options.model or 'oracle'}; load {min(loads):.1f} to {max(loads):.1f}"
    )
    for tier in TIERS[options.no_reflex :]:
        own = [line for line in lines if line.tier == tier]
        spent = [line for line in lines if (line.attempts if tier == "model" else line.reflex_seconds)]
        seconds = [line.model_seconds if tier == "model" else line.reflex_seconds for line in spent]
        cost = sum(line.cost for line in spent) if tier == "model" else 0.0
        print(
            f"  {tier}: tried {len(spent)}, solved {len(own)} ({len(own) / count:.0%} of all), "
            f"right {sum(line.right for line in own)}, ${cost:.4f}, {sum(seconds):.0f} s, "
            f"median {statistics.median(seconds) if seconds else 0:.1f} s"
        )
    whole = [line.seconds for line in lines]
    tokens = sum(line.input_tokens for line in lines), sum(line.output_tokens for line in lines)
    print(
        f"  not solved: {sum(not line.tier for line in lines)}; whole runs {sum(whole):.0f} s, "
        f"median {statistics.median(whole):.1f} s; tokens in {tokens[0]:,}, out {tokens[1]:,}; "
        f"at ${PRICE_IN:g} and ${PRICE_OUT:g} a million ${sum(line.cost for line in lines):.4f}"
    )


def _chosen(options: argparse.Namespace) -> Iterator[tuple[str, Bug]]:
    """The sets take turns, so that a run that is stopped is a sample of all of them."""
    wanted = set(options.only.split(",")) if options.only else None
    left = None
    if options.left_by:
        left = {(line.set, line.name) for line in _read(options.left_by) if line.tier != "reflex"}
    columns = []
    for of_set in options.set:
        bugs = [
            bug
            for bug in SETS[of_set](options.data)
            if (wanted is None or bug.name in wanted) and (left is None or (of_set, bug.name) in left)
        ]
        columns.append([(of_set, bug) for bug in bugs[:: options.every][: options.limit or None]])
    yield from (one for row in zip_longest(*columns) for one in row if one is not None)


def _read(path: Path) -> list[Line]:
    return [Line(**json.loads(line)) for line in path.read_text().splitlines()] if path.exists() else []


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", choices=sorted(SETS), nargs="+", default=["humanevalfix"])
    parser.add_argument("--model", default="", help="asked in the place of the oracle")
    parser.add_argument("--no-reflex", action="store_true", help="what the model's tier costs by itself")
    parser.add_argument("--seconds", type=float, default=30, help="of the reflex")
    parser.add_argument("--minutes", type=float, default=30, help="of one bug")
    parser.add_argument("--samples", type=int, default=1)
    parser.add_argument("--iterations", type=int, default=1)
    parser.add_argument("--threads", type=int, default=0, help="of a local model; 0 as many as it takes by itself")
    parser.add_argument("--limit", type=int, default=0, help="of each set")
    parser.add_argument("--every", type=int, default=1, help="take every n-th bug")
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--left-by", type=Path, help="the lines of an earlier run: take what its reflex left")
    parser.add_argument("--python", default=sys.executable, help="an interpreter with pytest, as a project has it")
    parser.add_argument("--out", type=Path, help="a file of JSON lines; what it has is not measured again")
    return parser.parse_args()


def main() -> None:
    options = _options()
    known = {(line.set, line.name): line for line in _read(options.out)} if options.out else {}
    lines: list[Line] = []
    for of_set, bug in _chosen(options):
        line = known.get((of_set, bug.name))
        if line is None:
            with tempfile.TemporaryDirectory(prefix="ladder-") as name:
                line = measure(options, of_set, bug, Path(name).resolve())
            print(json.dumps(asdict(line)), flush=True)
            if options.out:
                with options.out.open("a") as file:
                    file.write(json.dumps(asdict(line)) + "\n")
        lines.append(line)
    if lines:
        report(options, lines)


if __name__ == "__main__":
    main()
