"""An edit tried out without writing anything, so that the user can be shown it as a patch before it is carried out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from pawl.core.errors import NotFound
from pawl.core.patch import text_hunks
from pawl.core.redact import redacted
from pawl.workspace.bench_files import Files

EDITS = frozenset({"file_write", "strict_patch", "line_edit", "modify", "change_files"})
"""The tools that change files and nothing else."""
MOST_LINES, MOST_WIDTH = 120, 400
"""A longer patch, or one with longer lines, is not shown so."""


class TrialFiles:
    """Fits `Files`: what is written stays here."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._written: dict[str, bytes | None] = {}

    def read(self, path: str) -> bytes:
        data = self._written[path] if path in self._written else self._files.read(path)
        if data is None:
            raise NotFound(f"there is no file {path!r}")
        return data

    def write(self, path: str, data: bytes) -> None:
        self._written[path] = data

    def delete(self, path: str) -> None:
        self._written[path] = None

    def exists(self, path: str) -> bool:
        return self._written[path] is not None if path in self._written else self._files.exists(path)

    def walk(self, under: str = "") -> Iterable[str]:
        return self._files.walk(under)

    def patch(self) -> Iterator[str]:
        for path, after in self._written.items():
            before = self._files.read(path) if self._files.exists(path) else b""
            yield path
            for hunk in text_hunks(path, before, after or b""):
                yield hunk.header
                yield from (line.decode("utf-8", "replace").rstrip("\r\n") for line in hunk.lines)


def patch_of(files: Files, call: Callable[[TrialFiles], object]) -> tuple[str, ...]:
    """The call as lines of a patch; empty where it changes nothing, or too much to be read at once."""
    trial = TrialFiles(files)
    call(trial)
    lines = tuple(redacted("\n".join(trial.patch())).split("\n"))
    return lines if any(lines) and len(lines) <= MOST_LINES and all(len(line) <= MOST_WIDTH for line in lines) else ()
