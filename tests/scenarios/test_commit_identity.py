"""Whose name and address a commit bears: what git takes from the files of the user, and nothing of a workspace."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from scenarios.story import Story, patch, say

from pawl.core.errors import GitFailed
from pawl.core.execution import Captured, Completed, Ending, Execution
from pawl.core.run import DeliveryState
from pawl.settings.files import Tree
from pawl.workspace import git as confined
from pawl.workspace.git import DEEPEST, Git, opened, user_values, values

pytestmark = pytest.mark.spec("E13")

OWN = "[user]\n\tname = Kim\n\temail = kim@home.example\n"
WORK = "[user]\n\temail = kim@work.example\n"


def git(workspace: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=workspace, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = tmp_path / "kim"
    made.mkdir()
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    (made / "work.gitconfig").write_text(WORK)
    return made


@pytest.fixture
def workspace(home: Path) -> Path:
    made = home / "Jobs" / "shop"
    made.mkdir(parents=True)
    git(made, "init", "-q", "-b", "feature/login")
    git(made, "remote", "add", "origin", "https://git.example.org/firm/shop.git")
    return made


def address(workspace: Path) -> str:
    environment = {"HOME": str(workspace.parent.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    with Tree(workspace) as tree, opened(tree) as repository:
        return user_values(environment, tree, repository).get("user.email", "")


CONDITIONS = [
    "gitdir:~/Jobs/",
    "gitdir:~/Jobs/shop/.git",
    "gitdir:~/jobs/",
    "gitdir/i:~/jobs/",
    "gitdir:Jobs/",
    "gitdir:shop/",
    "gitdir:./Jobs/**",
    "gitdir:~/J*/shop/",
    "gitdir:~/[A-K]obs/",
    "gitdir:~/Other/",
    "gitdir:~/Jobs",
    "gitdir:/**/shop/.git",
    "onbranch:feature/",
    "onbranch:feature/*",
    "onbranch:feature",
    "onbranch:main",
    "hasconfig:remote.*.url:https://git.example.org/**",
    "hasconfig:remote.*.url:https://git.example.org/firm/*",
    "hasconfig:remote.*.url:https://git.example.org/*",
    "hasconfig:remote.*.url:git@git.example.org:*/**",
    "gitdir:[",
    "nonsense:x",
]


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_file_is_included_where_git_would(home: Path, workspace: Path, condition: str):
    (home / ".gitconfig").write_text(f'{OWN}[includeIf "{condition}"]\n\tpath = work.gitconfig\n')
    assert address(workspace) == git(workspace, "config", "user.email")


def test_some_of_these_conditions_hold_and_some_do_not(home: Path, workspace: Path):
    found = set()
    for condition in CONDITIONS:
        (home / ".gitconfig").write_text(f'{OWN}[includeIf "{condition}"]\n\tpath = ~/work.gitconfig\n')
        found.add(address(workspace))
    assert found == {"kim@home.example", "kim@work.example"}


def test_the_later_line_wins_across_files_as_for_git(home: Path, workspace: Path):
    (home / ".config/git").mkdir(parents=True)
    (home / ".config/git/config").write_text("[user]\n\temail = xdg@example.org\n[include]\n\tpath = more\n")
    (home / ".config/git/more").write_text("[user]\n\temail = more@example.org\n")
    assert address(workspace) == git(workspace, "config", "user.email") == "more@example.org"
    (home / ".gitconfig").write_text(f"[include]\n\tpath = work.gitconfig\n{OWN}")
    assert address(workspace) == git(workspace, "config", "user.email") == "kim@home.example"


@pytest.mark.attack("A09")
@pytest.mark.parametrize("way", ["by name", "through a link", "through a folder"])
def test_nothing_of_the_workspace_is_included(home: Path, workspace: Path, way: str):
    (workspace / "evil").write_text("[user]\n\temail = evil@example.org\n")
    (home / "link").symlink_to(workspace / "evil")
    (home / "folder").symlink_to(workspace)
    path = {"by name": workspace / "evil", "through a link": home / "link", "through a folder": home / "folder/evil"}
    (home / ".gitconfig").write_text(f"{OWN}[include]\n\tpath = {path[way]}\n")
    git(workspace, "config", "include.path", "../evil")
    assert address(workspace) == "kim@home.example"


@pytest.mark.timeout(20)
def test_includes_are_bounded(home: Path, workspace: Path):
    (home / ".gitconfig").write_text(OWN + "[include]\n\tpath = .gitconfig\n" * 50)
    assert address(workspace) == "kim@home.example"
    for at in range(DEEPEST + 2):
        text = f"[user]\n\temail = {at}@example.org\n[include]\n\tpath = f{at + 1}\n"
        (home / f"f{at}").write_text(text)
    (home / ".gitconfig").write_text("[include]\n\tpath = f0\n")
    assert address(workspace) == f"{DEEPEST - 1}@example.org"
    os.mkfifo(home / "fifo")
    (home / ".gitconfig").write_text(f"{OWN}[include]\n\tpath = fifo\n[include]\n\tpath = /dev/zero\n")
    assert address(workspace) == "kim@home.example"


@pytest.fixture
def change(story: Story, home: Path) -> Story:
    for path in ("dates.py", "tests/test_dates.py", "pyproject.toml"):
        (story.workspace / path).unlink()
    (home / ".gitconfig").write_text(f'{OWN}[includeIf "gitdir:{story.workspace}/"]\n\tpath = work.gitconfig\n')
    story.user_writes({"a.txt": "one\n"})
    git(story.workspace, "add", "-A")
    git(story.workspace, "commit", "-qm", "first")
    read = {"answer": {"text": "", "calls": [{"name": "file_read", "arguments": {"path": "a.txt"}}]}}
    story.model_says(read, patch("a.txt", "one", "two"), say("Done."))
    return story


@pytest.mark.whole
def test_a_commit_bears_the_address_that_the_users_files_include(change: Story):
    done = change.do("change a.txt", approve="never", commit="on")
    assert done.commit, done.notes
    assert git(change.workspace, "log", "-1", "--format=%ae %ce") == "kim@work.example kim@work.example"


def test_the_environment_says_who_commits_as_for_git(change: Story, home: Path, monkeypatch: pytest.MonkeyPatch):
    (home / ".gitconfig").write_text("[user]\n\tname = Kim\n")
    monkeypatch.setenv("EMAIL", "kim@mail.example")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "author@example.org")
    done = change.do("change a.txt", approve="never", commit="on")
    assert done.commit, done.notes
    assert git(change.workspace, "log", "-1", "--format=%ae %ce") == "author@example.org kim@mail.example"


@pytest.mark.parametrize(
    ("prepare", "told"),
    [
        ("git rev-parse HEAD > .git/MERGE_HEAD", "a merge is under way; HEAD has not moved"),
        ("git config core.bare true", "the repository is bare; HEAD has not moved"),
        ("rm -rf .git", "not a git repository; HEAD has not moved"),
        ("echo nonsense > .git/HEAD", "HEAD cannot be read; Pawl has not moved it"),
        ("git config extensions.strange 1", "HEAD cannot be read; Pawl has not moved it"),
    ],
)
def test_a_commit_that_fails_says_of_head_what_is_true(change: Story, prepare: str, told: str):
    subprocess.run(["sh", "-c", prepare], cwd=change.workspace, check=True)
    done = change.do("change a.txt", approve="never", commit="on")
    assert (done.delivery, done.commit) == (DeliveryState.DONE, "")
    assert any(told in note for note in done.notes), done.notes


@pytest.mark.whole
@pytest.mark.timeout(60)
def test_a_configuration_of_continued_lines_is_read_in_time(workspace: Path):
    assert values("[a]\nb = " + "x\\\n" * 2_000_000)["a.b"] == "x" * 2_000_000
    assert values("[a]\n" + "\\\n" * 1_000_000) == {}


@pytest.mark.attack("A45")
def test_git_of_a_toolchain_is_found_and_one_of_the_workspace_is_not(
    home: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
):
    (workspace / "a.txt").write_text("a")
    git(workspace, "add", "a.txt")
    for name in ("without", "toolchain", "linked"):
        (home / name).mkdir()
    for name in ("mkdir", "mktemp", "rm", "cp", "readlink", "find", "xargs", "ln", "cat"):
        (home / "without" / name).symlink_to(f"/usr/bin/{name}")
    (home / "toolchain/git").symlink_to("/usr/bin/git")
    (workspace / "git").write_text("#!/bin/sh\nprintf 'evil\\0'\n")
    (workspace / "git").chmod(0o755)
    (home / "linked/git").symlink_to(workspace / "git")
    (home / "way").symlink_to(workspace)
    monkeypatch.setattr(confined, "PLACES", str(home / "without"))

    def tracked(*path: str) -> frozenset[str]:
        def run(execution: Execution) -> Completed:
            environment = {**execution.environment, "PATH": ":".join(path)}
            done = subprocess.run(execution.argv, cwd=workspace, env=environment, capture_output=True, check=False)
            out, err = (Captured(head=one, total=len(one)) for one in (done.stdout, done.stderr))
            return Completed(ending=Ending.EXITED, code=done.returncode, stdout=out, stderr=err)

        with Tree(workspace) as tree, opened(tree) as repository:
            return Git(run=run, repository=repository).tracked(["a.txt"])

    theirs = (".", "", str(workspace), str(home / "linked"), str(home / "way"))
    assert tracked(*theirs, str(home / "toolchain")) == {"a.txt"}
    with pytest.raises(GitFailed, match="shows no git"):
        tracked(*theirs)
