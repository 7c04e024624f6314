"""The history of a workspace as values: entries, checkpoints, and the rules for taking them back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from pawl.core.change import ChangeSet
from pawl.core.lazy_dataclass import dataclass


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
