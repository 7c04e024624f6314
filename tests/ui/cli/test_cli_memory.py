"""`pawl memory`, and what `pawl ask` makes of what is remembered; through real processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from models.provider_socket import provider, streamed
from models.wire_scripts import Said, openai
from ui.cli.console import Pawl

CANARY = "Zq8vT3xLm2RpW9ydKc5B"
SCRIPT = """
[[turn]]
times = 0
match = { user = "retries", answered = ["file_read"] }
answer = "It is set in app.py:1."
[[turn]]
times = 0
match = { user = "retries" }
answer = { text = "I look.", calls = [{ name = "file_read", arguments = { path = "app.py" } }] }
"""

Script = Callable[..., str]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    def write(text: str = SCRIPT) -> str:
        path = tmp_path / "script.toml"
        path.write_text(text)
        return f"scripted:{path}"

    return write


@pytest.fixture
def asked(pawl: Pawl, monkeypatch: pytest.MonkeyPatch) -> Pawl:
    (pawl.workspace / "app.py").write_text("retries = 3\n")
    (pawl.workspace / "other.py").write_text("x = 1\n")
    monkeypatch.delenv("PAWL_MODEL", raising=False)
    return pawl


@pytest.mark.spec("C14")
def test_what_the_user_adds_is_listed_shown_searched_and_forgotten(pawl: Pawl):
    added, again, _, listed, found, shown, gone, after = pawl.many(
        [
            ("memory", "add", "Tests", "run", "with", "make test."),
            ("memory", "add", "tests run with make test"),
            ("memory", "add", "--tier", "decision", "One file for each command."),
            ("memory", "list"),
            ("memory", "list", "which", "command"),
            ("memory", "show", "1"),
            ("memory", "forget", "1"),
            ("memory", "list"),
        ]
    )
    assert (added.out, again.out) == ("remembered as 1\n", "remembered as 1\n")
    assert [line.split()[0] for line in listed.lines] == ["id", "3", "1"]
    assert [line.split()[0] for line in found.lines] == ["id", "3"] and "decision" in found.out
    assert shown.lines[0] == "tests run with make test" and "fact · from the user" in shown.out
    assert gone.out == "forgot 1: tests run with make test\n"
    assert [line.split()[0] for line in after.lines] == ["id", "3"]


def test_memories_as_json(pawl: Pawl):
    kept = pawl.json("memory", "add", "Tests run with make test.")
    assert {name: kept[name] for name in ("id", "tier", "text", "source", "run")} == {
        "id": 1,
        "tier": "fact",
        "text": "Tests run with make test.",
        "source": "user",
        "run": "",
    }
    assert pawl.json("memory", "list")["memories"] == [kept]
    assert pawl.json("memory", "list", "--tier", "outcome")["memories"] == []
    assert pawl.json("memory", "show", "1") == kept
    assert pawl.json("memory", "forget", "1") == {"forgotten": kept}
    assert pawl.json("memory", "show", "1", code=42)["error"] == "unknown_entry"
    assert pawl.json("memory", "forget", "--all") == {"memories": 0, "answers": 0}


def test_wrong_words_are_refused_with_what_to_say(pawl: Pawl):
    calls = [
        ("memory", "show"),
        ("memory", "show", "x"),
        ("memory", "show", "1", "2"),
        ("memory", "show", "9" * 30),
        ("memory", "list", "--all"),
        ("memory", "show", "1", "--tier", "fact"),
        ("memory", "forget", "1", "--all"),
        ("memory", "add"),
        ("memory", "add", "x" * 401),
        ("memory", "session"),
        ("memory", "session", "c1"),
        ("memory", "session", "c1", "c2"),
    ]
    for words, said in zip(calls, pawl.many(calls), strict=True):
        assert said.code == 42 and said.err.startswith("pawl: "), (words, said)
    assert pawl("memory", "eat").code == 2


def test_without_an_action_the_memories_are_listed(pawl: Pawl):
    pawl("memory", "add", "Prices are rounded late.")
    assert pawl("memory").out == pawl("memory", "list").out != ""


@pytest.mark.spec("C14")
def test_a_secret_that_is_to_be_remembered_is_not(pawl: Pawl, state_directory: Path):
    assert CANARY not in pawl("memory", "add", f"deploys use API_KEY={CANARY} from the vault").out
    assert CANARY not in pawl("memory", "list").out
    assert not any(CANARY.encode() in path.read_bytes() for path in state_directory.rglob("*") if path.is_file())


@pytest.mark.spec("C14")
def test_a_model_is_told_what_is_remembered_and_what_a_trusted_bank_says(
    asked: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked("memory", "add", "Retries are capped at five.")
    bank = asked.workspace / ".pawl" / "memory"
    bank.mkdir(parents=True)
    (bank / "project.md").write_text(f"# Project\n\n## Facts\n\n- Ships on Fridays.\n- token={CANARY}\n")
    monkeypatch.setenv("HERE_API_KEY", "sk-here-0123456789abcdef")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    with provider(*[streamed(*openai(Said("Three.")))] * 2) as server:
        settings = f"""
