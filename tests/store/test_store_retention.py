"""What `gc` lets go and what it keeps."""

from __future__ import annotations

import pytest

from pawl.core.change import Checkpoint, EntryState, Retention
from pawl.core.errors import MissingBlob, StoreError

pytestmark = pytest.mark.spec("A16")

KEEP_NONE = Retention(days=30, backups=0)


def pruned(desk):
    return sorted(entry.id for entry in desk.store.journal.entries(desk.workspace) if entry.pruned)


def test_the_last_backups_of_each_file_are_kept_whatever_their_age(desk):
    numbers = [desk.edit(a=f"version {n}") for n in range(8)]
    lone = desk.edit(b="touched once")
    desk.clock.pass_days(365)
    count, freed = desk.store.journal.prune(Retention(days=30, backups=5))
    assert (count, freed) == (3, 3 * len("version 0"))
    assert pruned(desk) == numbers[:3]
    assert desk.store.journal.changes(lone).paths == {"b"}
    assert [len(desk.store.journal.changes(number)) for number in numbers[3:]] == [1] * 5


def test_an_entry_is_kept_for_the_one_file_that_still_needs_it(desk):
    both = desk.edit(a="1", rare="1")
    for n in range(6):
        desk.edit(a=f"more {n}")
    desk.clock.pass_days(365)
    desk.store.journal.prune(Retention())
    assert both not in pruned(desk)


def test_what_is_young_is_kept_however_often_the_file_changed(desk):
    for n in range(10):
        desk.edit(a=str(n))
    desk.clock.pass_days(30)
    assert desk.store.journal.prune(KEEP_NONE) == (0, 0)
    desk.clock.now += 1
    assert desk.store.journal.prune(KEEP_NONE)[0] == 10


def test_edits_of_another_workspace_are_no_backups_of_this_one(desk):
    mine = desk.edit(a="mine")
    for n in range(9):
        desk.edit(workspace="/elsewhere", a=str(n))
    desk.clock.pass_days(365)
    desk.store.journal.prune(Retention())
    assert desk.store.journal.changes(mine).paths == {"a"}


def test_entries_that_were_rolled_back_are_no_backups(desk):
    mine = desk.edit(a="mine")
    for n in range(9):
        desk.edit(EntryState.ROLLED_BACK, a=str(n))
    desk.clock.pass_days(365)
    desk.store.journal.prune(Retention())
    assert mine not in pruned(desk)


@pytest.mark.spec("F2")
def test_an_unfinished_entry_is_never_pruned(desk):
    number = desk.store.journal.begin(desk.new(), desk.changes(a="1"), {"src": 0o555})
    desk.clock.pass_days(365)
    assert desk.store.journal.prune(KEEP_NONE) == (0, 0)
    assert desk.store.journal.changes(number).paths == {"a"}
    assert desk.store.journal.modes(number) == {"src": 0o555}


def test_what_was_only_captured_goes_with_age_alone(desk):
    old = desk.store.journal.record(desk.new(), desk.changes(a="old"))
    desk.clock.pass_days(31)
    young = desk.store.journal.record(desk.new(), desk.changes(a="young"))
    assert desk.store.journal.prune(Retention()) == (1, len("old"))
    assert pruned(desk) == [old]
    assert desk.store.journal.changes(young).paths == {"a"}


def checkpoint(desk, after_entry, created=""):
    fields = {"workspace": desk.workspace, "name": "", "created": created, "after_entry": after_entry}
    return desk.store.journal.add_checkpoint(Checkpoint(id=0, **fields))


def test_a_young_checkpoint_keeps_every_entry_after_it(desk):
    before, after = desk.edit(a="before"), desk.edit(a="after")
    desk.clock.pass_days(365)
    checkpoint(desk, after_entry=before)
    desk.store.journal.prune(KEEP_NONE)
    assert pruned(desk) == [before]
    assert desk.store.journal.changes(after).paths == {"a"}


def test_an_old_checkpoint_keeps_nothing_but_stays_listed(desk):
    checkpoint(desk, after_entry=0)
    number = desk.edit(a="1")
    desk.clock.pass_days(365)
    desk.store.journal.prune(KEEP_NONE)
    assert pruned(desk) == [number]
    assert [c.name for c in desk.store.journal.checkpoints(desk.workspace)] == ["checkpoint-1"]


def test_a_checkpoint_of_another_workspace_keeps_nothing_here(desk):
    number = desk.edit(a="1")
    desk.clock.pass_days(365)
    desk.store.journal.add_checkpoint(Checkpoint(id=0, workspace="/elsewhere", name="", created="", after_entry=0))
    desk.store.journal.prune(KEEP_NONE)
    assert pruned(desk) == [number]


def test_a_pruned_entry_is_listed_and_says_why_it_cannot_be_taken_back(desk):
    number = desk.edit(a="1", b="2")
    desk.clock.pass_days(365)
    desk.store.journal.prune(KEEP_NONE)
    assert desk.entry(number).files == 2
    with pytest.raises(StoreError, match=f"entry {number} was pruned by retention") as caught:
        desk.store.journal.changes(number)
    assert "keep more" in caught.value.advice
    assert desk.store.journal.prune(KEEP_NONE) == (0, 0)


def test_pruning_lets_go_only_of_contents_that_nothing_else_names(desk):
    old = desk.edit(a="shared", b="alone")
    desk.clock.pass_days(365)
    desk.edit(a="shared")
    shared, alone = (desk.file(text).blob for text in ("shared", "alone"))
    assert (desk.refs(shared), desk.refs(alone)) == (2, 1)
    desk.clock.now += 7200
    desk.store.journal.prune(KEEP_NONE)
    assert pruned(desk) == [old]
    assert desk.refs(shared) == 1
    with pytest.raises(MissingBlob):
        desk.store.blobs.get(alone)
    assert desk.store.integrity() == []


def test_a_retention_of_ages_is_not_an_overflow(desk):
    desk.edit(a="1")
    assert desk.store.journal.prune(Retention(days=10**9, backups=0)) == (0, 0)
