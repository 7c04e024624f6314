"""A project with a bug in it, whose user has its environment active."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scenarios.spec_story import REVIEW_OFF, SpecStory
from scenarios.story import Story
from ui.cli.console import Pawl

PROJECT = {
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    ".gitignore": "__pycache__/\n.pytest_cache/\n",
    "dates.py": (
        "def is_leap(year):\n    return year % 4 == 0\n\n\ndef days(year):\n    return 366 if is_leap(year) else 365\n"
    ),
    "tests/test_dates.py": (
        "from dates import days, is_leap\n\n\n"
        "def test_leap():\n    assert is_leap(2024)\n\n\n"
        "def test_century():\n    assert not is_leap(1900)\n    assert is_leap(2000)\n\n\n"
        "def test_days():\n    assert days(2023) == 365\n"
    ),
}


@pytest.fixture
def story(tmp_path: Path, state_directory: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch) -> Story:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    workspace = tmp_path / "project"
    workspace.mkdir()
    made = Story(workspace, tmp_path / "script.jsonl")
    made.user_writes(PROJECT)
    subprocess.run(["git", "init", "-q"], cwd=workspace, check=True)
    return made


@pytest.fixture
def spec_story(
    tmp_path: Path, state_directory: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch
) -> SpecStory:
    """A specification in an empty repository, carried out by a scripted model."""
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    (tmp_path / "config.toml").write_text(REVIEW_OFF)
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    workspace = tmp_path / "project"
    workspace.mkdir()
    made = SpecStory(Pawl(workspace), tmp_path / "script.jsonl")
    made.git("init", "-q")
    return made
