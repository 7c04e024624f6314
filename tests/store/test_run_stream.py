"""The stream of events: read from any point, by any process, without secrets and without holding anything up."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from pawl.agent.stream_writer import StreamWriter
from pawl.core.dialogue import TextDelta, ThoughtDelta
from pawl.core.events import RunBegun, Warned
from pawl.core.redact import MARK
from pawl.core.run import RunRequest
from pawl.store.run_stream import KEPT_DAYS, MOST_READ, RunStream

BEGUN = RunBegun(run="r1", conversation="c1", order=RunRequest(text="go"))


def told(state: Path, **which: object) -> list[tuple[str, object]]:
    with RunStream.open(state) as stream:
        return [(one["type"], one["body"].get("text")) for one in stream.read("/w", **{"after": 0, **which})]


@pytest.mark.spec("F7")
def test_events_are_read_from_any_point_and_of_one_run_or_workspace(tmp_path: Path):
    with RunStream.open(tmp_path) as stream:
        stream.append("/w", "r1", [("Warned", {"text": "a"}), ("Warned", {"text": "b"})])
        stream.append("/other", "r2", [("Warned", {"text": "c"})])
        stream.append("/w", "r3", [("Warned", {"text": "d"})])
        assert [one["id"] for one in stream.read("/w", after=1)] == [2, 4] and stream.last() == 4
        assert [one["run"] for one in stream.read("/w", after=0, run="r3")] == ["r3"]
    assert stat.S_IMODE(os.stat(tmp_path / "stream.db").st_mode) == 0o600


def test_a_long_stream_is_read_in_parts_and_old_events_are_dropped(tmp_path: Path):
    now = 1_800_000_000.0
    with RunStream.open(tmp_path, clock=lambda: now) as stream:
        stream.append("/w", "r1", [("Warned", {})] * (MOST_READ + 10))
        first = stream.read("/w", after=0)
        assert len(first) == MOST_READ and len(stream.read("/w", after=first[-1]["id"])) == 10
    with RunStream.open(tmp_path, clock=lambda: now + (KEPT_DAYS + 1) * 86_400) as stream:
        stream.prune()
        assert stream.read("/w", after=0) == [] and stream.last() == 0
        stream.append("/w", "r2", [("Warned", {})])
        assert stream.last() == MOST_READ + 11  # a number is never given twice


@pytest.mark.spec("B13")
def test_words_that_come_in_pieces_are_joined_and_a_secret_in_two_pieces_is_not_written(tmp_path: Path):
    key = "sk-ant-api03-" + "a1B2c3D4" * 6
    writer = StreamWriter(tmp_path, "/w")
    writer.hear(BEGUN)
    for piece in ("The key is ", key[:20], key[20:], " and no more."):
        writer.hear(TextDelta(piece))
    writer.hear(ThoughtDelta("hm"))
    writer.hear(Warned("end"))
    writer.close()
    events = told(tmp_path)
    assert [kind for kind, _ in events] == ["RunBegun", "TextDelta", "ThoughtDelta", "Warned"]
    assert MARK in str(events[1][1]) and key[20:] not in (tmp_path / "stream.db").read_bytes().decode("latin-1")


def test_a_stream_that_cannot_be_written_holds_nothing_up(tmp_path: Path):
    (tmp_path / "stream.db").mkdir()
    writer = StreamWriter(tmp_path, "/w")
    writer.hear(BEGUN)
    writer.hear(Warned("on"))
    writer.close()
