"""Models that do not call tools well: measured, remembered, asked once with all the code that they need."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ui.cli.console import Pawl
from ui.cli.projects import Project

FILES = {
    "text.py": (
        "def wrap(text, width):\n    return [text[:width], text[width:]]\n\n\n"
        "def shout(text):\n    return text.lower()\n"
    ),
    "test_text.py": (
        "from text import shout, wrap\n\n\ndef test_wrap():\n    assert wrap('abcd', 2) == ['ab', 'cd']\n\n\n"
        "def test_shout():\n    assert shout('a') == 'A'\n"
    ),
}
RIGHT = [
    {"calls": [{"name": "file_read", "arguments": {"path": "notes/harbour.txt"}}]},
    {"calls": [{"name": "file_search", "arguments": {"query": "heron"}}]},
    {"text": "A grey heron."},
    {"text": '{"fruit": "apple", "count": 3, "colour": "red"}'},
    {
        "calls": [
            {"name": "strict_patch", "arguments": {"path": "cart.py", "old": "total = 1", "new": "total = 0"}},
        ]
    },
]


def script(folder: Path, *answers: dict[str, object], **match: object) -> str:
    turns = [{"answer": answer, **({"match": match} if match else {})} for answer in answers]
    (folder / "script.jsonl").write_text("".join(json.dumps(turn) + "\n" for turn in turns))
    return f"scripted:{folder / 'script.jsonl'}"


def measured(pawl: Pawl, model: str) -> dict:
    return pawl.json("models", "--test", model)


@pytest.mark.spec("E9")
def test_a_model_that_calls_tools_is_given_them_and_one_that_talks_is_asked_once(project: Project, tmp_path: Path):
    pawl = project(FILES)
    good = measured(pawl, script(tmp_path, *RIGHT))
    assert (good["once"], [one["passed"] for one in good["tasks"]]) == (False, [True] * 5)
    shown = pawl.json("models", "--offline", "--model", good["model"])["models"]
    assert shown[0]["once"] is False
    words = {"text": "I would read notes/harbour.txt."}
    said = pawl("models", "--test", script(tmp_path, words, words, words, {"text": "{}"}, words))
    assert "✗ calls a tool: I would read notes/harbour.txt." in said.out and "in one request" in said.out
    assert pawl.json("models", "--offline", "--model", good["model"])["models"][0]["once"] is True


@pytest.mark.spec("B2", "E9")
def test_a_question_is_answered_in_one_request_with_the_code_in_it(project: Project, tmp_path: Path):
    pawl = project(FILES)
    nothing = {"text": "no"}
    measured(pawl, script(tmp_path, *[nothing] * 5))
    answer = {"text": "It cuts a text in two (text.py:2); tested in test_text.py:5."}
    seen = script(tmp_path, answer, tool_regex=r"(?s)def wrap.*|def test_wrap", system="There are no tools")
    told = pawl.json("ask", "--model", seen, "what does wrap do and where is it tested?")
    assert (told["requests"], [one["path"] for one in told["citations"]]) == (1, ["text.py", "test_text.py"])


@pytest.mark.whole
@pytest.mark.spec("B4", "E9")
@pytest.mark.parametrize(
    "answer",
    [
        "text.py\n```python\ndef shout(text):\n    return text.upper()\n```\n",
        "```python\ndef shout(text):\n    return text.upper()\n```",
        f"**text.py**:\n\n```python\n{FILES['text.py'].replace('lower', 'upper')}```",
        "```python text.py\nimport re\n\n\ndef shout(text):\n    return re.sub('$', '', text).upper()\n```",
    ],
    ids=["a function", "without its path", "the whole file", "with an import"],
)
def test_a_change_is_made_from_one_answer_and_verified_like_any_other(project: Project, tmp_path: Path, answer: str):
    pawl = project(FILES)
    measured(pawl, script(tmp_path, *[{"text": "no"}] * 5))
    model = script(tmp_path, {"text": answer}, user="Failing now", system="def shout")
    said = pawl("do", "fix shout so that test_shout passes", "--approve", "never", "--model", model)
    assert said.code == 0 and "verdict   verified" in said.out, said
    text = (pawl.workspace / "text.py").read_text()
    assert ".upper()" in text and "def wrap(text, width):" in text


@pytest.mark.whole
@pytest.mark.spec("C6", "E9")
def test_whoever_plans_or_reviews_with_a_model_that_is_asked_once_has_no_tools_either(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    pawl, settings = project(FILES), tmp_path / "settings.toml"
    settings.write_text('review = "on"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(settings))
    measured(pawl, script(tmp_path, *[{"text": "no"}] * 5))
    change = {"id": 1, "path": "text.py", "action": "edit", "what": "mend shout", "depends_on": []}
    model = script(
        tmp_path,
        {"text": json.dumps({"plan": [change]})},
        {"text": "text.py\n```python\ndef shout(text):\n    return text.upper()\n```\n"},
        {"text": json.dumps({"state": "DONE", "evidence": ["shout"], "remaining": []})},
        {"text": json.dumps({"summary": "read", "findings": [], "missing_tests": [], "confidence": "high"})},
    )
    steps = "".join(f"{number}. look at shout in text.py\n" for number in range(1, 7))
    said = pawl("do", f"fix shout so that test_shout passes:\n{steps}", "--approve", "never", "--model", model)
    assert said.code == 0, said
    asked = [(one["stage"], one["tools"]) for one in pawl.json("requests")["requests"] if one["run"]]
    assert asked == [("plan", []), ("once", []), ("delivery", []), ("qa", [])]
