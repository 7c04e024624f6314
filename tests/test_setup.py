"""scripts/setup makes an environment once, says what it did, and touches nothing that is not its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYPROJECT = """\
[project]
name = "pawl"
version = "0"
requires-python = ">=3.11"
[build-system]
requires = ["uv_build>=0.9"]
build-backend = "uv_build"
"""
LOCKS = ("requirements.lock", "requirements-dev.lock", "requirements-build.lock")
PRIVILEGED = frozenset({"apt-get", "sudo"})
"""Never on the PATH of these tests, so that no test can install anything on the machine."""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project like this one that needs no package from anywhere."""
    root = tmp_path / "project"
    (root / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup", root / "scripts" / "setup")
    (root / "src" / "pawl").mkdir(parents=True)
    (root / "src" / "pawl" / "__init__.py").write_text('"""Empty."""\n')
    (root / "pyproject.toml").write_text(PYPROJECT)
    for name in LOCKS:
        (root / name).write_text("")
    return root


def programs(folder: Path, *, without: frozenset[str] = frozenset()) -> Path:
    """A folder that holds every program of this machine except some."""
    folder.mkdir()
    for directory in [*os.get_exec_path(), str(Path(sys.prefix) / "bin"), "/usr/bin", "/bin"]:
        for program in Path(directory).glob("*"):
            if program.name not in without | PRIVILEGED and not (folder / program.name).exists():
                (folder / program.name).symlink_to(program)
    return folder


@pytest.fixture
def path(tmp_path: Path) -> Path:
    bin_directory = programs(tmp_path / "bin")
    for name in ("git", "bwrap", "strace"):
        if not (bin_directory / name).exists():
            (bin_directory / name).symlink_to("/bin/true")
    return bin_directory


def setup(project: Path, path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"HOME": str(project.parent), "PATH": str(path)}
    return subprocess.run(
        ["bash", str(project / "scripts" / "setup"), *arguments],
        cwd=project,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def imports_pawl_from(python: Path) -> str:
    shown = subprocess.run(
        [str(python), "-c", "import pawl; print(pawl.__file__)"], capture_output=True, text=True, check=True
    )
    return shown.stdout.strip()


def test_the_first_run_says_what_it_did_and_the_second_has_nothing_to_say(project: Path, path: Path):
    first = setup(project, path)
    assert (first.returncode, first.stderr) == (0, "")
    said = [line.removeprefix("setup: ").split()[0] for line in first.stdout.splitlines()]
    assert said == ["needs", "found", "installing", "ready:"]
    assert imports_pawl_from(project / ".venv/bin/python") == str(project / "src/pawl/__init__.py")
    second = setup(project, path)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")


@pytest.mark.parametrize("name", ["pyproject.toml", "requirements.lock"])
def test_a_changed_lock_or_project_file_is_installed_again(project: Path, path: Path, name: str):
    setup(project, path)
    with (project / name).open("a") as file:
        file.write("# changed\n")
    assert "ready:" in setup(project, path).stdout
    assert setup(project, path).stdout == ""


def test_a_development_environment_serves_the_runtime_and_not_the_other_way_round(project: Path, path: Path):
    setup(project, path, "--no-dev")
    assert "requirements-dev.lock" in setup(project, path, "--dev").stdout
    assert setup(project, path, "--no-dev").stdout == ""


def test_an_environment_whose_python_is_gone_is_made_again(project: Path, path: Path):
    setup(project, path, "--venv", "elsewhere")
    python = project / "elsewhere/bin/python"
    python.unlink()
    assert setup(project, path, "--venv", "elsewhere").returncode == 0
    assert imports_pawl_from(python) == str(project / "src/pawl/__init__.py")


def test_a_folder_of_the_users_is_not_turned_into_an_environment(project: Path, path: Path):
    theirs = project / "photos"
    theirs.mkdir()
    (theirs / "cat.jpg").write_bytes(b"cat")
    done = setup(project, path, "--venv", "photos")
    assert (done.returncode, [file.name for file in theirs.iterdir()]) == (2, ["cat.jpg"])
    assert "is not a virtual environment" in done.stderr


def test_what_the_distribution_must_give_is_named_and_set_up_goes_on(project: Path, tmp_path: Path):
    path = programs(tmp_path / "few", without=frozenset({"bwrap", "git", "strace"}))
    done = setup(project, path)
    assert done.returncode == 0
    assert "sudo apt-get install git bubblewrap strace" in done.stderr
    assert "strace" not in setup(project, path, "--no-dev").stderr


def test_without_a_python_that_is_new_enough_it_says_so_and_stops(project: Path, tmp_path: Path):
    path = programs(tmp_path / "none")
    for program in path.glob("python*"):
        program.unlink()
    (path / "uv").unlink(missing_ok=True)
    (path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (path / "python3").chmod(0o755)
    done = setup(project, path)
    assert (done.returncode, (project / ".venv").exists()) == (1, False)
    assert "no Python 3.11 or newer" in done.stderr


def test_an_argument_it_does_not_know_is_refused(project: Path, path: Path):
    done = setup(project, path, "--everything")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "setup: unknown argument: --everything")
