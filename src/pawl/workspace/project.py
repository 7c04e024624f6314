"""A project: one workspace with its history, opened for use. Light to open; benches and sandbox come on demand."""

from __future__ import annotations

import os
import secrets
import select
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from pawl.core.change import (
    Change,
    ChangeSet,
    Checkpoint,
    Entry,
    EntryKind,
    EntryState,
    Lease,
    NewEntry,
    Node,
    RollbackPolicy,
)
from pawl.core.errors import (
    Conflicted,
    GitFailed,
    NotFound,
    PathRefused,
    PromotionFailed,
    StoreBusy,
    StoreError,
    UnknownEntry,
    UsageError,
)
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import redacted, redacted_body
from pawl.core.typed import plain
from pawl.settings.config import Config, framework_folders, workspaces
from pawl.settings.files import Tree, place_in_line, workspace_key, writer_lock
from pawl.settings.guardrails import Decision, Guardrails, Judge, preset
from pawl.settings.trust import MCP_FILE, register_secrets
from pawl.store.run_lock import run_lock
from pawl.store.store import Store
from pawl.workspace.git import obeyed, opened
from pawl.workspace.masks import Listings, Names

if TYPE_CHECKING:
    from pawl.sandbox.cancel import CancelToken
    from pawl.settings.permissions import ReadGate
    from pawl.workspace.promotion import Promoter, Promotion, Recovery
    from pawl.workspace.reversal import History, Reversal, Wish


_LOOKED_BACK = 50
"""Entries that are asked who changed a file."""


def new_run_id() -> str:
    return f"r{secrets.token_hex(4)}"


