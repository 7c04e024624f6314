"""What a warm Node is asked: which tests to load, and which proposals to try on them."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import resources

from pawl.repair.scripts.proposal import Proposal

REQUEST_FILE = ".pawl-search.json"
"""Where the request lies, in the root; Node removes it as soon as it is read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRequest:
    root: str
    """The folder as Node sees it; on a bench, the workspace's own path."""
    tests: tuple[str, ...]
    """The test files to load, relative to the root."""
    failing: int
    """How many tests fail in them: where a warm Node counts others, its word is not taken."""
    framework: str = "node"
    seconds: float = 60.0
    workers: int = 2

    def to_json(self, proposals: Sequence[Proposal]) -> str:
        return json.dumps({**asdict(self), "proposals": [one._asdict() for one in proposals]})


def warm_command(root: str) -> tuple[str, ...]:
    """The words that run the search on a request that lies in its place."""
    script = os.fspath(resources.files("pawl.repair") / "inside" / "warm.cjs")  # type: ignore[call-overload]
    return ("node", script, f"{root}/{REQUEST_FILE}")