[models]
default = "here/m"
[providers.here]
wire = "openai"
base_url = "http://127.0.0.1:{server.port}/v1"
key_env = ["HERE_API_KEY"]
"""
        (tmp_path / "config.toml").write_text(settings)
        assert asked("ask", "how many?").code == 0
        (tmp_path / "config.toml").write_text(f'{settings}[trust]\nfolders = ["{asked.workspace}"]\n')
        assert asked("ask", "how many?").code == 0
        first, second = (json.dumps(seen.json) for seen in server.requests)
    assert "Retries are capped at five." in first and "Ships on Fridays." not in first
    assert "Ships on Fridays." in second and CANARY not in second


@pytest.mark.whole
@pytest.mark.spec("B4")
def test_a_question_that_was_answered_is_answered_again_for_nothing_while_its_files_stand(asked: Pawl, script: Script):
    words = ("ask", "--model", script(), "how many retries?")
    first = asked.json(*words)
    assert (first["cached"], first["requests"]) == (False, 2)
    (asked.workspace / "other.py").write_text("x = 2\n")
    again = asked.json(*words[:-1], "how  many retries")
    assert (again["cached"], again["requests"], again["cost_usd"], again["answer"]) == (True, 0, 0.0, first["answer"])
    assert again["citations"] == first["citations"] and again["conversation"] != first["conversation"]
    said = asked(*words)
    assert said.out == "It is set in app.py:1.\n"
    assert "nothing it depends on has changed · $0.00" in said.err and "--no-cache" in said.err
    assert asked.json(*words, "--no-cache")["cached"] is False
    (asked.workspace / "app.py").write_text("retries = 4\n")
    assert asked.json(*words)["cached"] is False
    assert asked.json(*words)["cached"] is True
    assert asked.json("memory", "forget", "--all")["answers"] == 2
    assert asked.json(*words)["cached"] is False


@pytest.mark.spec("B4")
def test_a_conversation_goes_on_after_an_answer_that_was_known(asked: Pawl, script: Script):
    model = script(SCRIPT + '[[turn]]\nmatch = { user = "sure" }\nanswer = "Yes."\n')
    asked("ask", "--model", model, "how many retries?")
    known = asked.json("ask", "--model", model, "how many retries?")
    shown = asked.json("memory", "session")
    assert shown["conversation"] == known["conversation"] and shown["seen"] == ["app.py"] and shown["edits"] == []
    assert shown["exchanges"] == [{"question": "how many retries?", "answer": "It is set in app.py:1."}]
    lines = asked("memory", "session", known["conversation"]).lines
    assert lines[:3] == [
        f"conversation {known['conversation']}",
        "exchanges: 1",
        "  how many retries? → It is set in app.py:1.",
    ]
    on = asked.json("ask", "-c", "--model", model, "are you sure?")
    assert (known["cached"], on["cached"], on["conversation"]) == (True, False, known["conversation"])


@pytest.mark.spec("B4")
@pytest.mark.parametrize(
    "turns",
    [
        SCRIPT.replace("app.py:1", "app.py:99"),  # cites what is not there
        '[[turn]]\ntimes = 0\nanswer = "Three retries, I guess."\n',  # rests on nothing
        SCRIPT.replace("It is set in", f"The password is token={CANARY}, see"),
    ],
)
def test_an_answer_that_cannot_be_relied_on_is_not_kept(asked: Pawl, script: Script, turns: str):
    words = ("ask", "--model", script(turns), "how many retries?")
    assert [asked.json(*words)["cached"] for _ in range(2)] == [False, False]


@pytest.mark.whole
@pytest.mark.spec("B4")
def test_another_model_another_memory_or_another_script_is_asked_anew(asked: Pawl, script: Script, tmp_path: Path):
    words = ("ask", "--model", script(), "how many retries?")
    asked(*words)
    other = tmp_path / "other.toml"
    other.write_text(SCRIPT)
    assert asked.json("ask", "--model", f"scripted:{other}", "how many retries?")["cached"] is False
    script(SCRIPT.replace("It is set", "It stands"))
    assert asked.json(*words)["answer"].startswith("It stands")
    asked("memory", "add", "Retries are capped at five.")
    assert [asked.json(*words)["cached"] for _ in range(2)] == [False, True]
    prompts = Path(os.environ["XDG_CONFIG_HOME"]) / "pawl" / "prompts" / "detail"  # noqa: TID251
    prompts.mkdir(parents=True)
    (prompts / "terse.md").write_text("# Detail: terse\nOne word.\n")
    assert asked.json(*words)["cached"] is False


@pytest.mark.spec("B4")
def test_a_new_file_where_was_searched_makes_an_answer_stale(asked: Pawl, script: Script):
    turns = """
[[turn]]
times = 0
match = { answered = ["file_search"] }
answer = "Only app.py:1 has them."
[[turn]]
times = 0
answer = { calls = [{ name = "file_search", arguments = { query = "retries" } }] }
"""
    words = ("ask", "--model", script(turns), "which files have retries?")
    assert [asked.json(*words)["cached"] for _ in range(2)] == [False, True]
    (asked.workspace / "new.py").write_text("retries = 9\n")
    assert asked.json(*words)["cached"] is False


@pytest.mark.spec("B3")
def test_the_list_says_what_else_is_kept(pawl: Pawl):
    listed = pawl.json("memory", "list")
    assert (listed["answers"], listed["files"], listed["conversations"]) == (0, 0, [])
    script = pawl.workspace.parent / "script.toml"
    script.write_text(
        '[[turn]]\nanswer = { calls = [{ name = "file_read", arguments = { path = "notes.md" } }] }\n'
        '[[turn]]\nanswer = "Of greetings, see notes.md:1."\n'
    )
    (pawl.workspace / "notes.md").write_text("Of greetings.\n")
    assert pawl("ask", "what are the notes about?", "--model", f"scripted:{script}").code == 0
    listed = pawl.json("memory", "list")
    assert (listed["answers"], listed["files"], len(listed["conversations"])) == (1, 1, 1)
    assert "also kept: 1 answer about 1 file, 1 conversation" in pawl("memory", "list").out
