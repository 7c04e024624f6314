"""Server-sent events are read by the standard, wherever the bytes are cut."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.models.answer_stream import EventDecoder, EventTooLarge, ServerEvent


def read(*chunks: bytes, most: int = 10_000) -> list[ServerEvent]:
    decoder = EventDecoder(most=most)
    events = [event for chunk in chunks for event in decoder.feed(chunk)]
    return [*events, *decoder.feed(b"", final=True)]


@pytest.mark.fault("P09")
@pytest.mark.parametrize(
    ("data", "events"),
    [
        (b"data: a\n\n", [ServerEvent("", "a")]),
        (b"data:a\n\n", [ServerEvent("", "a")]),
        (b"data:  a\n\n", [ServerEvent("", " a")]),
        (b"data: a\r\n\r\n", [ServerEvent("", "a")]),
        (b"data: a\r\r", [ServerEvent("", "a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerEvent("", "a")]),
        (b": ping\n\n\n\ndata: a\n\n", [ServerEvent("", "a")]),
        (b"event: ping\n\ndata: a\n\n", [ServerEvent("", "a")]),
        (b"event: x\nid: 1\nretry: 5\nother\ndata: a\ndata: b\n\n", [ServerEvent("x", "a\nb")]),
        (b"data\n\n", [ServerEvent("", "")]),
        (b"data: a\n", []),
    ],
)
def test_p09_every_way_to_write_an_event_is_read(data: bytes, events: list[ServerEvent]):
    assert read(data) == events


STREAM = "\ufeff: hello\r\nevent: a\rdata: eins ü\ndata: 中文 😀\r\n\r\ndata: x\n\n\r\rdata: last\r\n\n".encode()
EVENTS = [ServerEvent("a", "eins ü\n中文 😀"), ServerEvent("", "x"), ServerEvent("", "last")]


@pytest.mark.fault("P09")
def test_p09_an_event_may_be_cut_after_every_byte():
    assert read(*(STREAM[index : index + 1] for index in range(len(STREAM)))) == EVENTS


@pytest.mark.fault("P09")
@given(st.lists(st.integers(0, len(STREAM)), max_size=8))
def test_p09_an_event_may_be_cut_anywhere(cuts: list[int]):
    places = [0, *sorted(cuts), len(STREAM)]
    assert read(*(STREAM[start:end] for start, end in itertools.pairwise(places))) == EVENTS


@pytest.mark.fault("P10")
def test_p10_invalid_utf8_is_replaced():
    assert read(b"data: a\xff\xc3\n\n") == [ServerEvent("", "a\ufffd\ufffd")]


@pytest.mark.fault("P24")
@pytest.mark.parametrize("data", [b"data: " + b"x" * 200, b"data: x\n" * 200, b": " + b"x" * 200])
def test_p24_an_event_that_never_ends_is_given_up(data: bytes):
    with pytest.raises(EventTooLarge):
        read(*(data[start : start + 50] for start in range(0, len(data), 50)), most=100)
