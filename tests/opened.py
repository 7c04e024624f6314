"""A workshop in memory, with the product's own settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from workspace.promotion.yard import in_memory
from world import lay

from pawl.settings.config import Config, load
from pawl.workspace.benches import CommandRequest, Ran, run_on_bench
from pawl.workspace.project import Project

SMALL = {
    "README.md": b"# Greeter\n\nSays hello.\n",
    "src/greeter.py": b'def greet(name):\n    return f"Hello, {name}!"\n',
    "run.sh": b"#!/bin/sh\n",
    ".env": b"PASSWORD=old-one\n",
}


@dataclass
class Site:
    """A workspace, and the workshops that are opened on it."""

    workspace: Path
    config: Config

    def open(self, **settings: object) -> Project:
        config = replace(self.config, settings=replace(self.config.settings, **settings)) if settings else self.config
        return Project.open(config, self.workspace)

    def read(self, name: str) -> bytes:
        return (self.workspace / name).read_bytes()

    def write(self, name: str, data: bytes) -> None:
        lay(self.workspace, {name: data})


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as place:
        yield place


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    with in_memory(tmp_path) as place:
        monkeypatch.setenv("PAWL_STATE", str(place / "state"))
        yield Site(lay(place / "w", SMALL), load())


@pytest.fixture
def shop(site: Site) -> Iterator[Project]:
    with site.open() as opened:
        yield opened


Run = Callable[..., Ran]


@pytest.fixture
def run(shop: Project) -> Run:
    def run(script: str, **request: object) -> Ran:
        return run_on_bench(shop, CommandRequest(argv=("/bin/sh", "-c", script), seconds=60, **request))

    return run
