"""Learns how likely each template and each clue is, from mined fixes: a conditional logit over the reflex's candidates.

python training/learn.py --fixes fixes.jsonl --out src/pawl/repair/inside/reflex_inside/clues.json [--most 1500]

For each fix that a template can make, the right candidate is compared with the others that the templates make for the
same lines. One repository in four is held back, and the weights are measured on those; they stand beside the fixes, as
learnt.json, and somebody decides.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src/pawl/repair/inside"))

from reflex_inside.clues import Clues, tokens  # noqa: E402
from reflex_inside.generator import Generator  # noqa: E402
from reflex_inside.program import Candidate, Facts, Function, Source, gather_facts, outermost_functions  # noqa: E402

MOST_OTHERS = 200
MOST_CANDIDATES = 5_000
STEPS = 400
RATE = 0.5
RIDGE = 2.0
"""How strongly a weight is drawn to nothing: a template with few examples keeps its cost."""
FAR = 1.0
"""The most that a template's cost may be moved."""

Features = dict[str, float]


@dataclass
class Example:
    repository: str
    right: tuple[float, Features]
    others: list[tuple[float, Features]]
    """Costs by hand, and what is seen."""
    scale: float
    """How many candidates each of the others stands for."""


def example(fix: dict[str, Any], rng: random.Random) -> Example | None:
    """The candidates for the changed lines of a fix, if one of them is the fix; None for one that no template makes."""
    source = Source(fix["path"], fix["before"].encode())
    found = [each for each in outermost_functions(source.tree.body, ()) if each[0].lineno == fix["line"]]
    if not found:
        return None
    node, owners = found[0]
    function = Function(0, fix["path"], ".".join((*owners, node.name)), owners, node)
    lines = range(fix["lines"][0], fix["lines"][1] + 1)
    generator = Generator(gather_facts(Facts(source, function)), dict.fromkeys(lines, 1.0))
    wanted, longer = tokens(_after(fix, source, node)), len(fix["after"]) - len(fix["before"])
    start, end = source.starts[node.lineno - 1], source.line_end(node.end_lineno or node.lineno)
    right: tuple[float, Features] | None = None
    others: list[tuple[float, Features]] = []
    total = 0
    for candidate in near(generator, source, lines):
        total += 1
        delta = longer - sum(len(edit.text) - (edit.end - edit.start) for edit in candidate.edits)
        alike = right is None and abs(delta) < 8
        if alike and tokens(source.edited(candidate.edits, start, end).decode("utf-8", "replace")) == wanted:
            right = seen(generator.clues, candidate)
        elif len(others) < MOST_OTHERS:
            others.append(seen(generator.clues, candidate))
        elif (place := rng.randrange(total)) < MOST_OTHERS:
            others[place] = seen(generator.clues, candidate)
    if right is None or not others:
        return None
    return Example(fix["repository"], right, others, max(1.0, total / len(others)))


def near(generator: Generator, source: Source, lines: range) -> Iterator[Candidate]:
    """The candidates for some lines and those beside them, from the cheapest portion on."""
    wide = range(lines.start - 1, lines.stop + 1)
    total = 0
    for _, make in sorted(generator.portions(), key=lambda portion: portion[0]):
        made = [candidate for candidate in make() if source.line_of(candidate.edits[0].start) in wide]
        yield from made
        total += len(made)
        if total > MOST_CANDIDATES:
            return


def seen(clues: Clues, candidate: Candidate) -> tuple[float, Features]:
    """The cost by hand, and the features."""
    features = {f"template {candidate.template}": 1.0, **clues.of_edits(candidate.edits)}
    return candidate.cost - _weighed(features), features


def _after(fix: dict[str, Any], source: Source, node: Any) -> str:
    """The function's text with the fix: what follows it is the same before and after."""
    start, end = source.starts[node.lineno - 1], source.line_end(node.end_lineno or node.lineno)
    tail = len(source.data) - end
    after = fix["after"].encode()
    return str(after[start : len(after) - tail].decode("utf-8", "replace"))


CURRENT: Features = {}


