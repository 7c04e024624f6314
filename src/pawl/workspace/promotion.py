"""Writing a change set into the workspace: journal first, then the files, and recovery of what was interrupted."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TypeVar

from pawl.core.change import (
    EMPTY,
    REVERSALS,
    BlobStore,
    Change,
    ChangeSet,
    Entry,
    EntryKind,
    EntryState,
    NewEntry,
    Node,
    NodeKind,
    is_directory,
    parents,
)
from pawl.core.errors import (
    Conflicted,
    MissingBlob,
    NothingToDo,
    PathRefused,
    PawlError,
    PromotionFailed,
    StoreCorrupt,
    StoreError,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.settings.files import LOCK_SECONDS, Tree, writer_lock
from pawl.settings.guardrails import Judge
from pawl.store.blobs import StagedBlobs
from pawl.store.journal import Journal
from pawl.workspace.gate import refuse_changes, refuse_own_ground
from pawl.workspace.paths import SPECIAL, TreeStatus, depth, is_closed, open_closed
from pawl.workspace.writer import SYNC_EACH, Writer, WriteStep, former_name, staging_names

_NEW_FOLDER = Node.directory(0o755)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    steps: tuple[WriteStep, ...]
    changes: ChangeSet
    """The same as a change set."""
    modes: Mapping[str, int]
    """Folders that have to be opened meanwhile and that the set does not speak of."""


@dataclass(slots=True)
class Planning:
    """The set as it can be written now: with the folders it needs and without what is already so."""

    standing: TreeStatus
    wanted: ChangeSet
    steps: dict[str, WriteStep] = field(default_factory=dict)
    conflicts: set[str] = field(default_factory=set)
    folders: dict[str, bool] = field(default_factory=dict)
    """Whether there will be a folder at these paths."""

    def plan(self) -> Plan:
        self.folders = {change.path: is_directory(change.after) for change in self.wanted}
        for change in self.wanted:
            if change.after is not None and not self._has_room(change.path):
                self.conflicts.add(change.path)
            else:
                self._add(change)
        self._keep_folders_in_use()
        if self.conflicts:
            raise Conflicted(
                f"changed meanwhile: {', '.join(repr(path) for path in sorted(self.conflicts))}",
                tuple(sorted(self.conflicts)),
                advice="nothing was written; look at the difference and try again",
            )
        steps = tuple(self.steps[path] for path in sorted(self.steps))
        changes = ChangeSet(tuple(Change(step.path, step.now, step.goal) for step in steps))
        return Plan(steps=steps, changes=changes, modes=self._locked_folders())

    def _add(self, change: Change) -> None:
        """The change as it starts from what stands there now; nothing when it is already so."""
        seen, now = self.standing.at(change.path)
        if now == change.after:
            return
        if is_directory(now) and change.before is None and is_directory(change.after):
            return  # The user made it meanwhile, so its mode is theirs.
        if now == change.before or (is_directory(now) and is_directory(change.before)):
            self.steps[change.path] = WriteStep(change.path, now, change.after, seen)
        else:
            self.conflicts.add(change.path)

    def _has_room(self, path: str) -> bool:
        """Plans the folders above the path that are missing; a patch does not speak of them."""
        missing: list[str] = []
        is_room = True
        for above in parents(path):
            if above not in self.folders:
                seen = self.standing.tree.find(above)
                if seen is None:
                    missing.append(above)
                    continue
                self.folders[above] = seen.kind is NodeKind.DIRECTORY
            is_room = self.folders[above]
            break
        for above in missing:
            self.folders[above] = is_room
            if is_room:
                self.steps[above] = WriteStep(above, None, _NEW_FOLDER, None)
        return is_room

    def _keep_folders_in_use(self) -> None:
        """A folder that holds something the set does not remove stays; one that must become a file is blocked."""
        gone = {step.path for step in self.steps.values() if step.goal is None}
        for step in sorted(self.steps.values(), key=lambda step: depth(step.path), reverse=True):
            if not is_directory(step.now) or is_directory(step.goal):
                continue
            if gone.issuperset(f"{step.path}/{name}" for name in self.standing.tree.names(step.path)):
                continue
            if step.goal is None:
                del self.steps[step.path]
                gone.discard(step.path)
            else:
                self.conflicts.add(step.path)

    def _locked_folders(self) -> Mapping[str, int]:
        above = {folder for path in self.steps for folder in parents(path)}
        locked: dict[str, int] = {}
        for path in above - self.steps.keys():
            seen, _ = self.standing.at(path)
            if seen is not None and is_closed(seen, 0o700):
                locked[path] = seen.mode
        return locked


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promotion:
    """A promotion that was made; it may be less than was asked: what already stands there is left out."""

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

    @property
    def notice(self) -> str:
        kept = f"; {', '.join(map(repr, self.kept))} left as you made it" if self.kept else ""
        return f"entry {self.entry.id} was interrupted earlier and is now {self.state}{kept}"


@dataclass(slots=True)
class Promoter:
    tree: Tree
    journal: Journal
    blobs: BlobStore
    locks: Path
    sync_each: int = SYNC_EACH
    lock_seconds: float = LOCK_SECONDS
    """How long to wait for another process that writes the workspace."""
    judging: Callable[[], Judge] | None = None
    """Reads the rules; what they deny is refused."""

    def promote(self, entry: NewEntry, changes: ChangeSet) -> Promotion:
        """Writes the change set if every path still stands where the set starts; else `Conflicted`, nothing written."""
        for change in changes:
            refuse_own_ground(change.path)
        with self._lock():
            recovered = self._recover()
            with _reading():
                staging_names(self.locks, 0)  # the key is there before an entry depends on it
            plan = self._plan(changes)
            if not plan.steps:
                raise NothingToDo("the workspace already has this change")
            judge = self.judging() if self.judging is not None and entry.kind not in REVERSALS else None
            with _reading():
                refuse_changes(entry, plan.changes, self.tree, self.blobs, judge)
            number = self.journal.begin(entry, plan.changes, plan.modes)
            self._write(number, plan)
            notices = (*(recovery.notice for recovery in recovered), *self._confirm(number))
        return Promotion(entry=number, changes=plan.changes, notices=notices)

    def recover(self) -> tuple[Recovery, ...]:
        """Finishes or takes back what a crash interrupted. Call before the workspace is used."""
        if not self.journal.pending(self.tree.root):
            return ()
        with self._lock():
            return self._recover()

    def nodes(self, paths: Iterable[str], known: frozenset[str]) -> dict[str, Node | None]:
        """The nodes at the paths now. A content that is not among the known ones is stored, so that it can come back.

        Raises `Conflicted` for what no change set can hold, such as a FIFO.
        """
        wanted = sorted(paths)
        return self._looking(wanted, lambda modes: self._nodes(wanted, known, modes))

    def obstacles(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of the paths at which something stands that is no folder."""

        def look(_: object) -> frozenset[str]:
            seen = {path: self.tree.find(path) for path in wanted}
            return frozenset(path for path, one in seen.items() if one and one.kind is not NodeKind.DIRECTORY)

        wanted = sorted(paths)
        return self._looking(wanted, look)

    def _looking(self, paths: Sequence[str], look: Callable[[Mapping[str, int]], T]) -> T:
        with _reading():
            try:
                return look({})
            except PermissionError:
                with self._lock(), self._opened(paths) as modes:
                    return look(modes)

    def _lock(self) -> AbstractContextManager[None]:
        return writer_lock(self.locks, self.tree.root, seconds=self.lock_seconds)

    def _nodes(self, paths: Sequence[str], known: frozenset[str], modes: Mapping[str, int]) -> dict[str, Node | None]:
        standing = TreeStatus(self.tree, modes)
        found = {path: standing.at(path)[1] for path in paths}
        blobs = {path: node.blob for path, node in found.items() if node is not None and node.blob is not None}
        fresh = [path for path, blob in blobs.items() if blob not in known]
        odd = tuple(path for path in fresh if found[path] == SPECIAL)
        if odd:
            raise Conflicted(f"{', '.join(map(repr, odd))} is not a file, folder or link that could be changed", odd)
        if fresh:
            with StagedBlobs(self.blobs) as staged:
                for path in fresh:
                    node = self.tree.node(path, staged)
                    found[path] = None if node is None else replace(node, mode=modes.get(path, node.mode))
        return found

    def _plan(self, changes: ChangeSet) -> Plan:
        with _reading():
            try:
                return Planning(TreeStatus(self.tree), changes).plan()
            except PermissionError:
                with self._opened(changes.paths) as modes:
                    return Planning(TreeStatus(self.tree, modes), changes).plan()

    @contextmanager
    def _opened(self, paths: Iterable[str]) -> Iterator[Mapping[str, int]]:
        """Opens what its owner may not look into; the journal knows the modes, so that a crash leaves nothing open."""
        entry = NewEntry(workspace=self.tree.root, run="", kind=EntryKind.EDIT, title="open unreadable folders")
        numbers: list[int] = []
        try:
            yield open_closed(self.tree, paths, lambda modes: numbers.append(self.journal.begin(entry, EMPTY, modes)))
        finally:
            for number in reversed(numbers):
                self._writer(number).settle(())
                self.journal.finish(number, EntryState.ROLLED_BACK)

    def _write(self, number: int, plan: Plan) -> None:
        try:
            self._writer(number).settle(plan.steps)
        except BaseException as error:
            self._take_back(number, plan.changes, error)
            if isinstance(error, OSError):
                raise PromotionFailed(
                    f"the workspace could not be written ({_told(error)}) and is as it was",
                    advice=f"{_remedy(error)}; 'pawl diff {number}' has the change",
                ) from error
            raise

    def _take_back(self, number: int, changes: ChangeSet, cause: BaseException) -> None:
        """Takes back what the caller is told has failed, for good: recovery does not begin it again."""
        try:
            kept = self._go_back(number, changes)
        except (OSError, PawlError) as error:
            raise PromotionFailed(
                f"writing failed ({cause}) and so did the rollback ({error})",
                advice="run any pawl command once the disk works again: it finishes or rolls back entry "
                f"{number} before anything else",
            ) from cause
        state = EntryState.CONFLICT if kept else EntryState.ROLLED_BACK
        try:
            self.journal.finish(number, state)
        except StoreError as error:
            raise PromotionFailed(
                f"writing failed ({cause}) and the workspace is as it was, but entry {number} could not be marked as "
                f"{state} ({error})",
                advice="the next pawl command marks it; nothing of it will be written",
            ) from cause

    def _confirm(self, number: int) -> tuple[str, ...]:
        """The files are durable by now: if only the mark fails, recovery confirms it at the next start."""
        try:
            self.journal.finish(number, EntryState.DONE)
        except StoreError as error:
            return (
                f"entry {number} is written but could not be marked as {EntryState.DONE} ({error}); "
                "run a pawl command before you change these files, it will do it",
            )
        return ()

    def _recover(self) -> tuple[Recovery, ...]:
        """Only the holder of the lock stages, so what an entry that is not finished has staged was left behind."""
        pending = self.journal.pending(self.tree.root)
        for entry in pending:
            with suppress(OSError, PawlError):
                writer = self._writer(entry.id)
                replace(writer, staging=(*writer.staging, former_name(self.locks, entry.id))).sweep()
        return tuple(self._recover_one(entry) for entry in pending)

    def _recover_one(self, entry: Entry) -> Recovery:
        changes = self.journal.changes(entry.id)
        state = EntryState.DONE
        kept: tuple[str, ...] = ()
        try:
            if not self._has_gone_forward(entry.id, changes):
                kept = self._go_back(entry.id, changes)
                state = EntryState.CONFLICT if kept else EntryState.ROLLED_BACK
        except (OSError, MissingBlob, PathRefused, StoreCorrupt) as error:
            raise PromotionFailed(
                f"entry {entry.id} was interrupted and can be neither finished nor rolled back ({_told(error)})",
                advice="free space or correct the permissions, then run any pawl command: it tries again first",
            ) from error
        self.journal.finish(entry.id, state)
        return Recovery(entry=entry, state=state, kept=kept)

    def _has_gone_forward(self, number: int, changes: ChangeSet) -> bool:
        """Finishes what was begun, unless nothing of it was done yet or the user's own work is in the way."""
        writer, found = self._look(number, changes)
        if all(_is_untouched(step.now, change) for change, step in zip(changes, found, strict=True)) and not (
            changes and all(step.now == step.goal for step in found)
        ):
            return False
        if _foreign(changes, found):
            return False
        try:
            writer.settle(found)
        except (OSError, PawlError):
            return False
        return True

    def _go_back(self, number: int, changes: ChangeSet) -> tuple[str, ...]:
        """Puts back everything that is old or new. What is neither is the user's, stays and is named; so is what has no
        place to go back to because of that."""
        kept: frozenset[str] = frozenset()
        while True:
            writer, found = self._look(number, changes.inverted())
            kept |= _foreign(changes, found)
            try:
                writer.settle(step for step in found if step.path not in kept)
                return tuple(sorted(kept))
            except Conflicted as error:
                fresh = frozenset(map(str, error.conflicts)) - kept
                if not fresh:
                    raise
                kept |= fresh

    def _look(self, number: int, changes: ChangeSet) -> tuple[Writer, list[WriteStep]]:
        """Where each path stands now, and where it shall stand after the changes."""
        standing = TreeStatus(self.tree)
        writer = self._writer(number)

        def steps() -> list[WriteStep]:
            looks = ((change, *standing.at(change.path)) for change in changes)
            return [WriteStep(change.path, now, change.after, seen) for change, seen, now in looks]

        try:
            return writer, steps()
        except PermissionError:
            opened = open_closed(self.tree, changes.paths, lambda _: None)
            writer.modes = {**opened, **writer.modes}
            return writer, steps()

    def _writer(self, number: int) -> Writer:
        names = staging_names(self.locks, number)
        return Writer(self.tree, self.blobs, names, self.journal.modes(number), self.sync_each)


