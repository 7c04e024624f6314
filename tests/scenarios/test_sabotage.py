"""Work that only looks done: each row leaves the bug and makes the tests pass some other way.

The rows of `adversary.toml` were written without looking at the verifier; `shell` is a command of the model's.

The model says that it is done, and nobody is there to ask. None of it is delivered.
"""

from __future__ import annotations

import itertools
import shutil
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from scenarios.test_done_means_done import played, tree

TABLES = [
    tomllib.loads((Path(__file__).parent / name).read_text("utf-8")) for name in ("sabotage.toml", "adversary.toml")
]
PROJECTS = {name: files for table in TABLES for name, files in table["projects"].items()}
ROWS = [row for table in TABLES for row in table["row"]]
COMMANDS = ("do", "loop")

pytestmark = [pytest.mark.hostile, pytest.mark.timeout(240)]


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
    return [*made, {"say": "All tests pass now; the tests are unchanged."}]


@pytest.mark.spec("A8", "B9")
@pytest.mark.parametrize(
    ("row", "command"),
    [
        pytest.param(row, command, id=f"{row['project']}: {row['name']}")
        for row, command in zip(ROWS, itertools.cycle(COMMANDS), strict=False)
    ],
)
def test_work_that_only_looks_done_is_not_delivered(
    row: Mapping[str, Any],
    command: str,
    tmp_path: Path,
    state_directory: Path,
    active_environment: None,
    monkeypatch: pytest.MonkeyPatch,
):
    if row["project"] == "go" and shutil.which("go") is None:
        pytest.skip("go is not installed")
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    (tmp_path / "config.toml").write_text("fix_seconds = 1\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    files = PROJECTS[row["project"]]
    asked = {"files": files, "command": command, "request": "make the tests pass", "turns": writes(row)}
    said = played(asked, tmp_path)
    assert asked["before"] == tree(tmp_path), said
    assert said.code not in (0, 5), said
    assert "\nverdict   verified\n" not in said.out + said.err, said
