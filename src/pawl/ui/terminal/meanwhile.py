"""The user's own actions since the model last answered, told to it with the next request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import field
from typing import TYPE_CHECKING

from pawl.core.change import REVERSALS
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line

if TYPE_CHECKING:
    from pawl.workspace.project import Project

MOST_NAMED = 10
"""Files and entries that are named; the rest is counted."""
HEAD = "Since the last request the user did this, which you have not seen:"


@dataclass(slots=True)
class Meanwhile:
    notes: list[str] = field(default_factory=list)
    _entry: int = 0
    """The newest entry when the last request ended."""
    _since: int = 0
    """When that was, in nanoseconds."""

    def mark(self, shop: Project) -> None:
        """Remember how things stand: the model knows them so far."""
        newest = shop.entries(limit=1)
        self._entry, self._since = newest[0].id if newest else 0, time.time_ns()

    def told(self, shop: Project, paths: Iterable[str], *, talking: bool) -> tuple[str, ...]:
        """The text for the model, once; `talking` where a conversation goes on that knows the files as they were."""
        lines = [*self.notes, *(self._changed(shop, paths) if talking and self._since else ())]
        self.notes.clear()
        return ("\n".join([HEAD, *(f"- {line}" for line in lines)]),) if lines else ()

    def _changed(self, shop: Project, paths: Iterable[str]) -> Iterator[str]:
        newer = [one for one in shop.entries(limit=MOST_NAMED) if one.id > self._entry]
        known: set[str] = set()
        for entry in reversed(newer):
            files = sorted(shop.changes(entry).paths)
            known.update(files)
            if entry.kind in REVERSALS:
                yield f"{entry.kind}: {one_line(entry.title, 80)} ({_some(files)})"
        edited = [path for path in paths if path not in known and self._is_newer(shop.workspace, path)]
        if edited:
            yield f"edited {_some(edited)}; read a file again before you change it"

    def _is_newer(self, workspace: str, path: str) -> bool:
        try:
            return os.lstat(os.path.join(workspace, path)).st_mtime_ns > self._since
        except OSError:
            return False


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
