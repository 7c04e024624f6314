"""Entries: the intent before the act, how they end, and the links between an undo and what it took back."""

from __future__ import annotations

import os
import sqlite3

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pawl.core.change import (
    EMPTY,
    Change,
    ChangeSet,
    Entry,
    EntryKind,
    EntryState,
    NewEntry,
    Node,
    Retention,
    blob_digest,
)
from pawl.core.errors import Conflicted, MissingBlob, StoreBusy, StoreError, UnknownEntry
from pawl.store import journal
from pawl.store.store import Store

pytestmark = pytest.mark.spec("B9")


def test_an_entry_comes_back_whole(desk):
    new = NewEntry(
        workspace="/w", run="run-7", kind=EntryKind.RUN, title="make test", reason="asked for", reverses=None
    )
    number = desk.store.journal.begin(new, desk.changes(a="1", b="2"), {"src": 0o555})
    assert desk.store.journal.entry("/w", number) == Entry(
        id=number,
        workspace="/w",
        run="run-7",
        kind=EntryKind.RUN,
        title="make test",
        reason="asked for",
        created="2027-01-15T08:00:00.000+00:00",
        state=EntryState.PREPARED,
        files=2,
    )


def test_changes_of_every_kind_come_back_as_they_were(desk):
    old, new, target = desk.file("old"), desk.file("new"), desk.store.blobs.put(b"README.md")
    changes = ChangeSet.of(
        [
            Change("created", None, new),
            Change("deleted", old, None),
            Change("edited", old, new),
            Change("made executable", Node(old.kind, old.blob, 0o644), Node(old.kind, old.blob, 0o755)),
            Change("link", None, Node.link(target)),
            Change("file to link", old, Node.link(target)),
            Change("folder", None, Node.directory(0o750)),
            Change("file to folder", old, Node.directory()),
            Change(os.fsdecode(b"not \xff utf-8"), None, new),
            Change("emoji \N{GRINNING FACE}", None, new),
        ]
    )
    assert desk.store.journal.changes(desk.store.journal.record(desk.new(), changes)) == changes


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
@given(st.sets(st.binary(min_size=1, max_size=40), min_size=1, max_size=20))
def test_every_name_that_a_file_can_have_comes_back(desk, names):
    node = desk.file("content")
    changes = ChangeSet.of(Change(os.fsdecode(name), None, node) for name in names)
    number = desk.store.journal.record(desk.new(workspace=os.fsdecode(b"/w\xfe")), changes)
    assert desk.store.journal.changes(number) == changes
    assert desk.store.journal.entry(os.fsdecode(b"/w\xfe"), number).files == len(names)


def test_five_thousand_changes_are_one_entry(desk):
    with desk.store.blobs.batch():
        nodes = [desk.file(f"content {n}") for n in range(5000)]
    changes = ChangeSet.of(Change(f"src/{n % 50}/{n}.py", None, node) for n, node in enumerate(nodes))
    number = desk.store.journal.begin(desk.new(), changes, {})
    desk.store.journal.finish(number, EntryState.DONE)
    assert desk.store.journal.changes(number) == changes
    assert desk.entry(number).files == 5000


@pytest.mark.spec("F2")
def test_an_entry_that_was_begun_is_pending_until_it_is_finished(desk):
    journal = desk.store.journal
    first = journal.begin(desk.new(), desk.changes(a="1"), {"src": 0o555, "src/deep": 0o500})
    second = journal.begin(desk.new(), desk.changes(b="2"), {})
    journal.begin(desk.new(workspace="/elsewhere"), desk.changes(c="3"), {})
    assert [entry.id for entry in journal.pending(desk.workspace)] == [first, second]
    assert journal.modes(first) == {"src": 0o555, "src/deep": 0o500}
    assert journal.modes(second) == {}
    journal.finish(first, EntryState.DONE)
    journal.finish(second, EntryState.ROLLED_BACK)
    assert journal.pending(desk.workspace) == []


