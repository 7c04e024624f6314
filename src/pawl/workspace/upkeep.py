"""Looking after the machine's protection and the state file."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pawl.core.errors import ConfigError, UsageError
from pawl.core.execution import Protection
from pawl.core.history import Retention
from pawl.workspace.bench_folder import benches, sweep
from pawl.workspace.commands import bench_places, open_sandbox_for
from pawl.workspace.history import OnConflict, Reversal, Wish
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Examination:
    protection: Protection
    problems: tuple[str, ...]
    state_bytes: int
    benches: int
    hooks: tuple[HookPlace, ...] = ()


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
class Cleaned:
    entries: int
    bytes_freed: int
    benches: int
    days: int
    backups: int


def examine(shop: Project, *, thorough: bool) -> Examination:
    """What protection commands get here, and whether the state file is sound; `thorough` reads all of it."""
    problems = list(shop.store.integrity()) if thorough else []
    hooks: tuple[HookPlace, ...] = ()
    try:
        hooks = tuple(_hooks(shop))
    except ConfigError as error:
        problems.append(f"{error.message}; {error.advice}")
    return Examination(
        protection=open_sandbox_for(shop).protection(),
        problems=tuple(problems),
        state_bytes=shop.store.size_bytes(),
        benches=sum(len(benches(place)) for place in bench_places(shop.config)),
        hooks=hooks,
    )


def _hooks(shop: Project) -> Iterator[HookPlace]:
    from pawl.workspace.hooks import hooks_for, host_words

    hooks = hooks_for(shop.config, shop.workspace)
    for one in hooks.commands:
        problem = ""
        try:
            if one.host:
                host_words(one.argv, workspace=hooks.workspace, home=hooks.home)
        except ConfigError as error:
            problem = f"{error.message}; {error.advice}"
        yield HookPlace(event=one.event, command=one.command, source=one.source, host=one.host, problem=problem)


def clean(shop: Project, *, days: int | None, backups: int | None) -> Cleaned:
    """Drops what retention no longer keeps."""
    settings = shop.config.settings
    retention = Retention(
        days=settings.retention_days if days is None else days,
        backups=settings.backups if backups is None else backups,
    )
    if retention.days < 0 or retention.backups < 0:
        raise UsageError("days and backups cannot be below 0", advice="give 0 to keep as little as possible")
    before = shop.store.size_bytes()
    entries, _ = shop.store.journal.prune(retention)
    shop.store.collect(vacuum=True)
    benches = sum(sweep(place) for place in bench_places(shop.config))
    freed = max(0, before - shop.store.size_bytes())
    shop.note("collected", {"entries": entries, "bytes": freed, "benches": benches})
    return Cleaned(entries=entries, bytes_freed=freed, benches=benches, days=retention.days, backups=retention.backups)


__all__ = ["OnConflict", "Reversal", "Wish"]
