"""What becomes of a change when the tree changed meanwhile: merged, dropped, or a conflict that says why."""

from __future__ import annotations

import pytest
from core.worlds import applied, between
from memory_blobs import MemoryBlobs

from pawl.core.change import EMPTY, Change, ChangeSet, Node
from pawl.core.errors import CannotCompose, MissingBlob
from pawl.core.merge import Conflict, ConflictReason, rebase

BLOBS = MemoryBlobs()
TEXT = b"1\n2\n3\n4\n5\n6\n"


def text(data: bytes = TEXT, mode: int = 0o644) -> Node:
    return Node.file(BLOBS.put(data), mode)


def link(target: bytes) -> Node:
    return Node.link(BLOBS.put(target))


FOLDER = Node.directory()


def rebased(base, ours, theirs):
    """`ours` moved over `theirs`; also shows that what is left applies to their tree."""
    result = rebase(between(base, ours), between(base, theirs), BLOBS)
    applied(theirs, result.changes)
    return result


def conflict(path, reason, base, ours, theirs) -> Conflict:
    return Conflict(path=path, base=base.get(path), ours=ours.get(path), theirs=theirs.get(path), reason=reason)


@pytest.mark.spec("B9")
def test_edits_of_different_lines_are_merged():
    base, ours = {"f": text()}, {"f": text(TEXT.replace(b"1", b"one"))}
    theirs = {"f": text(TEXT.replace(b"6", b"six"))}
    result = rebased(base, ours, theirs)
    both = text(TEXT.replace(b"1", b"one").replace(b"6", b"six"))
    assert result.changes == ChangeSet((Change("f", theirs["f"], both),))
    assert result.merged == ("f",)
    assert result.conflicts == ()


@pytest.mark.spec("B9")
def test_edits_of_the_same_line_are_a_conflict():
    base, ours = {"f": text()}, {"f": text(TEXT.replace(b"3", b"ours"))}
    result = rebased(base, ours, {"f": text(TEXT.replace(b"3", b"theirs"))})
    assert result.changes == EMPTY
    (found,) = result.conflicts
    assert found.reason is ConflictReason.CONTENT


def test_permissions_and_content_are_merged_apart():
    base = {"f": text()}
    result = rebased(base, {"f": text(mode=0o755)}, {"f": text(b"new\n")})
    assert result.changes == ChangeSet((Change("f", text(b"new\n"), text(b"new\n", 0o755)),))
    result = rebased(base, {"f": text(b"new\n")}, {"f": text(mode=0o755)})
    assert result.changes == ChangeSet((Change("f", text(mode=0o755), text(b"new\n", 0o755)),))


def test_what_both_did_is_dropped():
    base, both = {"f": text(), "g": text(b"g")}, {"f": text(b"same"), "new": text(b"new")}
    assert rebased(base, both, both).changes == EMPTY
    assert rebased(base, both, both).conflicts == ()


SIMPLE = {
    "one deleted what the other edited": ({"f": text()}, {}, {"f": text(b"x")}, ConflictReason.DELETED),
    "one edited what the other deleted": ({"f": text()}, {"f": text(b"x")}, {}, ConflictReason.DELETED),
    "both created a file": ({}, {"f": text(b"x")}, {"f": text(b"y")}, ConflictReason.CREATED),
    "both created it with other permissions": ({}, {"f": text()}, {"f": text(mode=0o755)}, ConflictReason.CREATED),
    "both edited a binary file": (
        {"f": text(b"\0")},
        {"f": text(b"\0x")},
        {"f": text(b"\0y")},
        ConflictReason.BINARY,
    ),
    "one made a text binary": ({"f": text()}, {"f": text(b"\0")}, {"f": text(b"y")}, ConflictReason.BINARY),
    "both changed a link": ({"f": link(b"a")}, {"f": link(b"b")}, {"f": link(b"c")}, ConflictReason.LINK),
    "both changed the permissions": (
        {"f": text()},
        {"f": text(mode=0o755)},
        {"f": text(mode=0o600)},
        ConflictReason.MODE,
    ),
    "one made a link of it": ({"f": text()}, {"f": link(b"a")}, {"f": text(b"x")}, ConflictReason.KIND),
    "both made a link of it": ({"f": text()}, {"f": link(b"a")}, {"f": link(b"b")}, ConflictReason.KIND),
    "one made a directory of it": ({"f": text()}, {"f": FOLDER}, {"f": text(b"x")}, ConflictReason.KIND),
}