def test_a_recorded_change_set_is_kept_and_not_pending(desk):
    number = desk.store.journal.record(desk.new(), desk.changes(a="1"))
    assert desk.entry(number).state is EntryState.CAPTURED
    assert desk.store.journal.pending(desk.workspace) == []
    with pytest.raises(StoreError, match="'captured' already"):
        desk.store.journal.finish(number, EntryState.DONE)


@pytest.mark.spec("F2")
def test_an_entry_whose_content_is_missing_does_not_begin(desk):
    changes = ChangeSet.of([Change("a", None, desk.file("1")), Change("b", None, Node.file(blob_digest(b"lost")))])
    with pytest.raises(MissingBlob, match=r"of 'b' is not stored"):
        desk.store.journal.begin(desk.new(), changes, {})
    assert desk.store.journal.entries(desk.workspace) == []
    assert desk.store.integrity() == []


@pytest.mark.spec("F2")
def test_an_entry_cannot_begin_where_its_intent_is_not_durable(desk):
    changes = desk.changes(a="1")
    with pytest.raises(StoreError, match="inside a batch"), desk.store.blobs.batch():
        desk.store.journal.begin(desk.new(), changes, {})
    assert desk.store.journal.entries(desk.workspace) == []


@pytest.mark.parametrize("outcome", [EntryState.DONE, EntryState.ROLLED_BACK, EntryState.CONFLICT])
def test_an_entry_ends_once_and_saying_so_again_changes_nothing(desk, outcome):
    number = desk.edit(outcome, a="1")
    desk.store.journal.finish(number, outcome)
    assert desk.entry(number).state is outcome
    for other in {EntryState.DONE, EntryState.ROLLED_BACK, EntryState.CONFLICT} - {outcome}:
        with pytest.raises(StoreError, match=f"entry {number} is {outcome.value!r} already"):
            desk.store.journal.finish(number, other)
    assert desk.entry(number).state is outcome


@pytest.mark.parametrize("state", [EntryState.PREPARED, EntryState.CAPTURED])
def test_an_entry_does_not_end_in_the_middle(desk, state):
    number = desk.store.journal.begin(desk.new(), EMPTY, {})
    with pytest.raises(ValueError, match="not how an entry ends"):
        desk.store.journal.finish(number, state)


def links(desk, *numbers):
    return [desk.entry(number).reversed_by for number in numbers]


def test_an_undo_takes_back_its_entry_only_when_it_is_done(desk):
    first = desk.edit(a="1")
    changes = desk.store.journal.changes(first).inverted()
    undo = desk.store.journal.begin(desk.new(EntryKind.UNDO, first), changes, {})
    assert desk.entry(first).active
    desk.store.journal.finish(undo, EntryState.DONE)
    assert links(desk, first, undo) == [undo, None]
    assert not desk.entry(first).active


def test_an_undo_that_was_rolled_back_takes_nothing_back(desk):
    first = desk.edit(a="1")
    undo = desk.store.journal.begin(desk.new(EntryKind.UNDO, first), EMPTY, {})
    desk.store.journal.finish(undo, EntryState.ROLLED_BACK)
    assert links(desk, first, undo) == [None, None]


@pytest.mark.parametrize("kind", [EntryKind.REDO, EntryKind.UNDO])
def test_taking_back_an_undo_makes_the_first_entry_active_again(desk, kind):
    first = desk.edit(a="1")
    undo = desk.reverse(EntryKind.UNDO, first)
    again = desk.reverse(kind, undo)
    assert links(desk, first, undo, again) == [None, again, None]
    assert desk.entry(first).active


def test_each_further_step_back_turns_the_whole_chain(desk):
    first = desk.edit(a="1")
    undo = desk.reverse(EntryKind.UNDO, first)
    redo = desk.reverse(EntryKind.REDO, undo)
    third = desk.reverse(EntryKind.UNDO, redo)
    assert links(desk, first, undo, redo, third) == [undo, None, third, None]
    fourth = desk.reverse(EntryKind.UNDO, third)
    assert links(desk, first, undo, redo, third, fourth) == [None, redo, None, fourth, None]


