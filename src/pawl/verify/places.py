"""Where a report's paths lie: relative to the workspace when inside it, dropped when they belong to a library."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable
from dataclasses import dataclass

from pawl.core.finding import Place

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

    def place(self, printed: str, line: int = 0, column: int = 0) -> Place | None:
        path = self.path(printed)
        return None if path is None else Place(path=path, line=line, column=column)


def shortened(frames: Iterable[Place | None]) -> tuple[Place, ...]:
    """The frames inside the workspace without repetitions; of a very deep stack its two ends."""
    kept: list[Place] = []
    for frame in frames:
        if frame is not None and (not kept or kept[-1] != frame):
            kept.append(frame)
    if len(kept) > _MOST_FRAMES:
        kept = kept[: _MOST_FRAMES // 2] + kept[-_MOST_FRAMES // 2 :]
    return tuple(kept)
