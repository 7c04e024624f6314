"""Whatever a shell script does, its promotion equals doing it in the workspace, and undo gives every byte back."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace.undo.shell_scripts import fill, script
from world import clear, snapshot

from pawl.settings.config import load
from pawl.workspace.benches import CommandRequest, land, run_on_bench
from pawl.workspace.project import Project
from pawl.workspace.reversal import Wish

CASES = 200
GROUPS = 20
SAMPLED = 4


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder for workspaces and state, in memory where that can hold a bench: durability is not what is tested."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if _holds_benches(memory) else tmp_path))
    monkeypatch.setenv("PAWL_STATE", str(place / "state"))
    yield place
    clear(place)


def _holds_benches(folder: Path) -> bool:
    try:
        with tempfile.NamedTemporaryFile(dir=folder) as file:
            os.setxattr(file.name, "user.pawl", b"1")
    except OSError:
        return False
    return True


def plain_effect(root: Path, seed: int, text: str) -> Path:
    """The same script in a folder of its own, without Pawl."""
    root.mkdir()
    fill(root, seed)
    # On a bench even root has no capabilities, so a read-only file is read-only.
    powerless = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--"] if os.geteuid() == 0 else []
    subprocess.run([*powerless, "/bin/sh", "-c", text], cwd=root, check=True, stdin=subprocess.DEVNULL)
    return root


def maltreat(root: Path, seed: int, length: int) -> None:
    text = script(seed, length)
    workspace = root / f"w{seed}"
    workspace.mkdir()
    fill(workspace, seed)
    before = snapshot(workspace)
    with Project.open(load(), workspace) as shop:
        ran = run_on_bench(shop, CommandRequest(argv=("/bin/sh", "-c", text), seconds=60))
        assert ran.completed.ok, ran.completed.stderr.text
        assert snapshot(workspace) == before, "a command must not touch the workspace"
        landing = land(shop, ran, allow_protected=False)
        assert not landing.held
        assert not landing.conflicts
        expected = snapshot(plain_effect(root / f"p{seed}", seed, text))
        assert names_and_kinds(snapshot(workspace)) == names_and_kinds(expected)
        if landing.promotion is None:
            assert snapshot(workspace) == before
            return
        shop.undo(None, Wish())
        assert snapshot(workspace) == before
        shop.redo(Wish())
        assert names_and_kinds(snapshot(workspace)) == names_and_kinds(expected)
        shop.undo(None, Wish())
        assert snapshot(workspace) == before


def names_and_kinds(found: dict[bytes, tuple[str, int, bytes]]) -> dict[bytes, tuple[str, int, int]]:
    """Random contents differ between two runs of one script; names, kinds, modes and sizes do not."""
    return {name: (kind, mode, len(data)) for name, (kind, mode, data) in found.items()}


@pytest.mark.spec("F3", "B9")
@pytest.mark.parametrize(
    "group", [pytest.param(group, marks=[pytest.mark.slow] if group >= SAMPLED else []) for group in range(GROUPS)]
)
def test_undo_gives_back_every_byte_after_any_script(ground: Path, group: int) -> None:
    for seed in range(group, CASES, GROUPS):
        maltreat(ground, seed, length=3 + seed % 12)


@pytest.mark.spec("F3", "B9")
def test_undo_gives_back_every_byte_after_thousands_of_files(ground: Path) -> None:
    workspace = ground / "w"
    workspace.mkdir()
    fill(workspace, 1)
    before = snapshot(workspace)
    text = (
        "for d in $(seq 30); do mkdir -p many/$d; for n in $(seq 100); do echo $d.$n > many/$d/$n; done; done;"
        " rm -rf src data; mv docs papers"
    )
    with Project.open(load(), workspace) as shop:
        ran = run_on_bench(shop, CommandRequest(argv=("/bin/sh", "-c", text), seconds=120))
        landing = land(shop, ran, allow_protected=False)
        assert landing.promotion is not None
        assert (workspace / "many/30/100").read_text() == "30.100\n"
        assert len(landing.promotion.changes) > 3000
        shop.undo(None, Wish())
    assert snapshot(workspace) == before
