"""Contents by their hash: stored once, compressed when that pays, counted by the rows that name them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext

from pawl.core.change import BlobStore, blob_digest
from pawl.core.errors import MissingBlob, StoreCorrupt, StoreError
from pawl.store.database import OWNERS, StorePart

GRACE_SECONDS = 3600.0
"""How long a content that no row names is kept: a writer stores contents first and names them afterwards."""

LARGEST = 1_000_000_000 - 4096
"""The most that SQLite holds in one row."""

_FRESH_SECONDS = 600
_STAGED, _STAGED_BYTES = 500, 8 << 20
"""Contents that are handed on in one step."""
_NAMED = " UNION ALL ".join(
    f"SELECT {side}_blob AS name FROM {owner}_change" for owner in OWNERS for side in ("before", "after")
)
_COUNTED = f"SELECT name, count(*) AS named FROM ({_NAMED}) WHERE name IS NOT NULL GROUP BY name"


class Blobs(StorePart):
    """Contents in the state file. Fits `BlobStore`."""

    def put(self, data: bytes) -> str:
        """Stores a content and returns its name; keeps one that is stored already from being collected."""
        if len(data) > LARGEST:
            raise StoreError(
                f"the content has {len(data)} bytes; at most {LARGEST} can be stored",
                advice="leave the file out of the change",
            )
        digest = blob_digest(data)
        now = int(self._clock())
        found = self._database.first("SELECT last_put FROM blob WHERE hash = ?", (digest,))
        if found is None or found[0] < now - _FRESH_SECONDS:
            with self._database.transaction():
                self._insert(digest, data, now)
        return digest

    def _insert(self, digest: str, data: bytes, now: int) -> None:
        if self._database.run("UPDATE blob SET last_put = ? WHERE hash = ?", (now, digest)).rowcount:
            return
        encoding, stored = _encoded(data)
        blob = self._database.insert("blob", hash=digest, size=len(data), encoding=encoding, last_put=now)
        self._database.insert("content", blob=blob, data=stored)

    def get(self, digest: str) -> bytes:
        row = self._database.first(
            "SELECT encoding, data FROM blob JOIN content ON content.blob = blob.id WHERE hash = ?", (digest,)
        )
        if row is None:
            raise MissingBlob(
                f"the content {digest[:12]!r} is not stored",
                advice="it was dropped by retention, or its change was never promoted",
            )
        data = _decoded(digest, *row)
        if blob_digest(data) != digest:
            raise StoreCorrupt(
                f"the content {digest[:12]!r} does not match its hash",
                advice="the other contents are not touched; check the disk",
            )
        return data

    def batch(self) -> AbstractContextManager[None]:
        """Many puts as one durable step; may be entered again inside itself."""
        return self._database.transaction()

    def collect(self, grace_seconds: float = GRACE_SECONDS) -> int:
        """Drops the contents that no row names and nobody put lately; returns their stored bytes."""
        limit = self._clock() - grace_seconds
        with self._database.transaction():
            freed = self._database.one(
                "SELECT coalesce(sum(length(data)), 0) FROM blob JOIN content ON content.blob = blob.id"
                " WHERE refs = 0 AND last_put <= ?",
                (limit,),
            )
            self._database.run("DELETE FROM blob WHERE refs = 0 AND last_put <= ?", (limit,))
        return int(freed[0])

    def verify(self) -> list[str]:
        """Derives every hash, size and count of references again; returns what does not agree."""
        return [*self._wrong_contents(), *self._wrong_counts()]

    def _wrong_contents(self) -> Iterator[str]:
        for digest, size in self._database.rows("SELECT hash, size FROM blob ORDER BY id"):
            try:
                data = self.get(digest)
            except (MissingBlob, StoreCorrupt) as error:
                yield error.message
                continue
            if len(data) != size or blob_digest(data) != digest:
                yield f"the content {digest[:12]!r} does not match its hash"

    def _wrong_counts(self) -> Iterator[str]:
        rows = self._database.rows(
            f"SELECT hash, refs, coalesce(named, 0) FROM blob LEFT JOIN ({_COUNTED}) ON name = hash"
            " WHERE refs <> coalesce(named, 0)"
        )
        for digest, refs, named in rows:
            yield f"the content {digest[:12]!r} counts {refs} references, but has {named}"
        for (name,) in self._database.rows(f"SELECT name FROM ({_COUNTED}) WHERE name NOT IN (SELECT hash FROM blob)"):
            yield f"the content {name[:12]!r} is used but not stored"


def _encoded(data: bytes) -> tuple[str, bytes]:
    packed = zlib.compress(data, 1)
    return ("zlib", packed) if len(packed) <= len(data) * 0.9 else ("raw", data)


def _decoded(digest: str, encoding: str, data: bytes) -> bytes:
    if encoding == "raw":
        return data
    try:
        return zlib.decompress(data)
    except zlib.error as error:
        raise StoreCorrupt(
            f"the content {digest[:12]!r} cannot be unpacked",
            advice="the other contents are not touched; check the disk",
        ) from error


class StagedBlobs:
    """Fits `BlobStore` for who puts much: contents go on in short steps, so that others can write in between.

    What was put is stored when the block ends. A content that is stored and never named is collected.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs
        self._waiting: dict[str, bytes] = {}
        self._size = 0

    def __enter__(self) -> StagedBlobs:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self._hand_on()

    def put(self, data: bytes) -> str:
        digest = blob_digest(data)
        if digest not in self._waiting:
            self._waiting[digest] = data
            self._size += len(data)
            if self._size > _STAGED_BYTES or len(self._waiting) >= _STAGED:
                self._hand_on()
        return digest

    def get(self, digest: str) -> bytes:
        return self._waiting[digest] if digest in self._waiting else self._blobs.get(digest)

    def batch(self) -> AbstractContextManager[None]:
        return nullcontext()

    def _hand_on(self) -> None:
        with self._blobs.batch():
            for data in self._waiting.values():
                self._blobs.put(data)
        self._waiting, self._size = {}, 0
