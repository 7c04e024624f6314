"""Ends this process, as `kill -9` would, just before the given write to the store becomes durable."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from pawl.store.database import Database


@contextmanager
def dying_at(last: int) -> Iterator[None]:
    """Counts the writes of the block; one that is lived through says how many there were."""
    plain = Database.run
    left = [last]

    def run(self, sql, values=()):
        if sql == "COMMIT":
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
        return plain(self, sql, values)

    Database.run = run
    yield
    print(last - left[0])
