"""Small projects on disk, and `fix` on them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pawl.app.config import load
from pawl.app.fixing import FixReport, FixRequest, fix
from pawl.app.workshop import Workshop


def project(root: Path, files: Mapping[str, str]) -> Path:
    workspace = root / "project"
    for name, text in files.items():
        path = workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return workspace


def fixed(workspace: Path, request: FixRequest | None = None) -> FixReport:
    with Workshop.open(load(), workspace) as shop:
        return fix(shop, request or FixRequest(seconds=60), lambda event: None)
