"""Makes captured output fit for parsing: no colours, one kind of line break, a mark where its middle was left out.

`Captured.text` cuts a long stream between two bytes; the two half lines beside the cut say nothing reliable and go.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pawl.core.diagnostic import Location
from pawl.core.execution import Completed

CUT = "\x00"
"""A line that stands where the middle was left out; no output can hold it, because cleaning removes it."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LEFT_OUT = re.compile(r"^\[… \d+ bytes left out …\]$")


@dataclass(frozen=True, slots=True)
class CleanOutput:
    lines: tuple[str, ...]

    @property
    def cut(self) -> bool:
        return CUT in self.lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def cleaned(output: str) -> CleanOutput:
    plain = _ESCAPES.sub("", output).replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    lines: list[str] = []
    after_cut = False
    for line in plain.split("\n"):
        if _LEFT_OUT.match(line):
            if lines and lines[-1] != CUT:
                lines.pop()
            lines.append(CUT)
            after_cut = True
        elif after_cut:
            after_cut = False
        else:
            lines.append(line)
    return CleanOutput(tuple(lines))


def printed(completed: Completed) -> str:
    """What a command printed: standard output, then standard error."""
    streams = [stream.text for stream in (completed.stdout, completed.stderr)]
    return "\n".join(text.removesuffix("\n") for text in streams if text) + "\n"


_FOREIGN_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".tox", ".nox", "rustlib", "rubygems"}
)
_FOREIGN = re.compile(r"^(?:<|node:|native |/rustc/)|/lib/python\d|/gems/")
_MOST_FRAMES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a command ran, so that the paths it printed can be told."""

    workspace: str = ""
    """Its absolute path as the command saw it; empty leaves absolute paths as they are."""
    directory: str = ""
    """Relative to the workspace; empty is its root."""
    files: frozenset[str] = frozenset()
    """The workspace's files, for reports that name a file without its folder."""

    def path(self, printed: str) -> str | None:
        """The path relative to the workspace, or None for a library's file or one outside."""
        text = printed.removeprefix("file://").replace("\\", "/")
        if not text or _FOREIGN.search(text):
            return None
        if not text.startswith("/"):
            text = posixpath.normpath(posixpath.join(self.directory, text))
        elif self.workspace:
            root = self.workspace.rstrip("/") + "/"
            if not text.startswith(root):
                return None
            text = posixpath.normpath(text.removeprefix(root))
        if text.startswith("../") or not _FOREIGN_FOLDERS.isdisjoint(text.split("/")):
            return None
        return text

    def place(self, printed: str, line: int = 0, column: int = 0) -> Location | None:
        path = self.path(printed)
        return None if path is None else Location(path=path, line=line, column=column)


def shortened(frames: Iterable[Location | None]) -> tuple[Location, ...]:
    """The frames inside the workspace without repetitions; of a very deep stack its two ends."""
    kept: list[Location] = []
    for frame in frames:
        if frame is not None and (not kept or kept[-1] != frame):
            kept.append(frame)
    if len(kept) > _MOST_FRAMES:
        kept = kept[: _MOST_FRAMES // 2] + kept[-_MOST_FRAMES // 2 :]
    return tuple(kept)
