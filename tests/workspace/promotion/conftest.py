"""A yard in memory for each test of promotion and history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from workspace.promotion.yard import Yard, in_memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as place:
        yield place


@pytest.fixture
def yard(memory: Path) -> Iterator[Yard]:
    with Yard.open(memory) as made:
        yield made
