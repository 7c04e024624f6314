"""Taking back and bringing back: undo, redo and restore, each a new entry merged with what the user did since."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum

from pawl.core.change import (
    BlobStore,
    ChangeSet,
    Checkpoint,
    Entry,
    EntryKind,
    EntryState,
    NewEntry,
    Node,
    RollbackPolicy,
    is_directory,
    parents,
)
from pawl.core.errors import Conflicted, NothingToDo, UnknownEntry
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import Conflict, difference, rebase
from pawl.settings.files import Tree
from pawl.store.journal import Journal
from pawl.workspace.paths import SPECIAL
from pawl.workspace.promotion import Promoter, Promotion

Nodes = dict[str, Node | None]

_FOLDER = Node.directory()


class OnConflict(StrEnum):
    """How to go on where the user's later work and the step back cannot both be had."""

    STOP = "stop"
    """Change nothing and say where."""
    KEEP = "keep"
    """Leave those files as they are, take back the rest."""
    OVERWRITE = "overwrite"
    """Take them back all the same; this entry keeps the user's version, so undoing it brings that back."""


@dataclass(slots=True)
class Reversing:
    """Takes back one entry on top of the other, the newest first."""

    promoter: Promoter
    blobs: BlobStore
    on_conflict: OnConflict
    now: Nodes = field(default_factory=dict)
    goal: Nodes = field(default_factory=dict)
    start: Nodes = field(default_factory=dict)
    """The nodes that stood there before the oldest of the entries."""
    found: dict[str, Conflict] = field(default_factory=dict)

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
            if self.on_conflict is OnConflict.OVERWRITE:
                self.goal[conflict.path] = conflict.ours

    def settled(self) -> tuple[ChangeSet, tuple[Conflict, ...]]:
        """The changes of the step back, and where it could not be had."""
        for path in [path for path in self.found if self.now[path] == self.start[path]]:
            # It stands as it did before the oldest entry, whatever happened on the way.
            del self.found[path]
            self.goal[path] = self.now[path]
        if self.on_conflict is not OnConflict.OVERWRITE:
            self.goal.update((path, self.now[path]) for path in self.found)
        return difference(self.now, self.goal), tuple(self.found[path] for path in sorted(self.found))

    def _obstacles(self, back: ChangeSet) -> frozenset[str]:
        """Where something else stands now in the place of a folder that the step back needs."""
        above = {folder for change in back if change.after is not None for folder in parents(change.path)}
        unknown = above - self.goal.keys()
        known = {path for path in above - unknown - back.paths if not _is_free(self.goal[path])}
        return self.promoter.obstacles(unknown) | known


def _is_free(node: Node | None) -> bool:
    return node is None or is_directory(node)


def below(changes: ChangeSet, files: Iterable[str]) -> ChangeSet:
    """The part at these paths and below them; all of it when there are none."""
    wanted = frozenset(files)
    if not wanted:
        return changes
    return changes.only(path for path in changes.paths if not wanted.isdisjoint((path, *parents(path))))


