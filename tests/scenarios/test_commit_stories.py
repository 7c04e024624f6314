"""Commits that the user asks for: the verified change and nothing else, and never without being asked."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from scenarios.story import Story, patch, say

from pawl.core.run import DeliveryState

CONFIG = "[user]\nname = Kim\nemail = kim@example.org\n[core]\nhooksPath = hooks\n"


def git(story: Story, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=story.workspace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def repository(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Story:
    """A repository with two committed files, hooks that would tell on themselves, and no tests."""
    (tmp_path / "gitconfig").write_text(CONFIG)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    story.user_writes({"a.txt": "one\n", "b.txt": "one\n"})
    git(story, "add", "-A")
    git(story, "commit", "-qm", "first")
    for name in ("pre-commit", "post-commit", "reference-transaction"):
        story.user_writes({f"hooks/{name}": f"#!/bin/sh\ntouch {tmp_path}/hook-ran\n"})
        (story.workspace / "hooks" / name).chmod(0o755)
    story.model_says(
        {"answer": {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "a.txt"}}]}},
        patch("a.txt", "one", "two"),
        say("Done."),
    )
    return story


@pytest.mark.spec("E13")
def test_the_change_is_committed_by_itself_and_what_is_staged_stays_staged(repository: Story, tmp_path: Path):
    repository.user_writes({"b.txt": "staged\n"})
    git(repository, "add", "b.txt")
    repository.user_writes({"b.txt": "staged\nand more\n", "c.txt": "new\n"})
    done = repository.do("change a.txt", approve="never", commit="on")
    assert done.delivery is DeliveryState.DONE and done.commit, done.notes
    assert git(repository, "log", "-1", "--format=%H %an %s").split("\n")[0] == f"{done.commit} Kim change a.txt"
    assert git(repository, "show", "--name-only", "--format=").split() == ["a.txt"]
    assert git(repository, "diff", "--cached", "--name-only").split() == ["b.txt"]
    assert git(repository, "show", ":b.txt") == "staged\n"
    assert not (tmp_path / "hook-ran").exists()
    assert "a.txt" not in git(repository, "status", "--porcelain")


@pytest.mark.spec("E13")
def test_without_being_asked_nothing_is_committed(repository: Story):
    done = repository.do("change a.txt", approve="never")
    assert (done.delivery, done.commit) == (DeliveryState.DONE, "")
    assert git(repository, "rev-list", "--count", "HEAD") == "1\n"


@pytest.mark.spec("E13")
def test_a_file_with_edits_of_the_users_is_left_to_them_and_the_change_stands(repository: Story):
    repository.user_writes({"a.txt": "mine\none\n"})
    done = repository.do("change a.txt", approve="never", commit="on")
    assert (done.delivery, done.commit, repository.read("a.txt")) == (DeliveryState.DONE, "", "mine\ntwo\n")
    assert any("'a.txt' had changes before this one" in note for note in done.notes)


@pytest.mark.spec("E13")
@pytest.mark.parametrize(
    ("attribution", "trailer"),
    [("none", ""), ("co-authored-by", "Co-authored-by: Pawl ("), ("assisted-by", "Assisted-by: ")],
)
def test_a_commit_says_of_the_model_what_the_user_wants(
    repository: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribution: str, trailer: str
):
    (tmp_path / "config.toml").write_text(f'commit = "on"\nattribution = "{attribution}"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    assert repository.do("change a.txt", approve="never").commit
    body = git(repository, "log", "-1", "--format=%b").strip()
    assert body.startswith(trailer) if trailer else body == ""
