"""The first start in an empty home: each way to a model is found, chosen, tried, saved, and answers."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from models import local_stand_in
from models.local_files import model_file
from models.provider_socket import Connection, provider
from ui.cli.test_cli_setup import EVENTS, SECRET_TOOL, home, models, whole
from ui.terminal.conftest import Place
from ui.terminal.emulator import Emulator

from pawl.models.providers import builtin
from pawl.settings.config import load

__all__ = ["home"]

SERVERS = {"llamacpp": 8080, "vllm": 8000, "lmstudio": 1234, "ollama": 11434}
"""The ports at which these listen."""
KEY = "OPENAI_API_KEY=sk-first-start-0123456789\n"
PAGE = (Path(__file__).resolve().parents[3] / "docs/first-start.md").read_text()
WAITING = """import time
from pathlib import Path


def test_it_ends():
    while Path("flag").read_text() != "go\\n":
        time.sleep(0.05)
"""
SAME = (
    (re.compile(r"in [\d.]+ s$", re.MULTILINE), "in 0.8 s"),
    (re.compile(r"\d+ tokens in"), "564 tokens in"),  # the request tells the model where it works
    (re.compile(r" · [\d.]+ s · run r[0-9a-f]{8}"), " · 1.2 s · run r4f1c09ab"),
    (re.compile(r"conversation-c?[0-9a-f]+"), "conversation-c0ffee12"),
)


def is_on_the_page(shown: str, *replaced: tuple[str, str]) -> None:
    """The session as somebody sees it, in another folder, at another time and with the usual ports."""
    for old, new in replaced:
        shown = shown.replace(old, new)
    for pattern, instead in SAME:
        shown = pattern.sub(instead, shown)
    start = shown.index("pawl 0.")
    told = "\n".join(line.rstrip() for line in shown[start:].strip().split("\n"))
    assert f"\n{told}\n" in PAGE, told


@pytest.fixture
def shop(place: Place, home: Path) -> Place:
    """The project in the home, so that its name on the screen is as short wherever the tests run."""
    place.workspace = place.workspace.rename(home / "shop")
    return place


def answer(connection: Connection) -> None:
    """The list of models, or the answer of one. What cannot talk comes first in it, as at a real provider."""
    if connection.provider.requests[-1].target.endswith("/models"):
        connection.send(models("text-embedding-3", "dall-e-3", "small")[0])
    else:
        connection.send(whole(EVENTS, content_type="text/event-stream"))


def asks(seen: Emulator) -> None:
    """Asks the model that was chosen, and leaves."""
    seen.enter("is it ready?")
    seen.expect("1 request")
    seen.leave()


@pytest.mark.parametrize(("name", "port"), SERVERS.items())
def test_servers_are_looked_for_where_they_listen(name: str, port: int):
    assert builtin()[name].address({}) == f"http://127.0.0.1:{port}/v1"


@pytest.mark.parametrize("way", ["key", "env file", "env file of the folder", *SERVERS])
def test_a_model_is_found_tried_saved_and_answers(way: str, shop: Place, home: Path, monkeypatch: pytest.MonkeyPatch):
    with provider(*[[answer]] * 30) as playing:
        (variable, *_) = builtin()[way if way in SERVERS else "openai"].url_env
        monkeypatch.setenv(variable, f"http://127.0.0.1:{playing.port}/v1")
        if way == "key":
            monkeypatch.setenv("OPENAI_API_KEY", KEY.strip().partition("=")[2])
        elif way == "env file":
            (home / ".config/pawl").mkdir(parents=True)
            (home / ".config/pawl/.env").write_text(KEY)
        elif way == "env file of the folder":
            (shop.workspace / ".env").write_text(KEY)
        name = f"{way if way in SERVERS else 'openai'}/small"
        with shop.open("--mode", "chat", columns=100) as seen:
            seen.expect("no model is configured")
            if way.endswith("folder"):
                seen.expect("1  save this key for yourself, and use openai")
                seen.expect("which?")
                seen.type("1\r")
                seen.expect("OPENAI_API_KEY is saved in")
            seen.expect(f"1  {name}")
            seen.expect("which?", times=2 if way.endswith("folder") else 1)
            seen.type("1\r")
            seen.expect(f"✓ {name} answered in")
            seen.expect("it is the default from now on")
            asks(seen)
        listens = f"127.0.0.1:{SERVERS.get(way, playing.port)}"
        is_on_the_page(seen.text, (f"127.0.0.1:{playing.port}", listens))
    assert (home / ".config/pawl/config.toml").read_text() == f'[models]\ndefault = "{name}"\n'


@pytest.mark.parametrize("ring", [False, True])
def test_a_key_is_entered_in_the_session_and_shown_and_kept_nowhere_else(
    shop: Place, home: Path, monkeypatch: pytest.MonkeyPatch, state_directory: Path, *, ring: bool
):
    key = KEY.strip().partition("=")[2]
    if ring:
        program = home.parent / "bin/secret-tool"
        program.parent.mkdir()
        program.write_text(SECRET_TOOL)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{load().search_path}")
    with provider(*[[answer]] * 30) as playing:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{playing.port}/v1")
        with shop.open("--mode", "chat", columns=100) as seen:
            seen.expect("no model was found")
            seen.expect("which?")
            seen.type("k\r")
            seen.expect("which provider?")
            seen.type("openai\r")
            seen.expect("OPENAI_API_KEY (it is not shown):")
            seen.type(f"{key}\r")
            seen.expect("OPENAI_API_KEY is saved in" + (" the keyring of this system" if ring else ""))
            seen.expect("1  openai/small")
            seen.expect("which?", times=2)
            seen.type("1\r")
            seen.expect("it is the default from now on")
            asks(seen)
    assert playing.requests[-1].headers["authorization"] == f"Bearer {key}"
    if not ring:
        is_on_the_page(seen.text)
    assert key not in seen.text
    kept = b"".join(one.read_bytes() for one in state_directory.rglob("*") if one.is_file())
    assert key.encode() not in kept and (key in (home / ".config/pawl/.env").read_text()) is not ring
    assert (home / ".config/pawl/config.toml").read_text() == '[models]\ndefault = "openai/small"\n'


def test_a_file_on_this_machine_is_found_loaded_and_saved(
    shop: Place, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    library = tmp_path / "library"
    library.mkdir()
    shutil.copy(local_stand_in.__file__, library / "xllamacpp.py")
    monkeypatch.setenv("PYTHONPATH", str(library))
    (home / "models").mkdir()
    name = f"local:{model_file(home / 'models' / 'tiny.gguf')}"
    with shop.open("--mode", "chat", columns=300) as seen:
        seen.expect("GGUF files in your home folder")
        seen.expect("which?")
        seen.type("1\r")
        seen.expect(f"✓ {name} answered in")
        seen.expect("it is the default from now on")
        seen.leave()
    is_on_the_page(seen.text, (str(home), "/home/kim"))
    assert name in (home / ".config/pawl/config.toml").read_text()


def test_without_any_model_the_session_says_what_works_and_that_works(shop: Place, home: Path):
    with shop.open(columns=100) as seen:
        seen.expect("no model was found")
        seen.expect("which?")
        seen.type("\r")
        seen.expect_status("no model")
        seen.enter("!ls")
        seen.expect("exit 0")
        seen.leave()
    is_on_the_page(re.sub(r"exit 0, [\d.]+ s", "exit 0, 0.1 s", seen.text))


def test_what_is_typed_while_the_tests_run_without_a_model_follows_them(shop: Place, home: Path):
    (shop.workspace / "flag").write_text("wait\n")
    (shop.workspace / "test_app.py").write_text(WAITING)
    with shop.open(columns=100) as seen:
        seen.expect("which?")
        seen.type("\r")
        seen.enter("run the tests")
        seen.expect_status("Enter queue, Esc stop")
        seen.type("what can you do?\r")
        seen.expect("queued; 1 to follow")
        (shop.workspace / "flag").write_text("go\n")
        seen.expect("1 passed")
        seen.expect("Pawl changes code on a bench")
        seen.leave()
    assert "the model" not in seen.text.partition("run the tests")[2]
