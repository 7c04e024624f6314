"""The Node that a version manager chose for a project is found though nobody activated it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ui.cli.console import Pawl

pytestmark = [pytest.mark.npm, pytest.mark.timeout(300), pytest.mark.spec("A12")]


def test_the_node_of_mise_is_found_and_runs(tmp_path: Path, state_directory: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAWL_STATE", str(state_directory))
    pawl = Pawl(tmp_path / "shop")
    pawl.workspace.mkdir()
    (pawl.workspace / "package.json").write_text("{}")
    (pawl.workspace / "mise.toml").write_text('[tools]\nnode = "20"\n')
    node = tmp_path / "node-20"
    (node / "bin").mkdir(parents=True)
    (node / "bin/node").write_text(f"#!/bin/sh\necho {node}\n")
    (node / "bin/node").chmod(0o755)
    for words in (
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(tmp_path), "@jdxcode/mise@2026.9.15"],
        [f"{tmp_path}/node_modules/.bin/mise", "link", "node@20.11.1", str(node)],
    ):
        done = subprocess.run(words, cwd=pawl.workspace, capture_output=True, text=True)
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    assert pawl.json("doctor")["environment"]["node"] == "mise's"
    assert pawl("run", "--", "node").out == f"{node}\n"
