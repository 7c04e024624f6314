"""The laws of change sets: composing, taking back, choosing and rebasing, on random trees of every kind of node."""

from __future__ import annotations

import functools
import itertools

import pytest
from core.worlds import applied, assert_whole, between, forks, histories
from hypothesis import assume, given, settings

from pawl.core.change import EMPTY, Change, ChangeSet, Node
from pawl.core.errors import CannotCompose
from pawl.core.merge import difference, rebase
from pawl.core.patch import hunks, select


@pytest.mark.spec("B9", "A7")
@given(histories(steps=1))
def test_a_change_set_followed_by_its_inverse_is_nothing(history):
    _, (before, after) = history
    changes = between(before, after)
    assert changes.then(changes.inverted()) == EMPTY
    assert changes.inverted().then(changes) == EMPTY
    assert changes.inverted().inverted() == changes


@pytest.mark.spec("B9", "F3")
@given(histories(steps=1))
def test_the_inverse_restores_the_tree(history):
    _, (before, after) = history
    changes = between(before, after)
    assert applied(before, changes) == after
    assert applied(after, changes.inverted()) == before


@pytest.mark.spec("A3")
@given(histories(steps=3))
def test_composition_is_associative_and_leads_from_the_first_tree_to_the_last(history):
    _, trees = history
    a, b, c = (between(one, two) for one, two in itertools.pairwise(trees))
    assert a.then(b).then(c) == a.then(b.then(c)) == between(trees[0], trees[3])


@pytest.mark.spec("A7")
@given(histories(steps=3))
def test_a_whole_chain_is_taken_back_by_its_inverse(history):
    _, trees = history
    chain = [between(one, two) for one, two in itertools.pairwise(trees)]
    backwards = functools.reduce(ChangeSet.then, (changes.inverted() for changes in reversed(chain)))
    assert applied(trees[-1], backwards) == trees[0]
    assert functools.reduce(ChangeSet.then, chain).then(backwards) == EMPTY


@pytest.mark.spec("B9")
@given(histories(steps=1))
def test_selecting_all_hunks_gives_the_set_and_none_gives_nothing(history):
    blobs, (before, after) = history
    changes = between(before, after)
    ids = [hunk.id for change in changes for hunk in hunks(change, blobs)]
    assert len(set(ids)) == len(ids)
    assert select(changes, ids, blobs) == changes
    assert select(changes, [], blobs) == EMPTY


@pytest.mark.spec("B9")
@given(histories(steps=1))
def test_selecting_every_other_hunk_leaves_a_whole_tree(history):
    blobs, (before, after) = history
    changes = between(before, after)
    ids = [hunk.id for change in changes for hunk in hunks(change, blobs)][::2]
    chosen = select(changes, ids, blobs)
    applied(before, chosen)
    rest = rebase(changes, chosen, blobs)
    assert rest.conflicts == ()
    assert applied(applied(before, chosen), rest.changes) == after


@pytest.mark.spec("B9")
@settings(max_examples=200)
@given(forks())
def test_rebasing_gives_what_applies_on_top_and_keeps_what_was_there(fork):
    blobs, base, left, right = fork
    over, changes = between(base, left), between(base, right)
    rebased = rebase(changes, over, blobs)
    result = applied(left, rebased.changes)
    in_conflict = {conflict.path for conflict in rebased.conflicts}
    assert in_conflict.isdisjoint(rebased.changes.paths)
    for path in in_conflict:
        assert result.get(path) == left.get(path)
    for change in changes:
        if change.path not in over.paths and change.path not in in_conflict:
            assert result.get(change.path) == change.after
    for change in over:
        if change.path not in changes.paths:
            assert result.get(change.path) == change.after


@pytest.mark.spec("B9")
@settings(max_examples=200)
@given(forks())
def test_without_conflicts_the_order_of_two_changes_does_not_matter(fork):
    blobs, base, left, right = fork
    a, b = between(base, left), between(base, right)
    b_over_a, a_over_b = rebase(b, a, blobs), rebase(a, b, blobs)
    assert bool(b_over_a.conflicts) == bool(a_over_b.conflicts)
    assume(not b_over_a.conflicts and not _folders_made_twice(a, b))
    assert a.then(b_over_a.changes) == b.then(a_over_b.changes)


@pytest.mark.spec("B9")
@given(forks())
def test_rebasing_over_the_same_change_or_over_nothing(fork):
    blobs, base, left, _ = fork
    changes = between(base, left)
    assert rebase(changes, changes, blobs).changes == EMPTY
    assert rebase(changes, changes, blobs).conflicts == ()
    assert rebase(changes, EMPTY, blobs).changes == changes
    assert rebase(EMPTY, changes, blobs).changes == EMPTY


@given(histories(steps=1))
def test_a_set_finds_each_of_its_changes_and_no_other(history):
    _, (before, after) = history
    changes = between(before, after)
    for change in changes:
        assert changes.get(change.path) is change
    assert changes.get("no such path") is None
    assert_whole(after)


def _folders_made_twice(a: ChangeSet, b: ChangeSet) -> bool:
    """Directories that both made, with different permissions: the first one's stay."""
    return any(
        (other := b.get(change.path)) is not None
        and other.after != change.after
        and change.after is not None
        and other.after is not None
        and change.after.blob is None
        and other.after.blob is None
        for change in a
    )


def test_change_sets_that_do_not_meet_cannot_be_composed():
    one = ChangeSet((Change("a", None, Node.file("1")),))
    with pytest.raises(CannotCompose, match="'a': the second change"):
        one.then(one)


def test_the_difference_of_two_states_names_only_what_differs():
    before = {"same": Node.file("1"), "gone": Node.file("2"), "never": None}
    now = {"same": Node.file("1"), "new": Node.directory(), "never": None}
    assert difference(before, now) == ChangeSet(
        (Change("gone", Node.file("2"), None), Change("new", None, Node.directory()))
    )
