"""Contents kept in memory."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext

from pawl.core.change import blob_digest
from pawl.core.errors import MissingBlob


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
