"""`kill -9` at any moment leaves an entry whole or absent."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator

import pytest

from pawl.core.change import EntryState
from pawl.store.store import Store

pytestmark = [pytest.mark.hostile, pytest.mark.spec("F2")]

WORKSPACE = "/home/user/project"

BEGINS = """
import os, sys
from pathlib import Path
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.change import EntryKind, EntryState, NewEntry
from pawl.store import Store

class Modes(dict):
    def items(self):
        yield "src", 0o555
        if "block" in sys.argv:
            print("inside", flush=True)
            sys.stdin.read()
        yield "docs", 0o755

store = Store.open(Path(sys.argv[1]))
with store.blobs.batch():
    nodes = [Node.file(store.blobs.put(os.urandom(3000))) for _ in range(20)]
changes = ChangeSet.of(Change(f"file-{n}", None, node) for n, node in enumerate(nodes))
new = NewEntry(workspace="/home/user/project", run="run-1", kind=EntryKind.EDIT, title="a title")
number = store.journal.begin(new, changes, Modes())
print("begun", number, flush=True)
store.journal.finish(number, EntryState.DONE)
print("done", number, flush=True)
store.close()
"""


def test_a_process_killed_in_the_middle_of_begin_leaves_no_entry(child, state_directory):
    process = child(BEGINS, "block")
    assert process.stdout.readline() == "inside\n"
    process.kill()
    assert process.wait() == -signal.SIGKILL
    with Store.open(state_directory) as store:
        assert store.set_aside is None
        assert store.journal.entries(WORKSPACE) == []
        assert store.journal.pending(WORKSPACE) == []
        assert store.integrity() == []


def test_a_writer_that_died_does_not_keep_others_from_writing(child, state_directory, desk):
    process = child(BEGINS, "block")
    assert process.stdout.readline() == "inside\n"
    process.kill()
    process.wait()
    assert desk.edit(a="1") == 1


def outcomes(child, state_directory, call: str, points: Iterator[int]) -> Iterator[tuple[str, list[EntryState]]]:
    """Kills a fresh process at its n-th call, until it lives to its end; checks what is left each time."""
    for point in points:
        shutil.rmtree(state_directory)
        process = child(
            BEGINS, before=("strace", "-f", "-qq", "-o", "/dev/null", f"-einject={call}:signal=SIGKILL:when={point}")
        )
        said, _ = process.communicate()
        with Store.open(state_directory) as store:
            assert store.set_aside is None, (call, point)
            assert store.integrity() == [], (call, point)
            states = [entry.state for entry in store.journal.entries(WORKSPACE)]
            for number in range(1, len(states) + 1):
                assert len(store.journal.changes(number)) == 20, (call, point)
                assert store.journal.modes(number) == {"src": 0o555, "docs": 0o755}
        yield said, states
        if process.returncode == 0:
            return


def check_every_point(child, state_directory, call: str, step: int) -> None:
    left = list(outcomes(child, state_directory, call, iter(range(1, 2000, step))))
    for said, states in left:
        assert len(states) <= 1
        if "done" in said:
            assert states == [EntryState.DONE]
        elif "begun" in said:
            assert states in ([EntryState.PREPARED], [EntryState.DONE])
    assert left[-1] == ("begun 1\ndone 1\n", [EntryState.DONE])
    assert len(left) > 3


needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace to kill at a system call")


@needs_strace
@pytest.mark.parametrize(("call", "step"), [("fdatasync", 2), ("pwrite64", 23)])
def test_a_process_killed_while_it_writes_leaves_an_entry_whole_or_absent(child, state_directory, call, step):
    check_every_point(child, state_directory, call, step)


@needs_strace
def test_a_process_killed_while_it_sets_a_damaged_file_aside_drops_nothing(child, state_directory):
    for name in ("pawl.db", "pawl.db-wal"):
        (state_directory / name).write_bytes(b"damaged " * 1000 + name.encode())
    process = child(BEGINS, before=("strace", "-f", "-qq", "-o", "/dev/null", "-einject=rename:signal=SIGKILL:when=2"))
    process.communicate()
    assert process.returncode != 0
    Store.open(state_directory).close()
    kept = {path.read_bytes()[8000:] for path in state_directory.glob("pawl.db.corrupt-*") if path.stat().st_size}
    assert {b"pawl.db", b"pawl.db-wal"} <= kept


@needs_strace
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("call", ["pwrite64", "fdatasync", "unlink", "fcntl"])
def test_a_process_killed_at_any_call_leaves_an_entry_whole_or_absent(child, state_directory, call):
    check_every_point(child, state_directory, call, step=1)
