"""Every test of a bench runs on an overlay and on a copy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace.bench.stand import Stand
from workspace.bench.unshared import UnsharedSandbox

from pawl.workspace.bench import BenchKind


@pytest.fixture(params=list(BenchKind))
def ground(request: pytest.FixtureRequest) -> BenchKind:
    return request.param


@pytest.fixture
def stand(workspace: Path, state_directory: Path, ground: BenchKind) -> Iterator[Stand]:
    made = Stand(workspace, state_directory / "benches", UnsharedSandbox(), ground)
    yield made
    made.close()


@pytest.fixture
def overlay_stand(workspace: Path, state_directory: Path) -> Iterator[Stand]:
    made = Stand(workspace, state_directory / "benches", UnsharedSandbox())
    yield made
    made.close()
