"""What Pawl itself asks git, in repositories that try to make git run their own programs."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from workspace.bench.stand import Stand
from workspace.bench.unshared import UnsharedSandbox

from pawl.core.errors import SandboxUnavailable
from pawl.sandbox.choice import ChosenSandbox
from pawl.sandbox.visibility import Surroundings
from pawl.settings.files import Tree
from pawl.workspace.git import Git, opened

Trap = Callable[[Path, Path], None]


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", folder, *words], check=True, capture_output=True)


def program(folder: Path, marker: Path) -> Path:
    """A program that tells on whoever runs it, as far as it can: outside, and in the workspace."""
    path = folder / "evil"
    path.write_text(f"#!/bin/sh\ntouch {marker}\ntouch {folder}/marker\n")
    path.chmod(0o755)
    return path


def by_monitor(folder: Path, marker: Path) -> None:
    git(folder, "config", "core.fsmonitor", str(program(folder, marker)))


def by_hooks(folder: Path, marker: Path) -> None:
    evil = program(folder, marker)
    for name in ("post-index-change", "post-checkout", "fsmonitor-watchman", "pre-commit"):
        (folder / ".git/hooks" / name).write_bytes(evil.read_bytes())
        (folder / ".git/hooks" / name).chmod(0o755)
    git(folder, "config", "core.fsmonitor", str(folder / ".git/hooks/fsmonitor-watchman"))


def by_common_folder(folder: Path, marker: Path) -> None:
    by_monitor(folder, marker)
    subprocess.run(["cp", "-a", folder / ".git", folder / "common"], check=True)
    git(folder, "config", "--unset", "core.fsmonitor")
    (folder / ".git/commondir").write_text("../common\n")


def by_include(folder: Path, marker: Path) -> None:
    by_monitor(folder, marker)
    (folder / "settings").write_bytes((folder / ".git/config").read_bytes())
    git(folder, "config", "--unset", "core.fsmonitor")
    git(folder, "config", "include.path", str(folder / "settings"))
    git(folder, "config", "core.pager", str(folder / "evil"))
    git(folder, "config", "alias.ls-files", f"!{folder}/evil")


@pytest.fixture(params=["unshared", "confined"])
def sandbox(request: pytest.FixtureRequest, tmp_path: Path) -> ChosenSandbox:
    """One that confines nothing shows that git is not even tempted; the real one is what is used."""
    return (
        UnsharedSandbox() if request.param == "unshared" else ChosenSandbox(Surroundings(home=str(tmp_path / "home")))
    )


@pytest.fixture
def repository(stand: Stand, sandbox: ChosenSandbox) -> Iterator[Stand]:
    git(stand.workspace, "init", "-q")
    (stand.workspace / "a.log").write_text("1")
    (stand.workspace / "other.log").write_text("1")
    git(stand.workspace, "add", "a.log")
    (stand.workspace / ".gitignore").write_text("*.log\n")
    stand.sandbox = sandbox
    return stand


@pytest.mark.attack("A19")
@pytest.mark.parametrize("trap", [by_monitor, by_hooks, by_common_folder, by_include])
def test_a_repository_cannot_make_pawls_own_git_run_a_program(repository: Stand, trap: Trap, tmp_path: Path):
    marker = tmp_path / "marker"
    trap(repository.workspace, marker)
    bench = repository.bench()
    bench.files.write("a.log", b"2")
    bench.files.write("other.log", b"2")
    captured = bench.capture()
    assert (captured.changes.paths, captured.ignored, captured.held) == ({"a.log"}, ("other.log",), ())
    assert not marker.exists()
    assert not (repository.workspace / "marker").exists()
    assert not bench.files.exists("marker")


@pytest.mark.parametrize("trap", [by_monitor, by_hooks, by_common_folder, by_include])
def test_the_same_repository_does_trap_an_ordinary_git(tmp_path: Path, trap: Trap):
    """Otherwise the test above would prove nothing."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "x").write_text("1")
    git(folder, "add", "x")
    trap(folder, tmp_path / "marker")
    subprocess.run(["git", "-C", folder, "status"], capture_output=True, check=False)
    assert (tmp_path / "marker").exists()


def test_git_is_not_asked_where_there_is_no_repository_or_nothing_was_there_before(stand: Stand):
    asked: list[tuple[str, ...]] = []

    class Listening(UnsharedSandbox):
        def run(self, view, execution, *, on_output=None, cancel=None):
            asked.append(execution.argv)
            return super().run(view, execution, on_output=on_output, cancel=cancel)

    (stand.workspace / ".gitignore").write_text("*.log\n")
    (stand.workspace / "old.log").write_text("1")
    stand.sandbox = Listening()
    bench = stand.bench()
    bench.files.write("old.log", b"2")
    assert bench.capture().ignored == ("old.log",)
    git(stand.workspace, "init", "-q")
    bench.files.delete("old.log")
    fresh = stand.bench()
    fresh.files.write("new.log", b"2")
    assert fresh.capture().ignored == ("new.log",)
    assert asked == []


def test_odd_names_and_many_of_them_are_asked_about(overlay_stand: Stand):
    git(overlay_stand.workspace, "init", "-q")
    names = [f"{'long' * 30}{number}" for number in range(800)] + [":(glob)*", "*", "-n", os.fsdecode(b"\xff\n")]
    for name in names:
        (overlay_stand.workspace / name).touch()
    (overlay_stand.workspace / "untracked").touch()
    git(overlay_stand.workspace, "add", "-A")
    git(overlay_stand.workspace, "rm", "-q", "--cached", "untracked")
    bench = overlay_stand.bench()
    with Tree(overlay_stand.workspace) as tree, opened(tree) as repository:
        asked = Git(run=partial(overlay_stand.sandbox.run, bench.view), repository=repository)
        assert asked.tracked([*names, "untracked", "missing"]) == set(names)
        assert asked.tracked(["src"]) == {"src/greeter.py", "src/main.py"}
        assert asked.tracked([]) == frozenset()


def test_without_an_answer_nothing_counts_as_tracked(overlay_stand: Stand):
    class Unavailable(UnsharedSandbox):
        def run(self, view, execution, *, on_output=None, cancel=None):
            raise SandboxUnavailable("nothing confines a command here")

    git(overlay_stand.workspace, "init", "-q")
    (overlay_stand.workspace / "a.log").touch()
    git(overlay_stand.workspace, "add", "a.log")
    (overlay_stand.workspace / ".gitignore").write_text("*.log\n")
    overlay_stand.sandbox = Unavailable()
    bench = overlay_stand.bench()
    bench.files.write("a.log", b"2")
    assert bench.capture().ignored == ("a.log",)
