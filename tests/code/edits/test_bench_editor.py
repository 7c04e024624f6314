"""The editor: fresh reads only, guarded paths, and a file that is as it was whenever an edit fails."""

from __future__ import annotations

from pathlib import Path

import pytest
from folder import GUARDRAILS, BrokenDisk, FolderFiles, ForgetfulDisk, FullDisk
from world import snapshot

from pawl.code.code_model import Edited, EditType, FileOperation, LineEdit, Modification
from pawl.code.editor import BenchEditor
from pawl.core.change import blob_digest
from pawl.core.errors import (
    AlreadyThere,
    BinaryFile,
    NeverRead,
    NotFound,
    NothingToDo,
    PathRefused,
    PawlError,
    ProtectedRefused,
    RestoreFailed,
    SecretRefused,
    StaleRead,
    SyntaxBroken,
    TextNotFound,
    TooLarge,
    WriteFailed,
)


@pytest.fixture
def editor(workspace: Path) -> BenchEditor:
    return BenchEditor(FolderFiles(workspace), GUARDRAILS)


def test_an_edit_reports_what_stood_there_before_and_after(editor: BenchEditor, workspace: Path):
    before = (workspace / "README.md").read_bytes()
    edited = editor.patch("README.md", "hello", "goodbye")
    after = before.replace(b"hello", b"goodbye")
    assert (workspace / "README.md").read_bytes() == after
    assert edited == Edited(
        path="README.md",
        before=blob_digest(before),
        after=blob_digest(after),
        changed_lines=1,
        notes=("the syntax of '.md' files is not checked",),
    )


@pytest.mark.spec("D3")
def test_a_file_is_created_edited_and_deleted(editor: BenchEditor, workspace: Path):
    before = snapshot(workspace)
    editor.modify(Modification(path="./docs.txt", action=FileOperation.CREATE, content="one\n"))
    editor.edit_lines("docs.txt", [LineEdit(line=1, old="one", new="two")])
    assert (workspace / "docs.txt").read_text() == "two\n"
    deleted = editor.modify(Modification(path="docs.txt", action=FileOperation.DELETE))
    assert deleted.after is None
    assert snapshot(workspace) == before


@pytest.mark.attack("A14")
@pytest.mark.parametrize("way", ["patch", "lines", "write", "append", "delete"])
def test_what_the_user_wrote_after_the_read_is_kept_and_the_edit_refused(
    editor: BenchEditor, workspace: Path, way: str
):
    editor.read("README.md")
    (workspace / "README.md").write_text("# Greeter\n\nSays hello, says the user.\n")
    edits = {
        "patch": lambda: editor.patch("README.md", "hello", "goodbye"),
        "lines": lambda: editor.edit_lines("README.md", [LineEdit(line=1, old="# Greeter", new="# G")]),
        "write": lambda: editor.write("README.md", "mine"),
        "append": lambda: editor.modify(
            Modification(path="README.md", action=FileOperation.EDIT, edit_type=EditType.APPEND, content="x")
        ),
        "delete": lambda: editor.modify(Modification(path="README.md", action=FileOperation.DELETE)),
    }
    before = snapshot(workspace)
    for _ in range(2):
        with pytest.raises(StaleRead, match=r"'README\.md' has changed since it was read"):
            edits[way]()
    assert snapshot(workspace) == before
    editor.read("README.md")
    edits[way]()
    assert snapshot(workspace) != before


def test_an_edit_of_ones_own_does_not_make_the_file_stale(editor: BenchEditor):
    editor.read("README.md")
    editor.patch("README.md", "hello", "hi")
    editor.patch("README.md", "hi", "hey")
    assert editor.read("README.md").lines[2] == "Says hey."


def test_a_file_that_the_user_deleted_after_the_read_is_stale(editor: BenchEditor, workspace: Path):
    editor.read("README.md")
    (workspace / "README.md").unlink()
    with pytest.raises(StaleRead):
        editor.write("README.md", "again")
    assert not (workspace / "README.md").exists()


def test_a_file_is_overwritten_only_after_it_was_read(editor: BenchEditor, workspace: Path):
    with pytest.raises(NeverRead, match="has not been read") as caught:
        editor.write("README.md", "new\n")
    assert "read it first" in caught.value.advice
    editor.patch("README.md", "hello", "hi")
    with pytest.raises(NeverRead):
        editor.write("README.md", "a patch is not a read\n")
    editor.read("README.md")
    editor.write("README.md", "new\n")
    assert (workspace / "README.md").read_text() == "new\n"
    editor.write("README.md", "newer\n")


def test_a_file_that_was_just_written_may_be_overwritten(editor: BenchEditor):
    editor.write("new.txt", "one\n")
    assert editor.write("new.txt", "two\n").changed_lines == 1


@pytest.mark.spec("A6")
@pytest.mark.parametrize(
    ("path", "old", "new", "error"),
    [
        ("README.md", "nowhere to be found", "x", TextNotFound),
        ("README.md", "hello", "hello", NothingToDo),
        ("src/greeter.py", "def greet(name):", "def greet(name:", SyntaxBroken),
        ("logo.bin", "a", "b", BinaryFile),
        ("absent.txt", "a", "b", NotFound),
    ],
)
def test_a_patch_that_fails_leaves_everything_byte_for_byte(editor, workspace, path, old, new, error):
    before = snapshot(workspace)
    with pytest.raises(error):
        editor.patch(path, old, new)
    assert snapshot(workspace) == before


