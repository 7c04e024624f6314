"""The queue keeps its promises wherever it is kept: in the state file, or on a PostgreSQL server for many machines."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import postgres
import pytest
from models.test_telemetry import RECORD

from pawl.agent.queue import queue_server, server_queue
from pawl.core.change import ChangeSet, EntryKind, EntryState, Lease, NewEntry
from pawl.core.errors import Cancelled, ConfigError, QueueUnreachable, Refused, UsageError
from pawl.core.job import CRITICAL, ClaimTerms, Job, JobDependency, JobEnd, JobOutcome, JobState, NewJob
from pawl.core.run import DeliveryState, RunCursor, RunRequest, RunState
from pawl.store.store import Store

TERMS = ClaimTerms(together=100, providers={})
DONE = JobEnd(outcome=JobOutcome.DONE)
_LOCKS: dict[int, ExitStack] = {}
ON_A_SERVER = pytest.mark.whole
"""A server takes seconds to start."""


@pytest.fixture(scope="session")
def database_server() -> Iterator[postgres.Postgres]:
    if why := postgres.missing():
        pytest.skip(why)
    with postgres.server() as made:
        yield made


@dataclass
class Queue:
    """A queue and the state file beside it; each taking is by a worker of its own."""

    store: Store
    server: queue_server.QueueServer | None = None
    dead_seconds: float = 30.0
    home: str = "here"

    def worker(self):
        if self.server is None:
            return self.store.jobs
        return server_queue.ServerQueue(
            server=self.server, store=self.store, home=self.home, dead_seconds=self.dead_seconds
        )

    def end(self, lease: Lease, end: JobEnd) -> None:
        self.worker().end(lease, end)
        self._let_go(lease)

    def release(self, lease: Lease, reason: str, **more: object) -> None:
        self.worker().release(lease, reason, **more)
        self._let_go(lease)

    @staticmethod
    def _let_go(lease: Lease) -> None:
        _LOCKS.pop(lease.job, ExitStack()).close()

    def __getattr__(self, name: str) -> object:
        return getattr(self.worker(), name)


@pytest.fixture(params=["state file", pytest.param("server", marks=ON_A_SERVER)])
def queue(request: pytest.FixtureRequest, state_directory: Path):
    with Store.open(state_directory) as store:
        if request.param == "state file":
            yield Queue(store)
            return
        made: postgres.Postgres = request.getfixturevalue("database_server")
        with_server = queue_server.QueueServer.at(made.fresh(f"q{os.urandom(6).hex()}"), "")
        yield Queue(store, with_server)
        with_server.close()


def job(workspace: str = "/a", **more: object) -> NewJob:
    return NewJob(workspace=workspace, order=RunRequest(text=f"for {workspace}"), **more)


def taken(queue: Queue, terms: ClaimTerms = TERMS) -> Job | None:
    lock = ExitStack()
    found = queue.worker().take(terms, lock)
    if found is not None:
        _LOCKS[found.id] = lock
    return found


@pytest.fixture(autouse=True)
def _unlocked():
    yield
    while _LOCKS:
        _LOCKS.popitem()[1].close()


def drained(queue: Queue) -> list[int]:
    """The numbers in the order in which a worker that ends each gets them."""
    found = []
    while (one := taken(queue)) is not None:
        found.append(one.id)
        queue.end(one.held, DONE)
    return found


@pytest.mark.spec("A4")
def test_workspaces_take_turns_and_priority_goes_before(queue: Queue):
    queue.add([job("/a"), job("/a"), job("/a"), job("/b"), job("/c", priority=5), job("/a", priority=CRITICAL)])
    assert drained(queue) == [6, 5, 1, 4, 2, 3]


@pytest.mark.spec("A4")
def test_a_workspace_that_comes_late_waits_for_one_turn_and_not_for_all_that_were_there(queue: Queue):
    queue.add([job("/a") for _ in range(5)])
    queue.end(taken(queue).held, DONE)
    queue.add([job("/b")])
    assert drained(queue) == [2, 6, 3, 4, 5]


@pytest.mark.spec("A4")
def test_what_comes_after_a_job_waits_until_it_is_done_and_what_answers_a_failure_until_it_fails(queue: Queue):
    first, other = queue.add([job(), job()])
    after = JobDependency(job=first)
    queue.add([job(after=(after,)), job(after=(replace(after, failed=True),), priority=CRITICAL)])
    mine = taken(queue)
    assert [one.standing for one in queue.list()] == ["running", "queued", "blocked", "blocked"]
    queue.end(mine.held, JobEnd(outcome=JobOutcome.FAILED))
    assert taken(queue).id == 4
    queue.retry(first)
    assert drained(queue) == [first, other, 3]


def test_what_is_paused_is_passed_over_and_what_has_ended_cannot_be_paused(queue: Queue):
    queue.add([job(), job()])
    queue.pause([1], paused=True)
    second = taken(queue)
    assert second.id == 2 and taken(queue) is None
    queue.pause([1], paused=False)
    queue.pause([], paused=True)
    assert taken(queue) is None and not queue.holds(second.held, unpaused=True)
    queue.pause([], paused=False)
    assert drained(queue) == [1]
    with pytest.raises(Refused, match="has ended"):
        queue.pause([1], paused=True)


def test_one_workspace_and_one_provider_have_so_many_jobs_at_a_time_and_no_more(queue: Queue):
    queue.add([job("/a", provider="slow"), job("/a"), job("/b", provider="slow"), job("/c", provider="slow")])
    terms = ClaimTerms(together=1, providers={"slow": 2})
    assert [taken(queue, terms).id, taken(queue, terms).id] == [1, 3]
    assert taken(queue, terms) is None
    assert taken(queue, ClaimTerms(together=2, providers={"slow": 2})).id == 2


def test_one_budget_is_shared_by_all_jobs_and_never_promised_twice(queue: Queue):
    queue.add([replace(job(), order=RunRequest(text="cheap", budget={"money": "1"})), job(), job(), job()])
    queue.allow(Decimal(5))
    terms = replace(TERMS, shares=2)
    assert [taken(queue, terms).allowance for _ in range(3)] == [Decimal(1), Decimal(2), Decimal(1)]
    assert queue.state().left == Decimal(1)
    queue.allow(Decimal(3))
    assert taken(queue) is None


def test_a_job_that_waits_for_the_user_ends_with_its_run_whoever_answers(queue: Queue):
    queue.add([job()])
    mine, place = taken(queue), RunCursor("r1", "approve")
    queue.store.runs.begin("/a", place, RunRequest(text="asks"))
    queue.begun(mine.held, "r1")
    queue.store.runs.stand(place, RunState.WAITING)
    queue.release(mine.held, "asked", state=JobState.WAITING)
    assert queue.get(1).standing == "waiting" and queue.is_idle()
    queue.store.runs.deliver("r1", DeliveryState.DONE)
    queue.store.runs.stand(place, RunState.ENDED)
    assert queue.get(1).outcome is JobOutcome.DONE


@pytest.mark.spec("F9")
def test_a_job_is_taken_only_by_a_worker_that_has_what_it_requires(queue: Queue):
    queue.add([job(requires=("gpu", "memory:8")), job()])
    assert taken(queue).id == 2 and taken(queue, replace(TERMS, labels=frozenset({"gpu"}))) is None
    assert not queue.is_idle()
    assert taken(queue, replace(TERMS, labels=frozenset({"gpu", "memory:8", "rust"}))).id == 1


def test_what_is_put_back_is_taken_again_when_its_time_has_come(queue: Queue):
    queue.add([job()])
    mine = taken(queue)
    queue.release(mine.held, "later", state=JobState.QUEUED, seconds=60)
    assert taken(queue) is None and queue.get(1).reason == "later" and not queue.is_idle()
    queue.cancel(1)
    queue.retry(1)
    again = taken(queue)
    assert (again.attempts, again.lease) > (0, mine.lease) and not queue.holds(mine.held)


@pytest.mark.spec("F9")
def test_a_provider_that_asks_for_time_is_asked_by_no_worker_wherever_the_queue_is(queue: Queue):
    queue.add([job("/a", provider="busy"), job("/b", provider="free"), job("/c", provider="busy")])
    queue.hold("busy", 60)
    assert drained(queue) == [2]


@pytest.mark.spec("A4")
def test_a_job_that_is_cancelled_when_its_change_was_promoted_says_which_entry_that_was(queue: Queue):
    queue.add([job()])
    mine = taken(queue)
    queue.store.runs.begin("/a", RunCursor("r1", "apply"), RunRequest(text="asks"))
    queue.begun(mine.held, "r1")
    with queue.fence(mine.held):
        entry = NewEntry(workspace="/a", run="r1", kind=EntryKind.EDIT, title="mine", lease=mine.held)
        number = queue.store.journal.begin(entry, ChangeSet(), {})
    queue.cancel(1)
    found = queue.get(1)
    assert (found.entry, found.standing) == (number, "cancelled") and f"pawl undo {number}" in found.reason
    with pytest.raises(Cancelled):
        queue.worker().end(mine.held, DONE)


def test_of_jobs_that_have_ended_only_the_newest_are_listed(queue: Queue):
    queue.add([job() for _ in range(4)])
    for _ in range(2):
        queue.end(taken(queue).held, DONE)
    assert [one.id for one in queue.list(newest=1)] == [3, 4]
    assert [one.id for one in queue.list(newest=3)] == [2, 3, 4] and len(queue.list()) == 4


def test_the_trace_in_which_a_job_was_added_goes_with_it(queue: Queue):
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    queue.add([job(trace=trace)])
    assert taken(queue).trace == trace


@pytest.fixture
def server(database_server: postgres.Postgres, state_directory: Path):
    made = queue_server.QueueServer.at(database_server.fresh(f"q{os.urandom(6).hex()}"), "")
    with Store.open(state_directory) as store:
        yield Queue(store, made, dead_seconds=3)
    made.close()


@ON_A_SERVER
def test_workers_whose_machines_are_set_otherwise_agree_on_when_one_of_them_is_dead(server: Queue):
    server.dead_seconds = 30
    server.add([job()])
    assert taken(server) is not None
    other = Queue(server.store, server.server.again(), dead_seconds=3)
    silent(server, 5)
    assert taken(other) is None and server.get(1).state is JobState.RUNNING
    silent(server, 25)
    assert taken(other).lease == 3
    other.server.close()


@ON_A_SERVER
def test_a_queue_of_an_earlier_form_is_brought_up_to_date_and_one_of_another_engine_is_refused(
    database_server: postgres.Postgres, state_directory: Path
):
    url = database_server.fresh(f"q{os.urandom(6).hex()}")
    with Store.open(state_directory) as store:
        made = queue_server.QueueServer.at(url, "")
        Queue(store, made).add([job()])
        with made.transaction():
            made.rows("ALTER TABLE pawl_queue DROP COLUMN dead_seconds, DROP COLUMN engine")
            made.rows("DROP INDEX pawl_job_open")
            made.rows("CREATE INDEX pawl_job_turn ON pawl_job (home, workspace, turn)")
            made.rows("UPDATE pawl_queue SET version = 1")
        newer = made.again()
        assert taken(Queue(store, newer)).id == 1
        with newer.transaction():
            newer.rows("UPDATE pawl_queue SET engine = '2.0'")
        third = made.again()
        with pytest.raises(ConfigError, match=r"set up with procrastinate 2\.0"):
            Queue(store, third).depth()
        for one in (made, newer, third):
            one.close()


def silent(queue: Queue, seconds: int = 60) -> None:
    """No worker was heard of for so long, though the server was there: they died, or its clock was set."""
    with queue.server.transaction():
        up = "extract(epoch FROM now() - pg_postmaster_start_time())"
        queue.server.rows(f"SELECT pg_sleep(greatest(0, 2.1 - {up}))")
        queue.server.rows(
            "UPDATE procrastinate_workers SET last_heartbeat = now() - %s * interval '1 second'", (seconds,)
        )


@ON_A_SERVER
@pytest.mark.spec("F9")
def test_the_job_of_a_worker_that_is_not_heard_of_goes_to_another_and_the_first_can_do_nothing(server: Queue):
    server.add([job()])
    dead, entry = taken(server), NewEntry(workspace="/a", run="r1", kind=EntryKind.EDIT, title="mine")
    assert taken(server) is None
    silent(server)
    heir = taken(server)
    assert (heir.id, heir.attempts) == (dead.id, 2) and heir.lease > dead.lease and not server.holds(dead.held)
    for late in (
        lambda: server.end(dead.held, DONE),
        lambda: server.release(dead.held, "", state=JobState.QUEUED),
        lambda: server.begun(dead.held, "r9"),
        lambda: server.fence(dead.held).__enter__(),
    ):
        with pytest.raises(Cancelled, match="taken over"):
            late()
    with server.fence(heir.held):
        server.store.journal.begin(replace(entry, lease=heir.held), ChangeSet(), {})
    server.end(heir.held, DONE)
    with pytest.raises(Cancelled):
        server.end(heir.held, DONE)
    assert server.is_idle()


@ON_A_SERVER
@pytest.mark.spec("F9")
def test_what_one_run_of_a_job_promoted_no_other_run_of_it_promotes_whatever_the_server_says(server: Queue):
    """The server may forget who held a job last, when it is restored or its lock is lost in the middle of a step."""
    server.add([job()])
    mine = taken(server)
    entry = NewEntry(workspace="/a", run="r1", kind=EntryKind.EDIT, title="mine", lease=mine.held)
    first = server.store.journal.begin(entry, ChangeSet(), {})
    server.store.journal.begin(entry, ChangeSet(), {})
    with pytest.raises(Cancelled, match="nothing of this attempt is promoted"):
        server.store.journal.begin(replace(entry, run="r2"), ChangeSet(), {})
    for number in (first, first + 1):
        server.store.journal.finish(number, EntryState.ROLLED_BACK)
    server.store.journal.begin(replace(entry, run="r2"), ChangeSet(), {})


@ON_A_SERVER
def test_a_worker_whose_server_went_away_in_the_middle_goes_on_with_its_job(
    server: Queue, database_server: postgres.Postgres
):
    server.add([job(), job()])
    worker = server.worker()
    mine = worker.take(TERMS, ExitStack())
    database_server.restart("immediate")
    with pytest.raises(QueueUnreachable, match="does not answer") as told:
        worker.end(mine.held, DONE)
    assert told.value.exit_code == 75
    again = worker.take(TERMS, ExitStack())
    assert (again.id, again.attempts) == (mine.id, 1)
    worker.end(again.held, DONE)
    assert worker.take(TERMS, ExitStack()).id == 2


@ON_A_SERVER
def test_a_server_that_is_restarted_while_a_change_is_promoted_takes_nothing_back(
    server: Queue, database_server: postgres.Postgres
):
    server.add([job()])
    worker = server.worker()
    mine = worker.take(TERMS, ExitStack())
    with worker.fence(mine.held):
        database_server.restart("immediate")
        entry = NewEntry(workspace="/a", run="r1", kind=EntryKind.EDIT, title="mine", lease=mine.held)
        server.store.journal.begin(entry, ChangeSet(), {})
    assert len(server.store.journal.pending("/a")) == 1


@ON_A_SERVER
def test_a_worker_that_the_server_gave_up_in_the_middle_of_a_promotion_has_promoted(server: Queue):
    """As one that is stopped for long, or whose promotion takes long."""
    server.add([job()])
    worker = server.worker()
    mine = worker.take(TERMS, ExitStack())
    other = server.server.again()
    with worker.fence(mine.held):
        pid = server.server.rows("SELECT pg_backend_pid() AS pid")[0]["pid"]
        server.server.rows("SET LOCAL idle_in_transaction_session_timeout = 1")
        with other.transaction():
            there = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
            while other.first(there, (pid,)):
                other.rows("SELECT pg_stat_clear_snapshot(), pg_sleep(0.01)")
        entry = NewEntry(workspace="/a", run="r1", kind=EntryKind.EDIT, title="mine", lease=mine.held)
        server.store.journal.begin(entry, ChangeSet(), {})
    assert len(server.store.journal.pending("/a")) == 1
    worker.end(mine.held, DONE)
    other.close()


@ON_A_SERVER
@pytest.mark.spec("F9")
def test_what_a_dead_worker_has_spent_counts_before_the_next_is_given_a_share(server: Queue):
    server.add([job(), job()])
    server.allow(Decimal(5))
    mine = taken(server)
    server.store.runs.begin("/a", RunCursor("r1", "act"), RunRequest(text="asks"))
    server.begun(mine.held, "r1")
    server.store.requests.record("/a", replace(RECORD, run="r1", cost=Decimal(2)))
    silent(server)
    assert taken(server).allowance == Decimal(3) and taken(server) is None


@ON_A_SERVER
def test_the_clock_of_a_worker_says_nothing_about_what_is_due_or_dead(
    database_server: postgres.Postgres, state_directory: Path
):
    made = queue_server.QueueServer.at(database_server.fresh(f"q{os.urandom(6).hex()}"), "")
    for number, skew in enumerate((-86400.0, 86400.0)):
        with Store.open(state_directory / str(number), clock=lambda skew=skew: time.time() + skew) as store:
            skewed = Queue(store, made, dead_seconds=3)
            skewed.add([job(), job()])
            mine = taken(skewed)
            skewed.release(mine.held, "later", state=JobState.QUEUED, seconds=60)
            other = taken(skewed)
            assert other.id != mine.id and taken(skewed) is None
            skewed.end(other.held, DONE)
    made.close()


@ON_A_SERVER
def test_a_job_that_is_promoted_at_this_moment_is_not_taken_over(server: Queue):
    server.add([job()])
    worker = server.worker()
    mine = worker.take(TERMS, ExitStack())
    other = Queue(server.store, server.server.again(), dead_seconds=3)
    with worker.fence(mine.held):
        silent(other)
        assert taken(other) is None
    assert taken(other).lease > mine.lease
    other.server.close()


@ON_A_SERVER
@pytest.mark.parametrize("added", [True, False], ids=["added", "after both"])
def test_what_follows_a_job_that_ends_at_this_moment_is_carried(server: Queue, added: bool):
    (first, other), last = server.add([job(), job()]), 3
    both = tuple(JobDependency(job=one) for one in (first, other))
    if not added:
        server.add([job(after=both)])
    mine, second = taken(server), taken(server)
    if added:
        server.end(second.held, DONE)

    def end() -> None:
        with Store.open(server.store.path.parent) as store:
            made = server.server.again()
            Queue(store, made).worker().end(mine.held, DONE)
            made.close()

    thread = threading.Thread(target=end)
    with server.server.transaction():
        if added:
            server.add([job(after=both)])
        else:
            server.worker().end(second.held, DONE)
        thread.start()
        stands = "SELECT 1 FROM pg_locks WHERE NOT granted AND locktype = 'advisory'"
        while thread.is_alive() and not server.server.rows(stands):
            threading.Event().wait(0.01)
    thread.join()
    assert taken(server).id == last


@pytest.mark.parametrize(
    ("url", "error", "says"),
    [
        ("mysql://x", UsageError, "not the address of a PostgreSQL server"),
        ("postgres://h:x:y/%", UsageError, "cannot be read"),
        ("postgres://u:hunter2secret@127.0.0.1:1/d", QueueUnreachable, "127.0.0.1:1/d does not answer"),
    ],
)
def test_a_server_that_cannot_be_reached_is_told_without_its_password(url: str, error: type, says: str):
    with pytest.raises(error, match=says) as told, queue_server.QueueServer.at(url, "").transaction():
        pass
    assert told.value.advice and "hunter2secret" not in f"{told.value.message}{told.value.advice}{told.value!r}"


def test_a_server_without_the_packages_for_it_says_how_to_install_them(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "procrastinate", None)
    with pytest.raises(ConfigError, match="not installed") as told:
        queue_server.QueueServer.at("postgres://u@h/d", "")
    assert "[queue]" in told.value.advice
