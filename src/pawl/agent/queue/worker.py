"""A worker takes jobs from the queue and carries each as one ordinary run.

Whoever takes over the job of a dead worker resumes its run from the last durable step. `carry` is all that a job is,
wherever its queue is kept.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import field, replace
from datetime import datetime
from decimal import Decimal
from functools import partial
from pathlib import Path

from pawl.agent.queue.job_queue import JobQueue, QueueSettings, again, beside
from pawl.agent.queue.job_rows import abroad
from pawl.agent.queue.server_queue import ServerQueue
from pawl.agent.queue.travel import arrive, progress, sweep_copies, tell_progress, workspace_of
from pawl.agent.session import Session
from pawl.core.errors import (
    Cancelled,
    Conflicted,
    PawlError,
    QueueUnreachable,
    RateLimited,
    Refused,
    StoreBusy,
    StoreError,
)
from pawl.core.job import ClaimTerms, Job, JobEnd, JobOutcome, JobState
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import Report, RunState
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken
from pawl.settings.config import Config
from pawl.store.jobs import lost
from pawl.store.store import Store
from pawl.workspace.project import Project

IDLE_SECONDS, LONGEST_IDLE = 0.2, 2.0
"""How often a worker that has nothing to do looks for a job; less and less where the queue is on a server."""
AWAY_SECONDS = 600.0
"""How long a worker waits for a server that does not answer."""
LATER = 75
"""The exit code of errors that pass."""
LONGEST_WAIT = 300.0
BUSY_SECONDS = 2.0


@dataclass(slots=True, kw_only=True)
class QueueWorker:
    config: Config
    queue: JobQueue
    stop: CancelToken
    settings: QueueSettings
    tell: Callable[[Job, str], object] = lambda job, what: None
    warn: Callable[[str], object] = lambda what: None
    shares: int = 1
    """Workers that share what is left of the budget of the queue."""
    labels: frozenset[str] = frozenset()
    """What this worker has, for jobs that require it."""
    _carried: tuple[Job, CancelToken] | None = field(default=None, init=False)
    _telemetry: Telemetry = field(default_factory=Telemetry, init=False)

    def work(self, *, drains: bool) -> None:
        """Carry jobs until the queue is empty, or until it is stopped."""
        with self._watch(), Telemetry.open(self.config.environment) as self._telemetry:
            with suppress(QueueUnreachable):
                sweep_copies(self.config, self.queue)
            idle, away = IDLE_SECONDS, 0.0
            while not self.stop.requested:
                try:
                    found, away = self._turn(drains=drains), 0.0
                except QueueUnreachable as error:
                    if not away:
                        self.warn(f"{error.message}; waiting for it")
                    away += LONGEST_IDLE
                    if away >= AWAY_SECONDS:
                        raise
                    self.stop.wait(LONGEST_IDLE)
                    continue
                if found is None:
                    return
                idle = IDLE_SECONDS if found else min(idle * 1.5, max(IDLE_SECONDS, 2 * self.queue.look_seconds))
                if not found:
                    self.stop.wait(idle)

    def _turn(self, *, drains: bool) -> bool | None:
        """Carry the next job: whether there was one; None where nothing is left to do."""
        own = self.settings
        terms = ClaimTerms(together=own.together, providers=own.providers, shares=self.shares, labels=self.labels)
        with ExitStack() as lock:
            job = self.queue.take(terms, lock)
            if job is not None:
                self._carry(job)
                # What a run leaves (threads, texts) hangs together in cycles, looked for too rarely (__main__).
                gc.collect()
                return True
        if not drains:
            return False
        left = self.queue.state().left
        spent = left is not None and left <= 0 and not self.queue.list(state=JobState.RUNNING)
        return None if spent or self.queue.is_idle(self.labels) else False

    @contextmanager
    def _watch(self) -> Iterator[None]:
        """Stops the job under way when it is cancelled or paused, from a thread with a store of its own."""
        over = threading.Event()

        def look() -> None:
            with Store.open(self.config.state) as store, again(self.queue, store) as queue:
                told: tuple[object, ...] = ()
                while not over.wait(queue.look_seconds):
                    # Whoever has lost the job is told by the run itself.
                    with suppress(StoreError, Cancelled):
                        queue.beat()
                        carried = self._carried
                        if carried is not None and not queue.holds(carried[0].held, unpaused=True):
                            carried[1].request()
                        elif carried is not None:
                            told = tell_progress(queue, store, carried[0], told)

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
            self.queue.end(job.held, end)
            self.tell(job, f"failed: {end.reason}")
            return
        self.tell(job, "started" if job.attempts == 1 else f"started again, attempt {job.attempts}")
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
            self._telemetry.span("queue job", about, since, job.trace),
            self._telemetry.span("worker attempt", {"pawl.job": job.id, "pawl.lease": job.lease}),
        ):
            return carry(self, job, cancel, self._telemetry)


def carry(worker: QueueWorker, job: Job, cancel: CancelToken, telemetry: Telemetry) -> str:
    """Carry a job whose lease is held, as far as it goes without the user, and write down what came of it."""
    config, queue = worker.config, worker.queue
    try:
        if job.defect:
            raise Refused(f"not run: {job.defect}")
        place = workspace_of(config, queue, job)
        shop = Project.open(config, place)
    except (Cancelled, QueueUnreachable):
        raise
    except PawlError as error:
        return _not_carried(queue, job, error)
    with shop:
        queue, shop.away = beside(queue, shop.store), place != Path(job.workspace)
        shop.lease, shop.fence = job.held, partial(queue.fence, job.held)
        session = Session(shop, cancel=cancel)
        try:
            if shop.away:
                job = replace(job, order=abroad(job.order, worker.labels, config.tables.budget))
            report = _carried(session, job, arrive(shop, queue, job) or _begun(session, queue, job), telemetry)
            if shop.away and session.error is None:
                assert isinstance(queue, ServerQueue)
                queue.send_home(job.held, report.run, progress(shop.store, report.run))
                return "done; the machine that added it promotes it"
            conflict = "" if job.sent_back else _conflict(shop, report)
            if conflict:
                # Both runs together spend what one may.
                job = _without(job, report.cost or Decimal(0))
                report = _carried(session, job, _begun(session, queue, job, conflict), telemetry)
            return _settled(session, queue, job, report)
        except (Cancelled, QueueUnreachable):
            raise
        except PawlError as error:
            return _not_carried(queue, job, error)
        finally:
            session.end()


def _not_carried(queue: JobQueue, job: Job, error: PawlError) -> str:
    if not isinstance(error, StoreBusy):
        return _ended(queue, job, JobEnd(outcome=JobOutcome.FAILED, reason=error.message))
    # Somebody answers or resumes its run by hand at this moment, or has stopped in the middle of a promotion.
    queue.release(job.held, error.message, state=JobState.QUEUED, seconds=BUSY_SECONDS, counts=False)
    return f"back in the queue: {error.message}"


def _without(job: Job, spent: Decimal) -> Job:
    left = None if job.allowance is None else max(Decimal(0), job.allowance - spent)
    budget = dict(job.order.budget)
    if "money" in budget:
        budget["money"] = str(max(Decimal(0), Decimal(str(budget["money"])) - spent))
    return replace(job, allowance=left, order=replace(job.order, budget=budget))


def _carried(session: Session, job: Job, run: str, telemetry: Telemetry) -> Report:
    with telemetry.span("run", {"pawl.run": run}):
        return session.resume(run, money=job.allowance)


def _begun(session: Session, queue: JobQueue, job: Job, conflict: str = "") -> str:
    """A new run of the job, recorded together with it: a worker that dies here has begun none, or exactly one."""
    order, shop = job.order, session.shop
    if conflict:
        order = replace(order, context=(*order.context, conflict))
    with shop.store.together():
        run = session.begin(order)
        queue.begun(job.held, run, sent_back=bool(conflict))
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


def _settled(session: Session, queue: JobQueue, job: Job, report: Report) -> str:
    match report.state:
        case RunState.WAITING:
            why = "; ".join(report.question.why) if report.question is not None else ""
            queue.release(job.held, why, state=JobState.WAITING)
            return f"waits for your approval: pawl -C {job.workspace} approve {report.run}"
        case RunState.WORKING:
            return _stopped(session, queue, job, report)
    told = [report.trouble.message] if report.trouble else list(dict.fromkeys((*report.refused, *report.unproved)))
    if not told and not report.requests:
        # Without a model the answer is what the reflex says of the patches that it left to the user.
        told = [report.answer.strip(), *(f"{what}: pawl promote {entry}" for entry, what in report.alternatives)]
    outcome, why = JobOutcome.of(report.delivery), "; ".join(filter(None, told))
    end = JobEnd(outcome=outcome, verdict=str(report.verdict or ""), entry=report.entry or report.kept, reason=why)
    return _ended(queue, job, end)


def _stopped(session: Session, queue: JobQueue, job: Job, report: Report) -> str:
    """The run can be resumed: now, later, or when the user has done something about it."""
    error = session.error
    why = report.trouble.message if report.trouble is not None else "stopped"
    if error is None or isinstance(error, Cancelled):
        # Without an error it was stopped between two steps, such as while it waited for its turn to deliver.
        if not queue.holds(job.held):
            raise lost(job.held)
        queue.release(job.held, "", state=JobState.QUEUED, counts=error is None)
        return "stopped; its run is resumed from there"
    if error is not None and error.exit_code == LATER:
        wait = min(LONGEST_WAIT, 5.0 * 2**job.attempts)
        if isinstance(error, RateLimited):
            wait = max(wait, error.wait_seconds or 0.0)
            queue.hold(job.provider, wait)
        queue.release(job.held, why, state=JobState.QUEUED, seconds=wait)
        return f"back in the queue for {wait:.0f} s: {why}"
    advice = f" ({report.trouble.advice})" if report.trouble is not None and report.trouble.advice else ""
    return _ended(queue, job, JobEnd(outcome=JobOutcome.FAILED, reason=f"{why}{advice}"))


def _ended(queue: JobQueue, job: Job, end: JobEnd) -> str:
    queue.end(job.held, end)
    return f"{end.outcome}: {end.reason}" if end.reason else str(end.outcome)
