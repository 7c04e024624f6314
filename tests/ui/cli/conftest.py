"""Pawl with a state folder of its own, in the small workspace of the suite."""

from __future__ import annotations

import os
import subprocess
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.house import House
from ui.cli.projects import Project, Searches
from users import NAMES, become

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What is played as each user is played as one of them here, by turns, and as the other in the slow suite."""
    by_test: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec") and item.path.parent == HERE:
            for user in set(NAMES).intersection(item.callspec._idlist):
                others = [one for one in item.callspec._idlist if one != user]
                by_test.setdefault(f"{item.path.name} {item.originalname} {others}", {})[user] = item
    for test, played in by_test.items():
        if len(played) == len(NAMES) and os.geteuid() == 0:
            played[NAMES[zlib.crc32(test.encode()) % len(NAMES)]].add_marker(pytest.mark.slow)


@pytest.fixture
def pawl(workspace: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch) -> Pawl:
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLUMNS", raising=False)
    return Pawl(workspace)


@pytest.fixture
def searches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Searches:
    def limit(seconds: float) -> None:
        settings = tmp_path / "searches.toml"
        settings.write_text(f"fix_seconds = {seconds}\n")
        monkeypatch.setenv("PAWL_CONFIG", str(settings))

    return limit


@pytest.fixture
def repository(pawl: Pawl) -> Pawl:
    """The workspace as a git repository, which Pawl finds from any folder in it."""
    subprocess.run(["git", "init", "-q"], cwd=pawl.workspace, check=True)
    return pawl


@pytest.fixture
def project(
    tmp_path: Path, state_directory: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch
) -> Project:
    """Makes a project whose user has its environment active."""
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLUMNS", raising=False)

    def make(files: Mapping[str, str]) -> Pawl:
        workspace = tmp_path / "project"
        for name, text in files.items():
            path = workspace / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return Pawl(workspace)

    return make


@pytest.fixture
def full_protection(pawl: Pawl) -> None:
    """Where protection is weaker each run says so, and transcripts have a line more."""
    found = pawl.json("doctor")
    if not (found["confinement"] == "namespaces" and found["overlay"]):
        pytest.skip("the transcripts are of a machine with full protection")


@pytest.fixture(params=NAMES)
def house(request: pytest.FixtureRequest) -> Iterator[House]:
    user = become(request.param)
    with user.folder() as folder:
        made = House(user, folder)
        made.lay({"a.txt": b"a\n", "migrations/0001.sql": b"create\n", "schema/a.sql": b"a\n", "src/m.py": b"x = 1\n"})
        yield made
