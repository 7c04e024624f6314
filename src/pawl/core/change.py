"""A change is a value: what stood at a path before, and what stands there after.

Contents are named by their hash and live elsewhere (`BlobReader`), so a change set is small, comparable and
can be stored, sent and shown without touching the files it speaks of. The history of a workspace is made of such sets:
entries, checkpoints, and the rules for taking them back.
"""

from __future__ import annotations

import hashlib
import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from enum import StrEnum
from typing import Protocol

from pawl.core.errors import CannotCompose
from pawl.core.lazy_dataclass import dataclass


class BlobReader(Protocol):
    def get(self, digest: str) -> bytes:
        """The content of that name; `MissingBlob` when it is not stored."""
        ...


class BlobStore(BlobReader, Protocol):
    def put(self, data: bytes) -> str:
        """Stores a content and returns its name."""
        ...

    def batch(self) -> AbstractContextManager[None]:
        """Many puts as one durable step."""
        ...


class NodeKind(StrEnum):
    FILE = "file"
    LINK = "link"
    DIRECTORY = "directory"


@dataclass(frozen=True, slots=True)
class Node:
    """A file, link or directory at a path. A link's blob is its target; a directory has none."""

    kind: NodeKind
    blob: str | None
    mode: int

    @classmethod
    def file(cls, blob: str, mode: int = 0o644) -> Node:
        return cls(NodeKind.FILE, blob, mode)

    @classmethod
    def link(cls, blob: str) -> Node:
        return cls(NodeKind.LINK, blob, 0o777)

    @classmethod
    def directory(cls, mode: int = 0o755) -> Node:
        return cls(NodeKind.DIRECTORY, None, mode)


@dataclass(frozen=True, slots=True)
class Change:
    """One path's step from `before` to `after`; `None` means that nothing stands there.

    `path` is relative to the workspace, with `/` between names; bytes that are not UTF-8 are surrogate escapes, as
    `os.fsdecode` gives them.
    """

    path: str
    before: Node | None
    after: Node | None

    def __post_init__(self) -> None:
        if self.before == self.after:
            raise ValueError(f"a change must change something: {self.path!r}")

    def inverted(self) -> Change:
        return Change(self.path, self.after, self.before)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes of different paths, sorted by path. Equal sets have equal digests."""

    changes: tuple[Change, ...] = ()

    @classmethod
    def of(cls, changes: Iterable[Change]) -> ChangeSet:
        ordered = tuple(sorted(changes, key=lambda change: change.path))
        for first, second in itertools.pairwise(ordered):
            if first.path == second.path:
                raise ValueError(f"two changes of one path: {first.path!r}")
        return cls(ordered)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __len__(self) -> int:
        return len(self.changes)

    def get(self, path: str) -> Change | None:
        at = bisect_left(self.changes, path, key=lambda change: change.path)
        return self.changes[at] if at < len(self.changes) and self.changes[at].path == path else None

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(change.path for change in self.changes)

    @property
    def blobs(self) -> frozenset[str]:
        """Every content hash the set speaks of."""
        nodes = (node for change in self.changes for node in (change.before, change.after))
        return frozenset(node.blob for node in nodes if node is not None and node.blob is not None)

    @property
    def digest(self) -> str:
        """The identity of the set: equal for equal sets, on every machine."""
        hasher = hashlib.sha256(b"pawl change set 1\n")
        for change in self.changes:
            hasher.update(f"{len(change.path)}:".encode())
            hasher.update(change.path.encode("utf-8", "surrogateescape"))
            for node in (change.before, change.after):
                hasher.update(b"-" if node is None else f"|{node.kind}:{node.mode:o}:{node.blob}".encode())
            hasher.update(b"\n")
        return hasher.hexdigest()

    def then(self, later: ChangeSet) -> ChangeSet:
        """This set followed by `later`, as one set. Steps that cancel out disappear."""
        merged = {change.path: change for change in self.changes}
        for change in later.changes:
            first = merged.pop(change.path, None)
            if first is None:
                merged[change.path] = change
            elif first.after != change.before:
                raise CannotCompose(
                    f"{change.path!r}: the second change does not start where the first one ends",
                    advice="rebase the later change over the earlier one first",
                )
            elif first.before != change.after:
                merged[change.path] = Change(change.path, first.before, change.after)
        return ChangeSet.of(merged.values())

    def inverted(self) -> ChangeSet:
        return ChangeSet(tuple(change.inverted() for change in self.changes))

    def only(self, paths: Iterable[str]) -> ChangeSet:
        """The part that touches these paths."""
        wanted = frozenset(paths)
        return ChangeSet(tuple(change for change in self.changes if change.path in wanted))

    def without(self, paths: Iterable[str]) -> ChangeSet:
        unwanted = frozenset(paths)
        return ChangeSet(tuple(change for change in self.changes if change.path not in unwanted))

    @property
    def without_empty_folders(self) -> ChangeSet:
        """Without new folders in which nothing stands, unless there is nothing else in it."""
        needed = {folder for change in self.changes if not _is_new_folder(change) for folder in parents(change.path)}
        kept = tuple(one for one in self.changes if not _is_new_folder(one) or one.path in needed)
        return ChangeSet(kept) if kept else self


def _is_new_folder(change: Change) -> bool:
    return change.before is None and change.after is not None and change.after.kind is NodeKind.DIRECTORY


EMPTY = ChangeSet()


def blob_digest(data: bytes) -> str:
    """The name of a content."""
    return hashlib.sha256(data).hexdigest()


def is_directory(node: Node | None) -> bool:
    return node is not None and node.kind is NodeKind.DIRECTORY


def parents(path: str) -> Iterator[str]:
    """Every directory above a path, the nearest first, without the root."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


