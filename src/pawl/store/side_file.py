"""A database beside the state file, for what a run goes on without: nothing that befalls it holds up a run. Whoever
writes to it passes over a `StoreError`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import ClassVar, Self

from pawl.core.errors import StoreTooNew
from pawl.store.database import Clock, Database, StorePart


class SideFile(StorePart):
    """The open file. For the thread that opened it."""

    name: ClassVar[str]
    """Of its file, without `.db`, and of the statements that make its tables."""
    version: ClassVar[int] = 1

    @classmethod
    def open(cls, directory: Path, *, clock: Clock = time.time, busy_seconds: float = 1.0) -> Self:
        path = directory / f"{cls.name}.db"
        if not path.exists():
            # Only its user may read it, from the first moment on.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        database = Database(path, busy_seconds=busy_seconds)
        try:
            database.configure()
            cls._migrate(database)
        except BaseException:
            database.close()
            raise
        return cls(database, clock)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @classmethod
    def _migrate(cls, database: Database) -> None:
        version = database.version
        if version > cls.version:
            raise StoreTooNew(
                f"{str(database.path)!r} has schema version {version}; this Pawl knows up to {cls.version}",
                advice="upgrade Pawl",
            )
        if version == 0:
            database.write_ahead()
            with database.transaction():
                # Another process may have been faster.
                if database.version == 0:
                    database.run_script(cls.name)
                    database.run(f"PRAGMA user_version = {cls.version}")
