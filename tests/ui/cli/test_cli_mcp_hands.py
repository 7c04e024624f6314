"""An agent's files and commands through MCP servers of Pawl's own, and directly where they fail."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.projects import SETTINGS, Project
from ui.cli.test_cli_mcp import calls
from ui.cli.test_cli_one_gate import Configured, configured, model

__all__ = ["configured"]

pytestmark = pytest.mark.spec("B2")
FILES = {
    **SETTINGS,
    "app.py": "def after(number):\n    return number + 2\n",
    "test_app.py": "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n",
    "private/plan.txt": "the canary of the plan\n",
    "tool.sh": "echo loud; cat private/plan.txt; echo x > made.txt; exit 3\n",
}
RULES = '[permissions]\nallow = ["Bash"]\ndeny = ["Read(private/**)"]\n'
HANDS = '[mcp]\nhands = "mcp"\n'
DO = ("do", "--approve", "never", "--no-escalate", "fix after in app.py: test_after fails")
WORK = (
    calls(
        ("file_read", {"path": "app.py"}),
        ("file_read", {"path": "nowhere.py"}),
        ("file_search", {"query": "def after"}),
        ("run_command", {"command": "sh tool.sh"}),
    ),
    calls(
        ("strict_patch", {"path": "app.py", "old": "number + 2", "new": "number + 1"}),
        ("file_read", {"path": "made.txt"}),
        ("run_command", {"command": "cat app.py && rm made.txt"}),
        ("file_read", {"path": "made.txt"}),
    ),
)


def ways(state: Path) -> list[str]:
    with sqlite3.connect(state / "pawl.db") as store:
        rows = store.execute("SELECT body FROM event WHERE kind = 'hands' ORDER BY id").fetchall()
    return [way for (body,) in rows for way in json.loads(body)["ways"]]


def played(pawl: Pawl, configured: Configured, settings: str) -> tuple[dict, list[list[str]]]:
    """The report, and the answers to the calls of each turn."""
    with model(configured, *WORK, settings=settings) as playing:
        said = pawl.json(*DO)
    told = [json.loads(request.body)["messages"] for request in playing.requests[1:3]]
    return said, [[one["content"] for one in messages[-4:]] for messages in told]


def without_seconds(text: str) -> str:
    return re.sub(r"[0-9.]+ s\b", "N s", text.split("seconds")[0][:40])


@pytest.mark.whole
def test_the_same_work_is_done_through_the_servers_as_directly(
    project: Project, configured: Configured, state_directory: Path
):
    pawl = project(FILES)
    direct, direct_told = played(pawl, configured, RULES)
    assert ways(state_directory) == []
    pawl("undo")
    served, served_told = played(pawl, configured, RULES + HANDS)
    for one, other in zip(direct_told, served_told, strict=True):
        assert [without_seconds(text) for text in one] == [without_seconds(text) for text in other]
    assert "loud" in served_told[0][3] and "canary" not in str(served_told) and "number + 1" in served_told[1][2]
    assert (served["verdict"], served["changes"]) == (direct["verdict"], direct["changes"])
    assert {one["path"] for one in served["changes"]} == {"app.py"}
    taken = ways(state_directory)
    assert {"files.read mcp", "files.write mcp", "commands.run mcp"} <= set(taken)
    assert not [way for way in taken if "direct" in way]


@pytest.mark.whole
def test_where_the_servers_fail_the_same_calls_are_made_directly_and_the_log_says_so(
    project: Project, configured: Configured, state_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project(FILES)
    # The servers, and nothing else, end as they start.
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text("import sys\nif '--hands' in sys.orig_argv: sys.exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    said, told = played(pawl, configured, RULES + HANDS)
    assert said["verdict"] == "verified" and "loud" in told[0][3]
    taken = ways(state_directory)
    assert any(way.startswith("files.") and " direct: " in way and "it ended with code" in way for way in taken), taken
    assert any(way.startswith("commands.run direct: ") for way in taken)
    assert not [way for way in taken if way.endswith(" mcp")]


DIES = """\
import os, sys
def heard(event, given):
    if event == "open" and isinstance(given[0], (str, bytes)) and os.fsdecode(given[0]).endswith("made.txt"):
        os._exit(7)
if "--hands" in sys.orig_argv:
    sys.addaudithook(heard)
"""


@pytest.mark.whole
def test_a_server_that_dies_in_mid_run_is_replaced_for_that_call_and_started_again_for_the_next(
    project: Project, configured: Configured, state_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project(FILES)
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(DIES)
    monkeypatch.setenv("PYTHONPATH", str(broken))
    said, told = played(pawl, configured, RULES + HANDS)
    taken = ways(state_directory)
    assert said["verdict"] == "verified" and told[1][1].endswith("x"), told
    dead = next(at for at, way in enumerate(taken) if "direct" in way)
    assert taken[dead].startswith("files.read direct: ") and "it ended with code 7" in taken[dead], taken
    assert "files.read mcp" in taken[:dead] and any(way.endswith(" mcp") for way in taken[dead:]), taken
