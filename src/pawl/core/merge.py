"""Merging: texts by lines, and one change set over another that started from the same tree.

A merge of texts is clean only when it does not depend on how equal lines are matched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import TypeVar

from pawl.core.change import BlobStore, Change, ChangeSet, Node, NodeKind, is_directory, parents
from pawl.core.errors import CannotCompose
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import LineChange, Matching, edits, is_binary, split_lines


def merge3(base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both sides' changes of `base` in one text; None where changes overlap or touch and are not the same."""
    if ours in (base, theirs):
        return theirs
    if theirs == base:
        return ours
    sides = (split_lines(base), split_lines(ours), split_lines(theirs))
    results: set[bytes] = set()
    for matching in Matching:
        merged = _merged(*sides, matching)
        if merged is None:
            return None
        results.add(merged)
    return results.pop() if len(results) == 1 else None


def _merged(base: Sequence[bytes], ours: Sequence[bytes], theirs: Sequence[bytes], matching: Matching) -> bytes | None:
    kept: list[bytes] = []
    at = our_shift = their_shift = 0
    for group in _groups(edits(base, ours, matching), edits(base, theirs, matching)):
        our_start, our_end = _span(group, group.ours, our_shift)
        their_start, their_end = _span(group, group.theirs, their_shift)
        our_lines, their_lines = ours[our_start:our_end], theirs[their_start:their_end]
        if group.ours and group.theirs and our_lines != their_lines:
            return None
        kept += (*base[at : group.start], *(our_lines if group.ours else their_lines))
        at, our_shift, their_shift = group.end, our_end - group.end, their_end - group.end
    return b"".join((*kept, *base[at:]))


@dataclass(slots=True)
class _Group:
    """Edits of both sides that overlap or touch, with the lines of the base they cover."""

    start: int
    end: int
    ours: list[LineChange]
    theirs: list[LineChange]


def _groups(ours: Sequence[LineChange], theirs: Sequence[LineChange]) -> Iterator[_Group]:
    sided = sorted([(edit, True) for edit in ours] + [(edit, False) for edit in theirs])
    group: _Group | None = None
    for edit, is_ours in sided:
        if group is None or edit.a_start > group.end:
            if group is not None:
                yield group
            group = _Group(edit.a_start, edit.a_end, [], [])
        group.end = max(group.end, edit.a_end)
        (group.ours if is_ours else group.theirs).append(edit)
    if group is not None:
        yield group


def _span(group: _Group, own: Sequence[LineChange], shift: int) -> tuple[int, int]:
    """Which lines of one side stand for the group's lines of the base; `shift` is by how much that side is longer."""
    grown = sum((edit.b_end - edit.b_start) - (edit.a_end - edit.a_start) for edit in own)
    return group.start + shift, group.end + shift + grown


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
    """A path as `changes` wants it (ours) against what `over` made of it (theirs), with what both started from."""

    path: str
    base: Node | None
    ours: Node | None
    theirs: Node | None
    reason: ConflictReason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebased:
    changes: ChangeSet
    """The changes that apply after `over`, without the conflicts."""
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
        """The final node of every path that either set speaks of."""
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
        """The node once both are had, or why they cannot be."""
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
        return self._conflict(ConflictReason.CONTENT) if merged is None else self.blobs.put(merged)

    def _conflict(self, reason: ConflictReason) -> Conflict:
        return Conflict(
            path=self.change.path,
            base=self.change.before,
            ours=self.change.after,
            theirs=self.other.after,
            reason=reason,
        )


T = TypeVar("T")


class _Disagreement:
    """Both sides changed it, each in its own way."""


def _three_way(base: T, ours: T, theirs: T) -> T | _Disagreement:
    if ours in (base, theirs):
        return theirs
    return ours if theirs == base else _Disagreement()
