"""`pawl ask`: a question, answered by a model that may only read; through real processes and real sockets."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from models.provider_socket import PATIENCE, chunk, head, hold, provider, refusal, streamed
from models.wire_scripts import Said, anthropic, gemini, openai
from ui.cli.console import PAWL, Pawl

CANARY = "sk-canary-9f8e7d6c5b4a39281706"
SCRIPT = """
[[turn]]
answer = { text = "I look.", calls = [{ name = "file_read", arguments = { path = "app.py" } }] }
[[turn]]
match = { tool = "retries = 3" }
answer = "The number of retries is set in app.py:1."
"""

MISSING = """
[[turn]]
answer = { calls = [{ name = "file_read", arguments = { path = "gone.py" } }] }
[[turn]]
answer = "It is not there."
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
    for name in ("OPENAI_API_KEY", "PAWL_MODEL"):
        monkeypatch.delenv(name, raising=False)
    return pawl


@pytest.fixture
def configured(asked: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writes the user's settings."""

    def write(text: str) -> None:
        path = tmp_path / "config.toml"
        path.write_text(text)
        monkeypatch.setenv("PAWL_CONFIG", str(path))

    return write


def server(port: int, wire: str = "openai") -> str:
    suffix = "/v1" if wire == "openai" else ""
    return f"""
[models]
default = "here/m"
[providers.here]
wire = "{wire}"
base_url = "http://127.0.0.1:{port}{suffix}"
key_env = ["HERE_API_KEY"]
"""


@pytest.mark.spec("C3", "C15")
def test_a_question_is_answered_from_the_files_with_its_cost_aside(asked: Pawl, script: Script):
    said = asked("ask", "--model", script(), "how", "many", "retries?")
    assert said.code == 0, said
    assert said.out == "I look.\nThe number of retries is set in app.py:1.\n"
    assert "· file_read app.py" in said.err and "2 requests" in said.err and "$0.00" in said.err


def test_the_answer_as_json_names_model_cost_and_what_it_cites(asked: Pawl, script: Script):
    body = asked.json("ask", "--model", script(), "how many retries?")
    assert body["answer"] == "The number of retries is set in app.py:1."
    assert (body["ended"], body["requests"], body["cost_usd"]) == ("answered", 2, 0.0)
    assert body["citations"] == [{"path": "app.py", "line": 1, "holds": True}]


def test_an_answer_that_cites_what_is_not_there_is_marked(asked: Pawl, script: Script):
    said = asked("ask", "--model", script('[[turn]]\nanswer = "It is in app.py:99 and gone.py:1."'), "where?")
    assert "cites what does not exist: app.py:99, gone.py:1" in said.err


@pytest.mark.spec("C1")
def test_asking_changes_nothing_whatever_the_model_wants(asked: Pawl, script: Script):
    hostile = """
    [[turn]]
    answer = { calls = [
        { name = "file_write", arguments = { path = "app.py", content = "gone" } },
        { name = "run_command", arguments = { command = "rm app.py" } },
        { name = "file_read", arguments = { path = "../../etc/passwd" } },
        { name = "file_read", arguments = { path = ".env" } },
    ] }
    [[turn]]
    answer = "Nothing worked."
    """
    (asked.workspace / ".env").write_text(f"KEY={CANARY}\n")
    said = asked("ask", "--model", script(hostile), "go")
    assert said.code == 0 and said.out == "Nothing worked.\n"
    assert (asked.workspace / "app.py").read_text() == "retries = 3\n"
    assert said.err.count("✗") == 4
    assert "  ✗ there is no" in asked("ask", "--no-cache", "--model", script(MISSING), "what?").err


def test_what_is_piped_goes_with_the_question(asked: Pawl, script: Script):
    turns = '[[turn]]\nmatch = { user = "<stdin>\\nthe piped text" }\nanswer = "Seen."'
    assert asked("ask", "--model", script(turns), "is it right?", stdin=b"the piped text").out == "Seen.\n"


def test_a_conversation_is_gone_on_with(asked: Pawl, script: Script):
    turns = """
    [[turn]]
    match = { user = "first" }
    answer = "One."
    [[turn]]
    match = { user = "second" }
    answer = "Two."
    """
    model = script(turns)
    first = asked.json("ask", "--model", model, "the first")
    second = asked.json("ask", "-c", "--model", model, "the second")
    assert second["conversation"] == first["conversation"]
    assert asked.json("ask", "--conversation", "c-none", "--model", model, "x", code=42)["error"] == "unknown_entry"


def test_without_a_model_it_says_what_to_configure(asked: Pawl):
    said = asked("ask", "hello")
    assert said.code == 52
    assert "no model is configured" in said.err and "--model" in said.err


@pytest.mark.spec("E9")
def test_a_key_that_is_not_set_is_named_with_where_to_get_one(asked: Pawl):
    said = asked("ask", "--model", "openai/gpt-5", "hello")
    assert said.code == 41
    assert "OPENAI_API_KEY" in said.err


def test_an_empty_question_is_refused(asked: Pawl, script: Script):
    assert asked("ask", "--model", script(), "  ").code == 42


@pytest.mark.parametrize("words", [("--max-budget-usd", "cheap"), ("--max-turns", "0"), ("--max-tokens", "-1")])
def test_a_wrong_limit_is_refused_with_its_name(asked: Pawl, script: Script, words: tuple[str, str]):
    said = asked("ask", "--model", script(), *words, "hello")
    assert said.code == 42 and words[0] in said.err


@pytest.mark.spec("E9", "E6")
@pytest.mark.parametrize("wire", [openai, anthropic, gemini], ids=["openai", "anthropic", "gemini"])
def test_a_conversation_over_each_wire_format_is_the_same(asked: Pawl, configured, monkeypatch, wire):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    read = Said(text=("I look.",), calls=(("t1", "file_read", '{"path": "app.py"}'),), stop="calls")
    done = Said(text=("Three ", "(app.py:1)."))
    with provider(streamed(*wire(read)), streamed(*wire(done, answer_id="second"))) as playing:
        configured(server(playing.port, wire.__name__) + '[prices."here/*"]\ninput = 1\noutput = 2\n')
        body = asked.json("ask", "how many retries?")
    assert body["answer"] == "Three (app.py:1)."
    assert body["usage"] == {"input_tokens": 200, "output_tokens": 40, "cached_tokens": 80, "estimated": False}
    assert body["cost_usd"] == pytest.approx(280e-6)
    assert b"retries = 3" in playing.requests[1].body


@pytest.mark.spec("E6", "E9")
def test_what_is_told_as_the_cost_has_in_it_the_model_that_another_took_over_from(asked: Pawl, configured, tmp_path):
    first, other = tmp_path / "first.toml", tmp_path / "other.toml"
    first.write_text('[[turn]]\nanswer = "four"\nfault = "overloaded"\n')
    other.write_text('[[turn]]\n[turn.answer]\ntext = "Three."\nusage = { input = 10, output = 5 }\n')
    configured(
        f'[models]\ndefault = "scripted:{first}"\n[models.fallbacks]\n"scripted:{first}" = ["scripted:{other}"]\n'
        '[prices."scripted:*"]\ninput = 0\noutput = 1000000\n'
    )
    body = asked.json("ask", "how many retries?")
    assert (body["answer"], body["cost_usd"]) == ("Three.", 6)
    assert [one["to"] for one in body["fell_back"]] == [f"scripted:{other}"]
    assert (body["model"], body["asked_model"]) == (f"scripted:{other}", f"scripted:{first}")


@pytest.mark.spec("E6")
def test_a_request_that_could_cost_too_much_is_never_sent(asked: Pawl, configured, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    with provider() as playing:
        configured(server(playing.port) + '[prices."here/*"]\ninput = 100\noutput = 100\n')
        said = asked("ask", "--max-budget-usd", "0.01", "hello")
    assert said.code == 54 and "$0.01" in said.err
    assert playing.requests == []


@pytest.mark.whole
@pytest.mark.spec("B13")
def test_a_secret_reaches_neither_the_model_nor_the_store(asked: Pawl, configured, state_directory, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    (asked.workspace / "settings.py").write_text(f'API_KEY = "{CANARY}"\npassword = "hunter2-very-secret"\n')
    read = Said(calls=(("t1", "file_read", '{"path": "settings.py"}'),), stop="calls")
    leaky = Said(text=(f"The key is {CANARY[:12]}", f"{CANARY[12:]}."))
    with provider(streamed(*openai(read)), streamed(*openai(leaky, answer_id="second"))) as playing:
        configured(server(playing.port))
        asked("ask", f"what is {CANARY}?")
    sent = b"".join(request.body for request in playing.requests)
    assert CANARY.encode() not in sent and b"hunter2" not in sent
    kept = b"".join(path.read_bytes() for path in state_directory.rglob("*") if path.is_file())
    assert CANARY.encode() not in kept and b"hunter2" not in kept
    assert playing.requests[0].headers["authorization"] == f"Bearer {CANARY}"


@pytest.mark.spec("E9")
def test_a_key_comes_from_the_users_env_file_and_not_from_the_workspace(asked: Pawl, configured, tmp_path):
    with provider(streamed(*openai(Said(text=("Hi.",))))) as playing:
        configured(server(playing.port))
        (asked.workspace / ".env").write_text(f"HERE_API_KEY={CANARY}\n")
        assert asked("ask", "hello").code == 41
        (tmp_path / ".env").write_text("HERE_API_KEY=sk-of-the-user-0123456789\n")
        assert asked("ask", "hello").out == "Hi.\n"
    assert playing.requests[0].headers["authorization"] == "Bearer sk-of-the-user-0123456789"


@pytest.mark.spec("E9")
def test_what_configures_nothing_without_trust_is_said_once_with_the_command_that_trusts(asked: Pawl, script: Script):
    (asked.workspace / ".env").write_text(f"OPENAI_API_KEY={CANARY}\n")
    (asked.workspace / ".pawl").mkdir()
    (asked.workspace / ".pawl" / "intents.toml").write_text("")
    told = "is not trusted: .pawl/intents.toml, the keys in .env; trust it with: pawl trust"
    first, second = (asked("ask", "--model", script(), question) for question in ("how many retries?", "and why?"))
    assert told in " ".join(first.err.split()) and "trust" not in second.err
    refused = asked("ask", "--model", "openai/gpt-5", "hello")
    assert (refused.code, "'pawl trust' lets the keys in .env be read" in " ".join(refused.err.split())) == (41, True)


@pytest.mark.spec("E9")
def test_a_trusted_workspace_may_bring_its_key(asked: Pawl, configured):
    with provider(streamed(*openai(Said(text=("Hi.",))))) as playing:
        configured(server(playing.port) + f'[trust]\nfolders = ["{asked.workspace}"]\n')
        (asked.workspace / ".env").write_text(f"HERE_API_KEY={CANARY}\n")
        assert asked("ask", "hello").out == "Hi.\n"
    assert playing.requests[0].headers["authorization"] == f"Bearer {CANARY}"


@pytest.mark.fault("P33")
def test_an_interrupt_stops_the_request_and_leaves_nothing_behind(asked: Pawl, configured, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    first = openai(Said(text=("It begins",)), is_done=False)[:2]
    begun = threading.Event()
    with provider([head(), *(chunk(piece) for piece in first), lambda _: begun.set(), hold]) as playing:
        configured(server(playing.port))
        words = [*PAWL, "ask", "hello"]
        with subprocess.Popen(words, cwd=asked.workspace, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert begun.wait(PATIENCE)
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=PATIENCE)
        assert process.returncode == 130
        assert playing.gone.wait(PATIENCE)


@pytest.mark.spec("B13")
def test_what_is_recorded_replays_to_the_same_answer(asked: Pawl, script: Script, tmp_path: Path):
    recorded = tmp_path / "recorded.jsonl"
    first = asked.json("ask", "--model", script(), "--record", str(recorded), "how many retries?")
    again = asked.json("ask", "--model", f"scripted:{recorded}", "how many retries?")
    assert again["answer"] == first["answer"]
    assert all(json.loads(line) for line in recorded.read_text().splitlines())


def test_a_file_that_the_question_names_is_read_before_the_model_is_asked(asked: Pawl, script: Script):
    turns = '[[turn]]\nmatch = { tool = "retries = 3" }\nanswer = "Three (app.py:1)."'
    body = asked.json("ask", "--model", script(turns), "how many retries are set in app.py?")
    assert (body["answer"], body["requests"]) == ("Three (app.py:1).", 1)


def test_one_turn_is_one_request(asked: Pawl, script: Script):
    turns = '[[turn]]\nmatch = { system = "Stage: final" }\nanswer = "I do not know."'
    body = asked.json("ask", "--model", script(turns), "--max-turns", "1", "where is it?", code=53)
    assert (body["requests"], body["ended"]) == (1, "out_of_turns")


@pytest.mark.attack("A44")
def test_what_a_model_says_cannot_rewrite_what_the_terminal_shows(asked: Pawl, script: Script):
    turns = '[[turn]]\nanswer = "It deletes it.\\rIt is harmless. \\u001b[8mhidden\\u001b[1A\\b\\r\\nThe end."'
    with asked.terminal("ask", "--model", script(turns), "what?") as terminal:
        assert terminal.finish() == 0, terminal.text
    assert "It deletes it.\\rIt is harmless. \\x1b[8mhidden\\x1b[1A\\x08 The end.\n" in terminal.text


def test_an_answer_without_words_is_no_success(asked: Pawl, script: Script):
    model = script('[[turn]]\ntimes = 0\nanswer = " "')
    said = asked("ask", "--model", model, "where is it?")
    assert said.code == 1 and "gave no answer" in said.err
    body = asked.json("ask", "--model", model, "where is it?", code=1)
    assert (body["ended"], body["answer"], body["requests"]) == ("empty", "", 3)
    assert asked("ask", "-c", "--model", model, "and now?").code == 42


def test_a_model_that_reads_little_is_never_sent_more_than_it_can_read(asked: Pawl, configured, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    (asked.workspace / "long.py").write_text("a line of the long file\n" * 1500)
    read = Said(calls=(("t1", "file_read", '{"path": "long.py"}'),), stop="calls")
    with provider(
        streamed(*openai(read)), streamed(*openai(Said(text=("Long (long.py:1).",)), answer_id="second"))
    ) as playing:
        configured(server(playing.port) + '[models."here/*"]\ncontext = 8192\n')
        assert asked("ask", "is it long?").out == "Long (long.py:1).\n"
    sent = [json.loads(request.body) for request in playing.requests]
    assert [len(json.dumps(body["messages"])) / 4 + body["max_tokens"] < 8192 for body in sent] == [True, True]
    assert "a line of the long file" in str(sent[1])


def test_a_server_that_writes_on_past_the_length_that_was_asked_for_is_left(asked: Pawl, configured, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    endless = streamed(*openai(Said(text=("and on ",) * 20_000)))
    with provider(endless) as playing:
        configured(server(playing.port) + "[sampling]\nmax_output = 50\n")
        said = asked("ask", "how long?")
    assert (said.code, "cut off at the length limit" in said.err) == (1, True)
    assert len(said.out) < 1_100 < len("and on " * 20_000)


def test_a_retry_says_what_is_lost_only_when_something_was_said(asked: Pawl, configured, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    busy = refusal("503 Service Unavailable", {"error": "busy"}, "retry-after: 0")
    with provider(busy, streamed(*openai(Said(text=("Here.",))))) as playing:
        configured(server(playing.port))
        said = asked("ask", "anybody?")
    assert said.out == "Here.\n" and "does not count" not in said.err
    assert re.search(r"trying again in \d+\.\d s\n", said.err), said.err


def test_a_server_that_sends_pawl_elsewhere_is_told_with_the_whole_address(asked: Pawl, configured, monkeypatch):
    monkeypatch.setenv("HERE_API_KEY", CANARY)
    moved = refusal(
        "308 Permanent Redirect", {}, f"location: https://me:{CANARY}@new.example:8443/v2/chat?key={CANARY}"
    )
    with provider(moved) as playing:
        configured(server(playing.port))
        said = asked("ask", "anybody?")
    assert "'https://new.example:8443/v2/chat'" in said.err and CANARY not in said.err
