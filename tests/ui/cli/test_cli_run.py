"""`pawl run` and `pawl promote` in pipes: what a command changed is shown, kept, promoted, or held back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from world import snapshot

CHANGES = "echo more >> README.md; rm run.sh; mkdir -m 700 new; echo x > new/file; chmod 600 src/main.py"


@pytest.mark.spec("F2", "F3")
def test_without_a_terminal_changes_are_shown_and_kept_and_the_workspace_is_untouched(pawl: Pawl):
    before = snapshot(pawl.workspace)
    said = pawl("run", "--", "sh", "-c", CHANGES)
    assert (said.code, said.out) == (0, "")
    assert said.err.splitlines() == [
        "not promoted, kept as entry 1",
        "  ~ README.md    +1 −0",
        "  + new/",
        "  + new/file     +1 −0",
        "  - run.sh       +0 −2",
        "  ~ src/main.py  mode 644 → 600",
        "see it with: pawl diff 1     promote it with: pawl promote 1",
    ]
    assert snapshot(pawl.workspace) == before


@pytest.mark.spec("F3")
def test_a_kept_entry_is_promoted_exactly_folders_and_modes_included(pawl: Pawl):
    pawl("run", "--discard", "--", "sh", "-c", CHANGES)
    assert pawl("promote", "--dry-run").lines[0] == "would promote"
    said = pawl("promote", "1")
    assert (said.code, said.err) == (0, "")
    assert said.lines[0] == "promoted as entry 2"
    assert said.lines[-1] == "undo with: pawl undo 2"
    after = snapshot(pawl.workspace)
    assert after[b"new"] == ("folder", 0o700, b"")
    assert after[b"src/main.py"][1] == 0o600
    assert b"run.sh" not in after


def test_what_the_user_changed_since_is_merged_into_a_promotion(pawl: Pawl):
    pawl("run", "--", "sh", "-c", "echo end >> README.md")
    readme = pawl.workspace / "README.md"
    readme.write_text("Mine.\n" + readme.read_text())
    assert pawl("promote").code == 0
    assert readme.read_text() == "Mine.\n# Greeter\n\nSays hello.\nend\n"


def test_only_a_kept_entry_is_promoted_and_only_once(pawl: Pawl):
    _, once, again, other = pawl.many([["run", "--", "touch", "new"], *(["promote", n] for n in ("1", "1", "2"))])
    assert once.lines[0] == "promoted as entry 2"
    assert (again.code, again.err) == (1, "pawl: the workspace already holds what entry 1 changed\n")
    assert (other.code, "only a kept entry can be promoted" in other.err) == (1, True)


@pytest.mark.spec("F3")
def test_apply_promotes_and_says_how_to_take_it_back(pawl: Pawl):
    said = pawl("run", "--apply", "--", "sh", "-c", "echo one; echo two > two")
    assert (said.code, said.out) == (0, "one\n")
    assert said.err == "promoted as entry 1\n  + two  +1 −0\nundo with: pawl undo 1\n"
    assert (pawl.workspace / "two").read_text() == "two\n"


def test_changes_of_a_command_that_failed_are_kept_not_promoted(pawl: Pawl):
    said = pawl("run", "--apply", "--", "sh", "-c", "echo x > x; exit 7")
    assert said.code == 7
    assert said.err.startswith("the command failed, so nothing was promoted; kept as entry 1\n")
    assert not (pawl.workspace / "x").exists()


def test_stdout_is_the_commands_own_to_the_byte_and_pawls_words_are_on_stderr(pawl: Pawl):
    done = pawl.raw("run", "--", "printf", r"\377\033[2J\000end")
    assert done.stdout == b"\xff\x1b[2J\x00end"
    assert done.stderr == b"nothing changed\n"


@pytest.mark.spec("F4", "B10")
def test_a_command_that_waits_for_input_gets_the_end_of_it(pawl: Pawl):
    said = pawl("run", "--", "sh", "-c", "read answer; echo got:$answer; cat")
    assert (said.code, said.out) == (0, "got:\n")


@pytest.mark.spec("A15", "F3")
def test_protected_files_are_held_back_until_they_are_allowed(pawl: Pawl):
    script = "echo x > plain; mkdir -p .vscode; echo {} > .vscode/tasks.json"
    said = pawl("run", "--apply", "--", "sh", "-c", script)
    assert said.err.splitlines()[2:] == [
        "held back",
        "  ! .vscode             protected",
        "  ! .vscode/tasks.json  protected",
        "undo with: pawl undo 1",
        "the rest is kept as entry 2; see it with: pawl diff 2",
        "promote what is protected with: pawl promote 2 --allow-protected",
    ]
    assert not (pawl.workspace / ".vscode/tasks.json").exists()
    refused = pawl("promote", "2")
    assert (refused.code, "repeat with --allow-protected" in refused.err) == (1, True)
    assert pawl("promote", "2", "--allow-protected").code == 0
    assert (pawl.workspace / ".vscode/tasks.json").exists()


@pytest.mark.spec("A15", "B13")
def test_a_secret_is_hidden_from_the_command_and_never_promoted(pawl: Pawl):
    secret = pawl.workspace / ".env"
    secret.write_text("KEY=canary\n")
    assert pawl("run", "--", "cat", ".env").out == ""
    said = pawl("run", "--secrets", "--apply", "--", "sh", "-c", "cat .env; echo NEW=1 >> .env")
    assert said.out == "KEY=canary\n"
    assert "held back\n  ! .env  secret\n" in said.err
    assert secret.read_text() == "KEY=canary\n"


@pytest.mark.spec("F8")
def test_ignored_files_stay_on_the_bench_unless_asked_for(pawl: Pawl):
    (pawl.workspace / ".gitignore").write_text("build/\n")
    script = "mkdir -p build && echo o > build/out"
    said = pawl("run", "--apply", "--", "sh", "-c", script)
    assert said.err == "nothing to promote\nleft on the bench, because ignored: build/\n"
    assert pawl("run", "--apply", "--ignored", "--", "sh", "-c", script).code == 0
    assert (pawl.workspace / "build/out").read_text() == "o\n"


@pytest.mark.attack("A08")
def test_a_link_out_of_the_workspace_is_neither_promoted_at_once_nor_later(pawl: Pawl):
    said = pawl("run", "--apply", "--", "ln", "-s", "/etc/passwd", "out")
    assert "  ! out  link out of the workspace" in said.err
    assert pawl("promote").code == 1
    assert not os.path.lexists(pawl.workspace / "out")


@pytest.mark.spec("F5")
def test_one_json_object_says_everything_about_a_run(pawl: Pawl):
    body = pawl.json("run", "--apply", "--", "sh", "-c", "echo out; echo err >&2; echo x > x; rm latest; exit 0")
    run = body.pop("run")
    assert run.startswith("r")
    assert body.pop("seconds") >= 0
    assert body.pop("peak_memory_bytes") >= 0
    assert body == {
        "argv": ["sh", "-c", "echo out; echo err >&2; echo x > x; rm latest; exit 0"],
        "ending": "exited",
        "code": 0,
        "signal": None,
        "exit_code": 0,
        "stdout": "out\n",
        "stderr": "err\n",
        "output_dropped": 0,
        "confinement": body["confinement"],
        "notices": [],
        "changes": [
            {
                "path": "latest",
                "what": "deleted",
                "before": {"kind": "link", "mode": "777"},
                "after": None,
                "added": 0,
                "removed": 1,
                "binary": False,
            },
            {
                "path": "x",
                "what": "created",
                "before": None,
                "after": {"kind": "file", "mode": "644"},
                "added": 1,
                "removed": 0,
                "binary": False,
            },
        ],
        "ignored": [],
        "held": [],
        "conflicts": [],
        "promoted": 1,
        "kept": None,
    }
    assert pawl.json("history", "--run", run)["entries"][0]["id"] == 1


def test_a_command_runs_where_the_user_is_or_in_the_folder_that_is_named(repository: Pawl, tmp_path: Path):
    root = repository.workspace
    said = repository("run", "--apply", "--", "sh", "-c", "pwd; touch here", cwd=root / "src")
    assert (said.out, (root / "src/here").exists()) == (f"{root}/src\n", True)
    assert repository("run", "-C", str(root), "--", "pwd", cwd=tmp_path).out == f"{root}\n"


def test_the_words_after_the_dashes_belong_to_the_command(pawl: Pawl):
    assert pawl("run", "--", "echo", "--json", "--", "-C", "x").out == "--json -- -C x\n"
    assert pawl("run", "echo", "a", "--", "--apply").out == "a -- --apply\n"


def test_output_that_is_longer_than_is_kept_is_shown_whole(pawl: Pawl):
    said = pawl("run", "--", "head", "-c", "3000000", "/dev/zero")
    assert len(said.out) == 3_000_000
    assert "note: 1,951,424 of 3,000,000 bytes of stdout were not kept\n" in said.err


def test_a_change_that_is_too_large_to_be_promoted_is_no_success(pawl: Pawl):
    said = pawl("run", "--apply", "--", "sh", "-c", "head -c 300000000 /dev/zero > big.bin")
    assert said.code == 1 and "too large" in said.err
    assert pawl("run", "--", "sh", "-c", "head -c 300000000 /dev/zero > big.bin").code == 1
    both = pawl("run", "--apply", "--", "sh", "-c", "echo 1 > small; head -c 300000000 /dev/zero > big.bin")
    assert both.code == 0 and (pawl.workspace / "small").exists()


def test_a_conflict_names_the_entry_that_changed_the_file_or_the_user(pawl: Pawl):
    first, second = (pawl.json("run", "--", "sh", "-c", f"echo {text} > new.txt")["kept"] for text in "ab")
    promoted = pawl.json("promote", str(first))["entry"]
    refused = pawl("promote", str(second))
    assert refused.code == 1 and f"entry {promoted} changed 'new.txt' meanwhile" in refused.err
    (pawl.workspace / "new.txt").write_text("mine\n")
    assert "you changed 'new.txt' meanwhile" in pawl("promote", str(second)).err
