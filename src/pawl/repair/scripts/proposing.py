"""Asks a process of its own for the proposals, so that no hostile source can harm this one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pawl.repair.scripts.proposal import ScriptProposal

SECONDS = 20
MEMORY_BYTES = 2 << 30
_START = "import sys; sys.path[:] = {path!r}; from pawl.repair.scripts.generate import main; main({seconds}, {memory})"


@dataclass(frozen=True, slots=True)
class Proposed:
    """The edits to try, the likeliest first, and the marks of each source."""

    proposals: tuple[ScriptProposal, ...] = ()
    marks: dict[str, Any] = field(default_factory=dict)


def proposed(sources: Mapping[str, str], lines: Mapping[str, Sequence[int]]) -> Proposed:
    """What to try for these sources; nothing where they cannot be read."""
    path = [entry for entry in sys.path if os.path.isabs(entry)]
    start = _START.format(path=path, seconds=SECONDS, memory=MEMORY_BYTES)
    asked = json.dumps({"sources": dict(sources), "lines": {key: list(each) for key, each in lines.items()}})
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", start],
            input=asked.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            timeout=SECONDS * 3,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Proposed()
    written = done.stdout.splitlines()
    marks = [json.loads(line) for line in written[:1] if line.endswith(b"}")]
    found = [ScriptProposal(*json.loads(line)) for line in written[1:] if line.endswith(b"]")]
    return Proposed(tuple(found), marks[0]) if marks else Proposed()
