"""The user's own actions since the model last answered, told to it with the next request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime
from typing import TYPE_CHECKING

from pawl.core.change import Entry, EntryKind, Node
from pawl.core.errors import Conflicted
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import ApprovalAnswer, ApprovalRequest, ApprovalResponse
from pawl.core.text import one_line

if TYPE_CHECKING:
    from pawl.core.patch import Hunk
    from pawl.workspace.project import Project

MOST_NAMED = 10
"""Files that are named; the rest is counted."""
MOST_ENTRIES = 100
"""Entries since the last request that are looked at."""
QUICK = 0.3
"""Seconds in which a workspace is looked through again for each request."""
Stamp = tuple[int, int]
HEAD = "Since the last request the user did this, which you have not seen:"


@dataclass(slots=True)
class Meanwhile:
    notes: list[str] = field(default_factory=list)
    told_entries: set[int] = field(default_factory=set)
    """Entries that a note tells of."""
    quick: bool = True
    """The workspace is looked through again for each request; a larger one once."""
    _paths: tuple[str, ...] = ()
    _stamps: dict[str, Stamp] | None = None
    """The files as they stood when the last request began; None in a conversation that was taken up again."""
    _active: frozenset[int] | None = None
    """The entries that stood then."""
    _since: int = field(default_factory=time.time_ns)
    """When that was, in nanoseconds: what the user changes while it works counts too."""

    def resume(self, last: str) -> None:
        """A conversation continues in which something was said at that time last."""
        self._since, self._stamps, self._active = _nanoseconds(last), None, None

    def paths(self, shop: Project) -> tuple[str, ...]:
        """Every file that may be named to a model."""
        from pawl.agent.instructions import paths_of

        if self.quick:
            started = time.monotonic()
            self._paths = paths_of(shop)
            self.quick = time.monotonic() - started < QUICK
        return self._paths

    def answered(self, asked: ApprovalRequest, given: ApprovalResponse, every: Sequence[Hunk]) -> None:
        """The user's answer to a question about a change of these hunks."""
        if given.patch:
            self.notes.append("edited your change before it was promoted; read the files again")
        elif given.answer is ApprovalAnswer.REJECT and asked.kind != "call":
            self.notes.append(
                ": ".join(filter(None, ("rejected your change, nothing of it was promoted", given.reason)))
            )
        left = [f"{one.path} {one.header}" for number, one in enumerate(every, 1) if number not in given.hunks]
        if given.hunks and left:
            self.notes.append(f"took only a part of your change; left out: {_some(left)}")

    def told(self, shop: Project, conversation: str) -> tuple[str, ...]:
        """The text for the model, once; without a conversation it knows nothing that could have changed."""
        stamps = {path: stamp for path in self.paths(shop) if (stamp := _stamp(shop.workspace, path))}
        entries = shop.entries(limit=MOST_ENTRIES)
        lines = [*self.notes, *(self._changed(shop, conversation, stamps, entries) if conversation else ())]
        self.notes.clear()
        self._since, self._stamps = time.time_ns(), stamps
        self._active = frozenset(one.id for one in entries if one.active)
        return ("\n".join([HEAD, *(f"- {line}" for line in lines)]),) if lines else ()

    def _changed(
        self, shop: Project, conversation: str, stamps: Mapping[str, Stamp], entries: Sequence[Entry]
    ) -> Iterator[str]:
        own = {one.run for one in shop.store.transcripts.messages(conversation) if one.run}
        left: dict[str, Node | None] = {}
        for entry in reversed([one for one in entries if self._is_new(one)]):
            changes = shop.changes(entry)
            left.update((one.path, one.after) for one in changes)
            if entry.run not in own and entry.id not in self.told_entries and entry.kind is not EntryKind.MEMORY:
                yield f"entry {entry.id}: {one_line(entry.title, 80)} ({_some(sorted(changes.paths))})"
        as_left = _as_left(shop, left)
        before, since = self._stamps, self._since
        edited = [
            path
            for path, stamp in stamps.items()
            if path not in as_left
            and (stamp[0] > since if before is None else path in before and before[path] != stamp)
        ]
        if edited:
            yield f"edited {_some(edited)}; read a file again before you change it"
        if before is not None:
            created = [path for path in stamps if path not in before and path not in as_left]
            deleted = [path for path in before if path not in stamps and path not in as_left]
            yield from (f"{word} {_some(some)}" for word, some in (("created", created), ("deleted", deleted)) if some)

    def _is_new(self, entry: Entry) -> bool:
        if self._active is None:
            return _nanoseconds(entry.created) > self._since
        return entry.active and entry.id not in self._active


def _stamp(workspace: str, path: str) -> Stamp | None:
    """When it was written and how long it is; None where it is gone."""
    try:
        found = os.lstat(os.path.join(workspace, path))
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _as_left(shop: Project, left: Mapping[str, Node | None]) -> frozenset[str]:
    """Of the files that entries have written, those that stand as these left them."""
    try:
        now = shop.promoter.nodes(left, frozenset(node.blob for node in left.values() if node and node.blob))
    except Conflicted:
        return frozenset()
    return frozenset(path for path, node in left.items() if now[path] == node)


def _nanoseconds(when: str) -> int:
    return int(datetime.fromisoformat(when).timestamp() * 10**9)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    shown = (one_line(name, 200) for name in names[:MOST_NAMED])
    return ", ".join(repr(name) if " " in name else name for name in shown) + more
