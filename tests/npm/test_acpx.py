"""acpx, a client of the Agent Client Protocol on the protocol's own TypeScript library, in front of `pawl acp`."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import pytest
from npm.large_packages import install_or_skip
from ui.cli.conftest import project
from ui.cli.console import PAWL
from ui.cli.projects import Project
from ui.cli.test_cli_do import FILES, FIX, RIGHT, Script, script

__all__ = ["project", "script"]

pytestmark = [pytest.mark.npm, pytest.mark.timeout(400), pytest.mark.spec("F6")]
PACKAGES = ("acpx@0.19.1", "node@22")
TALK = """
[[turn]]
match = { user = "sleep" }
answer = { text = "I wait.", calls = [{ name = "run_command", arguments = { command = "echo begun; sleep 600" } }] }
[[turn]]
times = 0
answer = "app.py adds two."
"""


class Client:
    """The command line of acpx in a workspace."""

    def __init__(self, place: Path, home: Path) -> None:
        self.place = place
        self.home = home

    def start(self, workspace: Path, model: str, *words: str) -> subprocess.Popen[str]:
        path = f"{self.place}/node_modules/.bin:{os.environ['PATH']}"  # noqa: TID251
        return subprocess.Popen(
            [self.place / "node_modules/.bin/acpx", "--agent", shlex.join([*PAWL, "acp"]), "--ttl", "60", *words],
            cwd=workspace,
            env={**os.environ, "HOME": str(self.home), "PATH": path, "PAWL_MODEL": model},  # noqa: TID251
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def __call__(self, workspace: Path, model: str, *words: str) -> str:
        with self.start(workspace, model, *words) as process:
            return process.communicate(timeout=200)[0]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("acpx")
    install_or_skip(place, *PACKAGES)
    return place


@pytest.fixture
def acpx(installed: Path, tmp_path: Path) -> Client:
    home = tmp_path / "home"
    home.mkdir()
    return Client(installed, home)


@pytest.mark.parametrize(("permission", "promoted"), [("--approve-all", True), ("--deny-all", False)])
def test_a_change_is_shown_as_a_diff_and_promoted_or_denied(
    project: Project, script: Script, acpx: Client, permission: str, promoted: bool
):
    pawl = project(FILES)
    said = acpx(pawl.workspace, script(FIX), permission, "exec", "fix the bug in after")
    assert f"diff {pawl.workspace}/app.py" in said and "verdict   verified" in said, said
    assert ("promoted as entry 1" in said) is promoted and "[done] end_turn" in said
    assert (pawl.workspace / "app.py").read_text() == (RIGHT if promoted else FILES["app.py"])


def test_mode_model_and_reasoning_are_set_and_cancel_ends_a_turn(project: Project, script: Script, acpx: Client):
    workspace, model = project(FILES).workspace, script(TALK)
    try:
        assert "created session" in acpx(workspace, model, "sessions", "new")
        assert "mode set: chat" in acpx(workspace, model, "set-mode", "chat")
        assert "reasoning=on" in acpx(workspace, model, "set", "reasoning", "on")
        assert f"model set: {model}" in acpx(workspace, model, "set", "model", model)
        assert "did not advertise that model" in acpx(workspace, model, "set", "model", "nobody/nothing")
        assert "app.py adds two." in acpx(workspace, model, "what does app.py do?")
        assert "mode=agent" in acpx(workspace, model, "set", "mode", "agent")
        asked = ("--approve-all", "--format", "json", "sleep a while")
        with acpx.start(workspace, model, *asked) as turn:
            assert turn.stdout is not None
            assert any("begun" in line for line in turn.stdout if "tool_call_update" in line)
            assert "cancel requested" in acpx(workspace, model, "cancel")
            assert '"stopReason":"cancelled"' in turn.stdout.read()
    finally:
        acpx(workspace, model, "sessions", "close")
