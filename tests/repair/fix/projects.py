"""Small projects on disk, and `fix` on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pawl.repair.fixer import fix
from pawl.repair.model import FixReport, FixRequest
from pawl.settings.config import load
from pawl.workspace.project import Project


def project(root: Path, files: Mapping[str, str]) -> Path:
    workspace = root / "project"
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return workspace


def fixed(workspace: Path, request: FixRequest | None = None) -> FixReport:
    with Project.open(load(), workspace) as shop:
        return fix(shop, request or FixRequest(seconds=60), lambda event: None)
