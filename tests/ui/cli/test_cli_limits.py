"""A limit given is a limit kept: whatever a run waits for when its time is up, it ends and says so."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from ui.cli.projects import SETTINGS, Project

HANGS = "import time\n\ndef test_hangs():\n    time.sleep(900)\n"
GREETS = {"greet.py": "def greet():\n    return 'hi'\n"}
GREETED = "from greet import greet\nimport time\n\ndef test_greet():\n    "
PATCH = {"name": "strict_patch", "arguments": {"path": "greet.py", "old": "'hi'", "new": "'hello'"}}
SLOW = {"name": "run_command", "arguments": {"command": "sleep 900"}}


def turn(text: str, *calls: dict[str, object], delay_ms: int = 0) -> dict[str, object]:
    return {"answer": {"text": text, "calls": list(calls)}, "delay_ms": delay_ms}


CLEAN = ("do", "--seconds", "2", "--approve", "never", "clean up greet.py")
PHASES = {
    "the baseline": ({"test_greet.py": HANGS}, CLEAN, [turn("", PATCH), turn("done")]),
    "the model": ({}, CLEAN, [turn("", PATCH), turn("done", delay_ms=900_000)]),
    "a command of the model's": ({}, CLEAN, [turn("", PATCH), turn("", SLOW), turn("done")]),
    "the verification": (
        {"test_greet.py": f"{GREETED}time.sleep(0 if greet() == 'hi' else 900)\n"},
        CLEAN,
        [turn("", PATCH), turn("done")],
    ),
    "the delivery check": (
        {"test_greet.py": f"{GREETED}assert greet()\n"},
        ("do", "--seconds", "12", "--approve", "never", "greet with hello"),
        [turn("", PATCH), turn("done"), turn("{}", delay_ms=900_000)],
    ),
    "the model of a program": ({}, ("-p", *CLEAN[1:]), [turn("", PATCH), turn("done", delay_ms=900_000)]),
    "a command of the user's": (
        {"wait.py": "import time\ntime.sleep(900)\n"},
        ("do", "--seconds", "2", "--approve", "never", "run wait.py"),
        [],
    ),
    "the reflex": (
        {"test_greet.py": HANGS},
        ("do", "--seconds", "2", "--approve", "never", "make the tests pass"),
        [turn("nobody asks")],
    ),
    "the suite of a fix": ({"test_greet.py": HANGS}, ("fix", "--seconds", "2", "--no-escalate"), []),
    "the answer": ({}, ("ask", "--seconds", "2", "what does greet do?"), [turn("it", delay_ms=900_000)]),
    "an attempt of a loop": (
        {"test_greet.py": f"{GREETED}assert greet() == 'hello'\n"},
        ("loop", "--max-minutes", "0.05", "--approve", "never", "--no-reflex", "--no-generate", "--simple", "1"),
        [turn("", delay_ms=900_000)],
    ),
    "the build": (
        {
            "package.json": '{"name": "app", "scripts": {"build": "sleep 900"}}',
            "test_greet.py": f"{GREETED}assert greet()\n",
        },
        CLEAN,
        [turn("", PATCH), turn("done")],
    ),
    "the dev server": (
        {"manage.py": "import time\n\ntime.sleep(900)\n", "requirements.txt": "django\n"},
        CLEAN,
        [turn("", PATCH), turn("done")],
    ),
}


@pytest.mark.whole
@pytest.mark.parametrize("phase", PHASES)
@pytest.mark.spec("A11")
def test_a_run_ends_when_its_time_is_up(project: Project, tmp_path: Path, phase: str):
    files, words, turns = PHASES[phase]
    pawl = project({**SETTINGS, **GREETS, **files})
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in turns))
    said = pawl(*words, "--model", f"scripted:{script}")
    # What was made and could not be compared with the request any more is unverified.
    assert said.code == 53 or (said.code == 6 and phase == "the delivery check"), said
    assert re.search("the time is up|no time was left|minutes", said.out + said.err)
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


@pytest.mark.whole
@pytest.mark.spec("A11", "G3")
def test_a_run_does_not_wait_for_a_language_server_longer_than_it_may(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    server = tmp_path / "bin" / "gopls"
    server.parent.mkdir()
    server.write_text("#!/bin/sh\nexec sleep 900\n")
    server.chmod(0o755)
    monkeypatch.setenv("PATH", str(server.parent), prepend=":")
    greets = {
        "go.mod": "module greet\n\ngo 1.19\n",
        "greet.go": 'package greet\n\nfunc Greet() string { return "hi" }\n',
    }
    pawl = project(greets)
    patch = {"name": "strict_patch", "arguments": {"path": "greet.go", "old": '"hi"', "new": '"hello"'}}
    asks = {"name": "lsp_diagnostics", "arguments": {"paths": ["greet.go"]}}
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in (turn("", patch), turn("", asks), turn("done"))))
    words = ("do", "--seconds", "3", "--approve", "never", "clean up greet.go")
    said = pawl(*words, "--model", f"scripted:{script}")
    assert said.code == 53, said
    assert "the time is up: 3 s" in said.out
    assert "2 requests" in said.err, said
    assert (pawl.workspace / "greet.go").read_text() == greets["greet.go"]


@pytest.mark.whole
@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop"])
@pytest.mark.spec("A11", "G3")
def test_a_run_does_not_wait_for_a_hook_longer_than_it_may(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, event: str
):
    pawl = project({**SETTINGS, **GREETS, "test_greet.py": f"{GREETED}assert greet()\n"})
    settings = f'[[hooks.{event}]]\nhooks = [{{ type = "command", command = "sleep 900" }}]\n'
    (tmp_path / "settings.toml").write_text(settings)
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in (turn("", PATCH), turn("done"), turn("{}"))))
    said = pawl(*CLEAN, "--model", f"scripted:{script}")
    assert said.code == 53, said
    assert "the time is up: 2 s" in said.out
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


@pytest.mark.whole
@pytest.mark.spec("A11", "G1")
def test_tests_that_are_stopped_by_their_own_limit_leave_a_change_unverified(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl = project({**SETTINGS, **GREETS, "test_greet.py": f"{GREETED}time.sleep(0 if greet() == 'hi' else 900)\n"})
    (tmp_path / "settings.toml").write_text("[verify]\nseconds = 3\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "settings.toml"))
    script = tmp_path / "model.jsonl"
    script.write_text("".join(json.dumps(one) + "\n" for one in (turn("", PATCH), *[turn("done")] * 6)))
    said = pawl("do", "--approve", "never", "clean up greet.py", "--model", f"scripted:{script}")
    assert "verdict   failed" not in said.out, said
    assert said.code in (6, 53), said
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]


@pytest.mark.whole
def test_the_word_on_an_earlier_attempt_is_not_said_of_the_last(project: Project, tmp_path: Path):
    slow = f"{GREETED}assert greet() != 'bad'\n    time.sleep(900 if greet() == 'hello' else 0)\n"
    pawl = project({**SETTINGS, **GREETS, "test_greet.py": slow})
    worse = {"name": "strict_patch", "arguments": {"path": "greet.py", "old": "'hi'", "new": "'bad'"}}
    better = {"name": "strict_patch", "arguments": {"path": "greet.py", "old": "'bad'", "new": "'hello'"}}
    script = tmp_path / "model.jsonl"
    turns = [turn("", worse), turn("done"), turn("", better), turn("now it is")]
    script.write_text("".join(json.dumps(one) + "\n" for one in turns))
    words = ("do", "--json", "--seconds", "20", "--approve", "never", "clean up greet.py")
    said = pawl(*words, "--model", f"scripted:{script}")
    report = json.loads(said.out)
    assert said.code == 53, said
    assert (report["verdict"], report["refused"], report["after"]) == ("unverified", [], None)
    assert report["unproved"] == ["not verified: the time is up: 20 s"]
    assert [(one["state"], one["entry"]) for one in report["task_states"]] == [("failed", report["kept"])]
