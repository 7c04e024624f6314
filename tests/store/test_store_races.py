"""Several processes on one state file."""

from __future__ import annotations

import fcntl
import os
import sys

import pytest

from pawl.core.change import EMPTY, EntryState
from pawl.store.store import Store

pytestmark = pytest.mark.spec("F2")

WORKSPACE = "/home/user/project"

START = """
import sys
from pathlib import Path
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import StoreError
from pawl.core.change import Checkpoint, EntryKind, EntryState, NewEntry
from pawl.store import Store

def wait_for_the_signal():
    print("ready", flush=True)
    sys.stdin.readline()

def new(**fields):
    return NewEntry(workspace="/home/user/project", run=sys.argv[2], kind=EntryKind.EDIT, title="a title", **fields)
"""

OPENS = (
    START
    + """
wait_for_the_signal()
store = Store.open(Path(sys.argv[1]), busy_seconds=60)
node = Node.file(store.blobs.put(sys.argv[2].encode()))
store.journal.record(new(), ChangeSet.of([Change("a", None, node)]))
print(store.set_aside is not None)
store.close()
"""
)

WRITES = (
    START
    + """
store = Store.open(Path(sys.argv[1]), busy_seconds=60)
wait_for_the_signal()
for n in range(25):
    with store.blobs.batch():
        shared, own = store.blobs.put(b"%d" % n), store.blobs.put(b"%s %d" % (sys.argv[2].encode(), n))
    changes = ChangeSet.of([Change("shared", None, Node.file(shared)), Change("own", None, Node.file(own))])
    number = store.journal.begin(new(), changes, {})
    store.events.append("/home/user/project", sys.argv[2], "step", {"n": n})
    store.journal.finish(number, EntryState.DONE)
    store.journal.add_checkpoint(
        Checkpoint(id=0, workspace="/home/user/project", name="", created="", after_entry=number, changes=changes)
    )
store.close()
"""
)

FINISHES = (
    START
    + """
store = Store.open(Path(sys.argv[1]), busy_seconds=60)
wait_for_the_signal()
for number in range(1, 21):
    try:
        store.journal.finish(number, EntryState(sys.argv[3]))
        print(number, "won")
    except StoreError as error:
        print(number, "lost")
store.close()
"""
)


def race(child, program, *arguments):
    """Runs the processes at the same time; returns what each said after the signal."""
    processes = [child(program, *words) for words in arguments]
    for process in processes:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    said = [process.communicate() for process in processes]
    assert [errors for _, errors in said] == [""] * len(processes)
    return [output.splitlines() for output, _ in said]


def test_processes_that_open_a_new_state_directory_together_all_succeed(child, state_directory):
    assert race(child, OPENS, *([f"run-{n}"] for n in range(4))) == [["False"]] * 4
    with Store.open(state_directory) as store:
        assert {entry.run for entry in store.journal.entries(WORKSPACE)} == {f"run-{n}" for n in range(4)}


def test_only_one_of_several_processes_sets_a_damaged_file_aside(child, state_directory):
    (state_directory / "pawl.db").write_bytes(b"damaged " * 1000)
    said = race(child, OPENS, *([f"run-{n}"] for n in range(4)))
    assert sorted(said) == [["False"], ["False"], ["False"], ["True"]]
    assert len(list(state_directory.glob("pawl.db.corrupt-*Z"))) == 1
    with Store.open(state_directory) as store:
        assert {entry.run for entry in store.journal.entries(WORKSPACE)} == {f"run-{n}" for n in range(4)}


def is_waiting(process, lock) -> bool:
    """Whether the process has opened the lock, which is the last thing before it waits for it."""
    folder = f"/proc/{process.pid}/fd"
    for name in os.listdir(folder):
        try:
            if os.readlink(f"{folder}/{name}") == str(lock):
                return True
        except FileNotFoundError:
            continue
    return False


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_file_that_was_replaced_while_a_process_waited_is_not_set_aside(child, state_directory, tmp_path):
    Store.open(tmp_path / "sound").close()
    (state_directory / "pawl.db").write_bytes(b"damaged " * 1000)
    with (state_directory / "pawl.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = child(OPENS, "run-1")
        process.stdout.readline()
        process.stdin.write("go\n")
        process.stdin.flush()
        while not is_waiting(process, state_directory / "pawl.lock"):
            assert process.poll() is None, "it did not wait"
        (tmp_path / "sound" / "pawl.db").replace(state_directory / "pawl.db")
    assert process.communicate() == ("False\n", "")
    assert not list(state_directory.glob("pawl.db.corrupt-*"))


def test_two_processes_that_write_at_once_lose_and_mix_nothing(child, state_directory):
    race(child, WRITES, ["run-a"], ["run-b"])
    with Store.open(state_directory) as store:
        entries = store.journal.entries(WORKSPACE)
        assert [entry.id for entry in entries] == list(range(50, 0, -1))
        for entry in entries:
            own = store.journal.changes(entry.id).get("own")
            assert store.blobs.get(own.after.blob).startswith(entry.run.encode())
        for run in ("run-a", "run-b"):
            assert [event["body"]["n"] for event in store.events.read(WORKSPACE, run=run)] == list(range(25))
        assert len({checkpoint.name for checkpoint in store.journal.checkpoints(WORKSPACE)}) == 50
        assert store.integrity() == []


def test_two_processes_that_finish_one_entry_differently_have_one_winner(child, state_directory, desk):
    for _ in range(20):
        desk.store.journal.begin(desk.new(), EMPTY, {})
    one, other = race(child, FINISHES, ["run-a", "done"], ["run-b", "rolled back"])
    for number, (first, second) in enumerate(zip(one, other, strict=True), start=1):
        assert {first, second} == {f"{number} won", f"{number} lost"}
        winner = EntryState.DONE if first.endswith("won") else EntryState.ROLLED_BACK
        assert desk.entry(number).state is winner
