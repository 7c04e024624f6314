"""A workspace with its history, and people who meddle with it at a chosen moment."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from world import Snapshot, clear, snapshot

from pawl.core.change import Change, ChangeSet, Entry, EntryKind, EntryState, NewEntry, Node
from pawl.settings.files import Tree
from pawl.store.journal import Journal
from pawl.store.store import Store
from pawl.workspace.promotion import Promoter, Promotion
from pawl.workspace.reversal import History, OnConflict, Reversal, Wish
from pawl.workspace.writer import staging_names


@dataclass(frozen=True)
class File:
    data: bytes
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Folder:
    mode: int = 0o755


Goal = bytes | File | Link | Folder | None


@contextmanager
def in_memory(fallback: Path) -> Iterator[Path]:
    """A temporary folder in memory where there is one: durability is not what most tests are about."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and os.access(memory, os.W_OK)
    place = Path(tempfile.mkdtemp(prefix="pawl-test-", dir=memory if usable else fallback)).resolve()
    try:
        yield place
    finally:
        clear(place)


@contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    """A file system of that size; only root may mount one."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "none", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@dataclass
class Yard:
    """One workspace, opened like the product opens it."""

    workspace: Path
    state: Path
    store: Store
    tree: Tree
    run: str = "r1"
    case: str = ""
    """What a parametrized fixture has set up."""

    @classmethod
    @contextmanager
    def open(cls, root: Path, **options: object) -> Iterator[Yard]:
        workspace, state = root / "w", root / "s"
        workspace.mkdir(exist_ok=True)
        state.mkdir(mode=0o700, exist_ok=True)
        with Store.open(state, **options) as store, Tree(workspace) as tree:
            yield cls(workspace, state, store, tree)

    @property
    def promoter(self) -> Promoter:
        return Promoter(self.tree, self.store.journal, self.store.blobs, self.state / "locks", lock_seconds=20)

    @property
    def history(self) -> History:
        return History(self.tree, self.promoter, self.store.journal, self.store.blobs, self.run)

    def now(self) -> Snapshot:
        return snapshot(self.workspace)

    def write(self, name: str, data: bytes | str = b"", mode: int = 0o644) -> Path:
        """What the user does with an editor."""
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        path.chmod(mode)
        return path

    def read(self, name: str) -> bytes:
        return (self.workspace / name).read_bytes()

    def node(self, goal: Goal) -> Node | None:
        match goal:
            case bytes():
                return Node.file(self.store.blobs.put(goal))
            case File(data, mode):
                return Node.file(self.store.blobs.put(data), mode)
            case Link(target):
                return Node.link(self.store.blobs.put(os.fsencode(target)))
            case Folder(mode):
                return Node.directory(mode)
        return None

    def changes(self, goals: Mapping[str, Goal]) -> ChangeSet:
        """The set that leads from the workspace as it stands to these goals."""
        with self.store.blobs.batch():
            return ChangeSet.of(
                Change(path, self.tree.node(path, self.store.blobs) if self.tree.find(path) else None, self.node(goal))
                for path, goal in goals.items()
            )

    def entry(self, title: str = "work", kind: EntryKind = EntryKind.EDIT) -> NewEntry:
        return NewEntry(workspace=str(self.workspace), run=self.run, kind=kind, title=title)

    def promote(self, goals: Mapping[str, Goal], title: str = "work") -> Promotion:
        return self.promoter.promote(self.entry(title), self.changes(goals))

    def begin(self, goals: Mapping[str, Goal], modes: Mapping[str, int] | None = None) -> int:
        """The intent is written and then the process dies."""
        return self.store.journal.begin(self.entry("interrupted"), self.changes(goals), modes or {})

    def recover(self) -> list[tuple[int, str, tuple[str, ...]]]:
        return [(found.entry.id, str(found.state), found.kept) for found in self.promoter.recover()]

    def undo(
        self, number: int | None = None, *files: str, on_conflict: str = "stop", dry_run: bool = False
    ) -> Reversal:
        wish = Wish(files=files, on_conflict=OnConflict(on_conflict), dry_run=dry_run)
        return self.history.undo(number, wish)

    def undo_run(self, run: str) -> Reversal:
        return self.history.undo_run(run, Wish())

    def redo(self) -> Reversal:
        return self.history.redo(Wish())

    def restore(self, name: str, *files: str, on_conflict: str = "stop") -> Reversal:
        found = next(one for one in self.store.journal.checkpoints(str(self.workspace)) if one.name == name)
        return self.history.restore(
            found.after_entry, repr(found.name), Wish(files=files, on_conflict=OnConflict(on_conflict))
        )

    def entries(self) -> list[Entry]:
        return list(self.store.journal.entries(str(self.workspace)))

    def states(self) -> dict[int, EntryState]:
        return {entry.id: entry.state for entry in self.entries()}

    def staging(self, number: int) -> tuple[str, ...]:
        """The names under which an entry stages."""
        locks = self.state / "locks"
        locks.mkdir(mode=0o700, exist_ok=True)
        return staging_names(locks, number)

    def staged(self) -> list[str]:
        return sorted(name for name in os.listdir(self.workspace) if name.startswith(".pawl"))


@dataclass
class MeddlingBlobs:
    """Hands out contents, and at the first one somebody does something to the workspace: files are being staged."""

    store: Store
    action: Callable[[], object]
    done: bool = False

    def get(self, digest: str) -> bytes:
        if not self.done:
            self.done = True
            self.action()
        return self.store.blobs.get(digest)

    def put(self, data: bytes) -> str:
        return self.store.blobs.put(data)

    def batch(self) -> AbstractContextManager[None]:
        return self.store.blobs.batch()


@dataclass
class MeddlingJournal:
    """A real journal that does something before an entry begins, or before one is finished."""

    journal: Journal
    before_begin: Callable[[], object] = field(default=lambda: None)
    before_finish: Callable[[EntryState], object] = field(default=lambda _: None)

    def begin(self, entry: NewEntry, changes: ChangeSet, modes: Mapping[str, int]) -> int:
        self.before_begin()
        return self.journal.begin(entry, changes, modes)

    def finish(self, entry: int, state: EntryState) -> None:
        self.before_finish(state)
        self.journal.finish(entry, state)

    def __getattr__(self, name: str) -> object:
        return getattr(self.journal, name)
