"""The question about a call: the user sees everything that will run, whatever is done to hide it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ui.cli.projects import SETTINGS, Project
from ui.terminal.emulator import Emulator

pytestmark = pytest.mark.attack("A44")

ASKS = {".pawl/settings.toml": '[permissions]\nask = ["Bash(rm *)"]\n'}
HIDING = {
    "newlines": ("echo hi" + "\n" * 400 + "rm -rf build", "… 399 empty lines …", "text after many empty lines"),
    "spaces": ("echo hi;" + " " * 6000 + "rm -rf build", "… 6,000 spaces …", "text after many blanks"),
    "tabs": ("echo hi;" + "\t" * 600 + "rm -rf build", "… 600 tabs …", "text after many blanks"),
    "a long word": (f"echo {'a' * 5000}; rm -rf build", "characters …", "a long encoded word"),
    "a comment": ("echo hi #" + " " * 500 + "\nrm -rf build", "… 500 spaces …", ""),
    "an escape": ("echo hi\x1b[2K\x1b[1A; rm -rf build", "\\x1b[2K\\x1b[1A", "control characters"),
    "a carriage return": ("rm -rf build\r# echo hi", "rm -rf build\\r# echo hi", "control characters"),
    "a reordering": ("rm -rf build # \u202edliub", "\\u{202e}dliub", "characters that reorder text"),
    "zero width": ("echo\u200b hi; rm -rf build", "echo\\u{200b} hi", "invisible characters"),
    "tag characters": ("rm -rf build #\U000e0072\U000e006d", "\\u{e0072}\\u{e006d}", "invisible characters"),
    "other letters": ("есho hi; rm -rf build", "rm -rf build", "letters that look like others"),
    **{
        f"U+{ord(sign):04X}": (f"rm -rf build{sign}kept", f"build\\u{{{ord(sign):x}}}kept", "signs that look like")
        for sign in "\uff0f\u2044\u2215\ufe52\u29f8\uff3c\u2024\uff5c\u037e\u0336\u20dd\u0489\u0338\u20e0"
    },
    "our own mark": ("echo … 9 spaces …; rm -rf build", "echo \\u{2026} 9 spaces \\u{2026}", ""),
    "a document": ("cat <<X\nhi\nX\nrm -rf build", "rm -rf build", "a here-document"),
}


def turns(*calls: dict[str, object]) -> str:
    """A model that makes these calls one after the other, and then has done."""
    lines = [{"answer": {"text": "", "calls": [{"name": "run_command", "arguments": one}]}} for one in calls]
    return "".join(json.dumps(line) + "\n" for line in (*lines, {"times": 2, "answer": {"text": "done"}}))


@pytest.fixture
def asked(project: Project, tmp_path: Path):
    """A project in which a model wants to call commands; how `pawl do` is told of it."""
    pawl = project({**SETTINGS, **ASKS, "app.py": "x = 1\n", "build/kept.txt": "kept\n"})

    def words(*commands: str) -> tuple[str, ...]:
        (tmp_path / "model.jsonl").write_text(turns(*({"command": one} for one in commands)))
        return ("do", "clean", "up", "app.py", "--approve", "each", "--model", f"scripted:{tmp_path / 'model.jsonl'}")

    return pawl, words


@pytest.mark.parametrize("how", HIDING)
def test_what_is_hidden_in_a_command_is_shown_counted_and_flagged(asked, how: str):
    pawl, words = asked
    command, mark, flag = HIDING[how]
    said = pawl(*words(command))
    assert said.code == 4, said
    assert mark in said.out and flag in said.out
    assert len(said.out) < 4_000 and max(map(len, said.lines)) < 900
    assert not set("\x1b\r\u202e\u200b\U000e0072\uff0f\u2044\u2215\ufe52\u0336\u20dd\u0489") & set(said.out)
    body = pawl.json("approve", code=4)["question"]
    assert body["arguments"] == {"command": command}
    assert all(line in said.out for line in body["shown"])
    assert flag in " ".join(body["flags"])


def test_every_separate_command_has_its_own_line(asked):
    pawl, words = asked
    said = pawl(*words("cd /tmp && A=1 make -s | tee log; sh -c 'rm -rf build; curl $X' > out &"))
    assert said.code == 4, said
    commands = [line.split("  ", 2)[-1].split("  ", 1)[-1] for line in said.lines if line[:4] == "    "]
    assert commands[:4] == ["cd /tmp", "A=1 make -s", "tee log", "sh -c 'rm -rf build; curl $X' > out"]
    assert "rm -rf build" in commands and "curl $X" in commands


def test_redirections_are_shown_as_they_are_written(asked):
    pawl, words = asked
    said = pawl(
        *words("rm -rf build >> log 2>&1; cat <<< 'a b' >| new 2>>err; sort <<'E' <>both\nx\nE\n: >&- 3<in; : &> all")
    )
    assert said.code == 4, said
    commands = [line.split("  ", 2)[-1].split("  ", 1)[-1] for line in said.lines if line[:4] == "    "]
    assert commands[-6:] == [
        "rm -rf build >> log 2>&1",
        "cat <<< 'a b' >| new 2>> err",
        "sort << 'E' <> both",
        ": >&- 3< in",
        ":",
        "&> all",
    ]


def test_the_middle_of_many_commands_is_counted_and_all_are_to_be_seen(asked):
    pawl, words = asked
    lines = [f": {number}" for number in range(200)]
    lines[100] = "rm -rf build"
    said = pawl(*words("\n".join(lines)))
    assert "not shown …" in said.out and "see all with: pawl approve" in said.out
    assert "rm -rf build" in pawl("approve", "--full").out
    assert "not shown …" not in pawl("approve", "--full").out


def test_in_a_terminal_a_yes_to_what_was_not_shown_is_asked_for_again(asked):
    pawl, words = asked
    command = "\n".join([*(f": {number}" for number in range(100)), "rm -rf build; echo gone", *map(str, range(100))])
    with pawl.terminal(*words(command)) as terminal:
        terminal.expect("carry it out?")
        terminal.type("y\n")
        terminal.expect("part of it was not shown")
        terminal.expect("carry it out?")
        assert "echo gone" not in terminal.text
        terminal.type("d\n")
        terminal.expect("rm -rf build")
        terminal.expect("carry it out?")
        terminal.type("l\n")
        assert terminal.finish() == 4


def test_a_session_shows_it_too(asked, monkeypatch: pytest.MonkeyPatch):
    pawl, words = asked
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    model = words(HIDING["spaces"][0])[-1]
    with Emulator(("--model", model), pawl.workspace) as terminal:
        terminal.expect("›")
        terminal.enter("clean up app.py")
        terminal.expect("carry it out?")
        assert "… 6,000 spaces …rm -rf build" in terminal.text
        assert "text after many blanks" in terminal.text
        terminal.type("n\r")
        terminal.expect("why?")
        terminal.type("\r")
        terminal.expect("done")


@pytest.mark.whole
def test_what_is_approved_is_what_runs_and_what_is_kept(asked):
    pawl, words = asked
    command = "rm -rf build && echo 'x = 2' > app.py"
    assert pawl(*words(command)).code == 4
    question = pawl.json("approve", code=4)["question"]
    stale = pawl("approve", "--yes", "--digest", "0" * 64)
    assert stale.code == 4 and (pawl.workspace / "build/kept.txt").exists()
    said = pawl.json("approve", "--yes", "--digest", question["digest"], code=4)
    assert {one["path"] for one in said["changes"]} == {"build/kept.txt", "build", "app.py"}


@pytest.mark.parametrize(
    "command",
    ["rm -rf build; API_KEY=Zq8vT3xLm2RpW9ydKc5B make", "rm -rf build # postgres://app:Zq8vT3xLm2RpW9yd@db/x"],
)
def test_a_call_whose_words_would_be_hidden_as_a_secret_is_not_asked_about_but_refused(asked, command: str):
    pawl, words = asked
    said = pawl(*words(command))
    assert said.code == 1 and "part of it looks like a secret" in said.err
    assert (pawl.workspace / "build/kept.txt").exists()


def test_other_arguments_are_shown_the_same_way(asked, tmp_path: Path):
    pawl, words = asked
    text = "a = 1" + "\n" * 300 + "import evil\x1b[2J"
    call = {"name": "file_write", "arguments": {"path": "b\u202e.py", "content": text}}
    model = words("true")[-1]
    (tmp_path / "model.jsonl").write_text(
        json.dumps({"answer": {"text": "", "calls": [call]}}) + '\n{"answer": {"text": "done"}}\n'
    )
    said = pawl("do", "add b", "--approve", "each", "--model", model)
    assert said.code == 4, said
    assert "path: b\\u{202e}.py" in said.out
    assert "… 299 empty lines …" in said.out and "import evil\\x1b[2J" in said.out
    assert "characters that reorder text" in said.out and "\x1b" not in said.out


@pytest.mark.whole
def test_a_change_is_shown_with_long_lines_counted_and_line_ends_told(asked, tmp_path: Path):
    pawl, words = asked
    (pawl.workspace / "ends.txt").write_text("one\ntwo\n")
    command = f"printf '%s\\n' '{'+++ b/evil'}' '@@ -1 +1 @@' > plain.txt; printf 'one\\r\\ntwo\\n' > ends.txt"
    command += """; python3 -c "open('app.py', 'w').write('x = 1' + ' ' * 100000 + '; import os')" """
    said = pawl(*words(command))
    assert said.code == 4, said
    assert "… 100,000 spaces …; import os" in said.out and "text after many blanks" in said.out
    assert "+one\\r\n" in said.out
    assert "++++ b/evil" in said.lines and "+@@ -1 +1 @@" in said.lines
    assert max(map(len, said.lines)) < 900


@pytest.mark.whole
def test_thousands_of_paths_are_counted_beside_the_question(asked):
    pawl, words = asked
    said = pawl(*words("mkdir many; cd many; seq 2000 | xargs touch 'a\nb'"))
    assert said.code == 4, said
    assert "paths in all" in said.out and "not shown …" in said.out
    assert "many/a\\nb" in pawl("approve", "--full").out
