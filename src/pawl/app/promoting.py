"""A kept entry on its way into the workspace, by the rules that hold for what a command changed."""

from __future__ import annotations

from dataclasses import dataclass

from pawl.app.running import open_bench
from pawl.app.workshop import Workshop
from pawl.core.change import ChangeSet
from pawl.core.errors import NothingToDo, ProtectedRefused
from pawl.core.history import Entry, EntryState
from pawl.workspace.capture import Held


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What of a kept entry can be promoted, and what is held back all the same."""

    changes: ChangeSet
    held: tuple[Held, ...] = ()


def propose_entry(shop: Workshop, entry: Entry, *, allow_protected: bool) -> Kept:
    """The entry's changes over the workspace as it stands, sorted on a bench like those of a command."""
    if entry.state is not EntryState.CAPTURED:
        raise NothingToDo(
            f"entry {entry.id} is {entry.state}; only a kept entry can be promoted",
            advice="'pawl history --all' lists them",
        )
    changes = shop.rebased(shop.changes(entry))
    if not changes:
        raise NothingToDo(f"the workspace already holds what entry {entry.id} changed")
    with open_bench(shop, include_ignored=True) as bench:
        bench.apply(changes, shop.store.blobs)
        captured = bench.capture()
    released = ChangeSet.of(
        held.change for held in captured.held if allow_protected and held.needs_yes and held.change is not None
    )
    held = tuple(one for one in captured.held if one.path not in released.paths)
    wanted = captured.changes.then(released)
    if not wanted:
        names = ", ".join(f"{one.path!r} ({one.told})" for one in held)
        protected = any(one.needs_yes for one in held)
        raise ProtectedRefused(
            f"all that entry {entry.id} holds is held back: {names}",
            advice="look at it with 'pawl diff', then repeat with --allow-protected" if protected else "",
        )
    return Kept(changes=wanted, held=held)
