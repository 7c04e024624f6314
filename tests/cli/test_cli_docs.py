"""The pages say what is so: every command, option, setting and key is named, and the transcripts are played."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest
from cli.console import Pawl
from cli.transcript import SCRIPT, blocks, normal, played, stage

from pawl.app.config import Settings
from pawl.core import errors
from pawl.interfaces.cli.parser import OPTIONS, parser_for

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
SETTINGS = (ROOT / "docs" / "settings.md").read_text()
CONFIG = (ROOT / "src" / "pawl" / "app" / "config.py").read_text()


def section(name: str) -> str:
    """The part of the commands page about one command."""
    found = re.search(rf"^## pawl {name}$.*?(?=^## |\Z)", COMMANDS, re.MULTILINE | re.DOTALL)
    assert found, f"docs/commands.md has no section about pawl {name}"
    return found[0]


@pytest.mark.parametrize("name", OPTIONS)
def test_every_command_and_option_is_documented(name: str):
    assert f"| `pawl {name}" in README
    assert f"[`pawl {name}`](#pawl-{name})" in COMMANDS
    text = section(name)
    for action in parser_for(name)._actions:
        words = [word for word in action.option_strings if word not in ("-h", "--help", "-C", "--json")]
        assert all(re.search(rf"`{word}\b", text) for word in words), words
        if not action.option_strings and isinstance(action.metavar, str) and name != "run":
            assert f"`{action.metavar}`" in text


def test_every_setting_is_documented_with_its_default():
    for setting in fields(Settings):
        default = getattr(Settings(), setting.name)
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        assert f"| `{setting.name}` | `{shown}` |" in SETTINGS


def test_every_variable_that_is_read_is_documented():
    read = set(re.findall(r'env(?:\.get\(|\[)"([A-Z_]+)"|"([A-Z_]+)" not in env|_folder\(env, "([A-Z_]+)"', CONFIG))
    names = {name for found in read for name in found if name}
    assert {"PAWL_CONFIG", "PAWL_STATE", "HOME", "NO_COLOR"} <= names
    assert [name for name in sorted(names) if f"`{name}" not in SETTINGS] == []


def test_every_exit_code_is_documented():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.PawlError)]
    codes = {kind.exit_code for kind in kinds} | {0, 2, 124}
    assert [code for code in sorted(codes) if not re.search(rf"^\| {code} \|", COMMANDS, re.MULTILINE)] == []


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys(inner)


ASKED = {
    "run": "run --apply -- mkdir .vscode x",
    "promote": "promote 2 --allow-protected --dry-run",
    "patch": "patch --path README.md --old hello --new bye",
    "history": "history",
    "diff": "diff",
    "undo": "undo",
    "redo": "redo",
    "checkpoint": "checkpoint --list",
    "restore": "restore --dry-run",
    "doctor": "doctor",
    "gc": "gc",
}


def test_every_key_of_every_json_object_is_documented(pawl: Pawl):
    assert [*ASKED, "fix"] == [*(name for name in OPTIONS if name != "fix"), "fix"]  # tests/fix asks that one
    pawl("checkpoint", "start")
    shared = COMMANDS[: COMMANDS.index("## pawl run")]
    for name, said in zip(ASKED, pawl.many([["--json", *words.split()] for words in ASKED.values()]), strict=True):
        assert said.code == 0, said
        text = shared + section("undo" if name in ("redo", "restore") else name) + section("history")
        unnamed = {key for key in keys(json.loads(said.out)) if f"`{key}`" not in text and f'"{key}"' not in text}
        assert unnamed == set(), name


@pytest.fixture
def full_protection(pawl: Pawl) -> None:
    """Where protection is weaker each run says so, and transcripts have a line more."""
    found = pawl.json("doctor")
    if not (found["confinement"] == "namespaces" and found["overlay"]):
        pytest.skip("the transcripts are of a machine with full protection")


@pytest.mark.usefixtures("full_protection")
def test_the_transcripts_of_the_commands_page_are_what_comes_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    room = tmp_path / "room"
    room.mkdir()
    shop = stage(room)
    monkeypatch.setenv("PATH", f"{room}/bin:{os.defpath}")
    monkeypatch.setenv("PAWL_STATE", str(room / "state"))
    for block in blocks(COMMANDS):
        assert played(block, shop) == block


@pytest.mark.usefixtures("full_protection")
def test_the_demo_runs_and_the_transcript_of_the_readme_is_its_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PAWL", str(SCRIPT))
    done = subprocess.run([ROOT / "scripts" / "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    shown = normal(done.stdout.decode())
    assert done.returncode == 0, shown
    assert shown.endswith("byte for byte, modes included.\n")
    transcript = blocks(README)
    assert len(transcript) == 3
    for block in transcript:
        assert block in shown


def test_the_readme_fits_its_purpose():
    assert "make demo" in README and "make test" in README
    for link in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / link).exists(), link
    assert len(README.splitlines()) < 120
