"""The rows of the queue: who is next, who may promote and end, and what all of them may spend."""

from __future__ import annotations

from pathlib import Path

import pytest

from pawl.core.change import ChangeSet, EntryKind, NewEntry
from pawl.core.errors import Cancelled
from pawl.core.job import Job, JobDependency, JobEnd, JobOutcome, NewJob
from pawl.core.run import DeliveryState, RunCursor, RunRequest, RunState
from pawl.store.jobs import ClaimTerms
from pawl.store.store import Store

TERMS = ClaimTerms(together=100, providers={})


@pytest.fixture
def store(state_directory: Path):
    with Store.open(state_directory) as opened:
        yield opened


def job(workspace: str = "/a", **more: object) -> NewJob:
    return NewJob(workspace=workspace, order=RunRequest(text=f"for {workspace}"), **more)


def taken(store: Store, terms: ClaimTerms = TERMS) -> Job | None:
    return store.jobs.next(terms, lambda number: True, 1)


def drained(store: Store) -> list[int]:
    """The numbers in the order in which a worker that ends each gets them."""
    found = []
    while (one := taken(store)) is not None:
        found.append(one.id)
        store.jobs.end(one.held, JobEnd(outcome=JobOutcome.DONE))
    return found


def test_a_run_that_was_begun_by_hand_can_be_waited_for(store: Store):
    place = RunCursor("r1", "intent")
    store.runs.begin("/a", place, RunRequest(text="by hand"))
    store.jobs.add([job(after=(JobDependency(run="r1"),))])
    assert taken(store) is None
    store.runs.deliver("r1", DeliveryState.DONE)
    store.runs.stand(place, RunState.ENDED)
    assert taken(store).id == 1


@pytest.mark.spec("A4")
def test_only_the_newest_lease_ends_a_job_and_it_ends_once(store: Store):
    store.jobs.add([job()])
    dead = taken(store)
    heir = store.jobs.adopt(dead.id, 2)
    assert (heir.lease, heir.attempts) == (dead.lease + 1, 2)
    with pytest.raises(Cancelled, match="taken over"):
        store.jobs.end(dead.held, JobEnd(outcome=JobOutcome.DONE))
    store.jobs.end(heir.held, JobEnd(outcome=JobOutcome.PARTLY))
    with pytest.raises(Cancelled):
        store.jobs.end(heir.held, JobEnd(outcome=JobOutcome.DONE))
    assert store.jobs.get(heir.id).outcome is JobOutcome.PARTLY
    assert store.jobs.adopt(heir.id, 3) is None


@pytest.mark.spec("A4")
def test_nothing_is_promoted_under_a_lease_that_is_no_longer_the_newest(store: Store):
    store.jobs.add([job()])
    mine = taken(store)
    entry = NewEntry(workspace="/a", run="r1", kind=EntryKind.EDIT, title="mine", lease=mine.held)
    store.journal.begin(entry, ChangeSet(), {})
    store.jobs.pause([mine.id], paused=True)
    store.journal.begin(entry, ChangeSet(), {})
    store.jobs.cancel(mine.id)
    with pytest.raises(Cancelled, match="nothing of this attempt is promoted"):
        store.journal.begin(entry, ChangeSet(), {})
    assert len(store.journal.pending("/a")) == 2


def test_a_provider_that_asks_for_time_is_asked_by_no_worker(state_directory: Path):
    now = [1000.0]
    with Store.open(state_directory, clock=lambda: now[0]) as store:
        store.jobs.add([job(provider="busy")])
        store.jobs.hold("busy", 60)
        store.jobs.hold("busy", 5)
        assert taken(store) is None and not store.jobs.is_idle()
        now[0] += 61
        assert taken(store).id == 1
