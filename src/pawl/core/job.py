"""A job: a request that waits in the queue for a worker, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from enum import StrEnum

from pawl.core.change import Lease
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import DeliveryState, RunRequest

CRITICAL = 1_000_000
"""The priority that goes before every number a person gives."""


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    """A worker carries it, or died with it; whoever finds its lock free takes it over."""
    WAITING = "waiting"
    """Its run waits for the user's answer."""
    ENDED = "ended"


class JobOutcome(StrEnum):
    DONE = "done"
    PARTLY = "partly"
    UNVERIFIED = "unverified"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @classmethod
    def of(cls, delivery: DeliveryState | None) -> JobOutcome:
        return {
            DeliveryState.DONE: cls.DONE,
            DeliveryState.PARTLY: cls.PARTLY,
            DeliveryState.UNVERIFIED: cls.UNVERIFIED,
        }.get(delivery or DeliveryState.NEEDS_WORK, cls.FAILED)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobDependency:
    """A job or a run that goes before."""

    job: int | None = None
    run: str | None = None
    failed: bool = False
    """Begin where it failed, instead of where it is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job that has no number yet."""

    workspace: str
    order: RunRequest
    provider: str = ""
    priority: int = 0
    after: tuple[JobDependency, ...] = ()
    requires: tuple[str, ...] = ()
    """Labels that its worker has to have."""
    trace: str = ""
    """The trace in which it was added, as W3C's `traceparent`."""
    snapshot: str = ""
    """Its workspace as it was sent to the server of the queue; empty where it is carried at home."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTerms:
    """The terms on which a worker takes a job."""

    together: int
    """Jobs of one workspace at the same time."""
    providers: Mapping[str, int]
    """Jobs of one provider at the same time."""
    shares: int = 1
    """Workers that share what is left of the budget."""
    labels: frozenset[str] = frozenset()
    """What the worker has, for jobs that require it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    id: int
    workspace: str
    order: RunRequest
    provider: str
    priority: int
    created: str
    state: JobState
    paused: bool
    blocked: bool
    """Something that goes before it is not done."""
    run: str | None
    lease: int
    attempts: int
    """How often a worker took it; one that died or could not ask a model counts."""
    sent_back: bool
    """It was begun again, once, because its change was in conflict with what was promoted meanwhile."""
    worker: int | str | None
    """The process that carries it, with its machine where the queue has several."""
    not_before: str
    allowance: Decimal | None
    """Its share of the budget of the queue."""
    started: str | None
    ended: str | None
    outcome: JobOutcome | None
    verdict: str
    entry: int | None
    cost: Decimal | None
    reason: str
    requires: tuple[str, ...] = ()
    trace: str = ""
    queue: str = ""
    home: str = ""
    """The machine of its workspace, where the queue has several; changes are promoted only there."""
    defect: str = ""
    """Why nobody carries it: somebody else has written or changed its row."""

    @property
    def standing(self) -> str:
        """One word for people and programs."""
        if self.state is JobState.ENDED:
            return str(self.outcome)
        if self.state is JobState.QUEUED and (self.paused or self.blocked):
            return "paused" if self.paused else "blocked"
        return self.state

    @property
    def held(self) -> Lease:
        return Lease(job=self.id, number=self.lease, queue=self.queue)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How a job ended, as its row keeps it."""

    outcome: JobOutcome
    verdict: str = ""
    entry: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueState:
    """The state of the queue as a whole."""

    paused: bool = False
    budget: Decimal | None = None
    """In US dollars, for all that is spent since `since`."""
    since: str = ""
    spent: Decimal = Decimal(0)
    reserved: Decimal = Decimal(0)
    """The part of it that the running jobs may still spend."""

    @property
    def left(self) -> Decimal | None:
        return None if self.budget is None else self.budget - self.spent - self.reserved
