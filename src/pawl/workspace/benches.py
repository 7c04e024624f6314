"""The benches of a project: a command on one, what becomes of its changes, and what is left behind."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path

from pawl.core.change import EMPTY, ChangeSet, Entry, EntryKind, EntryState, NewEntry, Retention
from pawl.core.errors import ConfigError, Conflicted, NothingToDo, ProtectedRefused, StoreBusy, UsageError
from pawl.core.execution import Completed, Confinement, Execution, Network, Protection, Secrets, Stream
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import difference
from pawl.core.redact import redacted_command
from pawl.sandbox.cancel import CancelToken
from pawl.sandbox.choice import ChosenSandbox
from pawl.sandbox.visibility import Surroundings
from pawl.workspace.bench import Bench, BenchSettings, benches, sweep
from pawl.workspace.capture import Capture, HeldBack
from pawl.workspace.environments import found_environment
from pawl.workspace.git import Git, opened, user_values
from pawl.workspace.masks import HiddenSearch
from pawl.workspace.paths import bench_places
from pawl.workspace.project import Project
from pawl.workspace.promotion import Promotion

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


def open_sandbox_for(shop: Project, extra_readonly: tuple[str, ...] = ()) -> ChosenSandbox:
    config = shop.config
    found = found_environment(config, shop.workspace)
    return ChosenSandbox(
        Surroundings(
            home=str(config.home),
            path=found.path,
            extra_readonly=(*found.roots, *extra_readonly),
            private=(str(config.state),),
            variables=found.variables,
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
        stop=shop.stop,
    )
    return Bench.create(
        Path(shop.workspace), place, open_sandbox_for(shop, extra_readonly), shop.store.blobs, shop.guardrails, settings
    )


def attached_bench(shop: Project, folder: Path) -> Bench:
    """The bench in that folder, which belongs to another process of this user."""
    if folder.parent not in bench_places(shop.config):
        raise UsageError(f"{str(folder)!r} is not a bench", advice="'pawl doctor' says where they are kept")
    sandbox = open_sandbox_for(shop)
    return Bench.attached(Path(shop.workspace), folder, sandbox, shop.store.blobs, shop.guardrails)


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
        with suppress(StoreBusy):
            return bench.capture()
    return bench.capture()


def land(shop: Project, ran: Ran, *, allow_protected: bool) -> Landing:
    """Promotes what the command changed. What is protected or asked about needs its own yes, what a rule denies and
    what the user changed meanwhile stays out.

    What is not promoted is kept as an entry of its own. When the promotion itself fails, `keep` still keeps all of it.
    """
    released = _released(ran.capture, allow_protected=allow_protected)
    changes = ran.capture.changes.then(released)
    held = tuple(one for one in ran.capture.held if one.path not in released.paths)
    spare = _held_changes(held).then(_bench_versions(shop, ran.capture))
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
    every = ran.capture.changes.then(_held_changes(ran.capture.held)).then(_bench_versions(shop, ran.capture))
    kept = shop.keep(_entry(shop, ran), every) if every else None
    outdated = tuple(one.path for one in ran.capture.conflicts)
    return Landing(kept=kept, held=ran.capture.held, conflicts=outdated)


def _released(captured: Capture, *, allow_protected: bool) -> ChangeSet:
    """Changes that wait only for the user's own yes, where that is given."""
    return _held_changes(one for one in captured.held if one.needs_yes) if allow_protected else EMPTY


def _held_changes(held: Iterable[HeldBack]) -> ChangeSet:
    return ChangeSet.of(one.change for one in held if one.change is not None)


def _bench_versions(shop: Project, captured: Capture) -> ChangeSet:
    """The bench's files that the user changed meanwhile too, as changes of the user's version."""
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
    """The part of a kept entry that can be promoted, and what is held back all the same."""

    changes: ChangeSet
    held: tuple[HeldBack, ...] = ()


def propose_entry(shop: Project, entry: Entry, *, allow_protected: bool, files: Sequence[str] = ()) -> KeptEntry:
    """The entry's changes, or those of some files, over the workspace as it stands, sorted like those of a command."""
    if entry.state is not EntryState.CAPTURED:
        raise NothingToDo(
            f"entry {entry.id} is {entry.state}; only a kept entry can be promoted",
            advice="'pawl history --all' lists them",
        )
    whole = shop.changes(entry)
    unknown = [path for path in files if path not in whole.paths]
    if unknown:
        raise NothingToDo(
            f"entry {entry.id} does not change {unknown[0]!r}", advice=f"it changes {', '.join(sorted(whole.paths))}"
        )
    changes = shop.rebased(whole.only(files) if files else whole)
    if not changes:
        raise NothingToDo(f"the workspace already holds what entry {entry.id} changed")
    with open_bench(shop, include_ignored=True) as bench:
        bench.apply(changes, shop.store.blobs)
        captured = bench.capture()
    released = _released(captured, allow_protected=allow_protected)
    held = tuple(one for one in captured.held if one.path not in released.paths)
    wanted = captured.changes.then(released)
    if not wanted:
        names = ", ".join(f"{one.path!r} ({one.told})" for one in held)
        protected = any(one.needs_yes for one in held)
        raise ProtectedRefused(
            f"everything in entry {entry.id} is held back: {names}",
            advice="look at it with 'pawl diff', then repeat with --allow-protected" if protected else "",
        )
    return KeptEntry(changes=wanted, held=held)


