"""Training never sees what the benchmarks measure on."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEPT_OUT = frozenset((ROOT / "training/kept_out.txt").read_text("utf-8").split())
"""Names, and the commits that the histories begin with."""


@pytest.mark.spec("F1")
def test_the_repositories_that_benchmarks_name_are_kept_out_of_training():
    named = {one["repo"].lower() for one in tomllib.loads((ROOT / "benchmarks/projects.toml").read_text())["project"]}
    assert named - {"pawl/web"} <= KEPT_OUT


@pytest.mark.spec("F1")
def test_the_packages_that_mutants_are_made_of_are_kept_out_of_training():
    source = (ROOT / "benchmarks/repair_mutants.py").read_text("utf-8")
    packages = {line.split('"')[1] for line in source.splitlines() if line.strip().startswith('Package("')}
    assert packages
    assert all(any(package in name.rpartition("/")[2] for name in KEPT_OUT) for package in packages)


@pytest.mark.spec("F1")
def test_the_librarian_has_learnt_from_no_repository_of_a_benchmark_by_its_name_or_by_its_first_commits():
    learnt = tomllib.loads((ROOT / "src/pawl/code/ranking_learnt.toml").read_text("utf-8"))["learnt"]["repositories"]
    assert len(learnt) > 100
    assert all(commits for commits in learnt.values())
    assert KEPT_OUT.isdisjoint(name.lower() for name in learnt)
    assert KEPT_OUT.isdisjoint(commit for commits in learnt.values() for commit in commits.split())


@pytest.mark.spec("F1")
def test_a_real_fix_is_mined_where_its_own_test_fails_before_it_and_passes_after_it(tmp_path: Path):
    repository = tmp_path / "someone+thing" / "repo"
    repository.mkdir(parents=True)
    test = "from thing import double\n\n\ndef test_double():\n    assert double({}) == {}\n"
    for message, source, checks in (
        ("begin", "def double(a):\n    return a + a\n", (2, 4)),
        ("fix double of three", "def double(a):\n    return a * 2\n", (3, 6)),
        ("fix a wrong double", "def double(a):\n    return a + a + 1\n", (3, 7)),
    ):
        (repository / "thing.py").write_text(source)
        (repository / "test_thing.py").write_text(test.format(*checks))
        for words in (
            ["init", "-q"],
            ["add", "."],
            ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", message],
        ):
            subprocess.run(["git", *words], cwd=repository, check=True)
    out = tmp_path / "fixes.jsonl"
    words = [sys.executable, ROOT / "benchmarks/repair_fixes.py", "--repos", tmp_path, "--out", out]
    subprocess.run(words, check=True)
    (fix,) = map(json.loads, out.read_text("utf-8").splitlines())
    assert fix["functions"] == ["double"]
    assert fix["failing"] == ["test_thing.py::test_double"]
    commit = subprocess.run(["git", "log", "-1", "--format=%s", fix["commit"]], cwd=repository, capture_output=True)
    assert commit.stdout.strip() == b"fix a wrong double"
