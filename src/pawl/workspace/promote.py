"""Writing a change set into the workspace: journal first, then the files, and recovery of what was interrupted."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pawl.core.change import Change, ChangeSet, Kind, Node
from pawl.core.errors import Conflicted, NotAFile, NothingToDo, PawlError, PromotionFailed, ProtectedRefused, StoreError
from pawl.core.history import Entry, EntryState, NewEntry
from pawl.core.ports import BlobStore, Journal
from pawl.workspace.lock import writer_lock
from pawl.workspace.paths import depth, parent
from pawl.workspace.tree import Tree
from pawl.workspace.writer import STAGING_PREFIX, SYNC_EACH, Step, Writer, back, forward, is_locked, staging_name, steps

_NEW_FOLDER = Node.directory(0o755)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """What was promoted, which may be less than was asked: what already stands there is left out."""

    entry: int
    changes: ChangeSet
    notices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How an interrupted entry ended."""

    entry: Entry
    state: EntryState
    kept: tuple[str, ...] = ()
    """Paths that are neither old nor new, so they are the user's and were left alone."""


@dataclass(slots=True)
class Promoter:
    tree: Tree
    journal: Journal
    blobs: BlobStore
    locks: Path
    sync_each: int = SYNC_EACH

    def promote(self, entry: NewEntry, changes: ChangeSet) -> Promotion:
        """Writes the change set if every path still stands where the set starts; else `Conflicted`, nothing written."""
        with writer_lock(self.locks, self.tree.root):
            self._recover()
            plan = self.plan(changes)
            if not plan:
                raise NothingToDo("the workspace already stands as the change wants it")
            number = self.journal.begin(entry, plan, self._locked_folders(plan))
            self._write(number, plan)
            notices = self._finish(number, EntryState.DONE)
        return Promotion(entry=number, changes=plan, notices=notices)

    def recover(self) -> tuple[Recovery, ...]:
        """Finishes or takes back what a crash interrupted. Call before the workspace is used."""
        if not self.journal.pending(self.tree.root):
            return ()
        with writer_lock(self.locks, self.tree.root):
            return self._recover()

    def plan(self, changes: ChangeSet) -> ChangeSet:
        """The set as it can be written now: with the folders it needs and without what is already so."""
        for change in changes:
            _refuse_own_ground(change.path)
        wanted = {change.path: change for change in (*self._missing_folders(changes), *changes)}
        planned: list[Change] = []
        conflicts: list[str] = []
        for path, change in wanted.items():
            try:
                planned.extend(self._from_here(change))
            except Conflicted:
                conflicts.append(path)
        plan, blocked = self._keep_folders_in_use(ChangeSet.of(planned))
        conflicts.extend(blocked)
        if conflicts:
            raise Conflicted(
                f"changed meanwhile: {', '.join(repr(path) for path in sorted(conflicts))}",
                tuple(sorted(conflicts)),
                advice="nothing was written; look at the difference and try again",
            )
        return plan

    def _node(self, path: str) -> Node | None:
        return self.tree.node(path) if self.tree.find(path) is not None else None

    def _from_here(self, change: Change) -> tuple[Change, ...]:
        """The change as it starts from what stands there now; nothing when it is already so."""
        try:
            now = self._node(change.path)
        except NotAFile as error:
            raise Conflicted(str(error)) from error
        if now == change.after:
            return ()
        if now == change.before:
            return (change,)
        if _is_folder(now) and (_is_folder(change.before) or (change.before is None and _is_folder(change.after))):
            return (Change(change.path, now, change.after),)
        raise Conflicted(f"{change.path!r} is not what it was")

    def _missing_folders(self, changes: ChangeSet) -> Iterable[Change]:
        """A change set read from a patch does not speak of folders; the files need them."""
        for change in changes:
            above = parent(change.path) if change.after is not None else ""
            while above:
                seen = self.tree.find(above)
                if seen is None:
                    yield Change(above, None, _NEW_FOLDER)
                above = parent(above)

    def _keep_folders_in_use(self, plan: ChangeSet) -> tuple[ChangeSet, list[str]]:
        """A folder that holds something the set does not remove stays; one that must become a file is blocked."""
        gone = {change.path for change in plan if change.before is not None and change.after is None}
        kept: list[str] = []
        blocked: list[str] = []
        for change in sorted(plan, key=lambda change: depth(change.path), reverse=True):
            if not _is_folder(change.before) or _is_folder(change.after):
                continue
            inside = {f"{change.path}/{name}" for name in self.tree.names(change.path)}
            if inside <= gone:
                continue
            if change.after is None:
                kept.append(change.path)
                gone.discard(change.path)
            else:
                blocked.append(change.path)
        return plan.without(kept), blocked

    def _locked_folders(self, plan: ChangeSet) -> Mapping[str, int]:
        locked: dict[str, int] = {}
        for path in {parent(change.path) for change in plan} - plan.paths - {""}:
            seen = self.tree.find(path)
            if seen is not None and seen.kind is Kind.DIRECTORY and is_locked(seen):
                locked[path] = seen.mode
        return locked

    def _write(self, number: int, plan: ChangeSet) -> None:
        writer = self._writer(number)
        try:
            writer.settle(steps(plan, self.tree, forward))
        except BaseException as error:
            self._take_back(number, plan, error)
            if isinstance(error, OSError):
                raise PromotionFailed(
                    f"the workspace could not be written ({error.strerror or error}) and is as it was",
                    advice="free space or mend the permissions, then try again",
                ) from error
            raise

    def _take_back(self, number: int, plan: ChangeSet, cause: BaseException) -> None:
        try:
            self._go_back(number, plan)
        except (OSError, PawlError) as error:
            raise PromotionFailed(
                f"writing failed ({cause}) and so did taking it back ({error})",
                advice="run any pawl command once the disk is well again: it finishes or takes back entry "
                f"{number} before anything else",
            ) from cause
        self._finish(number, EntryState.ROLLED_BACK)

    def _go_back(self, number: int, plan: ChangeSet) -> tuple[str, ...]:
        """Puts back everything that is old or new; what is neither is the user's and stays."""
        writer = self._writer(number)
        found = list(steps(plan, self.tree, back))
        foreign = _foreign(plan, found)
        writer.settle(step for step in found if step.path not in foreign)
        return foreign

    def _recover(self) -> tuple[Recovery, ...]:
        return tuple(self._recover_one(entry) for entry in self.journal.pending(self.tree.root))

    def _recover_one(self, entry: Entry) -> Recovery:
        plan = self.journal.changes(entry.id)
        writer = self._writer(entry.id)
        writer.sweep()
        found = list(steps(plan, self.tree, forward))
        state = EntryState.DONE
        foreign: tuple[str, ...] = ()
        try:
            if _foreign(plan, found):
                raise Conflicted("the user changed it meanwhile")
            writer.settle(found)
        except Conflicted:
            state, foreign = EntryState.CONFLICT, self._go_back(entry.id, plan)
        except OSError:
            state, foreign = EntryState.ROLLED_BACK, self._go_back(entry.id, plan)
        self.journal.finish(entry.id, state)
        return Recovery(entry=entry, state=state, kept=foreign)

    def _writer(self, number: int) -> Writer:
        return Writer(self.tree, self.blobs, staging_name(number), self.journal.modes(number), self.sync_each)

    def _finish(self, number: int, state: EntryState) -> tuple[str, ...]:
        """The files are durable by now: if only the mark fails, recovery confirms it at the next start."""
        try:
            self.journal.finish(number, state)
        except StoreError as error:
            return (f"entry {number} could not be marked as {state}: {error}; the next pawl command will do it",)
        return ()


