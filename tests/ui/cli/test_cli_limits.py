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
    assert said.code == 53, said
    assert re.search("the time is up|no time was left|minutes", said.out + said.err)
    assert (pawl.workspace / "greet.py").read_text() == GREETS["greet.py"]
