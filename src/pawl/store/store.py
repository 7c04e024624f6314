"""The state file as one object: opened, its parts handed out, looked after, closed."""

from __future__ import annotations

import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from pawl.core.errors import StoreCorrupt, StoreError
from pawl.store.blobs import GRACE_SECONDS, Blobs
from pawl.store.database import Clock, Database, check_schema, is_newest, migrate
from pawl.store.jobs import Jobs
from pawl.store.journal import Journal
from pawl.store.memories import Answers, Memories
from pawl.store.runs import Events, Requests, Runs, Snapshots, Transcripts

FILE_NAME = "pawl.db"
_LOCK_NAME = "pawl.lock"
_SIDE_FILES = ("-wal", "-shm", "-journal")


def open_database(directory: Path, *, busy_seconds: float) -> tuple[Database, Path | None]:
    """The open file, and where a damaged one was moved when there was one."""
    opening = _Opening(directory, busy_seconds)
    try:
        return opening.run()
    except OSError as error:
        raise StoreError(
            f"the state directory {str(directory)!r} cannot be used: {error.strerror or error}",
            advice="check its disk, owner and mode, or choose another state directory",
        ) from error
    finally:
        opening.close_unused()


class _Opening:
    """One attempt to open, and the connections that it made on the way.

    A damaged file stays open until it has been renamed: whoever closes it last under its own name makes SQLite fold
    the log into it.
    """

    def __init__(self, directory: Path, busy_seconds: float) -> None:
        self._directory = directory
        self._path = directory / FILE_NAME
        self._busy_seconds = busy_seconds
        self._unused: list[Database] = []

    def run(self) -> tuple[Database, Path | None]:
        _make_private_directory(self._directory)
        try:
            database = self._connect()
            if is_newest(database):
                database.write_ahead()
                return self._use(database), None
        except StoreCorrupt:
            pass  # judged again below, alone: another process may be setting it aside
        with _alone(self._directory):
            return self._settle()

    def _settle(self) -> tuple[Database, Path | None]:
        aside = None
        try:
            database = self._connect()
            check_schema(database)
        except StoreCorrupt:
            aside = _set_aside(self._path)
            database = self._connect()
        migrate(database)
        return self._use(database), aside

    def _connect(self) -> Database:
        _make_private_file(self._path)
        database = Database(self._path, busy_seconds=self._busy_seconds)
        self._unused.append(database)
        database.configure()
        return database

    def _use(self, database: Database) -> Database:
        self._unused.remove(database)
        return database

    def close_unused(self) -> None:
        for database in self._unused:
            database.close()


def _make_private_directory(directory: Path) -> None:
    _create_private(directory)
    found = directory.stat()
    if not stat.S_ISDIR(found.st_mode):
        raise StoreError(f"{str(directory)!r} is not a directory", advice="choose another state directory")
    if found.st_uid not in (os.geteuid(), 0):
        raise StoreError(
            f"the state directory {str(directory)!r} belongs to another user (uid {found.st_uid})",
            advice="run Pawl as that user, or choose a state directory of your own",
        )
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise StoreError(
            f"the state directory {str(directory)!r} can be written by others (mode {stat.S_IMODE(found.st_mode):04o})",
            advice=f"chmod go-w {str(directory)!r}, or choose another state directory",
        )
    if found.st_uid == os.geteuid() and stat.S_IMODE(found.st_mode) & 0o077:
        directory.chmod(0o700)


def _create_private(directory: Path) -> None:
    """Makes the directory and what is missing above it, each for the user alone and durable in its parent."""
    if directory.exists():
        return
    _create_private(directory.parent)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        return
    parent = os.open(directory.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def _make_private_file(path: Path) -> None:
    """Creates the file for the user alone, so that SQLite gives the same mode to the files beside it.

    An existing file is never opened here: closing it would drop the locks that this process holds on it.
    """
    # In this order: SQLite writes the first page of the file before it makes a log.
    log = _found(path, "-wal")
    file = _found(path)
    if log and log.st_size and not (file and file.st_size):
        raise StoreCorrupt(f"the state file {str(path)!r} is gone and its log is not")
    if file is None:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    elif not stat.S_ISREG(file.st_mode):
        raise StoreError(f"{str(path)!r} is not a regular file", advice="choose another state directory")
    for suffix in _SIDE_FILES if file is None else ("", *_SIDE_FILES):
        there = _found(path, suffix)
        if there and stat.S_ISREG(there.st_mode) and there.st_mode & 0o077:
            with suppress(FileNotFoundError):
                os.chmod(f"{path}{suffix}", 0o600)


def _found(path: Path, suffix: str = "") -> os.stat_result | None:
    try:
        return os.lstat(f"{path}{suffix}")
    except FileNotFoundError:
        return None


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Keeps other processes from creating, migrating or setting aside the file meanwhile."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(directory / _LOCK_NAME, flags, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _set_aside(path: Path) -> Path:
    """Renames the file and those beside it to a name that is free, and returns the new place.

    The file goes first: without it others see a log alone, and wait.
    """
    stamp = f"{datetime.now(UTC):%Y%m%dT%H%M%S.%fZ}"
    moved = [
        (Path(f"{path}{suffix}"), path.with_name(f"{path.name}.corrupt-{stamp}{suffix}"))
        for suffix in ("", *_SIDE_FILES)
        if _found(path, suffix)
    ]
    for source, target in moved:
        source.rename(target)
    return moved[0][1]


class Store:
    """An open state file. For the thread that opened it."""

    def __init__(self, database: Database, set_aside: Path | None, clock: Clock) -> None:
        self._database = database
        self.path = database.path
        self.set_aside = set_aside
        """Where a damaged state file was moved on opening, so that a person can be told."""
        self.blobs = Blobs(database, clock)
        self.journal = Journal(database, clock)
        self.events = Events(database, clock)
        self.requests = Requests(database, clock)
        self.transcripts = Transcripts(database, clock)
        self.memories = Memories(database, clock)
        self.answers = Answers(database, clock)
        self.snapshots = Snapshots(database, clock)
        self.runs = Runs(database, clock)
        self.jobs = Jobs(database, clock)

    @classmethod
    def open(cls, directory: Path, *, clock: Clock = time.time, busy_seconds: float = 5.0) -> Store:
        """Opens or creates the file in that directory, which must be the user's alone to write.

        `busy_seconds` is how long to wait for another process that writes.
        """
        database, set_aside = open_database(directory, busy_seconds=busy_seconds)
        return cls(database, set_aside, clock)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Everything that is written inside becomes durable as one step, or not at all."""
        with self._database.transaction():
            yield

    @property
    def schema_version(self) -> int:
        return self._database.version

    def size_bytes(self) -> int:
        """The bytes of the file and its log on the disk."""
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
        """The faults of the file: its pages and links, and every content against its name. Empty when sound."""
        try:
            # One moment of the file, whatever other processes write and drop meanwhile.
            with self._database.reading():
                pages = [row[0] for row in self._database.rows("PRAGMA integrity_check") if row[0] != "ok"]
                links = [
                    f"row {row[1]} of {row[0]!r} refers to a row of {row[2]!r} that does not exist"
                    for row in self._database.rows("PRAGMA foreign_key_check")
                ]
                return [*pages, *links, *self.blobs.verify()]
        except StoreCorrupt as error:
            return [error.message]

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