@dataclass(slots=True)
class Project:
    """Everything that can be done to one workspace."""

    config: Config
    store: Store
    tree: Tree
    guardrails: Guardrails
    run_id: str = field(default_factory=new_run_id)
    recovered: tuple[Recovery, ...] = ()
    unrecovered: str = ""
    """Why an interrupted entry could be neither finished nor taken back."""
    listings: Listings = field(default_factory=Listings)
    stop: CancelToken | None = None
    """Ends the commands on every bench that is opened while it is set: the user's word and the time of a run."""
    lease: Lease | None = None
    """Under which a job of the queue is carried; nothing is promoted once another worker has a newer one."""
    away: bool = False
    """This is a copy of a workspace on another machine, where its runs end."""
    fence: Callable[[], AbstractContextManager[None]] = nullcontext
    """Held while something is promoted, where the lease is kept elsewhere; `Cancelled` where it is lost."""

    @classmethod
    def open(cls, config: Config, workspace: Path) -> Project:
        """Opens the store and finishes or takes back what a crash interrupted, before anything else happens."""
        guardrails = preset(config.settings.preset)
        framework_folders[:] = [config.file.parent / "frameworks"]
        register_secrets(config, os.path.realpath(workspace))
        with ExitStack() as cleanup:
            store = cleanup.enter_context(Store.open(config.state))
            tree = cleanup.enter_context(_tree(workspace))
            listings = Listings()
            workspaces.add(tree.root)
            named = (*obeyed(config.environment, tree), *_own_settings(config, tree.root), *_served(config, tree.root))
            guardrails = replace(guardrails, protected=(*guardrails.protected, *named)) if named else guardrails
            known = replace(guardrails, others=Names(tree, guardrails, listings))
            shop = cls(config, store, tree, known, listings=listings)
            try:
                if store.journal.pending(shop.workspace):
                    shop.recovered = shop.promoter.recover()
            except PromotionFailed as error:
                # Looking at the history must still be possible; promoting tries again first.
                shop.unrecovered = error.message
            for recovery in shop.recovered:
                shop.note("recovered", {"entry": recovery.entry.id, "state": recovery.state, "kept": recovery.kept})
            cleanup.pop_all()
        return shop

    def close(self) -> None:
        self.tree.close()
        self.store.close()

    def __enter__(self) -> Project:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def workspace(self) -> str:
        return self.tree.root

    def unread_commits(self) -> str:
        """Why git cannot tell what is committed, for people; empty where it can, or where there is no repository."""
        with suppress(NotFound, PathRefused, OSError), opened(self.tree) as repository:
            try:
                repository.refuse_borrowed()
            except GitFailed as error:
                return f"{error.message}, so commits and uncommitted work are not known: {error.advice}"
        return ""

    @property
    def promoter(self) -> Promoter:
        from pawl.workspace.promotion import Promoter

        store, locks = self.store, self.config.state / "locks"
        return Promoter(self.tree, store.journal, store.blobs, locks, judging=self.judge_changes)

    def judge_changes(self) -> Judge:
        """The permission rules as a judge of changes, whoever made them; read anew, for the user may change them."""
        from pawl.settings.permissions import read_rules

        return read_rules(self.config, self.workspace, self.guardrails.others).judge_changes()

    def read_gate(self) -> ReadGate:
        """Decides what models and helpers may read of the workspace, by the rules as they stand now."""
        from pawl.settings.permissions import read_gate

        return read_gate(self.config, self.workspace, self.guardrails)

    @contextmanager
    def landing(self, cancel: CancelToken) -> Iterator[None]:
        """Held by one job of the queue at a time, in the order in which they have finished, from the last look at the
        workspace until its change is promoted."""
        folder, name = self.config.state / "locks", f"{self.workspace} landing"
        with place_in_line(folder / f"{workspace_key(self.workspace)}.line") as is_next, ExitStack() as held:
            while True:
                with suppress(StoreBusy):
                    if is_next():
                        held.enter_context(writer_lock(folder, name, seconds=0.5))
                        break
                if select.select([cancel], [], [], 0.02)[0]:
                    raise cancel.error()
            yield

    def carrying(self, run: str, seconds: float = 0.5) -> AbstractContextManager[None]:
        """Held while somebody carries the run; `StoreBusy` for others, after the time that a look takes."""
        return run_lock(self.config.state / "locks" / f"{run}.run", seconds)

    def is_carried(self, run: str) -> bool:
        try:
            with self.carrying(run, 0.0):
                return False
        except (StoreBusy, FileNotFoundError) as error:
            return isinstance(error, StoreBusy)

    def asked_about(self, changes: ChangeSet) -> tuple[str, ...]:
        """Why the user is to be asked by the permission rules."""
        judge = self.judge_changes()
        said = ((change.path, judge(change)) for change in changes)
        return tuple(f"{one.rule} asks about {path!r}" for path, one in said if one and one.ruling is Decision.ASK)

    @property
    def history(self) -> History:
        from pawl.workspace.reversal import History

        settings = self.config.settings
        policy = RollbackPolicy(automatic_on_error=settings.rollback == "on", depth=settings.rollback_depth)
        return History(self.tree, self.promoter, self.store.journal, self.store.blobs, self.run_id, policy)

    def note(self, kind: str, body: Mapping[str, object]) -> None:
        """Adds an event of this run, without secrets."""
        self.store.events.append(self.workspace, self.run_id, kind, redacted_body(body))

    def note_if_possible(self, kind: str, body: Mapping[str, object]) -> None:
        """Adds an event that is not worth losing work for."""
        with suppress(StoreError):
            self.note(kind, body)

    def new_entry(
        self, kind: EntryKind, title: str, reason: str = "", *, allows_protected: bool = False, evidence: object = None
    ) -> NewEntry:
        """`evidence` is what its verdict rests on."""
        return NewEntry(
            workspace=self.workspace,
            run=self.run_id,
            kind=kind,
            title=redacted(title),
            reason=redacted(reason),
            allows_protected=allows_protected,
            evidence=plain(evidence),
            lease=self.lease,
        )

    def promote(self, entry: NewEntry, changes: ChangeSet, *, merge: bool = True) -> Promotion:
        """Promotes, merging with what the user changed since the change set was made; `Conflicted` where that fails,
        or where what was verified would be merged."""
        with self.fence():
            try:
                promotion = self.promoter.promote(entry, changes)
            except Conflicted:
                if not merge:
                    raise
                promotion = self.promoter.promote(entry, self.rebased(changes))
        self.note("promoted", {"entry": promotion.entry, "digest": promotion.changes.digest})
        return promotion

    def writing(self, contents: Mapping[str, bytes]) -> ChangeSet:
        """The change set that gives files these contents; those that have them already are left out."""
        blobs = {path: self.store.blobs.put(data) for path, data in contents.items()}
        before = self.promoter.nodes(contents, frozenset(blobs.values()))
        made = {path: Node.file(blob, node.mode if (node := before[path]) else 0o644) for path, blob in blobs.items()}
        return ChangeSet.of(Change(path, before[path], node) for path, node in made.items() if node != before[path])

    def rebased(self, changes: ChangeSet) -> ChangeSet:
        """The change set over the workspace as it stands now."""
        from pawl.core.merge import difference, rebase

        now = self.promoter.nodes(changes.paths, changes.blobs)
        since = difference({change.path: change.before for change in changes}, now)
        result = rebase(changes, since, self.store.blobs)
        if result.conflicts:
            who = self.changed_by(conflict.path for conflict in result.conflicts)
            raise Conflicted(f"{who} meanwhile, in the same place", result.conflicts, advice="nothing was written")
        return result.changes

    def changed_by(self, paths: Iterable[str]) -> str:
        """Who changed these files last: `you changed 'a.py'`, or `entry 7 changed 'b.py'` that stands as it left it."""
        wanted = sorted(set(paths))
        now = self.promoter.nodes(wanted, frozenset())
        made = [one for one in self.entries(limit=_LOOKED_BACK) if one.state is EntryState.DONE and not one.pruned]
        by: dict[str, list[str]] = {}
        for path in wanted:
            last = next(((one, found) for one in made if (found := self.changes(one).get(path)) is not None), None)
            known = last is not None and last[1].after == now[path]
            by.setdefault(f"entry {last[0].id}" if last is not None and known else "you", []).append(repr(path))
        return "; ".join(f"{who} changed {', '.join(names)}" for who, names in by.items())

    def keep(self, entry: NewEntry, changes: ChangeSet) -> int:
        """Stores a change set that is not promoted, so that nothing is lost."""
        number = self.store.journal.record(entry, changes)
        self.note("kept", {"entry": number, "digest": changes.digest})
        return number

    def entries(self, *, run: str | None = None, limit: int | None = None) -> Sequence[Entry]:
        return self.store.journal.entries(self.workspace, run=run, limit=limit)

    def entry(self, number: int | None) -> Entry:
        """The entry of that number, or the newest that changes something."""
        if number is not None:
            return self.store.journal.entry(self.workspace, number)
        for entry in self.entries():
            if entry.files and entry.kind is not EntryKind.MEMORY:
                return entry
        raise UnknownEntry("nothing was done in this workspace yet", advice="try 'pawl run -- CMD'")

    def changes(self, entry: Entry) -> ChangeSet:
        return self.store.journal.changes(entry.id)

    def undo(self, number: int | None, wish: Wish) -> Reversal:
        return self._noted("undone", self.history.undo(number, wish))

    def undo_run(self, run: str, wish: Wish) -> Reversal:
        return self._noted("undone", self.history.undo_run(run, wish))

    def redo(self, wish: Wish) -> Reversal:
        return self._noted("redone", self.history.redo(wish))

    def restore(self, name: str | None, wish: Wish, *, entry: int | None = None) -> Reversal:
        """Back to a checkpoint, or to after an entry."""
        if entry is None:
            after, point = (found := self.checkpoint_named(name)).after_entry, repr(found.name)
        else:
            after, point = self.entry(entry).id, f"entry {entry}"
        return self._noted("restored", self.history.restore(after, point, wish))

    def checkpoint(
        self,
        name: str | None,
        *,
        progress: Mapping[str, object] | None = None,
        verification: Mapping[str, object] | None = None,
    ) -> Checkpoint:
        """Marks this point of the history, with how far the task is and what was verified."""
        history = self.history
        chosen = history.free_name(f"checkpoint-{len(self.checkpoints()) + 1}") if name is None else _checked(name)
        done, checked = redacted_body(progress or {}), redacted_body(verification or {})
        made = history.checkpoint(chosen, progress=done, verification=checked)
        self.note("checkpoint", {"id": made.id, "name": made.name})
        return made

    def run_checkpoint(
        self, changes: ChangeSet, progress: Mapping[str, object], verification: Mapping[str, object]
    ) -> None:
        """Marks a verified task of this run with all that stands on its bench; old ones of runs make room."""
        history = self.history
        made = history.checkpoint(
            history.free_name(f"{self.run_id}-task-{progress['task']}"),
            changes=changes,
            progress=redacted_body({"run": self.run_id, **progress}),
            verification=redacted_body(verification),
        )
        of_runs = [one.id for one in self.checkpoints() if one.run]
        self.store.journal.drop_checkpoints(of_runs[history.policy.depth :])
        self.note("checkpoint", {"id": made.id, "name": made.name})

    def checkpoints(self) -> Sequence[Checkpoint]:
        return self.store.journal.checkpoints(self.workspace)

    def checkpoint_named(self, name: str | None) -> Checkpoint:
        """By name or number; without, the newest that the user made, else the newest."""
        every = self.checkpoints()
        if not every:
            raise UnknownEntry("there is no checkpoint yet", advice="make one with 'pawl checkpoint'")
        if name is None:
            return next((one for one in every if not one.run), every[0])
        for checkpoint in every:
            if name in (checkpoint.name, str(checkpoint.id)):  # No name is a number.
                return checkpoint
        known = ", ".join(repr(checkpoint.name) for checkpoint in every[:5])
        raise UnknownEntry(f"there is no checkpoint {name!r}", advice=f"there are {known}")

    def _noted(self, kind: str, reversal: Reversal) -> Reversal:
        if reversal.promotion is not None:
            self.note(kind, {"entry": reversal.promotion.entry, "digest": reversal.changes.digest})
        return reversal


