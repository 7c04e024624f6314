"""The user's own actions since the model last answered, told to it with the next request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from pawl.core.change import REVERSALS
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line

if TYPE_CHECKING:
    from pawl.workspace.project import Project

MOST_NAMED = 10
"""Files that are named; the rest is counted."""
MOST_ENTRIES = 100
"""Entries since the last request that are looked at."""
WRITING = 5 * 10**9
"""Nanoseconds in which a promotion has written its files."""
HEAD = "Since the last request the user did this, which you have not seen:"


@dataclass(slots=True)
class Meanwhile:
    notes: list[str] = field(default_factory=list)
    _since: int = field(default_factory=time.time_ns)
    """When the last request began, in nanoseconds: what the user changes while it works counts too."""

    def resume(self, last: str) -> None:
        """A conversation continues in which something was said at that time last."""
        self._since = _nanoseconds(last)

    def told(self, shop: Project, paths: Iterable[str], *, talking: bool) -> tuple[str, ...]:
        """The text for the model, once; `talking` where a conversation goes on that knows the files as they were."""
        lines = [*self.notes, *(self._changed(shop, paths) if talking else ())]
        self.notes.clear()
        self._since = time.time_ns()
        return ("\n".join([HEAD, *(f"- {line}" for line in lines)]),) if lines else ()

    def _changed(self, shop: Project, paths: Iterable[str]) -> Iterator[str]:
        newer = [one for one in shop.entries(limit=MOST_ENTRIES) if _nanoseconds(one.created) > self._since]
        written: dict[str, int] = {}
        for entry in reversed(newer):
            files = sorted(shop.changes(entry).paths)
            written.update(dict.fromkeys(files, _nanoseconds(entry.created) + WRITING))
            if entry.kind in REVERSALS:
                yield f"{one_line(entry.title, 80)} ({_some(files)})"
        edited = [path for path in paths if _changed(shop.workspace, path) > written.get(path, self._since)]
        if edited:
            yield f"edited {_some(edited)}; read a file again before you change it"


def _changed(workspace: str, path: str) -> int:
    try:
        return os.lstat(os.path.join(workspace, path)).st_mtime_ns
    except OSError:
        return 0


def _nanoseconds(when: str) -> int:
    return int(datetime.fromisoformat(when).timestamp() * 10**9)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more
