"""`pawl setup`: what is found on this machine, tried for real, and saved."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from models.provider_socket import provider, whole
from ui.cli.console import Pawl

from pawl.models.providers import builtin
from pawl.settings.config import load
from pawl.settings.settings_writer import save_default_model, save_key
from pawl.ui.cli.parser import is_request

DOCS = Path(__file__).resolve().parents[3] / "docs"
BEFORE = "# mine\nrun_seconds = 5\n\n[models]  # chosen\nslots = {}\n\n[budget]\nturns = 3\n"
EVENTS = b'data: {"choices": [{"delta": {"content": "ready"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'


def models(*names: str) -> list[bytes]:
    return [whole(json.dumps({"data": [{"id": name} for name in names]}).encode())]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who has set nothing up, and on whose machine no server answers."""
    for one in builtin().values():
        for name in (*one.key_env, *one.url_env):
            monkeypatch.delenv(name, raising=False)
        if one.local:
            # What another test or user runs at the usual ports is not met: nobody listens at this one.
            monkeypatch.setenv(one.url_env[0], "http://127.0.0.1:9/v1")
    for name in ("PAWL_CONFIG", "PAWL_MODEL", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def test_a_server_on_this_machine_is_found_tried_and_saved(pawl: Pawl, home: Path, monkeypatch: pytest.MonkeyPatch):
    answer = [whole(EVENTS, content_type="text/event-stream")]
    with provider(models("nomic-embed-text", "qwen3:8b"), answer) as playing:
        monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{playing.port}")
        with pawl.terminal("setup") as terminal:
            terminal.expect("1  ollama/qwen3:8b")
            terminal.expect("which?")
            terminal.type("1\r")
            terminal.expect("ollama/qwen3:8b answered in")
            assert terminal.finish() == 0
            shown = re.sub(r"\d\.\d s", "0.8 s", terminal.text).replace(str(playing.port), "11434")
    block = f"```text\n$ pawl setup\n{shown.replace(str(home), '/home/kim')}```\n"
    assert all(block in (DOCS / page).read_text() for page in ("tutorial.md", "commands/configuration.md")), block
    file = home / ".config/pawl/config.toml"
    assert file.read_text() == '[models]\ndefault = "ollama/qwen3:8b"\n'
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_without_anything_it_says_what_works_and_a_model_that_does_not_answer_is_not_saved(pawl: Pawl, home: Path):
    (home / "models").mkdir()
    said = pawl("setup")
    assert said.code == 1
    assert "no model was found" in said.out and "pawl fix, verify" in said.out
    (home / "models/tiny.gguf").write_bytes(b"GGUF")
    assert [one["models"] for one in pawl.json("setup")["offers"]] == [[f"local:{home}/models/tiny.gguf"]]
    refused = pawl("setup", "--model", f"scripted:{home}/missing.toml")
    assert refused.code == 1 and "missing.toml" in refused.out
    assert not (home / ".config/pawl/config.toml").exists()


def test_the_default_is_written_into_the_file_and_the_rest_of_it_stays(home: Path):
    file = home / ".config/pawl/config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(BEFORE)
    save_default_model(load(), "openai/gpt-5")
    save_default_model(load(), "ollama/qwen3:8b")
    assert file.read_text() == BEFORE.replace("slots", 'default = "ollama/qwen3:8b"\nslots')
    save_key(load(), "OPENAI_API_KEY", "one")
    path = file.parent / ".env"
    assert save_key(load(), "OPENAI_API_KEY", "two") == path
    assert path.read_text() == "OPENAI_API_KEY='two'\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


SECRET_TOOL = """#!/bin/sh
[ "$1" = store ] && { cat > "$HOME/ring.$6"; exit; }
cat "$HOME/ring.$5" 2>/dev/null
"""


@pytest.mark.spec("G4")
def test_a_key_goes_to_the_keyring_of_the_system_and_comes_from_there(
    pawl: Pawl, home: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    program = tmp_path / "bin/secret-tool"
    program.parent.mkdir()
    program.write_text(SECRET_TOOL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{load().search_path}")
    said = save_key(load(), "OPENAI_API_KEY", "sk-of-the-keyring-0123456789")
    assert said is None
    file = home / ".config/pawl/.env"
    assert file.read_text() == "OPENAI_API_KEY='keyring:'\n" and (home / "ring.OPENAI_API_KEY").exists()
    with provider(models("m"), [whole(EVENTS, content_type="text/event-stream")]) as playing:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{playing.port}/v1")
        said = pawl("setup", "--model", "openai/m")
    assert playing.requests[-1].headers["authorization"] == "Bearer sk-of-the-keyring-0123456789", said
    program.write_text("#!/bin/sh\nexit 1\n")
    refused = pawl("ask", "--model", "openai/m", "hello")
    assert refused.code == 41 and "there is no key for 'openai'" in refused.err
    assert save_key(load(), "OPENAI_API_KEY", "two") == file


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["explain this"], True),
        (["explain", "this", "file"], True),
        (["undo", "3"], False),
        (["udno", "3"], False),
        (["frobnicate"], False),
        (["--json", "undo"], False),
    ],
)
def test_words_that_name_no_command_are_a_request(words: list[str], meant: bool):
    assert is_request(words) is meant


@pytest.mark.parametrize(
    ("word", "instead"), [("resume", "pawl -r"), ("login", "pawl setup"), ("commit", "/commit in a session")]
)
def test_a_command_of_another_agent_is_answered_with_pawls(pawl: Pawl, word: str, instead: str):
    said = pawl(word)
    assert said.code == 2 and f"there is no command '{word}'" in said.err and f"use {instead}" in said.err


def test_a_request_without_a_model_says_how_to_find_one_and_leaves_nothing_to_resume(pawl: Pawl, home: Path):
    said = pawl("do", "what is in here?")
    assert said.code == 52 and "find and save one with: pawl setup" in said.err
    assert "resume" not in said.out
