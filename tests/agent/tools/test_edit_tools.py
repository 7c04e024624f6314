"""The tools that edit, called as a model calls them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from agent.tools.conftest import FolderRunner
from folder import GUARDRAILS, FullDisk
from world import snapshot

from pawl.agent.tools.tool_registry import Ports, ToolFailure, ToolRegistry, ToolResult
from pawl.agent.tools.toolbox import toolbox
from pawl.code.editor import BenchEditor
from pawl.code.import_map import ImportMap

pytestmark = pytest.mark.spec("A5")


def called(tools: ToolRegistry, name: str, **arguments: object) -> str:
    result = tools.call(name, arguments)
    assert isinstance(result, ToolResult), result
    return result.text


def code_of(tools: ToolRegistry, name: str, **arguments: object) -> str:
    result = tools.call(name, arguments)
    assert isinstance(result, ToolFailure), result
    assert result.advice
    return result.code


def test_a_file_is_written_read_patched_and_deleted(tools: ToolRegistry, workspace: Path):
    assert called(tools, "file_write", path="pkg/new.py", content="x = 1\n") == "created pkg/new.py: 1 line"
    assert called(tools, "strict_patch", path="pkg/new.py", old="x = 1", new="x = 2\ny = 3") == (
        "changed pkg/new.py: 2 lines"
    )
    edits = [{"line": 1, "old": "x = 2", "new": None}]
    assert called(tools, "line_edit", path="pkg/new.py", edits=edits) == "changed pkg/new.py: 1 line"
    assert (workspace / "pkg/new.py").read_text() == "y = 3\n"
    assert called(tools, "modify", path="pkg/new.py", action="edit", edit_type="prepend", content="import os") == (
        "changed pkg/new.py: 1 line"
    )
    assert called(tools, "modify", path="pkg/new.py", action="delete") == "deleted pkg/new.py: 2 lines"
    assert not (workspace / "pkg/new.py").exists()


def test_what_is_not_checked_is_said(tools: ToolRegistry):
    assert "the syntax of '.md' files is not checked" in called(
        tools, "strict_patch", path="README.md", old="hello", new="hi"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("file_write", {"path": "README.md", "content": "x"}, "never_read"),
        ("file_write", {"path": ".env", "content": "x"}, "secret_refused"),
        ("file_write", {"path": "AGENTS.md", "content": "x"}, "protected_refused"),
        ("file_write", {"path": "/etc/passwd", "content": "x"}, "path_refused"),
        ("file_write", {"path": "new", "content": "\ud800"}, "bad_encoding"),
        ("file_write", {"path": "README.md/x", "content": "x"}, "not_a_file"),
        ("file_write", {"path": "src", "content": "x"}, "not_a_file"),
        ("strict_patch", {"path": "README.md", "old": "absent text", "new": ""}, "text_not_found"),
        ("strict_patch", {"path": "src/main.py", "old": "greet", "new": "x"}, "ambiguous_match"),
        ("strict_patch", {"path": "README.md", "old": "hello", "new": "x\n" * 51}, "too_many_lines"),
        ("strict_patch", {"path": "src/main.py", "old": "print(", "new": "print"}, "syntax_broken"),
        ("strict_patch", {"path": "src/main.py", "old": "from greeter import greet\n", "new": ""}, "imports_dropped"),
        ("strict_patch", {"path": "README.md", "old": "hello", "new": "hello"}, "nothing_to_do"),
        ("strict_patch", {"path": "logo.bin", "old": "a", "new": "b"}, "binary_file"),
        ("line_edit", {"path": "README.md", "edits": [{"line": 1, "old": "x", "new": "y"}]}, "line_mismatch"),
        (
            "line_edit",
            {"path": "README.md", "edits": [{"line": n, "old": "", "new": ""} for n in range(1, 32)]},
            "too_many_edits",
        ),
        ("line_edit", {"path": "absent", "edits": [{"line": 1, "old": "x", "new": "y"}]}, "not_found"),
        ("modify", {"path": "README.md", "action": "create", "content": "x"}, "already_there"),
        ("modify", {"path": "README.md", "action": "edit"}, "bad_arguments"),
        ("change_files", {"justification": "", "changes": []}, "nothing_to_do"),
    ],
)
def test_each_way_to_fail_has_its_own_code_and_changes_nothing(tools, workspace, name, arguments, code):
    before = snapshot(workspace)
    assert code_of(tools, name, **arguments) == code
    assert snapshot(workspace) == before


@pytest.mark.attack("A14")
def test_a_file_that_the_user_changed_since_file_read_is_stale(tools: ToolRegistry, workspace: Path):
    called(tools, "file_read", path="README.md", start=1, end=1)
    (workspace / "README.md").write_text("hello, mine\n")
    assert code_of(tools, "strict_patch", path="README.md", old="hello", new="bye") == "stale_read"
    assert (workspace / "README.md").read_text() == "hello, mine\n"


@pytest.mark.spec("A7")
def test_linked_files_change_together_or_not_at_all(tools: ToolRegistry, workspace: Path):
    rename = [
        {"path": "src/main.py", "action": "edit", "edit_type": "full_replace", "content": "import greeter\n"},
        {"path": "src/greeter.py", "action": "edit", "edit_type": "replace", "target": "Hello", "content": "Hi"},
    ]
    before = snapshot(workspace)
    assert code_of(tools, "change_files", justification="shorter", changes=rename) == "never_read"
    assert snapshot(workspace) == before
    called(tools, "file_read", path="src/main.py")
    assert called(tools, "change_files", justification="shorter", changes=rename) == (
        "changed src/greeter.py: 1 line\nchanged src/main.py: 3 lines"
    )


def test_a_full_disk_is_disk_full_and_the_file_as_it_was(workspace: Path):
    files = FullDisk(workspace)
    editor = BenchEditor(files, GUARDRAILS)
    ports = Ports(
        files=files,
        editor=lambda: editor,
        runner=FolderRunner(workspace),
        dependencies=lambda: ImportMap.of({}),
        guardrails=GUARDRAILS,
    )
    before = snapshot(workspace)
    assert code_of(toolbox(ports), "strict_patch", path="README.md", old="hello", new="bye") == "disk_full"
    assert snapshot(workspace) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_permission_denied(tools: ToolRegistry, workspace: Path):
    (workspace / "src").chmod(0o500)
    assert code_of(tools, "file_write", path="src/new.py", content="x") == "permission_denied"
