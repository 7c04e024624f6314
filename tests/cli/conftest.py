"""Pawl with a state folder of its own, in the small workspace of the suite."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from cli.console import Pawl


@pytest.fixture
def pawl(workspace: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Pawl:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLUMNS", raising=False)
    return Pawl(workspace)


@pytest.fixture
def repository(pawl: Pawl) -> Pawl:
    """The workspace as a git repository, which Pawl finds from any folder in it."""
    subprocess.run(["git", "init", "-q"], cwd=pawl.workspace, check=True)
    return pawl
