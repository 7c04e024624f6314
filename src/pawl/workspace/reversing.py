"""The step back from entries, merged with what was done since. Stores contents, writes nothing to the workspace."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from pawl.core.change import ChangeSet, Kind, Node, is_directory, parents
from pawl.core.merge import merge3, with_markers
from pawl.core.ports import BlobStore
from pawl.core.rebase import Conflict, difference, rebase
from pawl.core.text import is_binary
from pawl.workspace.promote import Promoter
from pawl.workspace.standing import SPECIAL

Nodes = dict[str, Node | None]

_FOLDER = Node.directory()


class OnConflict(StrEnum):
    """What to do where the user's later work and the step back cannot both be had."""

    STOP = "stop"
    """Change nothing and say where."""
    KEEP = "keep"
    """Leave those files as they are, take back the rest."""
    OVERWRITE = "overwrite"
    """Take them back all the same; this entry keeps the user's version, so undoing it brings that back."""
    MARK = "mark"
    """Write both versions between conflict markers, where the file is text."""


@dataclass(slots=True)
class Reversing:
    """Takes back one entry on top of the other, the newest first."""

    promoter: Promoter
    blobs: BlobStore
    on_conflict: OnConflict
    now: Nodes = field(default_factory=dict)
    goal: Nodes = field(default_factory=dict)
    start: Nodes = field(default_factory=dict)
    """What stood there before the oldest of the entries."""
    found: dict[str, Conflict] = field(default_factory=dict)
    decided: set[str] = field(default_factory=set)
    """Conflicts for which the user's choice has an answer."""

    def take_back(self, changes: ChangeSet) -> None:
        looked = self.promoter.nodes(changes.paths - self.now.keys(), changes.blobs)
        self.now.update(looked)
        self.goal.update(looked)
        self.start.update((change.path, change.before) for change in changes)
        back = changes.inverted()
        ours: Nodes = {change.path: change.after for change in changes}
        theirs: Nodes = {path: self.goal[path] for path in ours}
        for path in self._obstacles(back):
            ours[path], theirs[path] = _FOLDER, SPECIAL
        rebased = rebase(back, difference(ours, theirs), self.blobs)
        self.goal.update((change.path, change.after) for change in rebased.changes)
        for conflict in rebased.conflicts:
            self.found.setdefault(conflict.path, conflict)
            self._decide(conflict)

    def settled(self) -> tuple[ChangeSet, tuple[Conflict, ...]]:
        """What the step back changes, and where it could not be had."""
        for path in [path for path in self.found if self.now[path] == self.start[path]]:
            # It stands as it did before the oldest entry, whatever happened on the way.
            del self.found[path]
            self.goal[path] = self.now[path]
        for path in self.found.keys() - self.decided:
            self.goal[path] = self.now[path]
        return difference(self.now, self.goal), tuple(self.found[path] for path in sorted(self.found))

    def _obstacles(self, back: ChangeSet) -> frozenset[str]:
        """Where something else stands now in the place of a folder that the step back needs."""
        above = {folder for change in back if change.after is not None for folder in parents(change.path)}
        unknown = above - self.goal.keys()
        known = {path for path in above - unknown - back.paths if not _is_free(self.goal[path])}
        return self.promoter.obstacles(unknown) | known

    def _decide(self, conflict: Conflict) -> None:
        if self.on_conflict is OnConflict.OVERWRITE:
            self.goal[conflict.path] = conflict.ours
            self.decided.add(conflict.path)
        elif self.on_conflict is OnConflict.MARK and (node := self._marked(conflict)) is not None:
            self.goal[conflict.path] = node
            self.decided.add(conflict.path)

    def _marked(self, conflict: Conflict) -> Node | None:
        nodes = [node for node in (conflict.base, conflict.theirs, conflict.ours) if node is not None]
        texts = [self.blobs.get(node.blob) for node in nodes if node.kind is Kind.FILE and node.blob is not None]
        if conflict.theirs is None or len(texts) < 3 or any(map(is_binary, texts)):
            return None
        text = with_markers(merge3(*texts), ours="your version", theirs="before the change")
        return Node.file(self.blobs.put(text), conflict.theirs.mode)


def _is_free(node: Node | None) -> bool:
    return node is None or is_directory(node)


def below(changes: ChangeSet, files: Iterable[str]) -> ChangeSet:
    """The part at these paths and below them; all of it when there are none."""
    wanted = frozenset(files)
    if not wanted:
        return changes
    return changes.only(path for path in changes.paths if not wanted.isdisjoint((path, *parents(path))))
