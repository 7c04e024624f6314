"""What Pawl itself asks git. The repository's own configuration can name programs, so git runs in the sandbox too."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pawl.core.errors import OverlayUnavailable, SandboxUnavailable
from pawl.core.execution import Execution, Limits, Stream, View
from pawl.core.ports import Sandbox

_WORDS_AT_ONCE = 64 << 10
_LIMITS = Limits(seconds=20.0, processes=16, disk_bytes=1 << 20)

COMMAND = (
    "git",
    "--no-optional-locks",
    "--literal-pathspecs",
    # Nothing that the repository configures is started, even inside the sandbox.
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.pager=cat"),
    # Inside the sandbox the workspace may seem to belong to somebody else.
    *("-c", "safe.directory=*"),
)
ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
}


@dataclass(frozen=True, slots=True)
class Git:
    """The repository of a view, with its `.git` read-only."""

    sandbox: Sandbox
    view: View

    def tracked(self, paths: Sequence[str]) -> frozenset[str]:
        """Which of these paths, and of the paths below them, the index holds; none where git gives no answer."""
        found: set[str] = set()
        for part in _parts(paths):
            found.update(self._names("ls-files", "-z", "--", *part))
        return frozenset(found)

    def _names(self, *words: str) -> Iterator[str]:
        output = bytearray()

        def collect(stream: Stream, data: bytes) -> None:
            if stream is Stream.STDOUT:
                output.extend(data)

        execution = Execution(argv=(*COMMAND, *words), environment=ENVIRONMENT, limits=_LIMITS)
        try:
            completed = self.sandbox.run(self.view, execution, on_output=collect)
        except OverlayUnavailable:
            raise
        except SandboxUnavailable:
            return
        if completed.ok:
            yield from (os.fsdecode(name) for name in bytes(output).split(b"\0") if name)


def _parts(paths: Sequence[str]) -> Iterator[list[str]]:
    """The paths in groups that fit on a command line."""
    part: list[str] = []
    size = 0
    for path in paths:
        size += len(os.fsencode(path)) + 1
        if part and size > _WORDS_AT_ONCE:
            yield part
            part, size = [], len(os.fsencode(path)) + 1
        part.append(path)
    if part:
        yield part