class EntryKind(StrEnum):
    RUN = "run"
    """The changes of a command."""
    EDIT = "edit"
    """An edit by a tool, or a patch."""
    UNDO = "undo"
    REDO = "redo"
    RESTORE = "restore"
    MEMORY = "memory"
    """An addition to the memory bank. It goes with its run: an undo without a number passes it over."""


REVERSALS = frozenset({EntryKind.UNDO, EntryKind.REDO, EntryKind.RESTORE})
"""Entries that bring back what stood before."""


class EntryState(StrEnum):
    CAPTURED = "captured"
    """Known and kept, not in the workspace."""
    PREPARED = "prepared"
    """Being written; recovery finishes it or takes it back."""
    DONE = "done"
    ROLLED_BACK = "rolled back"
    CONFLICT = "conflict"
    """Recovery found the user's own work in the way and left the workspace to the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """The right to carry a job of the queue. Each taking over counts it up, and only the newest promotes and ends."""

    job: int
    number: int
    queue: str = ""
    """The name of a queue on a server, with how often the job was queued again; empty for the one in the state file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """An entry that has no number yet."""

    workspace: str
    run: str
    kind: EntryKind
    title: str
    reason: str = ""
    reverses: int | None = None
    """The entry that this one takes back, for an undo or a redo."""
    reverses_all: tuple[int, ...] = ()
    """The entries that this one takes back at once, for the undo of a run and for a restore."""
    allows_protected: bool = False
    """The user's own yes is there."""
    evidence: Mapping[str, object] | None = None
    """The evidence that its verdict rests on, as JSON can hold it."""
    lease: Lease | None = None
    """Under which a job of the queue promotes it; nothing is begun where another worker has a newer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    id: int
    workspace: str
    run: str
    kind: EntryKind
    title: str
    reason: str
    created: str
    """ISO 8601, UTC."""
    state: EntryState
    reverses: int | None = None
    reversed_by: int | None = None
    """The entry that took this one back, while that holds."""
    pruned: bool = False
    """Its contents were dropped by retention; it can be listed, not taken back."""
    files: int = 0

    @property
    def active(self) -> bool:
        return self.state is EntryState.DONE and self.reversed_by is None


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackPolicy:
    """How a run falls back by itself. What the user made is kept, whatever the policy says."""

    automatic_on_error: bool = True
    depth: int = 5
    preserve_user_edits: bool = True

    def __post_init__(self) -> None:
        if not self.preserve_user_edits:
            raise ValueError("a rollback always preserves the user's own files and edits")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A point in the history to come back to."""

    id: int
    workspace: str
    name: str
    created: str
    after_entry: int
    """The newest entry when it was made; 0 before the first."""
    changes: ChangeSet = field(default_factory=ChangeSet)
    """The changes since the checkpoint before it; of a run, all that stood on its bench."""
    progress: Mapping[str, object] = field(default_factory=dict)
    """How far the work is; of a run with its id, the task, and of how many."""
    verification: Mapping[str, object] = field(default_factory=dict)
    policy: RollbackPolicy = field(default_factory=RollbackPolicy)

    @property
    def run(self) -> str:
        """The run that made it for a verified task; empty where the user did."""
        return str(self.progress.get("run", ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """`gc` keeps everything younger than `days`, and the last `backups` of each file whatever their age."""

    days: int = 30
    backups: int = 5
