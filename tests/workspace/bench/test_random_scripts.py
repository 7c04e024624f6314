"""Capture against two full looks at the tree, over scripts that nobody thought of."""

from __future__ import annotations

import os
import random
import shlex
from pathlib import Path

import pytest
from workspace.bench.stand import Stand, rehearsed, shell
from workspace.bench.unshared import UnsharedSandbox
from world import lay, snapshot

from pawl.workspace.bench import BenchKind
from pawl.workspace.capture import Capture

NAMES = [
    "a",
    "b",
    "c",
    "d e",
    "ü",
    "-n",
    "x'y",
    "odd\nline",
    os.fsdecode(b"\xff\xfe"),
    "sub",
    "sub/a",
    "sub/b",
    "sub/deep",
]
NAMES += ["sub/deep/f", "sub/deep/g", "top", "top/a", "top/sub", "top/sub/x"]
STEPS = [
    "rm -rf {0}",
    "echo {n} > {0}",
    "echo {n} >> {0}",
    "true > {0}",
    "mkdir {0}",
    "mkdir -p {0}",
    "rmdir {0}",
    "mv {0} {1}",
    "mv -T {0} {1}",
    "cp -r {0} {1}",
    "cp -a {0} {1}",
    "ln -s {target} {0}",
    "ln -sfn {target} {0}",
    "ln {0} {1}",
    "chmod {mode} {0}",
    "touch {0}",
    "cat {0} > {1}",
    "rm -rf {0}; mkdir {0}; echo {n} > {0}/new",
    "rm -rf {0}; echo {n} > {0}",
    "cp -a {0} tmp; rm -rf {0}; mv -T tmp {0}",
    "cat {0} > tmp && mv tmp {0}; rm -f tmp",
]


def script_of(chance: random.Random, steps: int) -> str:
    lines = []
    for _ in range(steps):
        # How far a folder is copied into itself depends on the order in which the disk names its entries.
        first, second = chance.sample(NAMES, 2)
        if second.startswith(f"{first}/"):
            first, second = second, first
        first, second = (shlex.quote(f"./{name}") for name in (first, second))
        lines.append(
            chance.choice(STEPS).format(
                first,
                second,
                n=chance.randrange(3),
                mode=chance.choice(["600", "644", "700", "755", "500", "555"]),
                target=chance.choice(["a", "b", "missing", "."]),
            )
        )
    return "\n".join(f"{{ {line}; }} 2>/dev/null" for line in lines) + "\ntrue"


def tree_of(chance: random.Random, root: Path) -> Path:
    files: dict[str, bytes | str | None] = {}
    for name in chance.sample(NAMES, 12):
        above = [name[:position] for position, letter in enumerate(name) if letter == "/"]
        if any(folder in files for folder in above) or any(other.startswith(f"{name}/") for other in files):
            continue
        files[name if chance.random() < 0.8 else f"{name}/"] = chance.choice([b"0\n", b"1\n", b"", b"long" * 99, "a"])
    return lay(root, files)


def check(seed: int, folder: Path, ground: BenchKind) -> None:
    chance = random.Random(seed)
    workspace = tree_of(chance, folder / "workspace")
    before = snapshot(workspace)
    script = script_of(chance, chance.randrange(1, 14))
    wanted = rehearsed(workspace, script, folder / "rehearsal")
    stand = Stand(workspace, folder / "benches", UnsharedSandbox(), ground)
    try:
        bench = stand.bench()
        shell(bench, script)
        assert bench.capture() == Capture(changes=wanted), f"seed {seed}:\n{script}"
        again = stand.bench()
        again.apply(wanted, stand.blobs)
        assert again.capture() == Capture(changes=wanted), f"applied, seed {seed}"
        again.apply(wanted.inverted(), stand.blobs)
        assert again.capture() == Capture(), f"taken back, seed {seed}"
    finally:
        stand.close()
    assert snapshot(workspace) == before


@pytest.mark.spec("F3")
@pytest.mark.parametrize("seed", range(16))
def test_a_random_script_is_captured_applied_and_taken_back_exactly(seed: int, tmp_path: Path):
    check(seed, tmp_path, BenchKind.COPY if seed % 3 == 0 else BenchKind.OVERLAY)


@pytest.mark.slow
@pytest.mark.spec("F3")
@pytest.mark.parametrize("ground", list(BenchKind))
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_random_scripts_are_captured_applied_and_taken_back_exactly(seed: int, ground: BenchKind, tmp_path: Path):
    check(seed, tmp_path, ground)
