"""The state file as one object: opened, its parts handed out, looked after, closed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from pawl.core.errors import StoreCorrupt
from pawl.store.blobs import GRACE_SECONDS, Blobs
from pawl.store.database import Database
from pawl.store.events import Events
from pawl.store.journal import Journal
from pawl.store.opening import open_database
from pawl.store.rows import Clock

if TYPE_CHECKING:
    from pawl.store.answers import Answers
    from pawl.store.memories import Memories
    from pawl.store.requests import Requests
    from pawl.store.runs import Runs
    from pawl.store.snapshots import Snapshots
    from pawl.store.transcripts import Transcripts


class Store:
    """An open state file. For the thread that opened it."""

    __slots__ = ("_clock", "_database", "blobs", "events", "journal", "path", "set_aside")

    def __init__(self, database: Database, set_aside: Path | None, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.path = database.path
        self.set_aside = set_aside
        """Where a damaged state file was moved on opening, so that a person can be told."""
        self.blobs = Blobs(database, clock)
        self.journal = Journal(database, self.blobs, clock)
        self.events = Events(database, clock)

    @classmethod
    def open(cls, directory: Path, *, clock: Clock = time.time, busy_seconds: float = 5.0) -> Store:
        """Opens or creates the file in that directory, which must be the user's alone to write.

        `busy_seconds` is how long to wait for another process that writes.
        """
        database, set_aside = open_database(directory, busy_seconds=busy_seconds)
        return cls(database, set_aside, clock)

    # Commands that ask no model do not pay for the values of a dialogue.

    @property
    def requests(self) -> Requests:
        from pawl.store.requests import Requests

        return Requests(self._database, self._clock)

    @property
    def transcripts(self) -> Transcripts:
        from pawl.store.transcripts import Transcripts

        return Transcripts(self._database, self._clock)

    @property
    def memories(self) -> Memories:
        from pawl.store.memories import Memories

        return Memories(self._database, self._clock)

    @property
    def answers(self) -> Answers:
        from pawl.store.answers import Answers

        return Answers(self._database, self._clock)

    @property
    def snapshots(self) -> Snapshots:
        from pawl.store.snapshots import Snapshots

        return Snapshots(self._database, self._clock)

    @property
    def runs(self) -> Runs:
        from pawl.store.runs import Runs

        return Runs(self._database, self._clock)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything that is written inside becomes durable as one step, or not at all."""
        with self._database.transaction():
            yield

    @property
    def schema_version(self) -> int:
        return self._database.version

    def size_bytes(self) -> int:
        """What the file and its log take on the disk."""
        size = self.path.stat().st_size
        with suppress(FileNotFoundError):
            size += self.path.with_name(f"{self.path.name}-wal").stat().st_size
        return size

    def collect(self, grace_seconds: float = GRACE_SECONDS, *, vacuum: bool = False) -> int:
        """Drops contents that nothing names; returns their bytes. `vacuum` gives the room back to the disk."""
        freed = self.blobs.collect(grace_seconds)
        if vacuum:
            self._database.shrink()
        return freed

    def integrity(self) -> list[str]:
        """What is wrong with the file: its pages and links, and every content against its name. Empty when sound."""
        try:
            # One moment of the file, whatever other processes write and drop meanwhile.
            with self._database.reading():
                pages = [row[0] for row in self._database.rows("PRAGMA integrity_check") if row[0] != "ok"]
                links = [
                    f"row {row[1]} of {row[0]!r} names a row of {row[2]!r} that is not there"
                    for row in self._database.rows("PRAGMA foreign_key_check")
                ]
                return [*pages, *links, *self.blobs.verify()]
        except StoreCorrupt as error:
            return [error.message]

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
