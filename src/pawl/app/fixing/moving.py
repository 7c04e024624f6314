"""Going on on another bench, for every ground on which something is repaired."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from pawl.workspace.bench import Bench


class Movable(Protocol):
    bench: Bench

    @property
    def edited(self) -> Mapping[str, bytes]:
        """The files that are not as they were."""
        ...


@contextmanager
def fresh(ground: Movable, bench: Bench) -> Iterator[None]:
    """On a bench that holds the edits and nothing that a run of the tests has left behind."""
    used = ground.bench
    for path, data in ground.edited.items():
        bench.files.write(path, data)
    ground.bench = bench
    try:
        yield
    finally:
        ground.bench = used
