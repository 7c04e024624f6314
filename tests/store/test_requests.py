"""The request log holds every field of a request and only grows."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import fields, replace
from decimal import Decimal

import pytest

from pawl.core.redact import MARK
from pawl.core.run import Mode, Reasoning, RequestRecord, RoleName, Stage

pytestmark = pytest.mark.spec("C15")

RECORD = RequestRecord(
    conversation="c1",
    run="r1",
    mode=Mode.AGENT,
    stage=Stage.ACT,
    role=RoleName.WORKER,
    model="anthropic/some-model",
    reasoning=Reasoning.ON,
    tools=("read", "search"),
    input_tokens=1200,
    output_tokens=300,
    cached_tokens=1000,
    estimated=False,
    cost=Decimal("0.0001000000000000000000000000001"),
    seconds=1.25,
    first_token_seconds=0.5,
    attempts=2,
    ended="calls",
)
BARE = replace(
    RECORD, mode=Mode.CHAT, tools=(), cost=None, first_token_seconds=None, estimated=True, ended="answer_interrupted"
)


@pytest.mark.parametrize("record", [RECORD, BARE, replace(RECORD, cost=Decimal(0))])
def test_a_request_comes_back_whole(desk, record):
    log = desk.store.requests
    number = log.record("/w", record)
    assert log.records("/w") == [record]
    assert number == 1


def test_every_field_of_a_request_has_a_column(desk):
    columns = {row[1] for row in desk.store._database.rows("PRAGMA table_info(request)")}
    assert columns == {"id", "time", "workspace", *(one.name for one in fields(RequestRecord))}


def test_requests_are_read_oldest_first_by_workspace_and_run_and_the_newest_of_them(desk):
    log = desk.store.requests
    records = [replace(RECORD, run=f"r{n % 2}", input_tokens=n) for n in range(6)]
    for record in records:
        log.record("/w", record)
    log.record("/elsewhere", RECORD)
    assert log.records("/w") == records
    assert log.records("/w", run="r1") == records[1::2]
    assert log.records("/w", limit=2) == records[-2:]
    assert log.records("/w", run="r0", limit=1) == [records[4]]
    assert log.records("/w", limit=0) == []
    assert log.records("/nowhere") == []


def test_the_time_and_the_workspace_are_kept(desk):
    workspace = os.fsdecode(b"/home/\xff")
    desk.store.requests.record(workspace, RECORD)
    row = desk.store._database.one("SELECT time, workspace FROM request")
    assert row == ("2027-01-15T08:00:00.000+00:00", b"/home/\xff")
    assert desk.store.requests.records(workspace) == [RECORD]


@pytest.mark.parametrize("statement", ["UPDATE request SET cost = '0'", "DELETE FROM request"])
def test_a_request_can_be_neither_changed_nor_dropped(desk, statement):
    desk.store.requests.record("/w", RECORD)
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        desk.store._database.run(statement)
    assert desk.store.requests.records("/w") == [RECORD]


def test_more_tokens_than_a_column_holds_are_no_trouble(desk):
    desk.store.requests.record("/w", replace(RECORD, input_tokens=10**30))
    assert desk.store.requests.records("/w")[0].input_tokens == 2**63 - 1


@pytest.mark.spec("B13")
def test_a_secret_in_a_request_is_not_stored(desk):
    model = "custom/http://me:swordfish99@host"
    desk.store.requests.record(
        "/w", replace(RECORD, model=model, tools=("token=Zq8vT3xLm2RpW9ydKc5B",), run="odd \ud800")
    )
    found = desk.store.requests.records("/w")[0]
    assert (found.model, found.tools) == (f"custom/http://me:{MARK}@host", (f"token={MARK}",))
    assert found.run == "odd \\ud800"


def test_requests_of_a_batch_are_one_step(desk):
    with pytest.raises(KeyError), desk.store.blobs.batch():
        desk.store.requests.record("/w", RECORD)
        raise KeyError
    assert desk.store.requests.records("/w") == []