@dataclass(frozen=True, slots=True, kw_only=True)
class HookPlace:
    """Where a hook runs."""

    event: str
    command: str
    source: str
    host: bool
    problem: str = ""
    """Why it is not started on this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    protection: Protection
    problems: tuple[str, ...]
    state_bytes: int
    benches: int
    hooks: tuple[HookPlace, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleaned:
    entries: int
    bytes_freed: int
    benches: int
    days: int
    backups: int


def examine(shop: Project, *, thorough: bool) -> Examination:
    """The protection that commands get here, and whether the state file is sound; `thorough` reads all of it."""
    problems = list(shop.store.integrity()) if thorough else []
    hooks: tuple[HookPlace, ...] = ()
    try:
        hooks = tuple(_hooks(shop))
    except ConfigError as error:
        problems.append(f"{error.message}; {error.advice}")
    problems += filter(None, (shop.unread_commits(),))
    return Examination(
        protection=open_sandbox_for(shop).protection(),
        problems=tuple(problems),
        state_bytes=shop.store.size_bytes(),
        benches=sum(len(benches(place)) for place in bench_places(shop.config)),
        hooks=hooks,
    )


def _hooks(shop: Project) -> Iterator[HookPlace]:
    from pawl.workspace.hook_runner import hooks_for

    hooks = hooks_for(shop.config, shop.workspace)
    for one in hooks.commands:
        problem = ""
        try:
            if one.host:
                hooks.host_call(one)
        except ConfigError as error:
            problem = f"{error.message}; {error.advice}"
        yield HookPlace(event=one.event, command=one.command, source=one.source, host=one.host, problem=problem)


def collect(shop: Project, *, days: int | None, backups: int | None) -> Cleaned:
    """Drops what retention no longer keeps."""
    settings = shop.config.settings
    retention = Retention(
        days=settings.retention_days if days is None else days, backups=settings.backups if backups is None else backups
    )
    if retention.days < 0 or retention.backups < 0:
        raise UsageError("days and backups cannot be below 0", advice="give 0 to keep as little as possible")
    before = shop.store.size_bytes()
    entries, _ = shop.store.journal.prune(retention)
    shop.store.collect(vacuum=True)
    swept = sum(sweep(place) for place in bench_places(shop.config))
    freed = max(0, before - shop.store.size_bytes())
    shop.note("collected", {"entries": entries, "bytes": freed, "benches": swept})
    return Cleaned(entries=entries, bytes_freed=freed, benches=swept, days=retention.days, backups=retention.backups)


_PATHS_AT_ONCE = 500
TOOLS = ("ruff", "ty")
"""Pawl depends on them, so that every workspace can be linted and type-checked."""
_SCRIPTS = threading.Lock()
"""Python fills its table of folders at the first look, and shows it half filled to a second thread."""


def brought_along() -> dict[str, str]:
    """Pawl's own tools by name, where they are installed: beside its interpreter, or where pip puts scripts."""
    import sysconfig

    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    with _SCRIPTS:
        folders = [Path(sys.executable).parent, *(Path(sysconfig.get_path("scripts", scheme)) for scheme in schemes)]
    found = {name: folder / name for folder in reversed(folders) for name in TOOLS if (folder / name).is_file()}
    return {name: str(path) for name, path in found.items()}


def own_python() -> tuple[str, tuple[str, ...]]:
    """An interpreter that can run Pawl's code in the sandbox, and what it must be able to read there.

    It is the one below Pawl's environment, so that nothing of that environment has to be shown but Pawl itself.
    """
    package = str(Path(__file__).parents[1])
    return getattr(sys, "_base_executable", sys.executable), (sys.base_prefix, package)


def uncommitted(shop: Project, hides: Callable[[str], bool] = lambda path: False) -> tuple[str, tuple[str, ...]]:
    """The change since the last commit, with files that are new; and the hidden files that are left out of it.

    `NotFound`, `PathRefused` where there is no repository, `GitFailed` where git does not answer.
    """
    masked = HiddenSearch(shop.tree, replace(shop.guardrails, others=None), shop.listings).hides()
    with _comparing(shop) as git:
        return git.diff(lambda path: masked(path) or hides(path))


def uncommitted_paths(shop: Project) -> frozenset[str]:
    """The paths that stand otherwise than in the last commit. It fails as `uncommitted` does."""
    with _comparing(shop) as git:
        return frozenset(path for _, paths in git.changed() for path in paths)


def take_back_work(shop: Project, bench: Bench) -> None:
    """Bring a bench to the last commit; hidden files stay as they are. It fails as `uncommitted` does."""
    masked = HiddenSearch(shop.tree, replace(shop.guardrails, others=None), shop.listings).hides()
    with _comparing(shop, bench) as git:
        paths = [path for _, each in git.changed() for path in each if not masked(path)]
        for start in range(0, len(paths), _PATHS_AT_ONCE):
            git.ask("back", *paths[start : start + _PATHS_AT_ONCE])


@contextmanager
def _comparing(shop: Project, on: Bench | None = None) -> Iterator[Git]:
    with opened(shop.tree) as repository, nullcontext(on) if on else open_bench(shop) as bench:
        settings = {**user_values(shop.config.environment, shop.tree, repository), **repository.config}
        yield Git(run=bench.run, repository=repository, head=repository.head().commit, settings=settings)


def last_commit(shop: Project) -> str:
    """The patch of the last commit; empty for the first one of all. It fails as `uncommitted` does."""
    words = ("-c", "log.showRoot=false", "log", "-1", "-p", "--format=", "--no-renames", "--diff-merges=first-parent")
    with opened(shop.tree) as repository, open_bench(shop) as bench:
        git = Git(run=bench.run, repository=repository, head=repository.head().commit)
        plain = ("--no-ext-diff", "--no-textconv", "--no-color", "HEAD")
        return git.ask("log", *words, *plain).decode("utf-8", "replace") if git.head else ""
