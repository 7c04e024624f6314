"""Moving change sets: one set over another that started from the same tree, and the set that leads from one state to
another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from pawl.core.change import BlobStore, Change, ChangeSet, Node, NodeKind, is_directory, parents
from pawl.core.errors import CannotCompose
from pawl.core.merge import Region, merge3
from pawl.core.text import is_binary


class ConflictReason(StrEnum):
    """Why two changes of one path cannot both be had."""

    CONTENT = "both changed the same lines"
    BINARY = "both changed a file that is not text"
    LINK = "both changed where the link points"
    MODE = "both changed the permissions"
    KIND = "one made something else of it"
    CREATED = "both created it, differently"
    DELETED = "one changed what the other deleted"
    PARENT = "the directory it belongs in is gone"
    OCCUPIED = "the directory still holds something"
    MEANWHILE = "the user changed it after the bench was made"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """What `changes` wants at a path (ours) against what `over` made of it (theirs), with what both started from."""

    path: str
    base: Node | None
    ours: Node | None
    theirs: Node | None
    reason: ConflictReason
    regions: tuple[Region, ...] = ()
    """Where in the text, for `Reason.CONTENT`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    changes: ChangeSet
    """What applies after `over`; nothing of the conflicts is in it."""
    conflicts: tuple[Conflict, ...] = ()
    merged: tuple[str, ...] = ()
    """The files in which changes of both sides now stand together."""


def rebase(changes: ChangeSet, over: ChangeSet, blobs: BlobStore) -> Rebased:
    """`changes` moved to apply after `over`, where both start from the same tree."""
    with blobs.batch():
        rebasing = _Rebasing(changes, over, blobs)
        rebasing.merge_paths()
    rebasing.settle_tree()
    return Rebased(
        changes=ChangeSet.of(rebasing.accepted.values()),
        conflicts=tuple(rebasing.conflicts[path] for path in sorted(rebasing.conflicts)),
        merged=tuple(sorted(rebasing.merged & rebasing.accepted.keys())),
    )


def difference(before: Mapping[str, Node | None], now: Mapping[str, Node | None]) -> ChangeSet:
    """The set that leads from one state to the other. A path that a state does not name has nothing there."""
    pairs = ((path, before.get(path), now.get(path)) for path in before.keys() | now.keys())
    return ChangeSet.of(Change(path, old, new) for path, old, new in pairs if old != new)


@dataclass(slots=True)
class _Rebasing:
    changes: ChangeSet
    over: ChangeSet
    blobs: BlobStore
    accepted: dict[str, Change] = field(default_factory=dict)
    conflicts: dict[str, Conflict] = field(default_factory=dict)
    merged: set[str] = field(default_factory=set)

    def merge_paths(self) -> None:
        """Each path on its own."""
        beneath = {change.path: change for change in self.over}
        closed = {change.path for change in self.over if not is_directory(change.after)}
        for change in self.changes:
            other = beneath.get(change.path)
            if other is None:
                already_gone = change.after is None and not closed.isdisjoint(parents(change.path))
                if not already_gone:
                    self.accepted[change.path] = change
                continue
            if other.before != change.before:
                raise CannotCompose(
                    f"{change.path!r}: the two change sets do not start from the same tree",
                    advice="compose or rebase them from the last tree they have in common",
                )
            result = _Meeting(change, other, self.blobs).result()
            if isinstance(result, Conflict):
                self.conflicts[change.path] = result
            elif result != other.after:
                self.accepted[change.path] = Change(change.path, other.after, result)
                if result != change.after:
                    self.merged.add(change.path)

    def settle_tree(self) -> None:
        """Takes out what does not fit into the tree, until the rest does: taking out one thing can unsettle another."""
        while True:
            final = self._final()
            occupied = {parent for path, node in final.items() if node is not None for parent in parents(path)}
            misfits = [
                (change, reason)
                for change in self.accepted.values()
                if (reason := _misfit(change, final, occupied)) is not None
            ]
            if not misfits:
                return
            for change, reason in misfits:
                self._take_out(change, reason)

    def _final(self) -> dict[str, Node | None]:
        """What will stand at every path that either set speaks of."""
        final = {change.path: change.before for change in self.changes}
        final.update((change.path, change.after) for change in self.over)
        final.update((change.path, change.after) for change in self.accepted.values())
        return final

    def _take_out(self, change: Change, reason: ConflictReason) -> None:
        del self.accepted[change.path]
        wanted = self.changes.get(change.path)
        assert wanted is not None
        self.conflicts[change.path] = Conflict(
            path=change.path, base=wanted.before, ours=wanted.after, theirs=change.before, reason=reason
        )


def _misfit(change: Change, final: Mapping[str, Node | None], occupied: set[str]) -> ConflictReason | None:
    above = (final[parent] for parent in parents(change.path) if parent in final)
    if change.after is not None and not all(map(is_directory, above)):
        return ConflictReason.PARENT
    if not is_directory(change.after) and change.path in occupied:
        return ConflictReason.OCCUPIED
    return None


@dataclass(frozen=True, slots=True)
class _Meeting:
    """Two changes of one path."""

    change: Change
    other: Change
    blobs: BlobStore

    def result(self) -> Node | Conflict | None:
        """What stands there once both are had."""
        base, ours, theirs = self.change.before, self.change.after, self.other.after
        if ours == theirs:
            return theirs
        if ours is None or theirs is None:
            return self._conflict(ConflictReason.DELETED)
        if ours.kind is not theirs.kind:
            return self._conflict(ConflictReason.KIND)
        if ours.kind is NodeKind.DIRECTORY and (base is None or base.kind is not NodeKind.DIRECTORY):
            return theirs  # The directory is there; its permissions are those of whoever made it first.
        if base is None:
            return self._conflict(ConflictReason.CREATED)
        if base.kind is not ours.kind:
            return self._conflict(ConflictReason.KIND)
        return self._merged(base, ours, theirs)

    def _merged(self, base: Node, ours: Node, theirs: Node) -> Node | Conflict:
        blob = _three_way(base.blob, ours.blob, theirs.blob)
        mode = _three_way(base.mode, ours.mode, theirs.mode)
        if isinstance(blob, _Disagreement):
            merged = self._merged_text(base, ours, theirs)
            if isinstance(merged, Conflict):
                return merged
            blob = merged
        if isinstance(mode, _Disagreement):
            return self._conflict(ConflictReason.MODE)
        return Node(base.kind, blob, mode)

    def _merged_text(self, base: Node, ours: Node, theirs: Node) -> str | Conflict:
        if base.kind is NodeKind.LINK:
            return self._conflict(ConflictReason.LINK)
        texts = [self.blobs.get(node.blob) for node in (base, ours, theirs) if node.blob is not None]
        if any(is_binary(text) for text in texts):
            return self._conflict(ConflictReason.BINARY)
        merged = merge3(*texts)
        if merged.data is None:
            return self._conflict(ConflictReason.CONTENT, merged.conflicts)
        return self.blobs.put(merged.data)

    def _conflict(self, reason: ConflictReason, regions: tuple[Region, ...] = ()) -> Conflict:
        return Conflict(
            path=self.change.path,
            base=self.change.before,
            ours=self.change.after,
            theirs=self.other.after,
            reason=reason,
            regions=regions,
        )


T = TypeVar("T")


class _Disagreement:
    """Both sides changed it, each in its own way."""


def _three_way(base: T, ours: T, theirs: T) -> T | _Disagreement:
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else _Disagreement()
