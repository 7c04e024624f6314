"""Neovim with the chat of CodeCompanion as a client of `pawl acp`, where both are there.

`PAWL_TEST_NVIM` is the program (0.11 or newer) and `PAWL_TEST_NVIM_PLUGINS` the folders of CodeCompanion, plenary and
the Markdown parsers, with colons between them. No registry that the other tests use has the plug-ins.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from ui.cli.conftest import project
from ui.cli.console import PAWL
from ui.cli.projects import Project
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script, script

__all__ = ["project", "script"]

NVIM, PLUGINS = (os.environ.get(f"PAWL_TEST_NVIM{end}", "") for end in ("", "_PLUGINS"))  # noqa: TID251
ACCEPT, REJECT = "g2", "g3"
pytestmark = [
    pytest.mark.npm,
    pytest.mark.timeout(300),
    pytest.mark.spec("F6"),
    pytest.mark.skipif(not (NVIM and PLUGINS), reason="PAWL_TEST_NVIM and PAWL_TEST_NVIM_PLUGINS name no editor"),
]


@pytest.mark.parametrize("key", [ACCEPT, REJECT])
def test_a_person_at_neovim_asks_sees_the_diff_and_decides(project: Project, script: Script, tmp_path: Path, key: str):
    pawl = project(FILES)
    (tmp_path / "home").mkdir()
    given = {
        "HOME": str(tmp_path / "home"),
        "PAWL_MODEL": script(FIX),
        "PLUGINS": PLUGINS,
        "AGENT": json.dumps([*PAWL, "acp"]),
        "REQUESTS": "fix the bug in after",
        "KEY": key,
        "SEEN": str(tmp_path / "seen.json"),
    }
    user = Path(__file__).with_name("neovim_user.lua")
    done = subprocess.run(
        [NVIM, "--headless", "-u", "NONE", "-i", "NONE", "-S", user],
        cwd=pawl.workspace,
        env={**os.environ, **given},  # noqa: TID251
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )
    seen = json.loads((tmp_path / "seen.json").read_text())
    assert not seen["failed"], (seen, done.stderr)
    text = seen["text"]
    assert seen["asked"] == 1 and "Proposed edits for `app.py`:" in text
    assert "+    return number + 1" in text and "verdict   verified" in text
    assert ("promoted as entry 1" in text) is (key == ACCEPT)
    assert (pawl.workspace / "app.py").read_text() == (RIGHT if key == ACCEPT else FILES["app.py"])
    assert seen["options"] == ["mode", "model", "reasoning", "approval"] and seen["set"]
    assert [one["title"] for one in seen["sessions"]] == ["fix the bug in after"]
    assert seen["again"] and seen["loaded"] > 3
