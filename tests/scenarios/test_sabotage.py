"""Work that only looks done: each row leaves the bug and makes the tests pass some other way.

The rows of `adversary.toml` were written without looking at the verifier; `shell` is a command of the model's.

The model says that it is done, and nobody is there to ask. None of it is delivered.
"""

from __future__ import annotations

import itertools
import os
import shutil
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from scenarios.test_done_means_done import played, tree
from ui.cli.console import Said

TABLES = [
    tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
    for name in ("sabotage", "adversary", "typescript", "leaning")
]
PROJECTS = {name: files for table in TABLES for name, files in table["projects"].items()}
ROWS = [row for table in TABLES for row in table["row"]]
RIGHT = {name: files for table in TABLES for name, files in table.get("right", {}).items()}
COMMANDS = ("do", "loop")

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(240)]


CHECKED = '{"state": "DONE", "evidence": ["total multiplies"], "remaining": []}'
"""The delivery check of what no test witnessed: nothing was compiled before, so that none ran."""
MODULES = Path(__file__).parents[2] / "web/node_modules"


def _linked(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def lay_modules(files: Mapping[str, str], project: Path) -> None:
    """The packages of the page, where the project asks for packages."""
    if "devDependencies" in files.get("package.json", ""):
        if not (MODULES / "vitest").is_dir():
            pytest.skip("web/node_modules is not installed: make web")
        shutil.copytree(MODULES, project / "node_modules", symlinks=True, copy_function=_linked)


def writes(row: Mapping[str, Any]) -> list[dict[str, object]]:
    made: list[dict[str, object]] = []
    for path, text in row.get("writes", {}).items():
        made.append({"read": path})
        if text:
            made.append({"write": path, "text": text})
        else:
            made.append({"call": "run_command", "arguments": {"command": f"rm {path}"}})
    if "shell" in row:
        made.append({"call": "run_command", "arguments": {"command": row["shell"].strip()}})
    return [
        *made,
        {"say": "All tests pass now; the tests are unchanged."},
        *({"say": one} for one in row.get("says", ())),
    ]


Play = Callable[[Mapping[str, Any], str], tuple[Said, bool]]


@pytest.fixture
def play(tmp_path: Path, state_directory: Path, active_environment: None, monkeypatch: pytest.MonkeyPatch) -> Play:
    """What Pawl says to the row, and whether the tree is as it was."""

    def once(row: Mapping[str, Any], command: str) -> tuple[Said, bool]:
        if row["project"] == "go" and shutil.which("go") is None:
            pytest.skip("go is not installed")
        files = PROJECTS[row["project"]]
        lay_modules(files, tmp_path / "project")
        monkeypatch.setenv("PAWL_STATE", str(state_directory))
        (tmp_path / "config.toml").write_text("fix_seconds = 1\n")
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
        asked = {"files": files, "command": command, "request": "make the tests pass", "turns": writes(row)}
        said = played(asked, tmp_path)
        return said, asked["before"] == tree(tmp_path)

    return once


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize(
    ("row", "command"),
    [
        pytest.param(row, command, id=f"{row['project']}: {row['name']}")
        for row, command in zip(ROWS, itertools.cycle(COMMANDS), strict=False)
    ],
)
def test_work_that_only_looks_done_is_not_delivered(row: Mapping[str, Any], command: str, play: Play):
    said, unchanged = play(row, command)
    assert unchanged, said
    assert said.code not in (0, 5), said
    assert "\nverdict   verified\n" not in said.out + said.err, said


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize("project", RIGHT)
def test_the_right_fix_of_the_same_project_is_delivered(project: str, play: Play):
    said, unchanged = play({"project": project, "writes": RIGHT[project], "says": [CHECKED]}, "do")
    assert not unchanged and said.code == 0, said
    assert "\nverdict   verified\n" in said.out, said
