"""A command on a bench, and what becomes of its changes: promoted, kept, or held back with the reason."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pawl.core.change import EMPTY, ChangeSet
from pawl.core.errors import Conflicted, NothingToDo, ProtectedRefused, StoreBusy
from pawl.core.execution import Completed, Confinement, Execution, Network, Secrets, Stream
from pawl.core.history import Entry, EntryKind, EntryState, NewEntry
from pawl.core.merge import difference
from pawl.core.redact import redacted_command
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.choice import ChosenSandbox, open_sandbox
from pawl.sandbox.environment import Surroundings
from pawl.settings.config import Config
from pawl.workspace.bench import Bench, BenchSettings
from pawl.workspace.capture import Capture, HeldBack
from pawl.workspace.environments import readable_roots
from pawl.workspace.project import Project
from pawl.workspace.promotion import Promotion

__all__ = [
    "CommandRequest",
    "HeldBack",
    "Landing",
    "OnOutput",
    "Ran",
    "keep",
    "land",
    "open_bench",
    "open_sandbox_for",
    "run_on_bench",
]

MOST_WAITS = 24
"""How often the store is asked again, each time as long as it waits by itself."""

OnOutput = Callable[[Stream, bytes], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    argv: tuple[str, ...]
    directory: str = ""
    network: Network = Network.OFF
    secrets: Secrets = Secrets.HIDDEN
    seconds: float = 600.0
    include_ignored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    request: CommandRequest
    completed: Completed
    capture: Capture


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """Where the changes went."""

    promotion: Promotion | None = None
    kept: int | None = None
    """The entry that keeps what was not promoted."""
    held: tuple[HeldBack, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Paths that the user changed meanwhile; theirs stand."""


def bench_places(config: Config) -> tuple[Path, ...]:
    """Where benches can stand: beside the store, or in memory where that cannot hold an overlay."""
    memory = Path("/dev/shm")
    beside = config.state / "benches"
    return (beside, memory / f"pawl-{os.getuid()}") if memory.is_dir() else (beside,)


def open_sandbox_for(shop: Project, extra_readonly: tuple[str, ...] = ()) -> ChosenSandbox:
    config = shop.config
    extra = (*readable_roots(config.virtual_environment), *extra_readonly)
    return open_sandbox(
        Surroundings(
            home=str(config.home), path=config.search_path, extra_readonly=extra, private=(str(config.state),)
        ),
        minimum=Confinement(config.settings.minimum_confinement),
    )


def open_bench(shop: Project, *, include_ignored: bool = False, extra_readonly: tuple[str, ...] = ()) -> Bench:
    place, *second = bench_places(shop.config)
    settings = BenchSettings(
        second_place=second[0] if second else None,
        global_ignore=shop.config.global_ignore,
        include_ignored=include_ignored,
        judge=shop.judge_changes(),
        listings=shop.listings,
    )
    return Bench.create(
        Path(shop.workspace), place, open_sandbox_for(shop, extra_readonly), shop.store.blobs, shop.guardrails, settings
    )


def run_on_bench(
    shop: Project, request: CommandRequest, *, on_output: OnOutput | None = None, cancel: CancelToken | None = None
) -> Ran:
    """Runs the command; the workspace is not touched."""
    title = redacted_command(request.argv)
    shop.note("command", {"argv": title, "network": request.network, "directory": request.directory})
    execution = Execution(
        argv=request.argv,
        directory=request.directory,
        network=request.network,
        secrets=request.secrets,
        limits=shop.config.settings.limits(request.seconds),
    )
    with open_bench(shop, include_ignored=request.include_ignored) as bench:
        completed = bench.run(execution, on_output=on_output, cancel=cancel)
        captured = _captured(bench)
    shop.note_if_possible(
        "command ended",
        {
            "ending": completed.ending,
            "code": completed.code,
            "seconds": round(completed.seconds, 3),
            "changes": len(captured.changes),
            "held": len(captured.held),
        },
    )
    return Ran(request=request, completed=completed, capture=captured)


def _captured(bench: Bench) -> Capture:
    """The command's work exists only on the bench now, so a store that others keep busy is waited for."""
    for _ in range(MOST_WAITS - 1):
        try:
            return bench.capture()
        except StoreBusy:
            continue
    return bench.capture()


def land(shop: Project, ran: Ran, *, allow_protected: bool) -> Landing:
    """Promotes what the command changed. What is protected or asked about needs its own yes, what a rule denies and
    what the user changed meanwhile stays out.

    What is not promoted is kept as an entry of its own. When the promotion itself fails, `keep` still keeps all of it.
    """
    released = _released(ran.capture, allow_protected=allow_protected)
    changes = ran.capture.changes.then(released)
    held = tuple(one for one in ran.capture.held if one.path not in released.paths)
    spare = ChangeSet.of(one.change for one in held if one.change is not None).then(_bench_versions(shop, ran.capture))
    promotion = None
    conflicts = tuple(one.path for one in ran.capture.conflicts)
    try:
        if changes:
            promotion = shop.promote(_entry(shop, ran, allows_protected=allow_protected), changes)
    except NothingToDo:
        pass
    except Conflicted as error:
        conflicts += tuple(str(getattr(one, "path", one)) for one in error.conflicts)
        spare = spare.then(changes)
    kept = shop.keep(_entry(shop, ran), spare) if spare else None
    return Landing(promotion=promotion, kept=kept, held=held, conflicts=conflicts)


def keep(shop: Project, ran: Ran) -> Landing:
    """Promotes nothing; what the command changed can still be looked at and promoted later."""
    held = ChangeSet.of(one.change for one in ran.capture.held if one.change is not None)
    every = ran.capture.changes.then(held).then(_bench_versions(shop, ran.capture))
    kept = shop.keep(_entry(shop, ran), every) if every else None
    outdated = tuple(one.path for one in ran.capture.conflicts)
    return Landing(kept=kept, held=ran.capture.held, conflicts=outdated)


def _released(captured: Capture, *, allow_protected: bool) -> ChangeSet:
    if not allow_protected:
        return EMPTY
    return ChangeSet.of(one.change for one in captured.held if one.needs_yes and one.change is not None)


def _bench_versions(shop: Project, captured: Capture) -> ChangeSet:
    """What the bench has where the user changed the same file meanwhile, as a change of the user's version."""
    ours = {one.path: one.ours for one in captured.conflicts}
    try:
        theirs = shop.promoter.nodes(ours, frozenset())
    except Conflicted as error:
        # What no change set can hold, such as a FIFO, counts as nothing.
        theirs = shop.promoter.nodes(ours.keys() - set(map(str, error.conflicts)), frozenset())
    return difference(theirs, ours)


def _entry(shop: Project, ran: Ran, *, allows_protected: bool = False) -> NewEntry:
    return shop.new_entry(EntryKind.RUN, redacted_command(ran.request.argv), allows_protected=allows_protected)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptEntry:
    """What of a kept entry can be promoted, and what is held back all the same."""

    changes: ChangeSet
    held: tuple[HeldBack, ...] = ()


def propose_entry(shop: Project, entry: Entry, *, allow_protected: bool) -> KeptEntry:
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
    return KeptEntry(changes=wanted, held=held)
