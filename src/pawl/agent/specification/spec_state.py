"""The state of a specification's execution: which run does which task, and which waves are committed.

It is kept in the store, so that an execution that was killed finds its runs; `tasks.md` says what is done.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field, replace
from decimal import Decimal
from enum import StrEnum

from pawl.agent.record import RunRecord
from pawl.agent.specification.analysis import UNCLEAR, FindingLevel, SpecFinding, coverage, drift
from pawl.agent.specification.spec_folder import PARTS, SpecFolder
from pawl.agent.specification.task_list import SpecTask
from pawl.agent.specification.waves import PLAN, read_estimate, read_waves
from pawl.core.change import EntryState, Node
from pawl.core.dialogue import Usage
from pawl.core.errors import ConfigError, UnknownEntry, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import DeliveryState, RunState
from pawl.core.typed import plain, typed
from pawl.models.router import model_config

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
    proved: tuple[str, ...] = ()
    """Those of its tasks that something speaks for, not only that nothing got worse."""


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
    past: tuple[str, ...] = ()
    """Runs of tasks that did not make it: they cost, too."""
    past_steps: tuple[str, ...] = ()
    taken_in: Mapping[str, str] = field(default_factory=dict)
    """The digest of each document as the latest step that builds on it has read it."""

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
        kept = self.without(task)
        return replace(kept, runs={**kept.runs, task: run})

    def without(self, task: str) -> SpecState:
        past = tuple(run for one, run in self.runs.items() if one == task)
        return replace(self, runs={one: run for one, run in self.runs.items() if one != task}, past=(*self.past, *past))

    def with_step(self, step: str, run: str) -> SpecState:
        past = tuple(old for one, old in self.steps.items() if one == step)
        return replace(self, steps={**self.steps, step: run}, past_steps=(*self.past_steps, *past))

    def with_documents(self, digests: Mapping[str, str]) -> SpecState:
        return replace(self, taken_in={**self.taken_in, **digests})

    def is_proved(self, task: SpecTask) -> bool:
        """Whether a wave has proved the task as it stands now, not another one of the same number."""
        told = f"{task.id} {task.what}"
        return any(task.id in one.proved and told in one.message.splitlines() for one in self.waves)


TAKES_IN = {"plan": ("spec.md",), "tasks": ("spec.md", "plan.md"), "converge": ("spec.md", "plan.md")}
"""What each step works into the files that it writes."""
_WRITES = {"spec.md": "plan", "plan.md": "tasks"}
"""The step that takes a document in first."""


def documents(spec: SpecFolder, step: str) -> dict[str, str]:
    """The digests of what the step takes in, as it stands now."""
    texts = {part: spec.read(part) for part in TAKES_IN.get(step, ())}
    return {
        part: hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()
        for part, text in texts.items()
        if text.strip()
    }


class TaskStanding(StrEnum):
    PROVED = "proved"
    """Committed with its wave, which was verified with a proof of this task, and its files are as it left them."""
    DONE = "done"
    """Ticked, and not proved by Pawl."""
    WAITS = "waits"
    """Made, and waits for its wave."""
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
    """For the tasks, as the execution plan says."""
    estimated_cost: Decimal | None = None
    """The same in money; None where the price of the model is not known."""
    tokens: int = 0
    task_tokens: int = 0
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
    tokens, cost = spent(spec, (*state.steps.values(), *state.past_steps, *task_runs(state)))
    of_tasks, _ = spent(spec, task_runs(state))
    known = SpecStatus(name=spec.name, parts=parts, waves=state.waves, tokens=tokens, task_tokens=of_tasks, cost=cost)
    try:
        tasks = spec.tasks() if "tasks.md" in parts else None
    except UsageError as error:
        return replace(known, trouble=error.message, next_step=error.advice)
    if tasks is None:
        return replace(known, next_step=_waiting(spec, state) or _next(spec, parts, 0))
    standing = replace(state, waves=tuple(one for one in state.waves if _stands(spec, one)))
    moved = _moved(spec, standing)
    rows = tuple(_row(spec, standing, one, moved) for one in tasks.tasks)
    left = sum(not one.task.done for one in rows)
    changed = _changed(spec, state)
    again = [f"pawl spec {_WRITES[part]}" for part in ("spec.md", "plan.md") if part in changed and left == len(rows)]
    step = _waiting(spec, state) or (again or [_next(spec, parts, left)])[0]
    uncovered = (one for one in coverage(spec, tasks) if one.level is FindingLevel.ERROR)
    found = (*changed.values(), *uncovered, *drift(spec, tasks), *_outdated(standing, rows, moved))
    full = replace(known, tasks=rows, drift=found, next_step=step)
    try:
        waves = read_waves(spec.read(PLAN), tasks) if PLAN in parts else ()
        tokens = read_estimate(spec.read(PLAN))
        full = replace(full, estimated_tokens=tokens, estimated_cost=estimated_cost(spec, tokens))
    except UsageError as error:
        return replace(full, trouble=error.message, next_step="pawl spec orchestrate")
    of = {one.id: number for number, wave in enumerate(waves, 1) for one in wave}
    return replace(full, tasks=tuple(replace(one, wave=of.get(one.task.id, 0)) for one in rows))


def _changed(spec: SpecFolder, state: SpecState) -> dict[str, SpecFinding]:
    """Documents that are not as the latest step read them that builds on them."""
    now = documents(spec, "converge")
    gone = [part for part, digest in state.taken_in.items() if part in now and now[part] != digest]
    return {
        part: SpecFinding(
            level=FindingLevel.WARNING,
            where=part,
            what=f"has changed since tasks were made of it: 'pawl spec {_WRITES[part]}' takes it in, or, once a task "
            "is done, 'pawl spec converge'",
            drift=True,
        )
        for part in sorted(gone)
    }


def estimated_cost(spec: SpecFolder, tokens: int) -> Decimal | None:
    """At the prices of the user's default model, where one token in ten is of an answer."""
    with suppress(ConfigError):
        config = model_config(spec.shop.config)
        usage = Usage(input=tokens - tokens // 10, output=tokens // 10)
        return config.prices.cost(config.routes.default, usage) if config.routes.default else None
    return None


def _stands(spec: SpecFolder, wave: WaveRecord) -> bool:
    """Whether its entry was not undone."""
    with suppress(UnknownEntry):
        return wave.entry is not None and spec.shop.entry(wave.entry).active
    return False


def _moved(spec: SpecFolder, state: SpecState) -> frozenset[str]:
    """The files that are not as the waves left them."""
    left: dict[str, Node | None] = {}
    for wave in state.waves:
        assert wave.entry is not None
        left |= {one.path: one.after for one in spec.shop.changes(spec.shop.entry(wave.entry))}
    return frozenset(path for path, node in left.items() if spec.shop.tree.node(path) != node)


def _outdated(state: SpecState, rows: Iterable[TaskStatus], moved: frozenset[str]) -> Iterator[SpecFinding]:
    for row in rows:
        if row.task.done and state.is_proved(row.task) and (paths := row.task.touches & moved):
            what = f"{row.task.id} was proved, and {min(paths)} has changed since: 'pawl verify' tells whether it holds"
            yield SpecFinding(level=FindingLevel.WARNING, where=f"tasks.md:{row.task.line}", what=what, drift=True)


def _row(spec: SpecFolder, state: SpecState, task: SpecTask, moved: frozenset[str]) -> TaskStatus:
    run = state.runs.get(task.id, "")
    if task.done:
        proved = state.is_proved(task) and moved.isdisjoint(task.touches)
        standing = TaskStanding.PROVED if proved else TaskStanding.DONE
        return TaskStatus(task=task, standing=standing, run=run)
    standings = {RunState.WAITING: TaskStanding.WAITS, RunState.WORKING: TaskStanding.BEGUN}
    found = run_state(spec, run) or RunState.ENDED
    return TaskStatus(task=task, standing=standings.get(found, TaskStanding.OPEN), run=run)


def run_state(spec: SpecFolder, run: str) -> RunState | None:
    """None where there is no such run any more."""
    try:
        return spec.shop.store.runs.get(spec.shop.workspace, run).state if run else None
    except UnknownEntry:
        return None


def has_delivered(spec: SpecFolder, run: str) -> bool:
    """Whether it has ended well and nobody has undone it. One that its wave has delivered is wanted anew."""
    row, made = spec.shop.store.runs.get(spec.shop.workspace, run), spec.shop.entries(run=run)
    stands = any(one.active and one.state is EntryState.DONE for one in made)
    by_itself = stands if made else RunRecord(spec.shop, row.order, run).data.entry is None
    return by_itself and row.delivery is DeliveryState.DONE


def task_runs(state: SpecState) -> tuple[str, ...]:
    """Those that did not make it included."""
    return (*state.runs.values(), *state.past)


def spent(spec: SpecFolder, runs: Iterable[str]) -> tuple[int, Decimal | None]:
    """Tokens and money of these runs."""
    tokens, cost = 0, Decimal(0)
    unknown = False
    store, workspace = spec.shop.store, spec.shop.workspace
    for run in set(runs):
        for one in store.requests.records(workspace, run=run):
            tokens += one.input_tokens + one.output_tokens
            unknown = unknown or one.cost is None
            cost += one.cost or 0
    return tokens, None if unknown else cost


def _waiting(spec: SpecFolder, state: SpecState) -> str:
    """The command that answers a step which waits for the user; empty where none does."""
    waits = (run for run in state.steps.values() if run_state(spec, run) is RunState.WAITING)
    return next((f"pawl approve {run}" for run in waits), "")


def _next(spec: SpecFolder, parts: tuple[str, ...], left: int) -> str:
    if "plan.md" not in parts and "tasks.md" not in parts and UNCLEAR.search(spec.read("spec.md")):
        return "pawl spec clarify"
    for part, step in (("spec.md", "specify"), ("plan.md", "plan"), ("tasks.md", "tasks"), (PLAN, "orchestrate")):
        # What somebody wrote by hand needs no step that would have written it.
        if part not in parts and not ("tasks.md" in parts and part in ("spec.md", "plan.md")):
            return f"pawl spec {step}"
    return "pawl spec execute" if left else "pawl spec converge"