def _own_settings(config: Config, workspace: str) -> list[str]:
    """Patterns of the user's own settings where they lie in the workspace, or are links into it."""
    folder = config.file.parent
    places = {config.file, folder / "hooks.json"}
    if os.path.realpath(folder) != workspace:
        with suppress(OSError):
            places |= {folder, *folder.iterdir()}
    real = (os.path.realpath(place) for place in places)
    inside = [place[len(workspace) + 1 :] for place in real if place.startswith(f"{workspace}/")]
    return [pattern for path in inside for pattern in (path, f"{path}/**")]


def _served(config: Config, workspace: str) -> tuple[str, ...]:
    if not config.tables.mcp and not os.path.lexists(os.path.join(workspace, MCP_FILE)):
        return ()
    from pawl.workspace.mcp_settings import rewritable

    return rewritable(config, workspace)


def _tree(workspace: Path) -> Tree:
    try:
        return Tree(workspace)
    except OSError as error:
        raise UsageError(
            f"the workspace {str(workspace)!r} cannot be opened: {error.strerror}",
            advice="check the path given with -C",
        ) from error


def _checked(name: str) -> str:
    """A name that can be written on a command line and is not taken for a number."""
    if not name.isprintable() or name.isdigit() or name.startswith("-") or name != name.strip() or not name:
        raise UsageError(f"{name!r} cannot name a checkpoint", advice="choose words such as 'before-refactoring'")
    return redacted(name)