def test_undone_redone_and_undone_again_names_the_newest_undo(desk):
    first = desk.edit(a="1")
    undo = desk.reverse(EntryKind.UNDO, first)
    redo = desk.reverse(EntryKind.REDO, undo)
    again = desk.reverse(EntryKind.UNDO, first)
    assert links(desk, first, undo, redo, again) == [again, redo, None, None]


def test_the_first_of_two_undos_keeps_the_link(desk):
    first = desk.edit(a="1")
    one, two = (desk.store.journal.begin(desk.new(EntryKind.UNDO, first), EMPTY, {}) for _ in range(2))
    desk.store.journal.finish(one, EntryState.DONE)
    desk.store.journal.finish(two, EntryState.DONE)
    assert links(desk, first, one, two) == [one, None, None]


def test_a_restore_or_an_edit_takes_no_entry_back(desk):
    first = desk.edit(a="1")
    desk.reverse(EntryKind.RESTORE, first)
    assert links(desk, first) == [None]


@pytest.mark.parametrize("kind", [EntryKind.UNDO, EntryKind.RESTORE])
def test_several_entries_are_taken_back_and_brought_back_together(desk, kind):
    first, second, third = (desk.edit(a=str(n)) for n in range(3))
    both = desk.reverse_all(kind, third, first)
    assert links(desk, first, second, third, both) == [both, None, both, None]
    again = desk.reverse(EntryKind.UNDO, both)
    assert links(desk, first, second, third, both, again) == [None, None, None, again, None]


def test_a_restore_over_an_undo_takes_back_the_undo_and_what_it_undid(desk):
    older, first = desk.edit(a="0"), desk.edit(a="1")
    outer, inner = desk.reverse(EntryKind.UNDO, older), desk.reverse(EntryKind.UNDO, first)
    restore = desk.reverse_all(EntryKind.RESTORE, inner, outer, first)
    assert links(desk, older, first, outer, inner) == [None, restore, restore, restore]
    desk.reverse(EntryKind.UNDO, restore)
    assert links(desk, older, first, outer, inner) == [outer, inner, None, None]


def test_what_would_take_back_an_entry_that_another_has_taken_back_does_not_begin(desk):
    first, second = desk.edit(a="1"), desk.edit(b="2")
    restore = desk.reverse_all(EntryKind.RESTORE, second, first)
    undo = desk.reverse(EntryKind.UNDO, restore)
    again = desk.reverse(EntryKind.UNDO, second)
    with pytest.raises(Conflicted, match=f"entry {second} was undone by entry {again} since") as caught:
        desk.reverse(EntryKind.UNDO, undo)
    assert caught.value.advice == f"undo entry {again} first"
    assert links(desk, first, second, restore, undo, again) == [None, again, undo, None, None]
    assert len(desk.store.journal.entries(desk.workspace)) == 5


def test_entries_of_another_workspace_cannot_be_taken_back_together(desk):
    elsewhere = desk.edit(workspace="/elsewhere", a="1")
    with pytest.raises(UnknownEntry):
        desk.reverse_all(EntryKind.RESTORE, desk.edit(a="1"), elsewhere)


def test_an_undo_of_an_entry_of_another_workspace_does_not_begin(desk):
    elsewhere = desk.edit(workspace="/elsewhere", a="1")
    with pytest.raises(UnknownEntry):
        desk.store.journal.begin(desk.new(EntryKind.UNDO, elsewhere), EMPTY, {})


def test_entries_are_listed_newest_first_and_by_run(desk):
    numbers = [desk.edit(a=str(n)) for n in range(4)]
    other = desk.store.journal.record(
        NewEntry(workspace=desk.workspace, run="run-2", kind=EntryKind.RUN, title="other"), desk.changes(b="x", c="y")
    )
    desk.edit(workspace="/elsewhere", a="1")
    journal = desk.store.journal
    assert [entry.id for entry in journal.entries(desk.workspace)] == [other, *reversed(numbers)]
    assert [entry.id for entry in journal.entries(desk.workspace, limit=2)] == [other, numbers[-1]]
    assert [entry.id for entry in journal.entries(desk.workspace, run="run-1", limit=2)] == [numbers[3], numbers[2]]
    assert [(entry.id, entry.files) for entry in journal.entries(desk.workspace, run="run-2")] == [(other, 2)]
    assert journal.entries(desk.workspace, run="run-3") == []
    assert journal.entries("/nowhere") == []


