"""The tools of a model that works, called in whole runs of `pawl do`; answers read from its events."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ui.cli import projects
from ui.cli.test_cli_do import FILES, RIGHT


def told(
    pawl: projects.Project,
    tmp_path: Path,
    *calls: tuple[str, dict[str, object]],
    says: tuple[str, ...] = ("mended",),
    code: int = 0,
) -> list[str]:
    """The answer to each call of a model that makes them one after the other."""
    answers = [{"text": "", "calls": [{"name": name, "arguments": given}]} for name, given in calls]
    script = tmp_path / "model.jsonl"
    script.write_text(
        "".join(json.dumps({"answer": one}) + "\n" for one in (*answers, *({"text": text} for text in says)))
    )
    words = ("-p", "fix the bug in after", "--approve", "never", "--model", f"scripted:{script}")
    said = pawl(*words, "--output-format", "stream-json")
    assert said.code == code, said
    events = [json.loads(line) for line in said.lines]
    contents = [part for one in events if one["type"] == "user" for part in one["message"]["content"]]
    return [part["content"] for part in contents if part["type"] == "tool_result"]


@pytest.mark.whole
@pytest.mark.spec("A5")
def test_a_model_lists_patches_takes_back_and_tests(project: projects.Project, tmp_path: Path):
    files = {**FILES, "lib/deep/a.py": "", "lib/deep/b.py": "", "lib/c.py": ""}
    broken = {"path": "app.py", "old": "def after(number):\n    return number + 2", "new": "x = 1"}
    mended = {"path": "app.py", "old": "    return number + 2", "new": RIGHT.splitlines()[1]}
    answers = told(
        project(files),
        tmp_path,
        ("list_files", {}),
        ("list_files", {"path": "lib", "depth": 1}),
        ("strict_patch", broken),
        ("revert", {"path": "app.py"}),
        ("file_read", {"path": "app.py"}),
        ("check", {"what": "tests"}),
        ("strict_patch", mended),
        ("check", {"tests": ["test_app.py::test_after"]}),
    )
    assert answers[0] == "app.py\nlib/c.py\nlib/deep/ 2 files\npyproject.toml\ntest_app.py"
    assert answers[1] == "lib/c.py\nlib/deep/ 2 files"
    assert answers[3] == "as in the workspace again: app.py" and "return number + 2" in answers[4]
    assert "1 of 1 failed before any change" in answers[5] and "assert 4 == 3" in answers[5]
    assert answers[7].startswith("tests: pass") and "1 passed" in answers[7]


@pytest.mark.spec("B5")
def test_a_model_deletes_many_lines_by_the_first_of_them_and_runs_all_tests(project: projects.Project, tmp_path: Path):
    unused = "for _ in ():\n" + "".join(f"    print({number})\n" for number in range(28))
    mended = {"path": "app.py", "old": "    return number + 2", "new": RIGHT.splitlines()[1]}
    pawl = project(
        {**FILES, "app.py": f"{unused}\n\n{FILES['app.py']}", "test_more.py": "def test_more():\n    pass\n"}
    )
    answers = told(
        pawl,
        tmp_path,
        ("file_read", {"path": "app.py"}),
        ("strict_patch", {"path": "app.py", "old": "for _ in ():", "new": "", "end": 31}),
        ("strict_patch", mended),
        ("check", {"tests": ["."]}),
        ("check", {}),
    )
    assert answers[1] == "changed app.py: 31 lines; lines 1 to 31, the last of which was ''"
    assert answers[3].startswith("tests: pass") and "2 passed" in answers[3]
    assert answers[4].startswith("syntax: pass") and "tests: pass" in answers[4]
    assert (pawl.workspace / "app.py").read_text() == RIGHT


INSTALLED = {
    "env/pyvenv.cfg": "home = /usr/bin\n",
    "env/lib/other.py": "def after(number):\n    return 'installed'\n",
    "web/node_modules/other/index.js": "export const after = 'installed';\n",
}


@pytest.mark.spec("B5", "B13")
def test_what_is_installed_in_the_workspace_is_neither_listed_nor_found(project: projects.Project, tmp_path: Path):
    mended = {"path": "app.py", "old": "    return number + 2", "new": RIGHT.splitlines()[1]}
    answers = told(
        project({**FILES, **INSTALLED, "web/main.js": "after();\n"}),
        tmp_path,
        ("list_files", {"depth": 3}),
        ("file_search", {"query": "after"}),
        ("file_search", {"query": "installed", "path": "env/lib"}),
        ("strict_patch", mended),
    )
    assert answers[0] == "app.py\npyproject.toml\ntest_app.py\nweb/main.js"
    assert "web/main.js:1" in answers[1] and "installed" not in answers[1]
    # Who asks for what is installed gets it.
    assert answers[2].startswith("env/lib/other.py:2")


def replaced(path: str, target: str, content: str) -> dict[str, object]:
    return {"path": path, "action": "edit", "edit_type": "replace", "target": target, "content": content}


@pytest.mark.whole
@pytest.mark.spec("A7")
def test_documents_change_beside_the_code_and_a_file_without_a_reason_is_asked_about_and_not_sent_again(
    project: projects.Project, tmp_path: Path
):
    pawl = project({**FILES, "CHANGELOG.md": "# Changes\n", "months.py": "LAST = 30\n"})
    changes = [
        replaced("app.py", "number + 2", "number + 1"),
        replaced("CHANGELOG.md", "# Changes\n", "# Changes\n\n- after adds one\n"),
        replaced("months.py", "30", "31"),
        {"path": "docs/after.md", "action": "create", "content": "# after\n"},
    ]
    reads = [("file_read", {"path": path}) for path in ("app.py", "CHANGELOG.md", "months.py")]
    edit = ("change_files", {"justification": "app.py adds one, as test_app.py says", "changes": changes})
    review = '{"summary": "as asked", "findings": [], "missing_tests": [], "confidence": "high"}'
    # The reason comes in words: the edit stands as it was made. A larger change is reviewed.
    answers = told(pawl, tmp_path, *reads, edit, says=("Done.", "months.py: its last day is the 31st.", review))
    assert [line.split()[1] for line in answers[3].splitlines() if "say why" in line] == ["months.py:"]
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert (pawl.workspace / "CHANGELOG.md").read_text() == "# Changes\n\n- after adds one\n"
    assert (pawl.workspace / "docs/after.md").exists() and "31" in (pawl.workspace / "months.py").read_text()


@pytest.mark.spec("B13")
def test_a_search_that_finds_nothing_says_where_it_would_and_the_same_call_again_is_told(
    project: projects.Project, tmp_path: Path
):
    """What kept a small model busy for ten requests: it looked for a function among the names of files."""
    wrong = ("file_search", {"query": "after", "where": "names", "path": "."})
    mended = {"path": "app.py", "old": "    return number + 2", "new": RIGHT.splitlines()[1]}
    first, second, _ = told(project(FILES), tmp_path, wrong, wrong, ("strict_patch", mended))
    assert 'with where="content" it is found:\n' in first and "app.py:1" in first
    assert second.startswith("not executed: the same call failed before") and "app.py:1" in second
