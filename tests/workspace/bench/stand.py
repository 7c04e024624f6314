"""Setting up benches of real folders, and the change sets that two full looks at a folder make."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from memory_blobs import MemoryBlobs
from world import Snapshot, snapshot

from pawl.core.change import ChangeSet, Node, NodeKind, blob_digest
from pawl.core.execution import Completed, Execution
from pawl.core.merge import difference
from pawl.sandbox.choice import ChosenSandbox
from pawl.settings.guardrails import Guardrails, preset
from pawl.workspace.bench import Bench, BenchKind, BenchSettings

GUARDRAILS = preset("standard")
KINDS = {"file": NodeKind.FILE, "link": NodeKind.LINK, "folder": NodeKind.DIRECTORY}


@dataclass
class Stand:
    """One workspace and the benches that are made of it."""

    workspace: Path
    place: Path
    sandbox: ChosenSandbox
    ground: BenchKind = BenchKind.OVERLAY
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    guardrails: Guardrails = GUARDRAILS
    benches: list[Bench] = field(default_factory=list)

    def bench(self, **settings: object) -> Bench:
        chosen = BenchSettings(**{"ground": self.ground, **settings})
        bench = Bench.create(self.workspace, self.place, self.sandbox, self.blobs, self.guardrails, chosen)
        self.benches.append(bench)
        return bench

    def close(self) -> None:
        for bench in self.benches:
            bench.discard()


def shell(bench: Bench, script: str, **settings: object) -> Completed:
    done = bench.run(Execution(argv=("sh", "-c", script), **settings))
    assert done.ok, done.stderr.text
    return done


def nodes(seen: Snapshot) -> dict[str, Node]:
    found: dict[str, Node] = {}
    for name, (kind, mode, content) in seen.items():
        blob = None if kind == "folder" else blob_digest(content)
        found[os.fsdecode(name)] = Node(KINDS[kind], blob, 0o777 if kind == "link" else mode)
    return found


def expected(before: Snapshot, after: Snapshot) -> ChangeSet:
    """The change set between two full looks at a folder."""
    return difference(nodes(before), nodes(after))


def rehearsed(workspace: Path, script: str, folder: Path) -> ChangeSet:
    """What the script does to a plain copy of the workspace."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["cp", "-a", workspace, folder], check=True)
    before = snapshot(folder)
    done = subprocess.run(
        ["sh", "-c", script], cwd=folder, capture_output=True, env={"PATH": "/usr/bin:/bin"}, check=False
    )
    assert done.returncode == 0, done.stderr
    return expected(before, snapshot(folder))
