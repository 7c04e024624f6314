"""Stopping what is under way."""

from __future__ import annotations

import os
import weakref


class CancelToken:
    """A request to stop that can be waited on together with pipes. Once requested it stays requested."""

    def __init__(self) -> None:
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._requested = False
        self._close = weakref.finalize(self, os.close, self._event)

    def fileno(self) -> int:
        return self._event

    @property
    def requested(self) -> bool:
        return self._requested

    def request(self) -> None:
        self._requested = True
        if self._close.alive:
            os.eventfd_write(self._event, 1)

    def close(self) -> None:
        self._close()
