"""The state of a specification's execution: which run does which task, and which waves are committed.

It is kept in the store, so that an execution that was killed finds its runs; `tasks.md` says what is done.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from decimal import Decimal
from enum import StrEnum

from pawl.agent.specification.analysis import SpecFinding, drift
from pawl.agent.specification.spec_folder import PARTS, SpecFolder
from pawl.agent.specification.task_list import SpecTask
from pawl.agent.specification.waves import PLAN, read_waves
from pawl.core.errors import UnknownEntry, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RunState
from pawl.core.typed import plain, typed

KIND = "spec"


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveRecord:
    """A wave, or the part of one, that is being promoted or is committed."""

    number: int
    tasks: tuple[str, ...]
    run: str
    """Under which its entry is made."""
    base: str = ""
    """HEAD before it."""
    message: str = ""
    entry: int | None = None
    commit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecState:
    runs: Mapping[str, str] = field(default_factory=dict)
    """The run of each task that was begun, by its number."""
    pending: WaveRecord | None = None
    """Verified together, and not committed yet."""
    waves: tuple[WaveRecord, ...] = ()
    """Committed."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """The latest run of each step that asks a model."""

    @classmethod
    def of(cls, spec: SpecFolder) -> SpecState:
        body = spec.shop.store.snapshots.get(spec.shop.workspace, spec.path, KIND)
        try:
            return typed(cls, body or {})
        except ValueError:
            return cls()

    def keep(self, spec: SpecFolder) -> SpecState:
        """Durable when it returns, or with the batch around it."""
        spec.shop.store.snapshots.put(spec.shop.workspace, spec.path, KIND, plain(self))
        return self

    def with_run(self, task: str, run: str) -> SpecState:
        return replace(self, runs={**self.runs, task: run})

    def without(self, task: str) -> SpecState:
        return replace(self, runs={one: run for one, run in self.runs.items() if one != task})


class TaskStanding(StrEnum):
    PROVED = "proved"
    """Committed with its wave, verified."""
    DONE = "done"
    """Ticked, and not by Pawl."""
    WAITS = "verified alone"
    """Verified alone, and waits for its wave."""
    BEGUN = "begun"
    OPEN = "open"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStatus:
    task: SpecTask
    standing: TaskStanding
    wave: int = 0
    run: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecStatus:
    name: str
    parts: tuple[str, ...]
    """The files that are there."""
    tasks: tuple[TaskStatus, ...] = ()
    waves: tuple[WaveRecord, ...] = ()
    drift: tuple[SpecFinding, ...] = ()
    estimated_tokens: int = 0
    tokens: int = 0
    cost: Decimal | None = Decimal(0)
    """None where the price of a request is not known."""
    next_step: str = ""
    trouble: str = ""
    """Why the tasks or the plan cannot be read."""

    def count(self, *standings: TaskStanding) -> int:
        return sum(one.standing in standings for one in self.tasks)


def status_of(spec: SpecFolder) -> SpecStatus:
    state = SpecState.of(spec)
    parts = tuple(part for part in PARTS if spec.has(part))
    tokens, cost = spent(spec, state)
    known = SpecStatus(name=spec.name, parts=parts, waves=state.waves, tokens=tokens, cost=cost)
    try:
        tasks = spec.tasks() if "tasks.md" in parts else None
    except UsageError as error:
        return replace(known, trouble=error.message, next_step=error.advice)
    if tasks is None:
        return replace(known, next_step=_next(parts, 0))
    rows = tuple(_row(spec, state, one) for one in tasks.tasks)
    left = sum(not one.task.done for one in rows)
    full = replace(known, tasks=rows, drift=tuple(drift(spec, tasks)), next_step=_next(parts, left))
    try:
        waves = read_waves(spec.read(PLAN), tasks) if PLAN in parts else ()
        full = replace(full, estimated_tokens=spec.planned(tasks).tokens)
    except UsageError as error:
        return replace(full, trouble=error.message, next_step="pawl spec orchestrate")
    of = {one.id: number for number, wave in enumerate(waves, 1) for one in wave}
    return replace(full, tasks=tuple(replace(one, wave=of.get(one.task.id, 0)) for one in rows))


def _row(spec: SpecFolder, state: SpecState, task: SpecTask) -> TaskStatus:
    run = state.runs.get(task.id, "")
    if task.done:
        proved = any(task.id in one.tasks for one in state.waves)
        return TaskStatus(task=task, standing=TaskStanding.PROVED if proved else TaskStanding.DONE, run=run)
    standing = {RunState.WAITING: TaskStanding.WAITS, RunState.WORKING: TaskStanding.BEGUN}
    found = run_state(spec, run) or RunState.ENDED
    return TaskStatus(task=task, standing=standing.get(found, TaskStanding.OPEN), run=run)


def run_state(spec: SpecFolder, run: str) -> RunState | None:
    """None where there is no such run any more."""
    try:
        return spec.shop.store.runs.get(spec.shop.workspace, run).state if run else None
    except UnknownEntry:
        return None


def spent(spec: SpecFolder, state: SpecState) -> tuple[int, Decimal | None]:
    """Tokens and money of every run that the specification has had."""
    tokens, cost = 0, Decimal(0)
    unknown = False
    store, workspace = spec.shop.store, spec.shop.workspace
    for run in {*state.runs.values(), *state.steps.values()}:
        for one in store.requests.records(workspace, run=run):
            tokens += one.input_tokens + one.output_tokens
            unknown = unknown or one.cost is None
            cost += one.cost or 0
    return tokens, None if unknown else cost


def _next(parts: tuple[str, ...], left: int) -> str:
    for part, step in (("spec.md", "specify"), ("plan.md", "plan"), ("tasks.md", "tasks"), (PLAN, "orchestrate")):
        # What somebody wrote by hand needs no step that would have written it.
        if part not in parts and not ("tasks.md" in parts and part in ("spec.md", "plan.md")):
            return f"pawl spec {step}"
    return "pawl spec execute" if left else "pawl spec converge"
