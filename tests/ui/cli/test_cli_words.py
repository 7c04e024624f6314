"""The words of the command line: help that starts at once, wrong words, wrong requests, and no traceback ever."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from ui.cli.console import PATIENCE, PAWL, Pawl

from pawl.core import __version__
from pawl.ui.cli.overview import COMMANDS, overview
from pawl.ui.cli.parser import declared, parser_for

HEAVY = re.compile(
    r"(argparse|rich|sqlite3|json|pathlib|pawl\.core\.(?!version)\w+|pawl\.(app|store|sandbox|workspace))\b"
)


@pytest.mark.parametrize("words", [["--version"], ["--help"], []])
def test_version_and_help_import_next_to_nothing(words: list[str]):
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "pawl", *words], capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert [name for name in sorted(imported) if HEAVY.match(name)] == []
    assert "pawl" in imported


DECLARATIONS = """
import sys
from pawl.ui.cli.overview import COMMANDS
from pawl.ui.cli.parser import parser_for
for name in COMMANDS:
    parser_for(name)
print(*sys.modules)
"""
WORKING = re.compile(
    r"(rich|sqlite3|asyncio|pydantic|prompt_toolkit|httpx|pawl\.(store|sandbox|workspace|models|code)|pawl\.agent\.session)\b"
)


def test_the_options_of_all_commands_are_known_without_loading_what_carries_them_out():
    done = subprocess.run([sys.executable, "-c", DECLARATIONS], capture_output=True, text=True, check=True)
    assert [name for name in sorted(done.stdout.split()) if WORKING.match(name)] == []


def test_the_installed_script_is_the_same_command():
    script = Path(sys.executable).with_name("pawl")
    assert (
        subprocess.run([script, "--version"], capture_output=True, check=True).stdout
        == f"pawl {__version__}\n".encode()
    )


def test_every_command_is_in_the_overview_which_fits_a_small_terminal():
    assert all(declared(name).example for name in COMMANDS)
    assert all(re.search(rf"^  {name} +\S", overview(), re.MULTILINE) for name in COMMANDS)
    assert max(map(len, overview().splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_explains_every_option_and_gives_an_example_that_can_be_read(name: str):
    parser = parser_for(name)
    page = parser.format_help()
    assert COMMANDS[name][1:] in " ".join(page.split())
    assert all(action.help for action in parser._actions)
    for line in declared(name).example.splitlines():
        words = re.findall(r"'[^']*'|\S+", line.split("| ")[-1])
        assert words[:2] == ["pawl", name]
        parser.parse_args([word for word in words[2:] if word != "--"])


@pytest.mark.parametrize("words", [["-h", "history"], ["help"], ["-C", ".", "--help"]])
def test_help_is_found_however_it_is_asked_for(pawl: Pawl, words: list[str]):
    said = pawl(*words)
    assert (said.code, said.out, said.err) == (0, overview(), "")


def test_help_for_a_command_is_found_before_and_after_its_name(pawl: Pawl):
    assert pawl("help", "undo").out == pawl("undo", "--help").out
    assert pawl("undo", "-h").lines[0].startswith("usage: pawl undo ")


WRONG_WORDS = [
    (["histroy"], "pawl: there is no command 'histroy'\n      did you mean 'pawl history'?\n"),
    (["xyzzy"], "pawl: there is no command 'xyzzy'\n      'pawl --help' lists them\n"),
    (["--bogus"], "pawl session: unrecognized arguments: --bogus\n      see 'pawl session --help'\n"),
    (["-C"], "pawl: argument -C: expected one argument\n      see 'pawl --help'\n"),
    (["--json"], "pawl: there is no command\n      'pawl --help' lists them\n"),
    (["history", "--lim", "1"], "pawl history: unrecognized arguments: --lim 1\n      see 'pawl history --help'\n"),
    (["run", "--appl", "--", "true"], "pawl run: unrecognized arguments: --appl\n      see 'pawl run --help'\n"),
    (["run", "--apply", "--discard", "--", "true"], "not allowed with argument --apply"),
    (["history", "--limit", "x"], "invalid int value: 'x'"),
    (["undo", "1", "2"], "unrecognized arguments: 2"),
    (["undo", "--on-conflict", "maybe"], "invalid choice: 'maybe'"),
    (["\x1b[2Jhistory"], "pawl: there is no command '\\x1b[2Jhistory'"),
]

WRONG_REQUESTS = [
    (["run"], "there is no command to run"),
    (["run", "--"], "there is no command to run"),
    (["run", "--seconds", "nan", "--", "true"], "--seconds nan is not above 0 and at most 86400"),
    (["run", "--seconds", "-1", "--", "true"], "--seconds -1 is not above 0 and at most 86400"),
    (["run", "--ask", "--", "true"], "--ask needs a terminal to ask on"),
    (["undo", "7"], "there is no entry 7: the history is empty"),
    (["undo", "99999999999999999999"], "there is no entry 99999999999999999999"),
    (["undo", "-1"], "'-1' is not an entry number"),
    (["undo", "²"], "'²' is not an entry number"),
    (["undo", "r00000000"], "there is no run 'r00000000' with something to undo"),
    (["diff", "x"], "'x' is not an entry number"),
    (["diff"], "nothing was done in this workspace yet"),
    (["promote"], "nothing was done in this workspace yet"),
    (["restore"], "there is no checkpoint yet"),
    (["checkpoint", "--list", "x"], "--list takes no name"),
    (["history", "--limit", "0"], "--limit 0 shows nothing"),
    (["history", "--run", "x"], "there is no run 'x' in this workspace"),
    (["gc", "--days", "-1"], "days and backups cannot be below 0"),
    (["patch"], "expected 'diff --git'"),
    (["patch", "nothing"], "the patch 'nothing' cannot be read: No such file or directory"),
    (["patch", "--old", "x"], "--old and --new need --path"),
    (["patch", "--path", "x"], "--path needs --old and --new, and no patch file"),
    (["history", "-C", "nowhere"], "there is no folder 'nowhere'"),
    (["history", "-C", ""], "-C does not name a folder"),
    (["history", "-C", "README.md"], "'README.md' is not a folder"),
    (["verify", "-C", "/"], "'/' holds your home folder, so it cannot be a workspace"),
]


def test_wrong_words_are_exit_2_with_a_hint_on_stderr(pawl: Pawl):
    ended = pawl.many([words for words, _ in WRONG_WORDS])
    for (words, says), said in zip(WRONG_WORDS, ended, strict=True):
        assert (said.code, said.out) == (2, ""), words
        assert says in said.err
        assert "\x1b" not in said.err
    assert pawl(*WRONG_WORDS[0][0]) == ended[0]


def test_a_wrong_request_is_exit_42_and_the_same_for_people_and_programs(pawl: Pawl):
    requests = [words for words, _ in WRONG_REQUESTS]
    for_people = pawl.many(requests)
    for_programs = pawl.many([["--json", *words] for words in requests])
    for (words, message), said, answer in zip(WRONG_REQUESTS, for_people, for_programs, strict=True):
        body = json.loads(answer.out)
        assert (said.code, said.out, answer.code, answer.err, body["exit_code"]) == (42, "", 42, "", 42), words
        assert message in body["message"]
        assert said.err.startswith(f"pawl: {body['message']}\n"), words
    assert pawl(*requests[0]) == for_people[0]


def test_the_shared_options_may_stand_before_the_command(pawl: Pawl, tmp_path: Path):
    before = pawl("--json", "-C", str(pawl.workspace), "history", cwd=tmp_path)
    assert before == pawl("history", "--json", "-C", str(pawl.workspace), cwd=tmp_path)
    assert before.out == '{"entries": [], "total": 0}\n'


def test_a_home_folder_is_no_workspace(pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    said = pawl("run", "--", "true", cwd=tmp_path)
    assert (said.code, "holds your home folder" in said.err) == (42, True)


def test_a_folder_that_is_gone_is_said(pawl: Pawl, tmp_path: Path):
    gone = tmp_path / "gone"
    gone.mkdir()
    words = ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", *PAWL, "history"]
    done = subprocess.run(words, cwd=gone, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.returncode, done.stderr.splitlines()[0]) == (42, "pawl: the folder you are in is gone")


def test_spaces_and_other_scripts_in_names_are_no_trouble(pawl: Pawl, tmp_path: Path):
    folder = tmp_path / "my project" / "größe 日本"
    folder.mkdir(parents=True)
    said = pawl("run", "--apply", "--", "touch", "a b", "ü", cwd=folder)
    assert said.err == "promoted as entry 1\n  + a b\n  + ü\nundo with: pawl undo 1\n"
    assert pawl("undo", "--file", "ü", cwd=folder).lines[1] == "  - ü"
    assert sorted(path.name for path in folder.iterdir()) == ["a b"]


DEFECT = """
import sys
from pawl import __main__
from pawl.ui.cli import history_commands
def broken(shop, call):
    raise ZeroDivisionError("token=abcdefgh12345678 \\x1b[2J")
history_commands.history = broken
sys.argv = ["pawl", "history", *sys.argv[1:]]
sys.exit(__main__.main())
"""


def test_a_defect_is_one_line_with_the_traceback_in_a_file_of_its_own(pawl: Pawl, state_directory: Path):
    words = [sys.executable, "-c", DEFECT]
    done = subprocess.run(words, cwd=pawl.workspace, capture_output=True, text=True, check=False)
    place = state_directory / "defect.txt"
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "pawl: something unexpected: ZeroDivisionError: token=abcdefgh12345678 \\x1b[2J\n"
        f"      this is a defect of Pawl; please report it with {str(place)!r}\n"
    )
    assert "Traceback" in place.read_text()
    assert "abcdefgh12345678" not in place.read_text()
    assert place.stat().st_mode & 0o777 == 0o600
    asked = subprocess.run([*words, "--json"], cwd=pawl.workspace, capture_output=True, text=True, check=False)
    assert (asked.returncode, asked.stderr, json.loads(asked.stdout)["error"]) == (1, "", "defect")
