"""How the state file is opened: private, migrated, and never at the cost of what was there."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pawl.core.change import EntryState
from pawl.core.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from pawl.store import database as schema
from pawl.store.store import Store

pytestmark = pytest.mark.spec("F2")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def open_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.spec("B13")
def test_directory_and_files_are_the_users_alone_whatever_the_umask(tmp_path, open_umask):
    directory = tmp_path / "above" / "state"
    with Store.open(directory) as store:
        store.blobs.put(b"content")
        files = {path.name: mode(path) for path in directory.iterdir()}
    assert files == {"pawl.db": 0o600, "pawl.db-wal": 0o600, "pawl.db-shm": 0o600, "pawl.lock": 0o600}
    assert (mode(directory), mode(directory.parent)) == (0o700, 0o700)


@pytest.mark.spec("B13")
def test_a_file_that_others_could_read_is_closed_to_them(state_directory):
    Store.open(state_directory).close()
    (state_directory / "pawl.db").chmod(0o644)
    with Store.open(state_directory) as store:
        assert mode(store.path) == 0o600


@pytest.mark.parametrize("bits", [0o770, 0o707, 0o777])
def test_a_directory_that_others_can_write_is_refused(state_directory, bits):
    state_directory.chmod(bits)
    with pytest.raises(StoreError, match="can be written by others") as caught:
        Store.open(state_directory)
    assert "chmod go-w" in caught.value.advice
    assert list(state_directory.iterdir()) == []


def test_a_directory_that_others_can_only_read_is_accepted(state_directory):
    state_directory.chmod(0o755)
    Store.open(state_directory).close()


@pytest.mark.root
def test_a_directory_of_another_user_is_refused(state_directory):
    os.chown(state_directory, 65534, 65534)
    with pytest.raises(StoreError, match="belongs to another user"):
        Store.open(state_directory)


def test_a_file_in_the_place_of_the_directory_is_refused(tmp_path):
    (tmp_path / "state").write_text("mine")
    with pytest.raises(StoreError, match="not a directory"):
        Store.open(tmp_path / "state")
    with pytest.raises(StoreError, match="cannot be used"):
        Store.open(tmp_path / "state" / "below")


def test_a_link_in_the_place_of_the_file_is_refused_and_its_target_kept(state_directory, tmp_path):
    (tmp_path / "target").write_text("mine")
    (state_directory / "pawl.db").symlink_to(tmp_path / "target")
    with pytest.raises(StoreError, match="not a regular file"):
        Store.open(state_directory)
    assert (tmp_path / "target").read_text() == "mine"


def test_every_connection_writes_ahead_and_waits_for_the_disk(desk):
    database = desk.store._database
    settings = {name: database.one(f"PRAGMA {name}")[0] for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert settings == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1}


def test_what_was_written_is_there_after_opening_again(state_directory):
    with Store.open(state_directory) as store:
        name = store.blobs.put(b"kept")
    with Store.open(state_directory) as store:
        assert (store.blobs.get(name), store.set_aside, store.schema_version) == (b"kept", None, schema.NEWEST)


def test_a_file_of_a_newer_pawl_is_refused_and_left_alone(state_directory):
    Store.open(state_directory).close()
    path = state_directory / "pawl.db"
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {schema.NEWEST + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(
        StoreTooNew, match=f"schema version {schema.NEWEST + 1}; this Pawl knows up to {schema.NEWEST}"
    ) as caught:
        Store.open(state_directory)
    assert "upgrade Pawl, or choose another state directory" in caught.value.advice
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_refused_and_left_alone(state_directory):
    with sqlite3.connect(state_directory / "pawl.db") as connection:
        connection.execute("CREATE TABLE recipe (name TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="another program"):
        Store.open(state_directory)
    assert not list(state_directory.glob("*.corrupt-*"))


def leave_a_log(directory: Path) -> None:
    """Fills the log and ends without the checkpoint that closing makes."""
    program = (
        "import os, sys; from pathlib import Path; from pawl.store import Store\n"
        "Store.open(Path(sys.argv[1])).blobs.put(b'only in the log' * 1000); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, os.fspath(directory)], check=True)
    assert (directory / "pawl.db-wal").stat().st_size > 0


def not_a_database(path: Path) -> None:
    path.write_bytes(b"this was never a database\n" * 400)


def truncated(path: Path) -> None:
    os.truncate(path, 4096 + 100)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def scribbled_schema(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 3000)


@pytest.mark.parametrize("damage", [not_a_database, truncated, empty, scribbled_schema])
def test_a_damaged_file_is_set_aside_with_its_log_and_a_new_one_is_opened(state_directory, damage):
    path = state_directory / "pawl.db"
    Store.open(state_directory).close()
    damage(path)
    # A log that does not belong to the file: SQLite ignores it, Pawl keeps it all the same.
    (state_directory / "pawl.db-wal").write_bytes(b"what was in the log")
    damaged = path.read_bytes()
    with Store.open(state_directory) as store:
        assert store.set_aside is not None
        assert store.set_aside.name.startswith("pawl.db.corrupt-2")
        assert store.set_aside.read_bytes() == damaged
        assert Path(f"{store.set_aside}-wal").read_bytes() == b"what was in the log"
        assert store.journal.entries("/w") == []
        store.blobs.put(b"new")
        assert store.integrity() == []
    with Store.open(state_directory) as store:
        assert store.set_aside is None


FINISHES_AND_DIES = """
import os, sys
from pathlib import Path
from pawl.core.change import EntryState
from pawl.store import Store, database as schema
Store.open(Path(sys.argv[1])).journal.finish(1, EntryState.DONE)
os._exit(0)
"""


def test_the_log_of_a_damaged_file_is_not_folded_into_it(state_directory, desk, child):
    desk.store.journal.begin(desk.new(), desk.changes(a="text"), {})
    desk.store.close()
    # The log holds pages of the file, and not the first one, which is damaged.
    assert child(FINISHES_AND_DIES).wait() == 0
    with (state_directory / "pawl.db").open("r+b") as file:
        file.write(b"scribbled over the header")
    damaged, log = ((state_directory / name).read_bytes() for name in ("pawl.db", "pawl.db-wal"))
    with Store.open(state_directory) as store:
        assert store.set_aside is not None
        assert store.set_aside.read_bytes() == damaged
        assert Path(f"{store.set_aside}-wal").read_bytes() == log


def test_a_log_without_its_file_is_set_aside_and_not_dropped(state_directory):
    leave_a_log(state_directory)
    log = (state_directory / "pawl.db-wal").read_bytes()
    (state_directory / "pawl.db").unlink()
    with Store.open(state_directory) as store:
        assert store.set_aside is not None
        assert store.set_aside.read_bytes() == log
        assert store.set_aside.name.endswith("-wal")


def test_two_damaged_files_are_both_kept(state_directory):
    for content in (b"first" * 1000, b"second" * 1000):
        (state_directory / "pawl.db").write_bytes(content)
        Store.open(state_directory).close()
    kept = {path.read_bytes()[:5] for path in state_directory.glob("pawl.db.corrupt-*")}
    assert kept == {b"first", b"secon"}


def test_damage_found_later_is_said_with_what_to_do(state_directory, desk):
    desk.edit(**{f"file{n}": "x" * n for n in range(200)})
    root = desk.store._database.one("SELECT rootpage FROM sqlite_master WHERE name = 'entry_change'")[0]
    desk.store.close()
    with Store.open(state_directory) as store:
        with (state_directory / "pawl.db").open("r+b") as file:
            file.seek((root - 1) * 4096)
            file.write(b"\xff" * 4096)
        store._database.rows("PRAGMA shrink_memory")
        with pytest.raises(StoreCorrupt, match="damaged") as caught:
            store.journal.changes(1)
        assert "move it aside" in caught.value.advice
        assert store.integrity() != []


def test_a_writer_that_waits_too_long_is_told_that_the_store_is_busy(state_directory, desk):
    with desk.store.blobs.batch(), Store.open(state_directory, busy_seconds=0) as second:
        with pytest.raises(StoreBusy, match="another process is writing") as caught:
            second.blobs.put(b"content")
        assert caught.value.exit_code == 75
        assert second.journal.entries("/w") == []


def test_integrity_finds_a_content_that_is_not_what_its_name_says(desk):
    desk.edit(first="first text", second="second text")
    assert desk.store.integrity() == []
    desk.store._database.run("UPDATE content SET data = x'00' WHERE blob = 1")
    problems = desk.store.integrity()
    assert len(problems) == 1
    assert "does not match its hash" in problems[0]


def test_integrity_finds_wrong_counts_and_lost_contents(desk):
    desk.edit(first="first text", second="second text", third="third text " * 100)
    database = desk.store._database
    database.run("UPDATE blob SET refs = 7 WHERE id = 1")
    database.run("DELETE FROM content WHERE blob = 2")
    database.run("UPDATE content SET data = x'00' WHERE blob = 3")
    problems = "\n".join(desk.store.integrity())
    assert "counts 7 references, but has 1" in problems
    assert "is not stored" in problems
    assert "cannot be unpacked" in problems


FILLS_ITS_DISK = """
import resource, sys
from pathlib import Path
from pawl.core.errors import StoreError
from pawl.store import Store, database as schema
store = Store.open(Path(sys.argv[1]))
first = store.blobs.put(b"first")
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, resource.RLIM_INFINITY))
try:
    with store.blobs.batch():
        for n in range(100):
            store.blobs.put(bytes(range(256)) * 40 + n.to_bytes(2, "big") * 10_000)
            store.blobs.put(__import__("os").urandom(20_000))
