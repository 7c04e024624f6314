"""Pawl in a terminal: it asks, waits for the answer that was meant, draws in colour, and survives the terminal."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from world import snapshot

ASKED = "promote to the workspace? [y/N, d for the diff] "


@pytest.mark.spec("F3")
@pytest.mark.parametrize(
    ("answer", "promoted"), [("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("\x04", False)]
)
def test_a_run_shows_its_changes_and_asks_and_only_a_yes_promotes(pawl: Pawl, answer: str, promoted: bool):
    with pawl.terminal("run", "--", "sh", "-c", "printf done; echo x > x") as terminal:
        terminal.expect(ASKED)
        terminal.type(answer)
        assert terminal.finish() == 0
    lines = terminal.text.splitlines()
    assert lines[:4] == ["done", "", "1 change on the bench", "  + x  +1 −0"]
    assert (pawl.workspace / "x").exists() == promoted
    assert lines[-2:] == (
        ["promoted as entry 1", "undo with: pawl undo 1"]
        if promoted
        else ["not promoted, kept as entry 1", "see it with: pawl diff 1     promote it with: pawl promote 1"]
    )


def test_the_diff_is_shown_on_request_and_nonsense_is_asked_again(pawl: Pawl):
    with pawl.terminal("run", "--", "sh", "-c", "echo more >> README.md") as terminal:
        terminal.expect(ASKED)
        terminal.type("what?\n")
        terminal.expect(ASKED)
        terminal.type("d\n")
        terminal.expect("+more")
        terminal.expect(ASKED)
        terminal.type("y\n")
        assert terminal.finish() == 0
    assert (pawl.workspace / "README.md").read_text().endswith("more\n")


def test_a_long_diff_does_not_push_the_question_out_of_sight(pawl: Pawl):
    with pawl.terminal("run", "--", "sh", "-c", "seq 1 5000 > numbers") as terminal:
        terminal.expect(ASKED)
        terminal.type("d\n")
        terminal.expect("… and 4603 more lines")
        terminal.expect(ASKED)
        terminal.type("n\n")
        assert terminal.finish() == 0
    assert "+400" not in terminal.text


@pytest.mark.spec("A15")
@pytest.mark.parametrize(("answer", "promoted"), [("y\n", True), ("\n", False)])
def test_protected_files_are_asked_about_by_themselves(pawl: Pawl, answer: str, promoted: bool):
    with pawl.terminal("run", "--", "sh", "-c", "echo x > x; echo hi > AGENTS.md") as terminal:
        terminal.expect(ASKED)
        terminal.type("y\n")
        terminal.expect("protected, because they configure or execute things")
        terminal.expect("promote these too? [y/N, d for the diff] ")
        terminal.type(answer)
        assert terminal.finish() == 0
    assert (pawl.workspace / "x").exists()
    assert (pawl.workspace / "AGENTS.md").exists() == promoted


def test_a_yes_after_a_failure_is_the_users_own_decision(pawl: Pawl):
    with pawl.terminal("run", "--", "sh", "-c", "echo x > x; exit 3") as terminal:
        terminal.expect("the command failed")
        terminal.expect(ASKED)
        terminal.type("y\n")
        assert terminal.finish() == 3
    assert (pawl.workspace / "x").exists()


def test_nothing_is_asked_when_nothing_changed(pawl: Pawl):
    with pawl.terminal("run", "--", "true") as terminal:
        assert terminal.finish() == 0
    assert terminal.text == "nothing changed\n"


def test_with_its_output_in_a_pipe_it_asks_only_when_told_to(pawl: Pawl):
    with open(os.devnull, "w") as nowhere:
        with pawl.terminal("run", "--", "touch", "x", stdout=nowhere.fileno()) as terminal:
            assert terminal.finish() == 0
        assert terminal.text.startswith("not promoted, kept as entry 1\n")
        with pawl.terminal("run", "--ask", "--", "touch", "x", stdout=nowhere.fileno()) as terminal:
            terminal.expect(ASKED)
            terminal.type("y\n")
            assert terminal.finish() == 0
    assert (pawl.workspace / "x").exists()


@pytest.mark.attack("A44")
def test_what_was_typed_before_the_question_does_not_answer_it(pawl: Pawl):
    flag = pawl.workspace / "flag"
    flag.write_text("wait\n")
    script = 'echo x > x; echo "really? [y/n]"; while read -r word < flag; [ "$word" != go ]; do :; done'
    with pawl.terminal("run", "--", "sh", "-c", script) as terminal:
        terminal.expect("really? [y/n]")
        terminal.type("y\ny\n")
        flag.write_text("go\n")
        terminal.expect(ASKED)
        terminal.type("n\n")
        assert terminal.finish() == 0
    assert "promoted as" not in terminal.text
    assert not (pawl.workspace / "x").exists()


@pytest.mark.spec("F2", "B9")
def test_what_the_user_changes_while_being_asked_stands_and_the_other_version_is_kept(pawl: Pawl):
    readme = pawl.workspace / "README.md"
    with pawl.terminal("run", "--", "sh", "-c", "echo theirs > README.md") as terminal:
        terminal.expect(ASKED)
        readme.write_text("mine\n")
        terminal.type("y\n")
        assert terminal.finish() == 1
    assert readme.read_text() == "mine\n"
    assert "  ! README.md  you changed it meanwhile; your version is kept\n" in terminal.text
    assert "+theirs" in pawl("diff", "1").out


@pytest.mark.spec("F4")
def test_ctrl_c_stops_the_command_and_keeps_what_it_changed(pawl: Pawl):
    with pawl.terminal("run", "--", "sh", "-c", "echo x > x; echo ready; sleep 60") as terminal:
        terminal.expect("ready")
        terminal.type("\x03")
        assert terminal.finish() == 130
    assert terminal.text.splitlines()[-3:] == [
        "not promoted, kept as entry 1",
        "  + x  +1 −0",
        "see it with: pawl diff 1     promote it with: pawl promote 1",
    ]


def test_ctrl_c_at_the_question_keeps_what_the_command_changed(pawl: Pawl):
    with pawl.terminal("run", "--", "sh", "-c", "echo x > x") as terminal:
        terminal.expect(ASKED)
        terminal.type("\x03")
        assert terminal.finish() == 130
    assert "not promoted, kept as entry 1\n" in terminal.text
    assert not (pawl.workspace / "x").exists()


WAITS = "import time\n\nprint('begun', flush=True)\ntime.sleep(900)\n"


@pytest.mark.whole
@pytest.mark.spec("A11", "F4")
@pytest.mark.parametrize(
    ("words", "until"),
    [
        (("do", "run wait.py"), "begun"),
        (("patch", "../six.patch"), "continue? [y/N] "),
        (("fix", "--seconds", "20", "--model", "scripted:../model.jsonl"), "work on what is left"),
        (("setup",), "which?"),
    ],
    ids=["a command of a request", "patch", "fix", "setup"],
)
def test_the_first_ctrl_c_ends_whatever_waits_or_asks(
    pawl: Pawl, active_environment: None, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], until: str
):
    above = pawl.workspace.parent
    if words[0] == "patch":
        pawl.applied("for n in 1 2 3 4 5 6; do echo $n > file$n; done")
        (above / "six.patch").write_bytes(pawl.raw("diff").stdout)
        pawl("undo")
    if words[0] == "setup":
        (above / "models").mkdir()
        (above / "models/tiny.gguf").write_bytes(b"GGUF")
        monkeypatch.setenv("HOME", str(above))
    (pawl.workspace / "wait.py").write_text(WAITS)
    (pawl.workspace / "test_it.py").write_text("def test_it():\n    assert str() == 'no search finds it'\n")
    (above / "model.jsonl").write_text('{"answer": {"text": "so"}}\n')
    before = snapshot(pawl.workspace)
    with pawl.terminal(*words) as terminal:
        terminal.expect(until)
        terminal.type("\x03")
        assert terminal.finish() == 130, terminal.text
    assert snapshot(pawl.workspace) == before


def test_a_terminal_that_is_closed_takes_nothing_with_it(pawl: Pawl):
    with pawl.terminal("run", "--", "sh", "-c", "echo x > x; echo ready; sleep 60") as terminal:
        terminal.expect("ready")
        assert terminal.hang_up() == 129
    assert pawl.json("history", "--all")["entries"][0]["state"] == "captured"


def test_patch_asks_above_the_guardrails_size(pawl: Pawl):
    pawl.applied("for n in 1 2 3 4 5 6; do echo $n > file$n; done")
    (pawl.workspace.parent / "six.patch").write_bytes(pawl.raw("diff").stdout)
    pawl("undo")
    with pawl.terminal("patch", "../six.patch") as terminal:
        terminal.expect("6 files change; the guardrail asks above 5")
        terminal.expect("continue? [y/N] ")
        terminal.type("n\n")
        assert terminal.finish() == 1
    assert not (pawl.workspace / "file1").exists()
    with pawl.terminal("patch", "../six.patch") as terminal:
        terminal.expect("continue? [y/N] ")
        terminal.type("y\n")
        assert terminal.finish() == 0
    assert (pawl.workspace / "file6").exists()


def test_a_patch_is_not_waited_for_at_a_terminal(pawl: Pawl):
    with pawl.terminal("patch", "-") as terminal:
        assert terminal.finish() == 42
    assert terminal.text.startswith("pawl: there is no patch\n")


@pytest.mark.parametrize("columns", [80, 120])
def test_each_row_of_a_table_takes_one_line(pawl: Pawl, columns: int):
    pawl.applied(
        ": a rather long command line that does not fit into any column of any terminal, 日本語 too; touch a b c"
    )
    with pawl.terminal("history", columns=columns) as terminal:
        assert terminal.finish() == 0
    head, row = terminal.text.splitlines()
    assert head.split() == ["id", "when", "what", "state", "paths", "run"]
    assert "…  promoted  3" in row
    assert head.index("state") == row.index("promoted") and len(row) < columns


def test_colour_is_for_terminals_that_want_it(pawl: Pawl, monkeypatch: pytest.MonkeyPatch):
    pawl.applied("echo more >> README.md")
    with pawl.terminal("diff") as terminal:
        terminal.finish()
    assert "\x1b[32m+more\x1b[0m" in terminal.raw
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            with pawl.terminal("diff") as terminal:
                terminal.finish()
        assert "\x1b" not in terminal.raw
        assert "+more" in terminal.raw


def test_colours_of_a_command_stay_and_end_with_it(pawl: Pawl):
    with pawl.terminal("run", "--", "printf", r"\033[31mred") as terminal:
        assert terminal.finish() == 0
    assert "\x1b[31mred\x1b[0m" in terminal.raw
    assert terminal.text == "red\n\nnothing changed\n"


def test_asking_changes_nothing_before_the_answer(pawl: Pawl):
    before = snapshot(pawl.workspace)
    with pawl.terminal("run", "--", "sh", "-c", "rm -r src; echo x > x") as terminal:
        terminal.expect(ASKED)
        assert snapshot(pawl.workspace) == before


@pytest.mark.parametrize(("theme", "colour"), [("dark", "\x1b[2m"), ("light", "\x1b[90m"), ("contrast", "")])
def test_the_theme_chooses_among_the_colours_of_the_terminal(
    pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, theme: str, colour: str
):
    (tmp_path / "themed.toml").write_text(f'[session]\ntheme = "{theme}"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "themed.toml"))
    with pawl.terminal("models", "--offline") as terminal:
        terminal.finish()
        lines = [line for line in terminal.raw.split("\n") if "name one with" in line]
    assert lines and (lines[0].startswith(colour) if theme != "contrast" else "\x1b[2m" not in lines[0]), lines