_PASSED_OVER = (EntryKind.UNDO, EntryKind.REDO, EntryKind.MEMORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reversal:
    """A step back that would be taken, or was."""

    title: str
    changes: ChangeSet
    conflicts: tuple[Conflict, ...] = ()
    promotion: Promotion | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The user's wish to take something back."""

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
    policy: RollbackPolicy = field(default_factory=RollbackPolicy)
    """The policy of new checkpoints for falling back, which `restore` does."""

    @property
    def workspace(self) -> str:
        return self.tree.root

    def undo(self, number: int | None, wish: Wish) -> Reversal:
        """Takes back one entry; without a number the newest that is not taken back.

        Of an entry that was taken back, single files can be taken back still: some may have been left as they were.
        """
        entry = self._newest_to_undo() if number is None else self.journal.entry(self.workspace, number)
        if entry.state is not EntryState.DONE:
            raise NothingToDo(
                f"entry {entry.id} is {entry.state}; there is nothing of it in the workspace to undo",
                advice="see 'pawl history --all'",
            )
        if entry.reversed_by is not None and not wish.files:
            raise NothingToDo(
                f"entry {entry.id} was already undone by entry {entry.reversed_by}",
                advice=f"bring it back with 'pawl undo {entry.reversed_by}' or 'pawl redo'",
            )
        return self._reverse([entry], self._new(EntryKind.UNDO, f"undo {entry.id}: {entry.title}"), wish)

    def undo_run(self, run: str, wish: Wish) -> Reversal:
        """Takes back everything a run did and nobody else has taken back."""
        standing: dict[int, Entry] = {}
        for entry in self._done(run):
            if entry.reversed_by is None or entry.reversed_by in standing:
                standing[entry.id] = entry
        if not standing:
            raise UnknownEntry(f"there is no run {run!r} with something to undo", advice="see 'pawl history'")
        return self._reverse(list(standing.values()), self._new(EntryKind.UNDO, f"undo run {run}"), wish)

    def redo(self, wish: Wish) -> Reversal:
        """Brings back what the newest undo took, unless something new was done since."""
        for entry in self._done():
            if entry.kind is EntryKind.UNDO and entry.active:
                return self._reverse([entry], self._new(EntryKind.REDO, f"redo of {entry.title}"), wish)
            if entry.kind not in _PASSED_OVER and entry.active:
                break
        raise NothingToDo("there is nothing to redo", advice="'pawl undo ID' of an undo brings back older work")

    def restore(self, after: int, point: str, wish: Wish) -> Reversal:
        """Takes back everything done after that entry; a checkpoint of the present is made first."""
        entries = [entry for entry in self._done() if entry.id > after]
        if not entries:
            raise NothingToDo(f"nothing was done since {point}", advice="see 'pawl history'")
        return self._reverse(entries, self._new(EntryKind.RESTORE, f"restore {point}"), wish)

    def between(self, after: int, until: int | None = None) -> ChangeSet:
        """What the entries after one have changed, up to another or to the newest, as one change set."""
        entries = [one for one in reversed(self._done()) if after < one.id <= (until or one.id) and not one.pruned]
        steps = [change for one in entries for change in self.journal.changes(one.id)]
        before = {change.path: change.before for change in reversed(steps)}
        return difference(before, {change.path: change.after for change in steps})

    def checkpoint(
        self,
        name: str,
        *,
        changes: ChangeSet | None = None,
        progress: Mapping[str, object] | None = None,
        verification: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        """Marks this point of the history; a name that is taken is an error. A run gives the `changes` of its bench."""
        done = self._done()
        earlier = [one.after_entry for one in self.journal.checkpoints(self.workspace) if not one.run]
        return self.journal.add_checkpoint(
            Checkpoint(
                id=0,
                workspace=self.workspace,
                name=name,
                created="",
                after_entry=done[0].id if done else 0,
                changes=self.between(earlier[0] if earlier else 0) if changes is None else changes,
                progress=progress or {},
                verification=verification or {},
                policy=self.policy,
            )
        )

    def free_name(self, wish: str) -> str:
        """A name for a checkpoint that begins like that and is not taken."""
        taken = {known.name for known in self.journal.checkpoints(self.workspace)}
        names = itertools.chain([wish], (f"{wish}-{n}" for n in itertools.count(2)))
        return next(name for name in names if name not in taken)

    def _done(self, run: str | None = None) -> Sequence[Entry]:
        entries = self.journal.entries(self.workspace, run=run)
        return [entry for entry in entries if entry.state is EntryState.DONE]

    def _to_undo(self) -> list[Entry]:
        # A redo of some files, which reverses no entry, is undone like other work.
        kinds = {one: one.kind is EntryKind.REDO and not one.reverses for one in self._done() if one.active}
        return [one for one, is_partial in kinds.items() if is_partial or one.kind not in _PASSED_OVER]

    def _newest_to_undo(self) -> Entry:
        for entry in self._to_undo():
            return entry
        raise NothingToDo("there is nothing to undo", advice="see 'pawl history --all'")

    def _new(self, kind: EntryKind, title: str) -> NewEntry:
        return NewEntry(workspace=self.workspace, run=self.run, kind=kind, title=title)

    def _reverse(self, entries: Sequence[Entry], new: NewEntry, wish: Wish) -> Reversal:
        """The entries, newest first, taken back one on top of the other and promoted as one change set."""
        reversing = Reversing(self.promoter, self.blobs, wish.on_conflict)
        touched: set[str] = set()
        for entry in entries:
            every = self.journal.changes(entry.id)
            touched |= every.paths
            reversing.take_back(below(every, wish.files))
        if not reversing.goal:
            raise UnknownEntry(
                f"that did not touch {', '.join(map(repr, wish.files))}",
                advice=f"it touched {', '.join(sorted(map(repr, touched))[:5])}",
            )
        if not wish.files:
            numbers = tuple(entry.id for entry in entries)
            is_single = len(numbers) == 1 and new.kind is not EntryKind.RESTORE
            new = replace(new, reverses=numbers[0]) if is_single else replace(new, reverses_all=numbers)
        changes, conflicts = reversing.settled()
        reversal = Reversal(title=new.title, changes=changes, conflicts=conflicts)
        if conflicts and wish.on_conflict is OnConflict.STOP and not wish.dry_run:
            raise self._conflicted(entries, conflicts)
        if not changes and not (wish.dry_run and conflicts):
            raise self._nothing(entries, conflicts)
        return reversal if wish.dry_run else self._promoted(reversal, new)

    def _promoted(self, reversal: Reversal, new: NewEntry) -> Reversal:
        if new.kind is EntryKind.RESTORE:
            self.checkpoint(self.free_name(f"before-restore-{self._done()[0].id}"))
        promotion = self.promoter.promote(new, reversal.changes)
        return replace(reversal, changes=promotion.changes, promotion=promotion)

    def _conflicted(self, entries: Iterable[Entry], conflicts: tuple[Conflict, ...]) -> Conflicted:
        names = ", ".join(repr(conflict.path) for conflict in conflicts)
        choice = "choose with --on-conflict keep | overwrite, or choose other files with --file"
        later = self._later(entries, frozenset(conflict.path for conflict in conflicts))
        who = f"entry {later[0]} changed" if later else "you changed"
        first = f"undo entry {later[0]} first, or " if later else ""
        told = f"{who} {names} since, in lines that this would undo; nothing was changed"
        return Conflicted(told, conflicts, advice=f"{first}{choice}")

    def _later(self, entries: Iterable[Entry], paths: frozenset[str]) -> list[int]:
        """Entries that hold, newest first, that changed one of these paths after the newest of those entries."""
        newest = max(entry.id for entry in entries)
        later = [entry for entry in self._done() if entry.id > newest and entry.active and not entry.pruned]
        return [entry.id for entry in later if not paths.isdisjoint(self.journal.changes(entry.id).paths)]

    def _nothing(self, entries: Sequence[Entry], conflicts: tuple[Conflict, ...]) -> NothingToDo:
        if conflicts:
            return NothingToDo(
                "you changed everything that this would undo; it was left as it is",
                advice="--on-conflict overwrite undoes it anyway",
            )
        older = [entry.id for entry in self._to_undo() if entry.id < entries[-1].id]
        return NothingToDo(
            "the files are already as they were before",
            advice=f"'pawl undo {older[0]}' takes back what was done before that" if older else "see 'pawl history'",
        )
