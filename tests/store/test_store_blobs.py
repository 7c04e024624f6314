"""Contents by their hash."""

from __future__ import annotations

import os
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.change import blob_digest
from pawl.core.errors import MissingBlob, StoreError
from pawl.store.blobs import LARGEST, _decoded, _encoded


def stored(desk, digest):
    return desk.store._database.one(
        "SELECT encoding, size, length(data) FROM blob JOIN content ON blob = id WHERE hash = ?", (digest,)
    )


@pytest.mark.parametrize("data", [b"", b"a", b"text\n" * 1000, bytes(range(256)) * 3, os.urandom(100_000)])
def test_a_content_comes_back_under_its_hash(desk, data):
    assert desk.store.blobs.put(data) == blob_digest(data)
    assert desk.store.blobs.get(blob_digest(data)) == data


def test_a_content_is_compressed_only_when_that_saves_a_tenth(desk):
    text, noise = b"the same words again and again " * 100, os.urandom(4000)
    encoding, size, length = stored(desk, desk.store.blobs.put(text))
    assert (encoding, size) == ("zlib", len(text))
    assert length <= len(text) * 0.9
    assert stored(desk, desk.store.blobs.put(noise)) == ("raw", len(noise), len(noise))


@given(st.binary(max_size=5000) | st.text(max_size=2000).map(str.encode))
def test_encoding_gives_back_every_content_and_never_grows_it(data):
    encoding, packed = _encoded(data)
    assert _decoded("", encoding, packed) == data
    assert len(packed) <= len(data)


def test_the_same_content_is_stored_once(desk):
    first, second = desk.store.blobs.put(b"same"), desk.store.blobs.put(b"same")
    assert first == second
    assert desk.store._database.one("SELECT count(*) FROM content") == (1,)


def test_a_content_that_is_not_stored_is_said_to_be_missing(desk):
    with pytest.raises(MissingBlob, match=blob_digest(b"never put")[:12]):
        desk.store.blobs.get(blob_digest(b"never put"))


def test_a_content_too_large_for_a_row_is_refused(desk):
    with pytest.raises(StoreError, match="at most"):
        desk.store.blobs.put(bytes(LARGEST + 1))


def test_a_batch_is_all_or_nothing(desk):
    blobs = desk.store.blobs
    with pytest.raises(KeyError), blobs.batch():
        name = blobs.put(b"first")
        raise KeyError
    with pytest.raises(MissingBlob):
        blobs.get(name)
    with blobs.batch():
        names = [blobs.put(b"%d" % n) for n in range(10)]
    assert [blobs.get(name) for name in names] == [b"%d" % n for n in range(10)]


def test_a_batch_inside_a_batch_is_a_part_of_it(desk):
    blobs = desk.store.blobs
    with blobs.batch():
        outer = blobs.put(b"outer")
        with pytest.raises(KeyError), blobs.batch():
            lost = blobs.put(b"lost")
            raise KeyError
        with blobs.batch():
            inner = blobs.put(b"inner")
    assert (blobs.get(outer), blobs.get(inner)) == (b"outer", b"inner")
    with pytest.raises(MissingBlob):
        blobs.get(lost)


def test_a_failed_part_takes_back_only_itself_however_deep(desk):
    blobs = desk.store.blobs
    with blobs.batch():
        with pytest.raises(KeyError), blobs.batch():
            first = blobs.put(b"first")
            with pytest.raises(ValueError, match="inner"), blobs.batch():
                raise ValueError("inner")
            raise KeyError
        second = blobs.put(b"second")
    assert blobs.get(second) == b"second"
    with pytest.raises(MissingBlob):
        blobs.get(first)


def test_contents_are_collected_only_when_unnamed_and_past_the_grace(desk):
    named, unnamed = desk.file("named").blob, desk.store.blobs.put(b"unnamed")
    desk.edit(a="named")
    desk.clock.now += 3599
    assert desk.store.collect() == 0
    desk.clock.now += 1
    assert desk.store.collect() == len(b"unnamed")
    assert desk.store.blobs.get(named) == b"named"
    with pytest.raises(MissingBlob):
        desk.store.blobs.get(unnamed)
    assert desk.store.integrity() == []


def test_putting_a_content_again_starts_its_grace_again(desk):
    name = desk.store.blobs.put(b"content")
    desk.clock.now += 3000
    desk.store.blobs.put(b"content")
    desk.clock.now += 3000
    assert desk.store.collect() == 0
    assert desk.store.blobs.get(name) == b"content"


def test_the_grace_can_be_given(desk):
    desk.store.blobs.put(b"content")
    assert desk.store.collect(grace_seconds=10) == 0
    assert desk.store.collect(grace_seconds=0) == len(b"content")


def test_vacuum_gives_the_room_back_to_the_disk(desk):
    for _ in range(10):
        desk.store.blobs.put(os.urandom(100_000))
    large = desk.store.size_bytes()
    assert desk.store.collect(grace_seconds=0, vacuum=True) == 1_000_000
    assert desk.store.size_bytes() < large - 1_000_000


def test_a_named_content_cannot_be_deleted_even_by_hand(desk):
    desk.edit(a="named")
    with pytest.raises(sqlite3.IntegrityError, match="in use"):
        desk.store._database.run("DELETE FROM blob")
