"""Checkpoints: everything they hold comes back, and their contents are kept."""

from __future__ import annotations

import pytest

from pawl.core.change import Change, ChangeSet, Checkpoint, Node, Retention, RollbackPolicy, blob_digest
from pawl.core.errors import MissingBlob, StoreError

pytestmark = pytest.mark.spec("A3")


def blank(desk, name="", **fields):
    return Checkpoint(id=0, workspace=desk.workspace, name=name, created="", after_entry=0, **fields)


def test_a_checkpoint_comes_back_whole(desk):
    checkpoint = Checkpoint(
        id=0,
        workspace=desk.workspace,
        name="before the rewrite",
        created="2027-01-01T00:00:00+00:00",
        after_entry=desk.edit(a="1"),
        changes=desk.changes(a="1", b="2"),
        progress={"task": "rewrite", "done": [1, 2], "left": None},
        verification={"tests": {"passed": 3, "failed": 0}},
        policy=RollbackPolicy(automatic_on_error=False, depth=3),
    )
    added = desk.store.journal.add_checkpoint(checkpoint)
    assert added.id == 1
    assert desk.store.journal.checkpoints(desk.workspace) == [added]
    assert (added.changes, added.progress, added.policy) == (checkpoint.changes, checkpoint.progress, checkpoint.policy)


def test_the_policy_is_the_cautious_one_unless_said_otherwise(desk):
    policy = desk.store.journal.add_checkpoint(blank(desk)).policy
    assert policy == RollbackPolicy(automatic_on_error=True, depth=5, preserve_user_edits=True)


def test_a_checkpoint_without_name_and_time_gets_its_number_and_now(desk):
    added = desk.store.journal.add_checkpoint(blank(desk))
    assert (added.name, added.created) == ("checkpoint-1", "2027-01-15T08:00:00.000+00:00")


def test_a_default_name_gives_way_to_one_that_a_person_took(desk):
    desk.store.journal.add_checkpoint(blank(desk, "checkpoint-2"))
    assert desk.store.journal.add_checkpoint(blank(desk)).name == "checkpoint-3"
    assert desk.store.journal.add_checkpoint(blank(desk)).name == "checkpoint-4"


def test_a_name_is_taken_once_in_a_workspace_and_free_in_another(desk):
    journal = desk.store.journal
    journal.add_checkpoint(blank(desk, "green"))
    with pytest.raises(StoreError, match="there is already a checkpoint named 'green'"):
        journal.add_checkpoint(blank(desk, "green"))
    other = Checkpoint(id=0, workspace="/elsewhere", name="green", created="", after_entry=0)
    assert journal.add_checkpoint(other).name == "green"
    assert len(journal.checkpoints(desk.workspace)) == 1


def test_checkpoints_are_listed_newest_first_with_their_own_changes(desk):
    journal = desk.store.journal
    for name in ("one", "two", "three"):
        journal.add_checkpoint(blank(desk, name, changes=desk.changes(**{name: name})))
    listed = journal.checkpoints(desk.workspace)
    assert [(c.name, set(c.changes.paths)) for c in listed] == [
        ("three", {"three"}),
        ("two", {"two"}),
        ("one", {"one"}),
    ]
    assert journal.checkpoints("/elsewhere") == []


def test_a_checkpoint_keeps_the_contents_it_names(desk):
    node = desk.file("kept")
    desk.store.journal.add_checkpoint(blank(desk, changes=ChangeSet.of([Change("a", None, node)])))
    desk.clock.pass_days(400)
    desk.store.journal.prune(Retention())
    assert desk.store.blobs.get(node.blob) == b"kept"
    assert desk.refs(node.blob) == 1


def test_a_checkpoint_whose_content_is_missing_is_not_added(desk):
    changes = ChangeSet.of([Change("a", None, Node.file(blob_digest(b"lost")))])
    with pytest.raises(MissingBlob, match="'a'"):
        desk.store.journal.add_checkpoint(blank(desk, changes=changes))
    assert desk.store.journal.checkpoints(desk.workspace) == []
