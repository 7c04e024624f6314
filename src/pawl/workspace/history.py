"""Taking back and bringing back: undo, redo and restore, each a new entry merged with what the user did since."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from pawl.core.change import ChangeSet, Kind, Node
from pawl.core.errors import Conflicted, NothingToDo, UnknownEntry
from pawl.core.history import Checkpoint, Entry, EntryKind, EntryState, NewEntry
from pawl.core.merge import merge3, with_markers
from pawl.core.ports import BlobStore, Journal
from pawl.core.rebase import Conflict, difference, rebase
from pawl.workspace.promote import Promoter, Promotion
from pawl.workspace.tree import Tree

Nodes = dict[str, Node | None]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """What a step back would change, or has changed."""

    title: str
    changes: ChangeSet
    conflicts: tuple[Conflict, ...] = ()
    promotion: Promotion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What the user asked to take back."""

    files: tuple[str, ...] = ()
    """Only these, and what lies below them; empty for all."""
    on_conflict: OnConflict = OnConflict.STOP
    dry_run: bool = False


@dataclass(slots=True)
class History:
    tree: Tree
    promoter: Promoter
    journal: Journal
    blobs: BlobStore
    run: str
    """The run that new entries belong to."""

    @property
    def workspace(self) -> str:
        return self.tree.root

    def undo(self, number: int | None, wish: Wish) -> Reversal:
        """Takes back one entry; without a number the newest that is not taken back."""
        entry = self._newest_to_undo() if number is None else self.journal.entry(self.workspace, number)
        if entry.state is not EntryState.DONE:
            raise NothingToDo(f"entry {entry.id} is {entry.state}; there is nothing of it in the workspace to undo")
        if entry.reversed_by is not None:
            raise NothingToDo(
                f"entry {entry.id} was already taken back by entry {entry.reversed_by}",
                advice=f"bring it back with 'pawl undo {entry.reversed_by}' or 'pawl redo'",
            )
        whole = not wish.files
        new = self._new(EntryKind.UNDO, f"undo {entry.id}: {entry.title}", entry.id if whole else None)
        return self._reverse([entry], new, wish)

    def undo_run(self, run: str, wish: Wish) -> Reversal:
        """Takes back everything a run did."""
        entries = [entry for entry in self.journal.entries(self.workspace, run=run) if entry.active]
        if not entries:
            raise UnknownEntry(f"there is no run {run!r} with something to undo", advice="see 'pawl history'")
        return self._reverse(entries, self._new(EntryKind.UNDO, f"undo run {run}", None), wish)

    def redo(self, wish: Wish) -> Reversal:
        """Brings back what the newest undo took, unless something new was done since."""
        for entry in self._done():
            if entry.kind is EntryKind.UNDO and entry.active:
                return self._reverse([entry], self._new(EntryKind.REDO, f"redo of undo {entry.id}", entry.id), wish)
            if entry.kind is not EntryKind.REDO and entry.kind is not EntryKind.UNDO and entry.active:
                break
        raise NothingToDo("there is nothing to redo", advice="'pawl undo ID' of an undo brings back older work")

    def restore(self, checkpoint: Checkpoint, wish: Wish) -> Reversal:
        """Takes back everything done since the checkpoint; a checkpoint of the present is made first."""
        entries = [entry for entry in self._done() if entry.id > checkpoint.after_entry]
        new = self._new(EntryKind.RESTORE, f"restore {checkpoint.name!r}", None)
        if not entries:
            raise NothingToDo(f"nothing was done since checkpoint {checkpoint.name!r}")
        return self._reverse(entries, new, wish)

    def checkpoint(self, name: str) -> Checkpoint:
        """Marks this point of the history."""
        done = self._done()
        earlier = self.journal.checkpoints(self.workspace)
        since = earlier[0].after_entry if earlier else 0
        before: Nodes = {}
        after: Nodes = {}
        for entry in reversed([entry for entry in done if entry.id > since and not entry.pruned]):
            for change in self.journal.changes(entry.id):
                before.setdefault(change.path, change.before)
                after[change.path] = change.after
        taken = {known.name for known in earlier}
        unique = (
            name if name not in taken else next(f"{name}-{n}" for n in range(2, 10_000) if f"{name}-{n}" not in taken)
        )
        return self.journal.add_checkpoint(
            Checkpoint(
                id=0,
                workspace=self.workspace,
                name=unique,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                after_entry=done[0].id if done else 0,
                changes=difference(before, after),
            )
        )

    def _done(self) -> Sequence[Entry]:
        return [entry for entry in self.journal.entries(self.workspace) if entry.state is EntryState.DONE]

    def _newest_to_undo(self) -> Entry:
        for entry in self._done():
            if entry.kind not in (EntryKind.UNDO, EntryKind.REDO) and entry.active:
                return entry
        raise NothingToDo("there is nothing to undo", advice="see 'pawl history --all'")

    def _new(self, kind: EntryKind, title: str, reverses: int | None) -> NewEntry:
        return NewEntry(workspace=self.workspace, run=self.run, kind=kind, title=title, reverses=reverses)

    def _reverse(self, entries: Iterable[Entry], new: NewEntry, wish: Wish) -> Reversal:
        """The entries, newest first, taken back one on top of the other and promoted as one change set."""
        now: Nodes = {}
        goal: Nodes = {}
        conflicts: list[Conflict] = []
        touched: set[str] = set()
        for entry in entries:
            every = self.journal.changes(entry.id)
            touched |= every.paths
            changes = _below(every, wish.files)
            for path in changes.paths - goal.keys():
                now[path] = goal[path] = self._node(path)
            since = difference(
                {change.path: change.after for change in changes}, {path: goal[path] for path in changes.paths}
            )
            rebased = rebase(changes.inverted(), since, self.blobs)
            conflicts.extend(rebased.conflicts)
            for change in rebased.changes:
                goal[change.path] = change.after
            if wish.on_conflict in (OnConflict.OVERWRITE, OnConflict.MARK):
                goal.update(self._decided(rebased.conflicts, wish.on_conflict))
        if not goal:
            raise UnknownEntry(
                f"that did not touch {', '.join(map(repr, wish.files))}",
                advice=f"it touched {', '.join(sorted(map(repr, touched))[:5])}",
            )
        reversal = Reversal(title=new.title, changes=difference(now, goal), conflicts=tuple(conflicts))
        return self._promote(reversal, new, wish)

    def _promote(self, reversal: Reversal, new: NewEntry, wish: Wish) -> Reversal:
        if reversal.conflicts and wish.on_conflict is OnConflict.STOP and not wish.dry_run:
            names = ", ".join(sorted(repr(conflict.path) for conflict in reversal.conflicts))
            raise Conflicted(
                f"you changed {names} since, where this would take something back; nothing was changed",
                reversal.conflicts,
                advice="choose with --on-conflict keep | overwrite | mark, or take back other files with --file",
            )
        if wish.dry_run and (reversal.changes or reversal.conflicts):
            return reversal
        if not reversal.changes and reversal.conflicts:
            raise NothingToDo(
                "you changed everything that this would take back, and it was left as it is",
                advice="--on-conflict overwrite takes it back all the same, --on-conflict mark writes both versions",
            )
        if not reversal.changes:
            raise NothingToDo("the files already stand as they did before", advice="see 'pawl history'")
        if new.kind is EntryKind.RESTORE:
            self.checkpoint(f"before-restore-{self._done()[0].id}")
        promotion = self.promoter.promote(new, reversal.changes)
        return Reversal(
            title=reversal.title, changes=promotion.changes, conflicts=reversal.conflicts, promotion=promotion
        )

    def _decided(self, conflicts: Iterable[Conflict], choice: OnConflict) -> Nodes:
        decided: Nodes = {}
        for conflict in conflicts:
            if choice is OnConflict.OVERWRITE:
                decided[conflict.path] = conflict.ours
            elif (node := self._marked(conflict)) is not None:
                decided[conflict.path] = node
        return decided

    def _marked(self, conflict: Conflict) -> Node | None:
        nodes = (conflict.base, conflict.ours, conflict.theirs)
        if any(node is None or node.kind is not Kind.FILE or node.blob is None for node in nodes):
            return None
        base, ours, theirs = (self.blobs.get(node.blob) for node in nodes if node is not None and node.blob is not None)
        merged = merge3(base, theirs, ours)
        assert conflict.theirs is not None
        text = with_markers(merged, ours="your version", theirs="before the change")
        return Node.file(self.blobs.put(text), conflict.theirs.mode)

    def _node(self, path: str) -> Node | None:
        return self.tree.node(path, self.blobs) if self.tree.find(path) is not None else None


def _below(changes: ChangeSet, files: tuple[str, ...]) -> ChangeSet:
    if not files:
        return changes
    return changes.only(
        path for path in changes.paths if any(path == file or path.startswith(f"{file}/") for file in files)
    )
