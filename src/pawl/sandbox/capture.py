"""Keeps the start and the end of a stream in bounded memory and counts the rest."""

from __future__ import annotations

from pawl.core.execution import Captured


class StreamCapture:
    def __init__(self, limit: int) -> None:
        self._head_limit = (limit + 1) // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Trimmed only when twice too long, so that a flood costs one move per byte and not one per chunk.
        if len(self._tail) > 2 * self._tail_limit:
            self._trim()

    def _trim(self) -> None:
        del self._tail[: max(0, len(self._tail) - self._tail_limit)]

    def captured(self) -> Captured:
        self._trim()
        return Captured(head=bytes(self._head), tail=bytes(self._tail), total=self._total)
