"""Contents kept in memory: for pure computations, for previews that nobody promotes, and on their way to the store."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from pawl.core.change import blob_digest
from pawl.core.errors import MissingBlob

if TYPE_CHECKING:
    from pawl.core.ports import BlobStore


_STAGED, _STAGED_BYTES = 500, 8 << 20
"""Contents that are handed on in one step."""


class MemoryBlobs:
    def __init__(self, contents: Iterable[bytes] = ()) -> None:
        self._contents = {blob_digest(data): data for data in contents}

    def get(self, digest: str) -> bytes:
        try:
            return self._contents[digest]
        except KeyError:
            raise MissingBlob(
                f"the content {digest!r} is not stored", advice="it may have been dropped by 'pawl gc'"
            ) from None

    def put(self, data: bytes) -> str:
        digest = blob_digest(data)
        self._contents[digest] = data
        return digest

    def batch(self) -> AbstractContextManager[None]:
        """Memory has no durable step, so there is nothing to group."""
        return nullcontext()


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
