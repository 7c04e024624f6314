"""Carries out the waves of a specification: each task an ordinary run on a bench of its own, side by side; what is
verified alone is verified together, promoted as one entry and committed as one checkpoint with the ticked tasks.

Nothing of a wave reaches the workspace before all of it is verified, so that a wave that fails leaves the checkpoint
before it as it was. Runs and the wave under way stand in the store: whoever is killed is resumed from there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any

from pawl.agent.delivery import demands_of
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.session import Session
from pawl.agent.specification.spec_folder import SpecFolder
from pawl.agent.specification.spec_state import SpecState, WaveRecord, has_delivered, run_state, spent, task_runs
from pawl.agent.specification.task_list import SpecTask, TaskList
from pawl.agent.specification.task_request import commands_of, is_witnessed, request_for, unshown, wanted_of
from pawl.agent.specification.wave_jobs import WaveJobs
from pawl.agent.specification.wave_memory import wave_notes
from pawl.agent.specification.waves import PLAN, checkpoint, read_waves
from pawl.agent.works import commit_changes, trailer
from pawl.agent.workspace_memory import bank_contents
from pawl.checks.packages import PackagePolicy
from pawl.checks.verdict import ChangeVerdict, Evidence, Verification
from pawl.checks.verifier import Verifier
from pawl.core.change import EMPTY, ChangeSet, EntryKind, EntryState
from pawl.core.diagnostic import Verdict
from pawl.core.errors import BudgetExceeded, Cancelled, Conflicted, GitFailed, NotFound, UsageError
from pawl.core.job import JobOutcome
from pawl.core.lazy_dataclass import dataclass
from pawl.core.merge import rebase
from pawl.core.redact import redacted
from pawl.core.run import (
    Approval,
    ApprovalAnswer,
    ApprovalResponse,
    DeliveryState,
    Report,
    RunRequest,
    RunState,
    Trouble,
    trouble_of,
)
from pawl.models.local_child import free_memory
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.benches import uncommitted
from pawl.workspace.git import opened
from pawl.workspace.project import Project, new_run_id
from pawl.workspace.reversal import Wish

MOST_TOGETHER = 16
"""More tasks at the same time are more than most providers answer."""
_OF_A_TASK = 1 << 30
"""Memory for the tests and checks of a task."""
_PASSES = re.compile(r"^unverified: |; the guardrail asks above \d+$")
"""Questions that a wave answers: its proof is that of all together, and tasks.md says what may change."""


def usual_together(cores: int, free: int | None) -> int:
    """How many tasks work at the same time on a machine with so many cores and bytes free: two for each core, as a task
    mostly waits for its model."""
    return max(1, min(MOST_TOGETHER, 2 * cores, free // _OF_A_TASK if free is not None else MOST_TOGETHER))


class WaveEnd(StrEnum):
    DONE = "done"
    FAILED = "failed"
    UNVERIFIED = "unverified"
    STOPPED = "stopped"
    """By the user, a limit or a model that does not answer; it resumes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaveReport:
    number: int
    tasks: tuple[str, ...]
    end: WaveEnd
    commit: str = ""
    entry: int | None = None
    failed: tuple[tuple[str, str], ...] = ()
    """Tasks and why; the wave as a whole under an empty name."""
    notes: tuple[str, ...] = ()
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionWish:
    """The user's wishes for an execution."""

    wave: int | None = None
    task: str = ""
    resume: bool = False
    order: RunRequest
    """The terms of each task's run: model, tests, limits."""
    parallel: int = 0
    """Tasks at the same time; 0 for as many as the machine carries."""


class _WaveFailed(Exception):
    def __init__(self, end: WaveEnd, *failed: tuple[str, str], trouble: Trouble | None = None) -> None:
        super().__init__()
        self.end, self.failed, self.trouble = end, failed, trouble


