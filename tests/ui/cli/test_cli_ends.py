"""Every way to end without a result says why and what to do next, in `do`, a question, a loop and a session."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ui.cli.projects import RIGHT, WRONG, Project

TEST = "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n"
LOOK = {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "app.py"}}]}
BREAK = {"calls": [{"name": "strict_patch", "arguments": {"path": "app.py", "old": "number + 2", "new": "number + 3"}}]}
SAID = {"text": "It is done."}
ENDS = {
    "cut off": ({"answer": {"text": "One", "stop": "length"}}, (), "cut off at the length limit", "max_output"),
    "empty": ({"answer": {"text": ""}}, (), "gave no answer", "another model"),
    "refused": ({"answer": {"text": "", "stop": "refused"}}, (), "refused to answer", "another model"),
    "stuck": ({"answer": LOOK}, (), "repeated itself and was stopped", "another model"),
    "out of turns": ({"answer": LOOK}, ("--max-turns", "2"), "no turns were left", "allow more with --max-turns N"),
    "out of time": ({"answer": SAID, "delay_ms": 60_000}, ("--seconds", "3"), "time", "--seconds N"),
}


def model(folder: Path, turn: dict[str, object]) -> str:
    (folder / "script.jsonl").write_text(json.dumps({**turn, "times": 0}) + "\n")
    return f"scripted:{folder / 'script.jsonl'}"


@pytest.fixture
def begun(project: Project):
    return project({"app.py": WRONG, "test_app.py": TEST})


@pytest.mark.whole
@pytest.mark.spec("A10")
@pytest.mark.parametrize("end", ENDS)
def test_a_request_and_a_question_say_why_they_ended_and_what_to_do_next(begun, tmp_path: Path, end: str):
    turn, limits, why, then = ENDS[end]
    asks = ("ask", "what does after do?", "--no-cache")
    for words in (("do", "fix after", "--approve", "never"), asks):
        said = begun(*words, *limits, "--model", model(tmp_path, turn))
        told = said.out + said.err
        assert said.code != 0 and why in told, said
        assert then in told or (words is not asks and "say what to do differently" in told), said


@pytest.mark.whole
@pytest.mark.spec("A10")
def test_so_do_a_session_a_loop_and_what_the_checks_or_the_user_refuse(begun, tmp_path: Path):
    stuck = model(tmp_path, {"answer": LOOK})
    said = begun("--model", stuck, stdin=b"what does after do?\nfix after\n")
    assert "ask another model with /model NAME" in said.out + said.err, said
    assert "say what to do differently" in said.out + said.err, said
    loop = ("loop", "fix after", "--no-reflex", "--no-generate", "--simple", "1", "--max-iterations", "1")
    said = begun(*loop, "--model", stuck)
    assert said.code != 0 and "allow more with --max-iterations" in said.out + said.err, said
    wrong = tmp_path / "script.jsonl"
    wrong.write_text(json.dumps({"answer": BREAK}) + "\n" + json.dumps({"answer": SAID, "times": 0}) + "\n")
    said = begun("do", "fix after so that test_after passes", "--approve", "never", "--model", stuck)
    assert said.code == 1 and "verdict   failed" in said.out and "pawl do -c REQUEST" in said.out, said
    right = {**BREAK["calls"][0]["arguments"], "new": RIGHT.split("return ")[1].strip()}
    answers = ({"calls": [{**BREAK["calls"][0], "arguments": right}]}, SAID)
    wrong.write_text("".join(json.dumps({"answer": one}) + "\n" for one in answers))
    run = begun.json("do", "fix after", "--model", stuck, code=4)["run"]
    said = begun("approve", run, "--reject", "not so")
    assert "rejected: not so" in said.out and "pawl do -c REQUEST" in said.out, said
