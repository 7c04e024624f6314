"""A bench is a place to work: a model commits, stashes and deletes there, and the user's repository stays as it was."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from ui.cli.projects import Project
from ui.cli.test_cli_do import FILES, RIGHT

SCRATCH = """set -e
echo 'broken' > app.py; git checkout app.py; grep 'number + 2' app.py
echo 'x = 1' > new.py; git add new.py; git stash; test ! -e new.py; git stash pop; test -e new.py
git commit -qm 'a try'; git log --oneline | wc -l | grep 2; git reset -q --hard HEAD~1; test ! -e new.py
cat > /tmp/tried.py <<'X'
import app; print(app.after(1))
X
PYTHONPATH=. python3 /tmp/tried.py
rm -rf build; find . -name '*.pyc' -delete; git switch -qc other; git gc -q; git fsck
echo the end"""


def turns(path: Path, *commands: str) -> str:
    """A model that runs the commands, mends the bug and tells what the last command said."""
    calls = [("run_command", {"command": one}) for one in commands]
    calls.append(("strict_patch", {"path": "app.py", "old": "+ 2", "new": "+ 1"}))
    answers = [{"text": "", "calls": [{"name": name, "arguments": given}]} for name, given in calls]
    path.write_text("".join(json.dumps({"answer": one}) + "\n" for one in (*answers, {"text": "mended"})))
    return f"scripted:{path}"


def state(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


@pytest.mark.whole
def test_git_works_on_the_bench_and_nothing_of_it_is_promoted(project: Project, tmp_path: Path):
    pawl = project({**FILES, ".gitignore": "build/\n", "build/out": "kept\n"})
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=pawl.workspace, check=True)
    before = state(pawl.workspace / ".git")
    model = turns(tmp_path / "model.jsonl", SCRATCH)
    said = pawl("do", "fix the bug in after", "--approve", "never", "--model", model)
    assert said.code == 0, said
    assert (pawl.workspace / "app.py").read_text() == RIGHT
    assert state(pawl.workspace / ".git") == before
    assert (pawl.workspace / "build/out").exists() and not (pawl.workspace / "new.py").exists()
    assert "the end" in said.out + said.err


@pytest.mark.whole
def test_where_nobody_can_be_asked_a_call_is_refused_and_the_run_goes_on(project: Project, tmp_path: Path):
    pawl = project({**FILES, ".pawl/settings.toml": '[permissions]\nask = ["Bash(make *)"]\n'})
    model = turns(tmp_path / "model.jsonl", "make all")
    body = pawl.json("-p", "fix the bug in after", "--approve", "never", "--model", model)
    assert body["permission_denials"][0]["tool_input"] == {"command": "make all"}
    assert (pawl.workspace / "app.py").read_text() == RIGHT
