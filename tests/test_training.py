"""Training never sees what the benchmarks measure on."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
KEPT_OUT = frozenset((ROOT / "training/kept_out.txt").read_text("utf-8").split())


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
