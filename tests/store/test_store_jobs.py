"""The rows of the queue: who is next, who may promote and end, and what all of them may spend."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from pawl.core.change import ChangeSet, EntryKind, Lease, NewEntry
from pawl.core.errors import Cancelled, Refused
from pawl.core.job import CRITICAL, Job, JobDependency, JobEnd, JobOutcome, JobState, NewJob
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


@pytest.mark.spec("A4")
def test_workspaces_take_turns_and_priority_goes_before(store: Store):
    store.jobs.add([job("/a"), job("/a"), job("/a"), job("/b"), job("/c", priority=5), job("/a", priority=CRITICAL)])
    assert drained(store) == [6, 5, 1, 4, 2, 3]


@pytest.mark.spec("A4")
def test_a_workspace_that_comes_late_waits_for_one_turn_and_not_for_all_that_were_there(store: Store):
    store.jobs.add([job("/a") for _ in range(5)])
    store.jobs.end(taken(store).held, JobEnd(outcome=JobOutcome.DONE))
    store.jobs.add([job("/b")])
    assert drained(store) == [2, 6, 3, 4, 5]


@pytest.mark.spec("A4")
def test_what_comes_after_a_job_waits_until_it_is_done_and_what_answers_a_failure_until_it_fails(store: Store):
    first, other = store.jobs.add([job(), job()])
    after = JobDependency(job=first)
    store.jobs.add([job(after=(after,)), job(after=(replace(after, failed=True),), priority=CRITICAL)])
    mine = taken(store)
    assert [one.standing for one in store.jobs.list()] == ["running", "queued", "blocked", "blocked"]
    store.jobs.end(mine.held, JobEnd(outcome=JobOutcome.FAILED))
    assert taken(store).id == 4
    store.jobs.retry(first)
    assert drained(store) == [first, other, 3]


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


def test_what_is_paused_is_passed_over_and_what_has_ended_cannot_be_paused(store: Store):
    store.jobs.add([job(), job()])
    store.jobs.pause([1], paused=True)
    assert taken(store).id == 2 and taken(store) is None
    store.jobs.pause([1], paused=False)
    store.jobs.pause([], paused=True)
    assert taken(store) is None and not store.jobs.holds(Lease(job=2, number=1), unpaused=True)
    store.jobs.pause([], paused=False)
    assert drained(store) == [1]
    with pytest.raises(Refused, match="has ended"):
        store.jobs.pause([1], paused=True)


def test_one_workspace_and_one_provider_have_so_many_jobs_at_a_time_and_no_more(store: Store):
    store.jobs.add([job("/a", provider="slow"), job("/a"), job("/b", provider="slow"), job("/c", provider="slow")])
    terms = ClaimTerms(together=1, providers={"slow": 2})
    assert [taken(store, terms).id, taken(store, terms).id] == [1, 3]
    assert taken(store, terms) is None
    assert taken(store, ClaimTerms(together=2, providers={"slow": 2})).id == 2


def test_a_provider_that_asks_for_time_is_asked_by_no_worker(state_directory: Path):
    now = [1000.0]
    with Store.open(state_directory, clock=lambda: now[0]) as store:
        store.jobs.add([job(provider="busy")])
        store.jobs.hold("busy", 60)
        store.jobs.hold("busy", 5)
        assert taken(store) is None and not store.jobs.is_idle()
        now[0] += 61
        assert taken(store).id == 1


def test_one_budget_is_shared_by_all_jobs_and_never_promised_twice(store: Store):
    store.jobs.add([replace(job(), order=RunRequest(text="cheap", budget={"money": "1"})), job(), job(), job()])
    store.jobs.allow(Decimal(5))
    terms = replace(TERMS, shares=2)
    assert [taken(store, terms).allowance for _ in range(3)] == [Decimal(1), Decimal(2), Decimal(1)]
    assert store.jobs.state().left == Decimal(1)
    store.jobs.allow(Decimal(3))
    assert taken(store) is None


def test_a_job_that_waits_for_the_user_ends_with_its_run_whoever_answers(store: Store):
    store.jobs.add([job()])
    mine, place = taken(store), RunCursor("r1", "approve")
    store.runs.begin("/a", place, RunRequest(text="asks"))
    store.jobs.begun(mine.held, "r1")
    store.runs.stand(place, RunState.WAITING)
    store.jobs.release(mine.held, "asked", state=JobState.WAITING)
    assert store.jobs.get(1).standing == "waiting" and store.jobs.is_idle()
    store.runs.deliver("r1", DeliveryState.DONE)
    store.runs.stand(place, RunState.ENDED)
    assert store.jobs.get(1).outcome is JobOutcome.DONE
