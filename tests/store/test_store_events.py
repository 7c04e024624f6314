"""The event log only grows."""

from __future__ import annotations

import sqlite3

import pytest


def test_an_event_comes_back_whole(desk):
    body = {"text": "odd \ud800 text", "numbers": [1, 2.5, None], "nested": {"a": True}}
    number = desk.store.events.append("/w", "run-1", "started", body)
    assert list(desk.store.events.read("/w")) == [
        {
            "id": number,
            "time": "2027-01-15T08:00:00.000+00:00",
            "workspace": "/w",
            "run": "run-1",
            "kind": "started",
            "body": body,
        }
    ]


def test_events_are_read_in_order_by_workspace_run_and_place(desk):
    events = desk.store.events
    numbers = [events.append("/w", f"run-{n % 2}", "step", {"n": n}) for n in range(6)]
    events.append("/elsewhere", "run-0", "step", {})
    assert [event["id"] for event in events.read("/w")] == numbers
    assert [event["id"] for event in events.read("/w", run="run-1")] == numbers[1::2]
    assert [event["id"] for event in events.read("/w", after=numbers[3])] == numbers[4:]
    assert [event["id"] for event in events.read("/w", run="run-0", after=numbers[0])] == numbers[2::2]
    assert list(events.read("/nowhere")) == []


def test_a_long_log_is_read_page_by_page_without_a_gap(desk):
    with desk.store.blobs.batch():
        numbers = [desk.store.events.append("/w", "run-1", "step", {}) for _ in range(1201)]
    assert [event["id"] for event in desk.store.events.read("/w", run="run-1")] == numbers


def test_a_reader_sees_what_is_appended_while_it_reads(desk):
    desk.store.events.append("/w", "run-1", "first", {})
    reader = iter(desk.store.events.read("/w"))
    assert next(reader)["kind"] == "first"
    desk.store.events.append("/w", "run-1", "second", {})
    assert [event["kind"] for event in reader] == ["second"]


@pytest.mark.parametrize("statement", ["UPDATE event SET kind = 'other'", "DELETE FROM event"])
def test_an_event_can_be_neither_changed_nor_dropped(desk, statement):
    desk.store.events.append("/w", "run-1", "kept", {})
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        desk.store._database.run(statement)
    assert [event["kind"] for event in desk.store.events.read("/w")] == ["kept"]