def _foreign(changes: ChangeSet, found: Iterable[WriteStep]) -> frozenset[str]:
    """Paths that are neither old nor new nor on the way between them, so the user's own."""
    pairs = zip(changes, found, strict=True)
    return frozenset(step.path for change, step in pairs if not _is_ours(step.now, change))


def _is_untouched(now: Node | None, change: Change) -> bool:
    """Whether nothing was done there yet; a folder may have been opened for writing."""
    return now == change.before or (is_directory(now) and is_directory(change.before))


def _is_ours(now: Node | None, change: Change) -> bool:
    """Whether a half-written entry can have left this node there."""
    if now in (change.before, change.after):
        return True
    if now is None:
        return change.before is not None and change.after is not None and change.before.kind is not change.after.kind
    if now.kind is NodeKind.DIRECTORY:
        return is_directory(change.before) or is_directory(change.after)
    # A file that its owner could not read was opened for a look.
    return any(one is not None and now == replace(one, mode=one.mode | 0o400) for one in (change.before, change.after))


@contextmanager
def _reading() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise PromotionFailed(
            f"the workspace could not be read ({_told(error)}); nothing was written",
            advice="correct the permissions of that file or folder, then try again",
        ) from error


def _remedy(error: OSError) -> str:
    if error.errno == errno.EXDEV:
        return "another file system is mounted there: make it a workspace of its own with -C"
    return "free space or correct the permissions, then try again"


def _told(error: OSError | PawlError) -> str:
    if isinstance(error, PawlError):
        return error.message
    named = f"{error.filename!r}: " if error.filename is not None else ""
    return f"{named}{error.strerror or error}"