class _Clashed(_WaveFailed):
    def __init__(self, task: str, path: str, why: str) -> None:
        super().__init__(WaveEnd.FAILED, (task, why))
        self.task, self.path = task, path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Proof:
    """The proofs of a wave."""

    evidence: Evidence | None = None
    lacking: tuple[tuple[str, str], ...] = ()
    """Tasks whose proof did not run, and why."""
    proved: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class WaveExecutor:
    spec: SpecFolder
    wish: ExecutionWish
    tell: Callable[[str], object] = lambda line: None
    cancel: CancelToken | None = None
    jobs: WaveJobs | None = None
    """The queue whose workers carry the tasks; None for this process."""

    @property
    def shop(self) -> Project:
        return self.spec.shop

    def chosen(self) -> list[tuple[int, tuple[SpecTask, ...]]]:
        """The waves that are left, each with its open tasks, as far as the wish asks for them."""
        tasks, wish = self.spec.tasks(), self.wish
        plan = self.spec.read(PLAN)
        if not plan.strip():
            raise UsageError(f"{self.spec.path}/{PLAN} does not exist", advice="make it with 'pawl spec orchestrate'")
        waves = list(enumerate(read_waves(plan, tasks), 1))
        left = [(number, tuple(one for one in wave if not one.done)) for number, wave in waves]
        left = [(number, some) for number, some in left if some]
        if wish.wave is not None:
            if not 1 <= wish.wave <= len(waves):
                raise UsageError(f"there is no wave {wish.wave}", advice=f"the waves are 1 to {len(waves)}")
            if left and left[0][0] < wish.wave:
                raise UsageError(f"wave {left[0][0]} is not done yet", advice="waves build on each other; do it first")
            return [one for one in left if one[0] == wish.wave]
        if wish.task:
            return self._alone(tasks, left)
        if wish.resume and not self._interrupted(left):
            raise UsageError("there is no interrupted execution to resume", advice="start it without --resume")
        return left

    def execute(self) -> tuple[WaveReport, ...]:
        """Every chosen wave, until one fails."""
        self._finish_pending()
        chosen = self.chosen()
        reports: list[WaveReport] = []
        before = spent(self.spec, task_runs(SpecState.of(self.spec)))
        for number, tasks in chosen:
            self._refuse_dirty()
            reports.append(self._wave(number, tasks, before))
            if reports[-1].end is not WaveEnd.DONE:
                break
        return tuple(reports)

    def _alone(
        self, tasks: TaskList, left: Sequence[tuple[int, tuple[SpecTask, ...]]]
    ) -> list[tuple[int, tuple[SpecTask, ...]]]:
        """One task, whose dependencies and earlier waves are done."""
        task = tasks.task(self.wish.task)
        if task.done:
            return []
        number = next(number for number, some in left if task in some)
        if left[0][0] < number:
            raise UsageError(
                f"{task.id} is in wave {number}, and wave {left[0][0]} is not done yet", advice="do that one first"
            )
        return [(number, (task,))]

    def _interrupted(self, left: Sequence[tuple[int, tuple[SpecTask, ...]]]) -> bool:
        state, queued = SpecState.of(self.spec), self.jobs.unended() if self.jobs is not None else {}
        tasks = (task for _, some in left for task in some)
        begun = (one.id in state.runs or redacted(request_for(self.spec, one)) in queued for one in tasks)
        return state.pending is not None or any(begun)

    def _refuse_dirty(self) -> None:
        try:
            patch, _ = uncommitted(self.shop)
        except NotFound as error:
            raise UsageError(
                "each wave is a commit, and this is not a git repository",
                advice="git init && git add -A && git commit -m 'Start'",
            ) from error
        paths = [line.removeprefix("+++ b/") for line in patch.splitlines() if line.startswith("+++ b/")]
        if patch.strip():
            what = paths[0] if paths else "something"
            more = f" and {len(paths) - 1} more" if paths[1:] else ""
            raise UsageError(
                f"{what}{more} is not committed, and a wave is one commit of its own",
                advice=f"commit it first: git add -A && git commit -m 'Specify {self.spec.name}'",
            )

    def _wave(self, number: int, tasks: tuple[SpecTask, ...], before: tuple[int, Decimal | None]) -> WaveReport:
        names = tuple(one.id for one in tasks)
        report = WaveReport(number=number, tasks=names, end=WaveEnd.DONE)
        self.tell(f"wave {number}: {', '.join(names)}")
        try:
            state = self._begun(tasks, before)
            self._work(tasks, state)
            changes = self._merged(tasks, before)
            verified = self._verified(tasks, changes)
            return self._committed(report, tasks, changes, verified)
        except _WaveFailed as error:
            for task, why in error.failed:
                self.tell(f"wave {number} failed{f', {task}' if task else ''}: {why}")
            return replace(report, end=error.end, failed=error.failed, trouble=error.trouble)
        except (Cancelled, BudgetExceeded) as error:
            return replace(report, end=WaveEnd.STOPPED, trouble=trouble_of(error))

    def _begun(self, tasks: tuple[SpecTask, ...], before: tuple[int, Decimal | None], leave: str = "") -> SpecState:
        """A run for each task that has none, durable before any of them works."""
        state = SpecState.of(self.spec)
        live = [one for one in tasks if self._is_live(state.runs.get(one.id, ""))]
        order = replace(self.wish.order, budget=self._share(state, before, max(1, len(tasks) - len(live))))
        for task in live:
            self.tell(f"{task.id} continues the run {state.runs[task.id]}")
        if self.jobs is not None:
            orders = {
                one.id: replace(order, text=request_for(self.spec, one, leave)) for one in tasks if one not in live
            }
            return self._by_workers(self.jobs, orders, state, [one.id for one in live])
        with self.shop.store.together():
            for task in tasks:
                if task not in live:
                    self.shop.run_id = new_run_id()
                    run = Session(self.shop).begin(replace(order, text=request_for(self.spec, task, leave)))
                    state = state.with_run(task.id, run)
            return state.keep(self.spec)

    def _by_workers(
        self, jobs: WaveJobs, orders: dict[str, RunRequest], state: SpecState, live: Sequence[str]
    ) -> SpecState:
        """Each task has the run that a worker of the queue has carried, as far as it goes alone."""
        broken = [state.runs[one] for one in live if run_state(self.spec, state.runs[one]) is RunState.WORKING]
        again = jobs.begun_again(broken)
        numbers = {one: again[state.runs[one]] for one in live if state.runs[one] in again}
        stopped: list[tuple[str, str]] = []
        for task, job in jobs.carried(numbers | jobs.put(orders, self.tell), self.cancel or CancelToken()):
            if job.run:
                state = state.with_run(task, job.run).keep(self.spec)
            if job.outcome is JobOutcome.CANCELLED or run_state(self.spec, job.run or "") in (None, RunState.WORKING):
                stopped.append((task, f"job {job.id} {job.standing}: {job.reason}"))
        if stopped:
            raise _WaveFailed(WaveEnd.STOPPED, *stopped)
        return state

    def _is_live(self, run: str) -> bool:
        """Whether the run works, waits, or has ended well: its task is not done again."""
        state = run_state(self.spec, run)
        return has_delivered(self.spec, run) if state is RunState.ENDED else state is not None

    def _share(self, state: SpecState, before: tuple[int, Decimal | None], tasks: int) -> dict[str, object]:
        """The rest of the money and the tokens, in equal parts: together they never spend more."""
        budget = dict(self.wish.order.budget)
        tokens, cost = spent(self.spec, task_runs(state))
        if "money" in budget:
            left = Decimal(str(budget["money"])) - ((cost or 0) - (before[1] or 0))
            budget["money"] = str(max(Decimal(0), left / tasks))
        if "tokens" in budget:
            left_tokens = int(str(budget["tokens"])) - (tokens - before[0])
            if left_tokens < tasks:
                raise BudgetExceeded("the tokens are used up", advice="allow more with --max-tokens, then --resume")
            budget["tokens"] = left_tokens // tasks
        return budget

    def _work(self, tasks: tuple[SpecTask, ...], state: SpecState) -> None:
        """Each task as far as it goes alone; `_WaveFailed` names those that did not make it."""
        reports: dict[str, Report] = {}
        stop = CancelToken(above=self.cancel)
        many = self.wish.parallel or usual_together(len(os.sched_getaffinity(0)), free_memory())
        with ThreadPoolExecutor(many) as threads:
            working = {threads.submit(self._resumed, state.runs[one.id], stop): one.id for one in tasks}
            try:
                for future in as_completed(working):
                    name = working[future]
                    reports[name] = future.result()
                    self.tell(f"{name} {_told(reports[name])}")
            finally:
                # An error of one, such as a full disk, ends the others.
                if len(reports) < len(tasks):
                    stop.request()
        if self.cancel is not None and self.cancel.requested:
            raise self.cancel.error()
        stopped = {name: one for name, one in reports.items() if one.state is RunState.WORKING}
        if stopped:
            trouble = next((one.trouble for one in stopped.values() if one.trouble is not None), None)
            told = [(name, _why(one)) for name, one in stopped.items()]
            raise _WaveFailed(WaveEnd.STOPPED, *told, trouble=trouble)
        failed = [(name, _why(reports[name])) for name in (one.id for one in tasks) if _failed(reports[name])]
        for name, _ in failed:
            state = self._dropped(state, name, "the task failed")
        if failed:
            raise _WaveFailed(WaveEnd.FAILED, *failed)

    def _resumed(self, run: str, stop: CancelToken) -> Report:
        """In a thread of its own, with a store of its own."""
        with Project.open(self.shop.config, Path(self.shop.workspace)) as own:
            session = Session(own, cancel=CancelToken(above=stop))
            try:
                return session.resume(run)
            finally:
                session.end()

    def _dropped(self, state: SpecState, task: str, why: str) -> SpecState:
        """Its run is no longer that of the task; what it made is kept as an entry."""
        run = state.runs[task]
        if run_state(self.spec, run) is RunState.WAITING:
            self._answer(run, ApprovalAnswer.REJECT, why)
        return state.without(task).keep(self.spec)

    def _answer(self, run: str, answer: ApprovalAnswer, why: str = "") -> None:
        session = Session(self.shop)
        digest = session.shown(run).digest
        session.answer(run, ApprovalResponse(answer=answer, digest=digest, reason=why))

    def _merged(self, tasks: tuple[SpecTask, ...], before: tuple[int, Decimal | None]) -> ChangeSet:
        """The changes of all; a task that conflicts with another is done once more, and told to leave that file."""
        again = set[str]()
        while True:
            try:
                return self._together(tasks)
            except _Clashed as clash:
                if clash.task in again:
                    raise
                again.add(clash.task)
                what = clash.failed[0][1].partition(";")[0]
                self.tell(f"{clash.task} {what}: it is done once more without that file")
                some = tuple(one for one in tasks if one.id == clash.task)
                try:
                    self._work(some, self._begun(some, before, clash.path))
                except _WaveFailed as error:
                    raise (clash if error.end is WaveEnd.FAILED else error) from error

    def _together(self, tasks: tuple[SpecTask, ...]) -> ChangeSet:
        """The changes of the tasks in their order, over the workspace as it stands."""
        state, blobs = SpecState.of(self.spec), self.shop.store.blobs
        total = EMPTY
        by: dict[str, str] = {}
        for task in tasks:
            run = state.runs[task.id]
            if run_state(self.spec, run) is RunState.ENDED:
                continue
            made = self.shop.store.runs.work(run, WorkName.SHOWN) or EMPTY
            try:
                found = rebase(self.shop.rebased(made), total, blobs)
            except Conflicted as error:
                self._dropped(state, task.id, error.message)
                raise _WaveFailed(WaveEnd.FAILED, (task.id, error.message)) from error
            if found.conflicts:
                one = found.conflicts[0]
                other = by.get(one.path, "another task")
                why = f"conflict with {other} in {one.path}: {one.reason}; write '(depends on {other})' into tasks.md"
                self._dropped(state, task.id, why)
                raise _Clashed(task.id, one.path, why)
            total = total.then(found.changes)
            by |= dict.fromkeys(found.changes.paths, task.id)
        return total

    def _verified(self, tasks: tuple[SpecTask, ...], changes: ChangeSet) -> _Proof:
        """The verdict on all of the wave; where it fails, the first task with which it does."""
        if not changes:
            unproved = [(one.id, "nothing was changed, so that its proof did not run") for one in tasks if one.proof]
            return self._all_shown(_Proof(lacking=tuple(unproved)))
        judgement, proof = self._judged(tasks, changes)
        if judgement.verdict is Verdict.FAILED:
            raise self._culprit(tasks, "; ".join(judgement.refused))
        if self.wish.order.accept_unverified:
            return proof
        self._all_shown(proof)
        if not judgement.accepted:
            why = f"{'; '.join(judgement.unproved)} (--accept-unverified takes it all the same)"
            raise _WaveFailed(WaveEnd.UNVERIFIED, ("", why))
        return proof

    def _all_shown(self, proof: _Proof) -> _Proof:
        for task, _ in proof.lacking:
            self._dropped(SpecState.of(self.spec), task, "its proof did not run")
        if proof.lacking:
            raise _WaveFailed(WaveEnd.UNVERIFIED, *proof.lacking)
        return proof

    def _judged(self, tasks: tuple[SpecTask, ...], changes: ChangeSet) -> tuple[ChangeVerdict, _Proof]:
        order, self.shop.stop = self.wish.order, self.cancel
        every = self.spec.tasks().tasks
        coming = frozenset(path for one in every if not one.done and one not in tasks for path in one.files)
        lines = (line for one in tasks for line in self._record(one).order.text.splitlines())
        verifier = Verifier(
            shop=self.shop,
            test_command=order.test_command,
            commands=commands_of(tasks),
            words="\n".join(dict.fromkeys(lines)),
            packages=PackagePolicy(install=order.install),
        )
        try:
            checked, judgement = verifier.proved(changes, wanted_of(tasks, coming))
        finally:
            self.shop.stop = None
        lacking = dict(unshown(tasks, checked))
        shown = [one.id for one in tasks if one.id not in lacking and self._is_shown(one, checked)]
        lacking |= {one.id: why for one in tasks if one.id not in {*shown, *lacking} and (why := self._unproved(one))}
        return judgement, _Proof(
            evidence=Evidence.of(checked, judgement),
            lacking=tuple(lacking.items()),
            proved=tuple(shown) if judgement.accepted else (),
        )

    def _is_shown(self, task: SpecTask, checked: Verification) -> bool:
        """Whether something failed without it and passes with it, alone or together with the others."""
        return task.red or self._record(task).data.witnessed or is_witnessed(task, checked)

    def _unproved(self, task: SpecTask) -> str:
        """Why a fix is not one, as its run found; that the wave makes nothing worse does not answer it."""
        record = self._record(task)
        wanted = demands_of(record)
        fixes = record.data.verdict is Verdict.UNVERIFIED and (wanted.fixes or wanted.witness)
        return "; ".join(record.data.unproved) if fixes else ""

    def _record(self, task: SpecTask) -> RunRecord:
        run = SpecState.of(self.spec).runs[task.id]
        return RunRecord(self.shop, self.shop.store.runs.get(self.shop.workspace, run).order, run)

    def _culprit(self, tasks: tuple[SpecTask, ...], why: str) -> _WaveFailed:
        """Each is fine alone: those before it are verified with it, one more each time."""
        state = SpecState.of(self.spec)
        for many in range(2, len(tasks)):
            some = tasks[:many]
            judgement, _ = self._judged(some, self._together(some))
            if judgement.verdict is Verdict.FAILED:
                break
        else:
            many = len(tasks)
        task, others = tasks[many - 1].id, ", ".join(one.id for one in tasks[: many - 1])
        told = f"fails together with {others}: {why}" if others else why
        self._dropped(state, task, told)
        return _WaveFailed(WaveEnd.FAILED, (task, told))

    def _committed(
        self, report: WaveReport, tasks: tuple[SpecTask, ...], changes: ChangeSet, proof: _Proof
    ) -> WaveReport:
        state, names, number = SpecState.of(self.spec), report.tasks, report.number
        wave = read_waves(self.spec.read(PLAN), self.spec.tasks())[number - 1]
        whole = {one.id for one in wave if not one.done} <= set(names)
        title = checkpoint(number) if whole else f"[CHECKPOINT] Wave {number}: {', '.join(names)}"
        body = "\n".join(f"{one.id} {one.what}" for one in tasks)
        ticked = self.spec.tasks().ticked(set(names)).encode("utf-8", "surrogateescape")
        bank = bank_contents(self.shop, wave_notes(self.spec, number, tasks))
        changes = changes.then(self.shop.writing({f"{self.spec.path}/tasks.md": ticked, **bank}))
        record = WaveRecord(
            number=number,
            tasks=names,
            run=new_run_id(),
            base=self._head(),
            proved=proof.proved,
            message=f"{title}\n\n{body}\n{trailer(self.shop.config.settings.attribution, '')}",
        )
        replace(state, pending=record).keep(self.spec)
        self.shop.run_id = record.run
        entry = self.shop.new_entry(
            EntryKind.EDIT, f"spec: {title}", evidence=proof.evidence, allows_protected=bool(bank)
        )
        self.shop.promote(entry, changes, merge=False)
        return self._finish_pending() or report

    def _head(self) -> str:
        with opened(self.shop.tree) as repository:
            return repository.head().commit

    def _finish_pending(self) -> WaveReport | None:
        """Commits the wave that is promoted, and ends its runs; also of an execution that was killed in between."""
        state = SpecState.of(self.spec)
        record = state.pending
        if record is None:
            self._end_runs(state)
            return None
        entries = [one for one in self.shop.entries(run=record.run) if one.state is EntryState.DONE and one.active]
        if not entries:
            # It was not promoted: its runs still wait, and are put together anew.
            replace(state, pending=None).keep(self.spec)
            return None
        entry = entries[0]
        report = WaveReport(number=record.number, tasks=record.tasks, end=WaveEnd.DONE, entry=entry.id)
        try:
            commit, notes = commit_changes(self.shop, self.shop.changes(entry), record.message, record.base)
        except GitFailed as error:
            self.shop.undo(entry.id, Wish())
            replace(state, pending=None).keep(self.spec)
            why = f"not committed, and rolled back: {error.message}" + (f" ({error.advice})" if error.advice else "")
            self.tell(f"wave {record.number} failed: {why}")
            return replace(report, end=WaveEnd.FAILED, entry=None, failed=(("", why),))
        done = replace(record, entry=entry.id, commit=commit)
        state = replace(state, pending=None, waves=(*state.waves, done)).keep(self.spec)
        self._end_runs(state)
        self.tell("; ".join((f"wave {record.number} committed as {commit[:12]} (entry {entry.id})", *notes)))
        return replace(report, commit=commit, notes=notes)

    def _end_runs(self, state: SpecState) -> None:
        """The runs of committed tasks end as delivered by the entry of their wave."""
        for wave in state.waves:
            for task in wave.tasks:
                run = state.runs.get(task, "")
                if run_state(self.spec, run) is RunState.WAITING:
                    row = self.shop.store.runs.get(self.shop.workspace, run)
                    record = RunRecord(self.shop, row.order, run)
                    record.keep(replace(record.data, entry=wave.entry))
                    self._answer(run, ApprovalAnswer.APPROVE)
                elif run_state(self.spec, run) is RunState.WORKING:
                    Session(self.shop).resume(run)


def _failed(report: Report) -> bool:
    """It is ended without a delivery, or waits for more than a proof."""
    if report.state is RunState.ENDED:
        return report.delivery is not DeliveryState.DONE
    return report.question is None or any(not _PASSES.search(one) for one in report.question.why)


def _why(report: Report) -> str:
    if report.trouble is not None:
        return report.trouble.message
    waits = report.question.why if report.question is not None else ()
    reasons = (*report.refused, *report.unproved, *waits)
    return "; ".join(dict.fromkeys(reasons)) or f"it ended {report.delivery or 'without a result'}"


def _told(report: Report) -> str:
    if report.state is RunState.WORKING:
        return f"stopped: {_why(report)}"
    if _failed(report):
        return f"failed: {_why(report)}"
    if report.question is None:
        return "done"
    large = [one for one in report.question.why if not one.startswith("unverified: ")]
    return "; ".join((f"{report.verdict or 'done'} alone", *large))


def order_of(**terms: Any) -> RunRequest:
    """The terms of a task's run: it is verified and waits; whoever executes the wave takes it from there."""
    return RunRequest(text="task", approval=Approval.FINAL, attended=False, commit="off", **terms)
