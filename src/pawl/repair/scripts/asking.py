"""What a warm Node is asked: which tests to load, and which proposals to try on them."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import asdict, dataclass
from importlib import resources

from pawl.repair.scripts.proposing import Proposed

REQUEST_FILE = ".pawl-search.json.gz"
"""Where the request lies, in the root; Node removes it as soon as it is read."""
MOST_BYTES = 1_000_000
"""A file of a bench may have a little more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRequest:
    root: str
    """The folder as Node sees it; on a bench, the workspace's own path."""
    tests: tuple[str, ...]
    """The test files to load, relative to the root."""
    failing: tuple[str, ...]
    """The tests that fail in them: where they do not fail in a warm Node, its word is not taken."""
    framework: str = "node"
    seconds: float = 60.0
    workers: int = 2
    counted: str = "wall"
    """What the seconds are counted in: of the clock, or of the CPU (`cpu`), for measurements on a busy machine."""

    def packed(self, found: Proposed) -> bytes:
        """The request as it is written; of too many proposals the likeliest."""
        most = len(found.proposals)
        while True:
            proposals = [one._asdict() for one in found.proposals[:most]]
            text = json.dumps({**asdict(self), "marks": found.marks, "proposals": proposals})
            data = gzip.compress(text.encode(), 5, mtime=0)
            if len(data) <= MOST_BYTES or not most:
                return data
            most //= 2


def warm_command(root: str) -> tuple[str, ...]:
    """The words that run the search on a request that lies in its place."""
    script = os.fspath(resources.files("pawl.repair") / "inside" / "node" / "start.cjs")  # type: ignore[call-overload]
    return ("node", script, f"{root}/{REQUEST_FILE}")
