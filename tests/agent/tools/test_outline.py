"""The `outline` tool: short text with lines, failures with advice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from agent.tools.conftest import FolderRunner
from folder import GUARDRAILS, FolderFiles

from pawl.agent.tools.file_tools import Outlined
from pawl.agent.tools.tool_registry import Ports, ToolFailure, ToolRegistry, ToolResult
from pawl.agent.tools.toolbox import toolbox
from pawl.code.code_model import FileOutline, FolderSize, Outline
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap
from pawl.code.outline import SourceOutliner

pytestmark = pytest.mark.spec("A5")

SOURCE = '''\
LIMIT = 3


class Greeter(Base):
    """Says hello."""

    def greet(self, name: str) -> str:
        return name
'''


@pytest.fixture
def tools(workspace: Path) -> Iterator[ToolRegistry]:
    outliner = SourceOutliner(GUARDRAILS)
    files = FolderFiles(workspace)
    editor = BenchEditor(files, GUARDRAILS)
    yield toolbox(
        Ports(
            files=files,
            editor=lambda: editor,
            runner=FolderRunner(workspace),
            dependencies=lambda: ImportMap.of({}),
            guardrails=GUARDRAILS,
            outliner=lambda: outliner,
        )
    )
    outliner.close()


def failure(result: ToolResult | ToolFailure) -> ToolFailure:
    assert isinstance(result, ToolFailure), result
    return result


def test_a_file_is_shown_by_line_signature_and_purpose(tools: ToolRegistry, workspace: Path):
    (workspace / "src" / "greeter.py").write_text(SOURCE)
    assert tools.call("outline", {"path": "src/greeter.py"}).text == (
        "src/greeter.py (python, 8 lines)\n"
        "  1: LIMIT = 3\n"
        "  4-8: class Greeter(Base)  # Says hello.\n"
        "    7-8: def greet(self, name: str) -> str"
    )


def test_a_folder_is_shown_by_files_and_what_stands_at_their_top(tools: ToolRegistry, workspace: Path):
    (workspace / "src" / "greeter.py").write_text(SOURCE)
    (workspace / "broken.js").write_text("function ok() {}\nfunction (((\n")
    text = "broken.js (javascript, 2 lines, parsed in part)\n  1: function ok()\n"
    text += "src/greeter.py\n  1: LIMIT = 3\n  4: class Greeter(Base)"
    assert tools.call("outline", {}).text == text
    assert tools.call("outline", {"path": "."}).text == text


def test_what_is_left_out_is_said():
    file = FileOutline(path="a.py", language="python", lines=3, definitions=(), left_out=2)
    whole = Outline(
        path="", files=(file, replace(file, path="b.py", left_out=0)), folders=(FolderSize(path="lib", files=40),)
    )
    assert Outlined(replace(whole, left_out=3, skipped=1), folder=True).text.splitlines() == [
        "a.py",
        "  [2 more definitions]",
        "b.py",
        "  [no definitions]",
        "lib/ 40 source files",
        "[3 more; outline a narrower folder]",
        "[1 binary, large or unreadable files left out]",
    ]


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("README.md", "parse_failed"),
        ("absent.py", "not_found"),
        ("logo.bin", "binary_file"),
        (".env", "secret_refused"),
    ],
)
def test_each_failure_has_its_code_and_advice(tools: ToolRegistry, workspace: Path, path: str, code: str):
    (workspace / ".env").write_text("TOKEN=1\n")
    failed = failure(tools.call("outline", {"path": path}))
    assert (failed.code, bool(failed.advice)) == (code, True)


def test_an_unknown_language_is_sent_to_file_read(tools: ToolRegistry):
    assert "file_read" in failure(tools.call("outline", {"path": "README.md"})).advice