def _is_folder(node: Node | None) -> bool:
    return node is not None and node.kind is Kind.DIRECTORY


def _foreign(plan: ChangeSet, found: Sequence[Step]) -> tuple[str, ...]:
    """Paths that are neither old nor new nor on the way between them."""
    return tuple(step.path for change, step in zip(plan, found, strict=True) if not _is_ours(step.now, change))


def _is_ours(now: Node | None, change: Change) -> bool:
    """Whether a half-written entry can have left this node there."""
    if now in (change.before, change.after):
        return True
    if now is None:
        return change.before is not None and change.after is not None and change.before.kind is not change.after.kind
    if now.kind is Kind.DIRECTORY:
        return _is_folder(change.before) or _is_folder(change.after)
    # A mode that was opened or not yet set, with the content of either side.
    return any(
        node is not None and (node.kind, node.blob) == (now.kind, now.blob) for node in (change.before, change.after)
    )


def _refuse_own_ground(path: str) -> None:
    names = path.split("/")
    if any(name.casefold() == ".git" for name in names):
        raise ProtectedRefused(f"{path!r} is git's own; Pawl never writes it", advice="use git for that")
    if names[0].startswith(STAGING_PREFIX) or os.path.isabs(path) or {"", ".", ".."} & set(names):
        raise ProtectedRefused(f"{path!r} is not a path that can be promoted")
