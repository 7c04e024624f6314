"""What stands in the project's files besides code: no address of a machine or a registry, and locks that hold."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Written in parts, so that this module does not hold what it looks for.
DEVELOPER_PATHS = re.compile(r"(?<![\w.$})\]])/(?:work|Users)/|/root/\.py" + r"env/")
REGISTRY_HOSTS = re.compile(
    "|".join((r"py" + r"pi\.org", r"python" + r"hosted\.org", r"npm" + r"js\.(?:org|com)", r"crates" + r"\.io"))
)


def foreign_words(text: str) -> list[str]:
    """Paths of a developer's machine and hosts of package registries."""
    return [match.group() for pattern in (DEVELOPER_PATHS, REGISTRY_HOSTS) for match in pattern.finditer(text)]


def project_files() -> list[Path]:
    """What git tracks or would track; everything that is not hidden where there is no git."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True,
        check=False,
    )
    if listed.returncode == 0:
        return [path for name in listed.stdout.decode().split("\0") if name and (path := ROOT / name).is_file()]
    shown = (path for path in ROOT.rglob("*") if path.is_file())
    return [path for path in shown if not any(part.startswith(".") for part in path.relative_to(ROOT).parts)]


def test_no_file_names_a_developers_machine_or_a_registry():
    found = {str(path.relative_to(ROOT)): foreign_words(path.read_text("utf-8", "replace")) for path in project_files()}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize(
    "text",
    [
        "cd /" + "work/main",
        "'/" + "Users/someone/pawl'",
        "/root/.py" + "env/shims",
        "--index-url https://py" + "pi.org/simple",
        "https://registry.npm" + "js.org/rich",
    ],
)
def test_a_foreign_word_is_seen(text: str):
    assert foreign_words(text) != []


@pytest.mark.parametrize(
    "text", ["bench/work/upper", "{root}/" + "work/x", "/home/kim", "~/.py" + "env/versions", "pip install"]
)
def test_an_ordinary_path_is_not_a_foreign_word(text: str):
    assert foreign_words(text) == []


def unlocked(requirements: list[str], lock: str) -> list[str]:
    """Requirements that the lock does not pin with a hash."""
    pinned = set(re.findall(r"^([a-z0-9-]+)==\S+ .*\\\n    --hash=sha256:", lock, re.MULTILINE))
    names = (re.split(r"[^\w.-]", requirement)[0].lower().replace("_", "-") for requirement in requirements)
    return [name for name in names if name not in pinned]


def test_the_locks_pin_what_the_project_asks_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime, groups = project["project"]["dependencies"], project["dependency-groups"]
    assert unlocked(runtime, (ROOT / "requirements.lock").read_text()) == []
    assert unlocked(runtime + groups["dev"], (ROOT / "requirements-dev.lock").read_text()) == []
    for group in ("build", "node"):
        assert unlocked(groups[group], (ROOT / f"requirements-{group}.lock").read_text()) == []
    assert unlocked(["newcomer>=1"], (ROOT / "requirements.lock").read_text()) == ["newcomer"]


def made_by_ci(folder: Path, npm: str) -> str:
    """What `.ci/run` calls in a folder where nothing but that call is done, with this npm."""
    programs = folder / "programs"
    for path, text in {
        folder / "scripts/setup": "true",
        programs / "make": "shift; echo made $*",
        programs / "npm": npm,
    }.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)
    (folder / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", folder / ".ci/run")
    given = {"PATH": f"{programs}:/usr/bin:/bin"}
    ran = subprocess.run([folder / ".ci/run"], capture_output=True, text=True, env=given)
    assert ran.returncode == 0, ran
    return ran.stdout


@pytest.mark.parametrize(("npm", "times"), [("exit 1", 1), ("exit 0", 2)])
def test_ci_never_leaves_out_the_tools_of_python_and_runs_them_once(tmp_path: Path, npm: str, times: int):
    made = [line for line in made_by_ci(tmp_path, npm).splitlines() if line.startswith("made test-npm")]
    assert len(made) == times
    assert "NPM_TESTS=tests/npm/test_python_tools.py" in made[0]
    assert all("--ignore tests/npm/test_python_tools.py" in line for line in made[1:])