def _weighed(features: Features) -> float:
    return sum(CURRENT.get(name, 0.0) * value for name, value in features.items())


def score(weights: Features, one: tuple[float, Features]) -> float:
    cost, features = one
    return cost + sum(weights.get(name, 0.0) * value for name, value in features.items())


def learnt(examples: list[Example]) -> Features:
    """The weights that make the right candidates likely, by gradient descent over all examples."""
    weights: Features = {}
    for step in range(STEPS):
        slope: Features = {name: RIDGE * value for name, value in weights.items()}
        for each in examples:
            costs = [score(weights, one) for one in each.others]
            own = score(weights, each.right)
            least = min([own, *costs])
            parts = [each.scale * math.exp(least - cost) for cost in costs]
            mine = math.exp(least - own)
            whole = sum(parts) + mine
            _add(slope, each.right[1], 1.0 - mine / whole)
            for part, (_, features) in zip(parts, each.others, strict=True):
                if part > whole * 1e-4:
                    _add(slope, features, -part / whole)
        rate = RATE / (1 + step / 50)
        for name, value in slope.items():
            moved = weights.get(name, 0.0) - rate * value / max(20, len(examples) / 4)
            weights[name] = max(-FAR, min(FAR, moved)) if name.startswith("template ") else moved
    return weights


def _add(slope: Features, features: Features, factor: float) -> None:
    for name, value in features.items():
        slope[name] = slope.get(name, 0.0) + factor * value


def measured(weights: Features, examples: list[Example]) -> dict[str, float]:
    """How many candidates of the same lines stand before the right one, estimated from the sample."""
    ranks = []
    for each in examples:
        own = score(weights, each.right)
        ranks.append(each.scale * sum(score(weights, other) < own for other in each.others))
    ranks.sort()
    count = len(ranks) or 1
    return {
        "fixes": len(ranks),
        "median before it": ranks[len(ranks) // 2] if ranks else 0.0,
        "among the first 10": round(sum(rank < 10 for rank in ranks) / count, 3),
        "among the first 100": round(sum(rank < 100 for rank in ranks) / count, 3),
        "mean log rank": round(sum(math.log1p(rank) for rank in ranks) / count, 3),
    }


def is_held_back(repository: str) -> bool:
    return hashlib.sha256(repository.lower().encode()).digest()[0] % 4 == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixes", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--most", type=int, default=1500)
    options = parser.parse_args()
    table = json.loads(options.out.read_text("utf-8"))
    CURRENT.update(table["weights"])
    CURRENT.update({f"template {name}": value for name, value in table["templates"].items()})
    rng = random.Random(23)
    fixes = [json.loads(line) for line in options.fixes.read_text("utf-8").splitlines()]
    rng.shuffle(fixes)
    fixes = fixes[: options.most]
    examples = []
    for number, fix in enumerate(fixes):
        try:
            made = example(fix, rng)
        except (SyntaxError, ValueError, RecursionError, IndexError, KeyError, AttributeError) as error:
            print(fix["repository"], fix["commit"], repr(error), file=sys.stderr)
            continue
        if made is not None:
            examples.append(made)
        if number % 100 == 99:
            print(f"{number + 1} fixes, {len(examples)} that a template makes", flush=True)
    trained = [each for each in examples if not is_held_back(each.repository)]
    held = [each for each in examples if is_held_back(each.repository)]
    weights = learnt(trained)
    for name, value in (("nothing", {}), ("now", CURRENT), ("learnt", weights)):
        print(name, measured(value, held), flush=True)
    print(json.dumps({name: round(value, 2) for name, value in sorted(weights.items()) if abs(value) > 0.02}, indent=1))
    made_by = Counter(name for each in examples for name in each.right[1] if name.startswith("template "))
    print(made_by.most_common(40))
    report = {"fixes": len(fixes), "makeable": len(examples), "held back": measured(weights, held),
              "repositories": sorted({fix["repository"] for fix in fixes})}  # fmt: skip
    (options.fixes.parent / "learnt.json").write_text(json.dumps({"weights": weights, "report": report}, indent=1))


if __name__ == "__main__":
    main()