@pytest.mark.spec("B9")
@pytest.mark.parametrize("name", SIMPLE)
def test_changes_of_one_path_that_cannot_both_be_had_are_a_conflict(name):
    base, ours, theirs, reason = SIMPLE[name]
    result = rebased(base, ours, theirs)
    assert result.conflicts == (conflict("f", reason, base, ours, theirs),)
    assert result.changes == EMPTY


def test_a_directory_that_both_made_keeps_the_permissions_it_has():
    result = rebased({}, {"d": Node.directory(0o700)}, {"d": FOLDER})
    assert (result.changes, result.conflicts) == (EMPTY, ())


def test_a_directory_that_both_deleted_is_no_conflict():
    base = {"d": FOLDER, "d/f": text()}
    result = rebased(base, {}, {})
    assert (result.changes, result.conflicts) == (EMPTY, ())


def test_a_file_in_a_directory_that_is_gone_is_a_conflict():
    base = {"d": FOLDER, "d/f": text()}
    ours = {**base, "d/new": text(b"new")}
    result = rebased(base, ours, {})
    assert result.conflicts == (conflict("d/new", ConflictReason.PARENT, base, ours, {}),)
    assert result.changes == EMPTY


def test_a_file_in_a_directory_that_became_a_file_is_a_conflict():
    base = {"d": FOLDER}
    ours, theirs = {"d": FOLDER, "d/e": FOLDER, "d/e/f": text()}, {"d": text()}
    result = rebased(base, ours, theirs)
    assert [(found.path, found.reason) for found in result.conflicts] == [
        ("d/e", ConflictReason.PARENT),
        ("d/e/f", ConflictReason.PARENT),
    ]
    assert result.changes == EMPTY


@pytest.mark.spec("B9")
def test_a_directory_is_not_removed_with_what_was_put_into_it_meanwhile():
    base = {"d": FOLDER, "d/f": text()}
    theirs = {**base, "d/user": text(b"mine")}
    result = rebased(base, {}, theirs)
    assert result.conflicts == (conflict("d", ConflictReason.OCCUPIED, base, {}, theirs),)
    assert result.changes == ChangeSet((Change("d/f", text(), None),))


def test_a_conflict_deep_down_keeps_every_directory_above_it():
    base = {"d": FOLDER, "d/e": FOLDER, "d/e/f": text(), "d/e/g": text()}
    theirs = {**base, "d/e/f": text(b"edited")}
    result = rebased(base, {}, theirs)
    assert [(found.path, found.reason) for found in result.conflicts] == [
        ("d", ConflictReason.OCCUPIED),
        ("d/e", ConflictReason.OCCUPIED),
        ("d/e/f", ConflictReason.DELETED),
    ]
    assert result.changes.paths == {"d/e/g"}


def test_a_directory_does_not_become_a_file_over_what_was_put_into_it():
    base = {"d": FOLDER}
    result = rebased(base, {"d": text()}, {"d": FOLDER, "d/user": text(b"mine")})
    assert [(found.path, found.reason) for found in result.conflicts] == [("d", ConflictReason.OCCUPIED)]


def test_what_stands_in_a_directory_that_cannot_be_made_is_held_back_with_it():
    result = rebased({}, {"d": FOLDER, "d/f": text()}, {"d": text(b"a file")})
    assert [(found.path, found.reason) for found in result.conflicts] == [
        ("d", ConflictReason.KIND),
        ("d/f", ConflictReason.PARENT),
    ]


def test_deleting_what_went_with_its_directory_needs_nothing():
    over = ChangeSet((Change("d", FOLDER, None),))
    changes = ChangeSet((Change("d/f", text(), None),))
    assert rebase(changes, over, BLOBS).changes == EMPTY
    assert rebase(changes, over, BLOBS).conflicts == ()


def test_sets_of_different_trees_cannot_be_rebased():
    one = ChangeSet((Change("f", text(b"a"), text(b"b")),))
    two = ChangeSet((Change("f", text(b"c"), text(b"d")),))
    with pytest.raises(CannotCompose, match="'f': the two change sets do not start from the same tree"):
        rebase(one, two, BLOBS)


def test_a_merge_needs_the_contents():
    nodes = [Node.file(name) for name in ("one", "two", "three")]
    one, two = (ChangeSet((Change("f", nodes[0], node),)) for node in nodes[1:])
    with pytest.raises(MissingBlob, match="'one'"):
        rebase(one, two, MemoryBlobs())


def test_memory_keeps_what_it_is_given():
    blobs = MemoryBlobs([b"first"])
    with blobs.batch():
        name = blobs.put(b"data")
    assert blobs.get(name) == b"data"
    assert blobs.get(MemoryBlobs().put(b"first")) == b"first"
