"""A worker takes jobs from the queue and carries each as one ordinary run.

On one machine no heartbeat is needed: the worker holds a lock of the operating system for each job, which dies with its
process. Whoever finds a job that runs without its lock takes it over and resumes its run from the last durable step.
`carry` is all that a job is; an engine for many machines calls the same.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path

from pawl.agent.queue.job_queue import QueueSettings
from pawl.agent.session import Session
from pawl.core.errors import Cancelled, Conflicted, PawlError, RateLimited, StoreBusy, StoreError
from pawl.core.job import Job, JobEnd, JobOutcome, JobState
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Report, RunState
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import Config
from pawl.store.jobs import ClaimTerms, lost
from pawl.store.run_lock import run_lock
from pawl.store.store import Store
from pawl.workspace.project import Project

IDLE_SECONDS = 0.2
LOOK_SECONDS = 0.5
"""How often a worker looks whether its job was cancelled or paused."""
LATER = 75
"""The exit code of errors that pass."""
LONGEST_WAIT = 300.0
BUSY_SECONDS = 2.0


@dataclass(slots=True, kw_only=True)
class QueueWorker:
    config: Config
    store: Store
    stop: CancelToken
    settings: QueueSettings
    tell: Callable[[Job, str], object] = lambda job, what: None
    shares: int = 1
    """Workers that share what is left of the budget of the queue."""
    _carried: tuple[Job, CancelToken] | None = field(default=None, init=False)
    _telemetry: Telemetry = field(default_factory=Telemetry, init=False)

    def work(self, *, drains: bool) -> None:
        """Carry jobs until the queue is empty, or until it is stopped."""
        with self._watch(), Telemetry.open(self.config.environment) as self._telemetry:
            while not self.stop.requested:
                with ExitStack() as lock:
                    job = self._taken(lock)
                    if job is not None:
                        self._carry(job)
                        continue
                left = self.store.jobs.state().left
                if drains and (self.store.jobs.is_idle() or (left is not None and left <= 0 and not self._others())):
                    return
                _pause(self.stop, IDLE_SECONDS)

    def _others(self) -> bool:
        return bool(self.store.jobs.list(state=JobState.RUNNING))

    def _taken(self, lock: ExitStack) -> Job | None:
        jobs = self.store.jobs

        def takes(number: int) -> bool:
            try:
                lock.enter_context(run_lock(self.config.state / "locks" / f"job{number}.run", 1e-9))
            except StoreBusy:
                return False
            return True

        # What a dead worker left behind goes first.
        for one in jobs.list(state=JobState.RUNNING):
            if takes(one.id):
                if (adopted := jobs.adopt(one.id, os.getpid())) is not None:
                    return adopted
                lock.close()
        terms = ClaimTerms(together=self.settings.together, providers=self.settings.providers, shares=self.shares)
        return jobs.next(terms, takes, os.getpid())

    @contextmanager
    def _watch(self) -> Iterator[None]:
        """Stops the job under way when it is cancelled or paused, from a thread with a store of its own."""
        over = threading.Event()

        def look() -> None:
            with Store.open(self.config.state) as store:
                while not over.wait(LOOK_SECONDS):
                    carried = self._carried
                    with suppress(StoreError):
                        if carried is not None and not store.jobs.holds(carried[0].held, unpaused=True):
                            carried[1].request()

        thread = threading.Thread(target=look, name="queue watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()

    def _carry(self, job: Job) -> None:
        if job.attempts > self.settings.attempts:
            why = job.reason or "its worker died each time"
            end = JobEnd(outcome=JobOutcome.FAILED, reason=f"stopped after {self.settings.attempts} attempts: {why}")
            self.store.jobs.end(job.held, end)
            self.tell(job, f"failed: {end.reason}")
            return
        self.tell(job, "taken" if job.attempts == 1 else f"taken again, attempt {job.attempts}")
        token = CancelToken(above=self.stop)
        self._carried = (job, token)
        try:
            told = self._traced(job, token)
        except Cancelled as error:
            # Somebody has cancelled it or taken it over: its row is theirs.
            told = error.message
        finally:
            self._carried = None
            token.close()
        self.tell(job, told)

    def _traced(self, job: Job, cancel: CancelToken) -> str:
        """The job from when it was added, and this attempt at it; the requests of its run are below them."""
        about = {"pawl.job": job.id, "pawl.priority": job.priority, "pawl.attempts": job.attempts}
        since = datetime.fromisoformat(job.created) if job.attempts == 1 else None
        with (
            self._telemetry.span("queue job", about, since),
            self._telemetry.span("worker attempt", {"pawl.job": job.id, "pawl.lease": job.lease}),
        ):
            return carry(self.config, job, cancel, self._telemetry)


def carry(config: Config, job: Job, cancel: CancelToken, telemetry: Telemetry) -> str:
    """Carry a job whose lease is held, as far as it goes without the user, and write down what came of it."""
    try:
        shop = Project.open(config, Path(job.workspace))
    except PawlError as error:
        with Store.open(config.state) as store:
            return _ended(store, job, JobEnd(outcome=JobOutcome.FAILED, reason=error.message))
    with shop:
        shop.lease = job.held
        session = Session(shop, cancel=cancel)
        try:
            report = _carried(session, job, job.run or _begun(session, job), telemetry)
            conflict = "" if job.sent_back else _conflict(shop, report)
            if conflict:
                # Both runs together spend what one may.
                job = _without(job, report.cost or Decimal(0))
                report = _carried(session, job, _begun(session, job, conflict), telemetry)
            return _settled(session, job, report)
        except StoreBusy as error:
            # Somebody answers or resumes its run by hand at this moment.
            shop.store.jobs.release(job.held, error.message, state=JobState.QUEUED, seconds=BUSY_SECONDS, counts=False)
            return f"put back: {error.message}"
        except Cancelled:
            raise
        except PawlError as error:
            return _ended(shop.store, job, JobEnd(outcome=JobOutcome.FAILED, reason=error.message))
        finally:
            session.end()


def _without(job: Job, spent: Decimal) -> Job:
    left = None if job.allowance is None else max(Decimal(0), job.allowance - spent)
    budget = dict(job.order.budget)
    if "money" in budget:
        budget["money"] = str(max(Decimal(0), Decimal(str(budget["money"])) - spent))
    return replace(job, allowance=left, order=replace(job.order, budget=budget))


def _carried(session: Session, job: Job, run: str, telemetry: Telemetry) -> Report:
    with telemetry.span("run", {"pawl.run": run}):
        return session.resume(run, money=job.allowance)


def _begun(session: Session, job: Job, conflict: str = "") -> str:
    """A new run of the job, recorded together with it: a worker that dies here has begun none, or exactly one."""
    order, shop = job.order, session.shop
    if conflict:
        order = replace(order, context=(*order.context, conflict))
    with shop.store.together():
        run = session.begin(order)
        shop.store.jobs.begun(job.held, run, sent_back=bool(conflict))
    return run


def _conflict(shop: Project, report: Report) -> str:
    """The words for an agent whose change was in conflict with what was promoted meanwhile; empty where not."""
    if report.state is not RunState.ENDED or report.entry is not None or report.kept is None:
        return ""
    try:
        shop.rebased(shop.changes(shop.entry(report.kept)))
    except Conflicted as error:
        return (
            f"An earlier attempt at this request could not be delivered: {error.message}."
            " Read these files again and do it over what stands there now."
        )
    return ""


def _settled(session: Session, job: Job, report: Report) -> str:
    jobs = session.shop.store.jobs
    match report.state:
        case RunState.WAITING:
            why = "; ".join(report.question.why) if report.question is not None else ""
            jobs.release(job.held, why, state=JobState.WAITING)
            return f"waits for your approval: pawl -C {job.workspace} approve {report.run}"
        case RunState.WORKING:
            return _stopped(session, job, report)
    reasons = "; ".join(dict.fromkeys((*report.refused, *report.unproved)))
    if report.trouble is not None:
        reasons = report.trouble.message
    outcome = JobOutcome.of(report.delivery)
    end = JobEnd(outcome=outcome, verdict=str(report.verdict or ""), entry=report.entry or report.kept, reason=reasons)
    return _ended(session.shop.store, job, end)


def _stopped(session: Session, job: Job, report: Report) -> str:
    """The run can be resumed: now, later, or when the user has done something about it."""
    jobs, error = session.shop.store.jobs, session.error
    why = report.trouble.message if report.trouble is not None else "stopped"
    if isinstance(error, Cancelled):
        if not jobs.holds(job.held):
            raise lost(job.held)
        jobs.release(job.held, "", state=JobState.QUEUED, counts=False)
        return "stopped; its run is resumed from there"
    if error is not None and error.exit_code == LATER:
        wait = min(LONGEST_WAIT, 5.0 * 2**job.attempts)
        if isinstance(error, RateLimited):
            wait = max(wait, error.wait_seconds or 0.0)
            jobs.hold(job.provider, wait)
        jobs.release(job.held, why, state=JobState.QUEUED, seconds=wait)
        return f"put back for {wait:.0f} s: {why}"
    advice = f" ({report.trouble.advice})" if report.trouble is not None and report.trouble.advice else ""
    return _ended(session.shop.store, job, JobEnd(outcome=JobOutcome.FAILED, reason=f"{why}{advice}"))


def _ended(store: Store, job: Job, end: JobEnd) -> str:
    store.jobs.end(job.held, end)
    return f"{end.outcome}: {end.reason}" if end.reason else str(end.outcome)


def _pause(cancel: CancelToken, seconds: float) -> None:
    import select

    select.select([cancel], [], [], seconds)