def test_an_unknown_entry_is_answered_with_the_newest_there_is(desk):
    journal = desk.store.journal
    with pytest.raises(UnknownEntry, match="history is empty"):
        journal.entry(desk.workspace, 1)
    mine = desk.edit(a="1")
    elsewhere = desk.edit(workspace="/elsewhere", a="1")
    with pytest.raises(UnknownEntry, match=f"no entry 99; the newest is {mine}"):
        journal.entry(desk.workspace, 99)
    with pytest.raises(UnknownEntry, match=f"no entry {elsewhere}; the newest is {mine}"):
        journal.entry(desk.workspace, elsewhere)
    with pytest.raises(UnknownEntry):
        journal.changes(99)
    with pytest.raises(UnknownEntry):
        journal.finish(99, EntryState.DONE)


def test_a_title_with_odd_bytes_is_kept_readable(desk):
    new = NewEntry(workspace="/w", run="r", kind=EntryKind.RUN, title="cat \udcff\ud800.txt", reason="line\nline\0")
    entry = desk.store.journal.entry("/w", desk.store.journal.record(new, EMPTY))
    assert (entry.title, entry.reason) == (r"cat \udcff\ud800.txt", "line\nline\0")


def test_changes_of_an_entry_cannot_be_rewritten_even_by_hand(desk):
    desk.edit(a="1")
    with pytest.raises(sqlite3.IntegrityError, match="written once"):
        desk.store._database.run("UPDATE entry_change SET after_blob = NULL")


def test_many_changes_are_written_in_steps_between_which_others_write(desk, state_directory, monkeypatch):
    """No step that another writer could wait for holds more than a part of them, and nobody sees the parts."""
    monkeypatch.setattr(journal, "AT_ONCE", 10)
    other = Store.open(state_directory, busy_seconds=0.0)
    whole = journal.insert_changes
    seen = []

    def insert(database, owner, number, changes):
        whole(database, owner, number, changes)
        seen.append((len(tuple(changes)), len(other.journal.entries(desk.workspace))))
        with pytest.raises(StoreBusy):
            other.blobs.put(b"while a step is under way")

    class Between:
        def wait(self, seconds):
            other.blobs.put(b"%d" % len(seen))

    monkeypatch.setattr(journal, "insert_changes", insert)
    monkeypatch.setattr(journal.threading, "Event", Between)
    changes = desk.changes(**{f"f{number:02}": "same" for number in range(35)})
    number = desk.store.journal.begin(desk.new(), changes, {"f01": 0o600})
    assert seen == [(10, 0), (10, 0), (10, 0), (5, 0)]
    assert desk.store.journal.changes(number) == changes
    assert desk.entry(number).files == 35
    assert desk.store.journal.modes(number) == {"f01": 0o600}
    assert desk.store.blobs.verify() == []
    other.close()


def test_a_large_entry_whose_writing_broke_off_is_nowhere_and_goes_with_retention(desk, clock, monkeypatch):
    monkeypatch.setattr(journal, "AT_ONCE", 10)
    changes = desk.changes(**{f"f{number:02}": "same" for number in range(35)})
    digest = blob_digest(b"same")
    desk.store.journal._drafted(changes)
    assert desk.refs(digest) == 35
    assert list(desk.store.journal.entries(desk.workspace)) == list(desk.store.journal.pending(desk.workspace)) == []
    clock.pass_days(60)
    desk.store.journal.prune(Retention(days=30, backups=1))
    assert desk.store._database.first("SELECT 1 FROM blob WHERE hash = ?", (digest,)) is None
