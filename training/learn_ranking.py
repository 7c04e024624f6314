"""Learns the librarian's weights from the signals of mined changes: which of the files of a query was edited.

python training/learn_ranking.py --signals DIR [--measure DIR] [--out src/pawl/code/ranking_learnt.toml]

DIR holds what `changes.py` wrote. Every edited file is compared with all that were not (a conditional logit); weights
are drawn to those set by hand, evidence never speaks against a file, and the repository is the unit of the folds: what
is printed for "held back" comes from weights that saw no change of the same repository. What is written lies
between both. --measure adds the figures for signals of other changes or issues, which take no part in the learning.
"""

from __future__ import annotations

import argparse
import hashlib
import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from pawl.code.ranker import ranking

HERE = Path(__file__).parent

FOLDS = 5
STEPS = 400
RATE = 0.05
RIDGE = 0.003
LEARNT_PART = 0.65
"""How far from the weights by hand to those learnt."""
CUTS = (1, 3, 5, 10)
FIXED = frozenset({"suspicion"})
"""Signals that no commit has."""


@dataclass
class Data:
    x: np.ndarray
    y: np.ndarray
    starts: np.ndarray
    """The first row of each change."""
    repository: np.ndarray
    """The name for each change."""
    roots: dict[str, list[str]]
    """The commits that the history of each repository begins with."""

    def part(self, chosen: np.ndarray) -> Data:
        sizes = np.diff(np.append(self.starts, len(self.y)))
        rows = np.repeat(chosen, sizes)
        starts = np.concatenate([[0], np.cumsum(sizes[chosen])[:-1]]).astype(int)
        return Data(self.x[rows], self.y[rows], starts, self.repository[chosen], self.roots)


def loaded(folder: Path) -> Data:
    x, y, starts, repository, total = [], [], [], [], 0
    roots: dict[str, list[str]] = {}
    for file in sorted(folder.glob("*.npz")):
        with np.load(file) as found:
            columns = [list(found["names"]).index(name) for name in ranking().signals]
            first = np.flatnonzero(np.diff(found["group"], prepend=-1))
            x.append(found["x"][:, columns].astype(np.float32))
            y.append(found["y"])
            starts.append(first + total)
            name = file.stem.replace("+", "/")
            repository.append(np.full(len(first), name))
            roots[name] = found["roots"].tolist()
            total += len(found["y"])
    return Data(np.concatenate(x), np.concatenate(y), np.concatenate(starts), np.concatenate(repository), roots)


def ranks(data: Data, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The place of the worst and of the best edited file of each change; of equal ones the worse."""
    scores = data.x @ weights
    ends = np.append(data.starts[1:], len(scores))
    last, first = [], []
    for start, end in zip(data.starts, ends, strict=True):
        mine = scores[start:end]
        edited = data.y[start:end]
        places = sorted(int((mine >= value).sum()) for value in mine[edited])
        # Edited files that stand before it push none of them back further than its own place.
        last.append(places[-1])
        first.append(places[0])
    return np.array(last), np.array(first)


def figures(parts: list[tuple[Data, np.ndarray]]) -> str:
    """Of all parts together, each ranked by its own weights."""
    found = [ranks(data, weights) for data, weights in parts]
    last, first = (np.concatenate([one[place] for one in found]) for place in (0, 1))
    sizes = np.concatenate([np.add.reduceat(data.y.astype(int), data.starts) for data, _ in parts])
    cells = [f"all@{cut} {100 * (last <= cut).mean():.1f}" for cut in CUTS]
    cells += [f"any@{cut} {100 * (first <= cut).mean():.1f}" for cut in (1, 5)]
    if (sizes > 1).any():
        cells.append(f"several files ({int((sizes > 1).sum())}): all@5 {100 * (last[sizes > 1] <= 5).mean():.1f}")
    return f"{len(last)}: " + ", ".join(cells)


def slope(data: Data, weights: np.ndarray) -> tuple[float, np.ndarray]:
    """The loss and its gradient: for each edited file, minus the logarithm of its part among those not edited."""
    scores = (data.x @ weights).astype(np.float64)
    sizes = np.diff(np.append(data.starts, len(scores)))
    scores -= np.repeat(np.maximum.reduceat(scores, data.starts), sizes)
    powers = np.exp(scores)
    others = np.repeat(np.add.reduceat(np.where(data.y, 0.0, powers), data.starts), sizes)
    share = 1.0 / np.repeat(np.add.reduceat(data.y.astype(float), data.starts), sizes)
    whole = others + powers
    loss = float((share * np.log(whole / powers))[data.y].sum())
    # An edited file is pushed up by what the others have of the whole; each of these is pushed down by its part.
    up = np.where(data.y, share * others / whole, 0.0)
    down = np.repeat(np.add.reduceat(np.where(data.y, share / whole, 0.0), data.starts), sizes)
    force = np.where(data.y, -up, powers * down)
    return loss / len(data.starts), data.x.T @ force.astype(np.float32) / len(data.starts)


def learnt(data: Data, by_hand: np.ndarray) -> np.ndarray:
    free = np.array([signal.habit for signal in ranking().signals.values()])
    fixed = np.isin(list(ranking().signals), list(FIXED))
    weights = by_hand.copy()
    mean, square = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, STEPS + 1):
        _, pull = slope(data, weights)
        pull = np.where(fixed, 0.0, pull + RIDGE * (weights - by_hand))
        mean, square = 0.9 * mean + 0.1 * pull, 0.99 * square + 0.01 * pull**2
        weights = weights - RATE * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.99**step)) + 1e-8)
        weights = np.where(free, weights, np.maximum(weights, 0.0))
    return weights


def blended(by_hand: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Reports, for which the weights by hand were made, say it in other words than commits: this serves both."""
    return by_hand + LEARNT_PART * (weights - by_hand)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--signals", type=Path, required=True)
    parser.add_argument("--measure", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    names = list(ranking().signals)
    table = tomllib.loads((HERE / "ranking_by_hand.toml").read_text("utf-8"))["weights"]
    by_hand = np.array([table[name] for name in names], dtype=np.float32)
    data = loaded(options.signals)
    fold = np.array([int(hashlib.sha256(name.encode()).hexdigest(), 16) % FOLDS for name in data.repository])
    print("by hand", figures([(data, by_hand)]))
    held = [(data.part(fold == number), learnt(data.part(fold != number), by_hand)) for number in range(FOLDS)]
    print("learnt, held back", figures(held))
    print("blended, held back", figures([(part, blended(by_hand, weights)) for part, weights in held]))
    weights = blended(by_hand, learnt(data, by_hand))
    if options.measure:
        other = loaded(options.measure)
        print("measured, by hand", figures([(other, by_hand)]))
        print("measured, blended", figures([(other, weights)]))
    if options.out:
        options.out.write_text(written_out(names, weights, data), "utf-8")


def written_out(names: list[str], weights: np.ndarray, data: Data) -> str:
    lines = [
        "# Made by training/learn_ranking.py: how much each signal counts for a file (ranker.py).",
        "",
        "[learnt]",
        f"on = {datetime.now(UTC).date()}",
        f"changes = {len(data.starts)}",
        "",
        "[learnt.repositories]  # with the commits that their histories begin with",
        *(f'"{name}" = "{" ".join(commits)}"' for name, commits in sorted(data.roots.items())),
        "",
        "[weights]",
        *(f'"{name}" = {value:.2f}' for name, value in zip(names, weights, strict=True)),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