except StoreError as error:
    print(type(error).__name__, "|", error.message, "|", error.advice)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(store.blobs.get(first), store.integrity())
"""


def test_a_write_that_fails_names_the_file_and_leaves_the_store_as_it_was(child, state_directory):
    output, errors = child(FILLS_ITS_DISK).communicate()
    said, rest = output.splitlines()
    assert errors == ""
    assert said.startswith("StoreError | ")
    assert str(state_directory / "pawl.db") in said
    assert rest == "b'first' []"


@pytest.mark.root
def test_a_full_disk_is_named(state_directory):
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=768k,mode=0700", "tmpfs", os.fspath(state_directory)], check=False
    )
    if mounted.returncode:
        pytest.skip("cannot mount a small file system here")
    try:
        with Store.open(state_directory) as store:
            with pytest.raises(StoreError, match="no room left") as caught, store.blobs.batch():
                for _ in range(80):
                    store.blobs.put(os.urandom(20_000))
            assert "free space" in caught.value.advice
            assert store.integrity() == []
    finally:
        subprocess.run(["umount", os.fspath(state_directory)], check=True)


def test_the_store_can_be_moved_with_its_directory(state_directory, desk):
    number = desk.edit(a="text")
    desk.store.close()
    moved = state_directory.rename(state_directory.with_name("moved"))
    with Store.open(moved) as store:
        assert store.journal.entry(desk.workspace, number).state is EntryState.DONE


def test_a_table_whose_pages_are_damaged_is_set_aside_too(tmp_path: Path):
    with Store.open(tmp_path / "state") as store:
        root = store._database.one("SELECT rootpage FROM sqlite_master WHERE name = 'entry'")[0]
        size = store._database.one("PRAGMA page_size")[0]
        store._database.rows("PRAGMA wal_checkpoint(TRUNCATE)")
    with (tmp_path / "state" / "pawl.db").open("r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xff" * size)
    with Store.open(tmp_path / "state") as store:
        assert store.set_aside is not None
        assert store.set_aside.exists()
