"""`pawl promote` of what an agent made, and the evidence that entries keep."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from ui.cli.projects import RIGHT, SETTINGS, UNITTEST, WRONG, Project

Model = Callable[..., str]
DIGITS = "def digits(number):\n    return len(str(number))\n"
FILES = {
    **SETTINGS,
    "app.py": WRONG,
    "digits.py": DIGITS,
    "test_app.py": "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n",
    "test_digits.py": "from digits import digits\n\n\ndef test_digits():\n    assert digits(120) == 3\n",
}
BROKEN = DIGITS.replace("len(str(number))", "number // 10")


def writes(path: str, text: str) -> dict[str, object]:
    read = {"name": "file_read", "arguments": {"path": path}}
    write = {"name": "file_write", "arguments": {"path": path, "content": text}}
    return {"answer": {"text": "", "calls": [read, write]}}


@pytest.fixture
def model(tmp_path: Path) -> Model:
    def says(*turns: dict[str, object]) -> str:
        done = [{"answer": {"text": "Done."}}] * 40
        (tmp_path / "script.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in (*turns, *done)))
        return f"scripted:{tmp_path / 'script.jsonl'}"

    return says


@pytest.mark.whole
@pytest.mark.spec("A8", "B9")
def test_some_files_of_a_refused_entry_are_promoted_verified_and_can_be_undone(project: Project, model: Model):
    pawl = project(FILES)
    asked = ("do", "--approve", "never", "--model", model(writes("app.py", RIGHT), writes("digits.py", BROKEN)))
    kept = str(pawl.json(*asked, "fix after in app.py", code=1)["kept"])

    unknown = pawl("promote", kept, "--file", "nosuch.py")
    assert unknown.code == 1
    assert f"entry {kept} does not change 'nosuch.py'" in unknown.err and "it changes app.py, digits.py" in unknown.err
    broken = pawl("promote", kept, "--file", "digits.py")
    assert broken.code == 1 and f"entry {kept} does not pass: tests: " in broken.err and "--unchecked" in broken.err
    assert (pawl.workspace / "app.py").read_text() == WRONG

    part = pawl.json("promote", kept, "--file", "app.py")
    assert (part["verdict"], [one["path"] for one in part["changes"]]) == ("verified", ["app.py"])
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert (pawl.workspace / "digits.py").read_text() == DIGITS
    evidence = pawl("show", str(part["entry"]), "--evidence").out
    assert "witness      test_app.py::test_after: failed before" in evidence and "-m pytest" in evidence
    assert pawl.json("promote", kept, "--dry-run")["changes"][0]["path"] == "digits.py", "the rest is there still"
    assert pawl("undo", str(part["entry"])).code == 0
    assert (pawl.workspace / "app.py").read_text() == WRONG


@pytest.mark.whole
def test_a_program_reads_what_became_of_each_part_and_each_entry_keeps_its_own_evidence(project: Project, model: Model):
    pawl = project({**FILES, "app.py": RIGHT})
    turns = (writes("digits.py", DIGITS + "\n\nBASE = 10\n"), {"answer": {"text": "Done."}}, writes("app.py", WRONG))
    form = "Task:\n1. digits.py names its base\n2. app.py counts on\nScope: app.py, digits.py\n"
    said = pawl("-p", "--approve", "never", form, "--model", model(*turns), "--output-format", "stream-json")
    body = json.loads(said.lines[-1])
    assert (said.code, body["type"], body["delivery"], body["verdict"]) == (5, "result", "PARTLY", "verified"), said
    assert [(one["number"], one["state"]) for one in body["task_states"]] == [(1, "done"), (2, "failed")]
    assert "verdict      failed" in pawl("show", str(body["task_states"][1]["entry"]), "--evidence").out
    assert "verdict      verified" in pawl("show", str(body["entry"]), "--evidence").out


@pytest.mark.spec("A8")
def test_what_the_reflex_promotes_or_offers_keeps_its_evidence(project: Project):
    pawl = project({"app.py": WRONG, "test_app.py": UNITTEST})
    said = pawl.json("fix")
    assert (said["verdict"], said["entry"]) == ("verified", 1)
    told = pawl("show", "1", "--evidence").out
    heads = ("verdict      verified", "digest       ", "system       ", "-m unittest", "witness      ", "ran          ")
    assert [head for head in heads if head not in told] == []
    assert pawl.json("show", "1", "--evidence")["evidence"]["checked"]["before"]["seconds"] > 0
    assert "entry 2 keeps no evidence" in pawl("undo", "1").out + pawl("show", "2", "--evidence").err