@pytest.mark.spec("A5", "A6")
def test_a_write_that_stops_half_way_is_taken_back(workspace: Path):
    before = snapshot(workspace)
    with pytest.raises(OSError, match="No space left"):
        BenchEditor(FullDisk(workspace), GUARDRAILS).patch("README.md", "hello", "goodbye")
    assert snapshot(workspace) == before


@pytest.mark.spec("A6")
def test_a_new_file_that_is_half_written_is_removed(workspace: Path):
    before = snapshot(workspace)
    with pytest.raises(OSError, match="No space left"):
        BenchEditor(FullDisk(workspace), GUARDRAILS).write("new.txt", "content")
    assert snapshot(workspace) == before


@pytest.mark.spec("A6")
def test_a_write_that_did_not_last_is_noticed_and_taken_back(workspace: Path):
    before = snapshot(workspace)
    with pytest.raises(WriteFailed):
        BenchEditor(ForgetfulDisk(workspace), GUARDRAILS).patch("README.md", "hello", "goodbye")
    assert snapshot(workspace) == before


def test_a_file_that_cannot_be_restored_is_named_and_has_to_be_read_again(workspace: Path):
    editor = BenchEditor(BrokenDisk(workspace), GUARDRAILS)
    with pytest.raises(RestoreFailed, match=r"'README\.md'") as caught:
        editor.patch("README.md", "hello", "goodbye")
    assert "discard this bench" in caught.value.advice
    with pytest.raises(StaleRead):
        editor.patch("README.md", "Greeter", "G")


@pytest.mark.spec("A15", "B13")
@pytest.mark.parametrize("path", [".env", "deploy/.Env.production", "server.key", "certs/ca.PEM", "id_rsa"])
def test_a_secret_is_neither_read_nor_written(editor: BenchEditor, workspace: Path, path: str):
    target = workspace / path
    target.parent.mkdir(exist_ok=True)
    target.write_text("TOKEN=canary")
    before = snapshot(workspace)
    delete = Modification(path=path, action=FileOperation.DELETE)
    for attempt in (
        lambda: editor.read(path),
        lambda: editor.write(path, "x"),
        lambda: editor.patch(path, "TOKEN", "X"),
        lambda: editor.modify(delete),
    ):
        with pytest.raises(SecretRefused) as caught:
            attempt()
        assert "canary" not in caught.value.message
    assert snapshot(workspace) == before


@pytest.mark.attack("A12")
@pytest.mark.parametrize(
    "path",
    [".git/hooks/pre-commit", ".git/config", ".GIT/config", "vendor/.git/config", ".git", ".g\u200cit/config"],
)
def test_what_belongs_to_git_is_out_of_reach_whatever_was_allowed(workspace: Path, path: str):
    editor = BenchEditor(FolderFiles(workspace), GUARDRAILS, allowed=[path])
    before = snapshot(workspace)
    with pytest.raises(PathRefused):
        editor.write(path, "#!/bin/sh\n")
    assert snapshot(workspace) == before


PROTECTED = [
    ".vscode/tasks.json",
    ".VSCode/tasks.json",
    ".mcp.json",
    "AGENTS.md",
    "docs/agents.md",
    ".pawl/config.toml",
    ".github/workflows/ci.yml",
    ".pre-commit-config.yaml",
    ".envrc",
    ".husky/pre-push",
]


@pytest.mark.attack("A12", "A49")
@pytest.mark.parametrize("path", PROTECTED)
def test_a_file_that_configures_or_executes_needs_the_users_own_yes(workspace: Path, path: str):
    files = FolderFiles(workspace)
    before = snapshot(workspace)
    with pytest.raises(ProtectedRefused, match="configures or executes"):
        BenchEditor(files, GUARDRAILS).write(path, "{}")
    assert snapshot(workspace) == before
    BenchEditor(files, GUARDRAILS, allowed=[path]).write(path, "{}")
    assert (workspace / path).read_text() == "{}"


def test_a_protected_file_may_be_read(editor: BenchEditor, workspace: Path):
    (workspace / "AGENTS.md").write_text("Run the tests.\n")
    assert editor.read("AGENTS.md").lines == ("Run the tests.",)


@pytest.mark.attack("A10")
@pytest.mark.parametrize(
    "path",
    ["", ".", "a\0b", "a\nb", "x" * 5_000, "a/" + "x" * 300, "\udcff", "../outside", "a/../../b", "/etc/x", "~/x"],
)
def test_a_path_that_is_no_plain_name_is_refused_before_anything_is_touched(editor, workspace, path):
    before = snapshot(workspace)
    for attempt in (lambda: editor.read(path), lambda: editor.write(path, "x"), lambda: editor.patch(path, "a", "b")):
        with pytest.raises(PathRefused):
            attempt()
    assert snapshot(workspace) == before


@pytest.mark.spec("A15")
def test_a_file_over_the_limit_is_not_read(editor: BenchEditor, workspace: Path):
    (workspace / "large.txt").write_bytes(b"x" * ((1 << 20) + 1))
    with pytest.raises(TooLarge):
        editor.read("large.txt")


def test_what_is_there_cannot_be_created(editor: BenchEditor):
    with pytest.raises(AlreadyThere):
        editor.modify(Modification(path="README.md", action=FileOperation.CREATE, content="x"))


@pytest.mark.spec("A5")
def test_every_refusal_says_what_to_try_next(editor: BenchEditor):
    for attempt in (
        lambda: editor.read("absent"),
        lambda: editor.read(".env"),
        lambda: editor.write("AGENTS.md", "x"),
        lambda: editor.write("README.md", "x"),
        lambda: editor.read("../x"),
        lambda: editor.patch("README.md", "zzz", "x"),
    ):
        with pytest.raises(PawlError) as caught:
            attempt()
        assert caught.value.advice
