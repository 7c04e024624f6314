"""Hunks: what they show, how they are named, and having only some of them."""

from __future__ import annotations

import pytest
from core.worlds import between
from memory_blobs import MemoryBlobs

from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import UsageError
from pawl.core.patch import hunks, select

BLOBS = MemoryBlobs()
OLD = b"def first():\n" + b"".join(b"    %d\n" % at for at in range(30))
NEW = OLD.replace(b"    2\n", b"    two\n").replace(b"    15\n", b"").replace(b"    29\n", b"    29\n    30\n")


def file(data: bytes, mode: int = 0o644) -> Node:
    return Node.file(BLOBS.put(data), mode)


def test_a_text_change_has_a_hunk_for_each_place():
    change = Change("src/a.py", file(OLD), file(NEW))
    one, two, three = hunks(change, BLOBS)
    assert [hunk.id for hunk in (one, two, three)] == ["src/a.py#1", "src/a.py#2", "src/a.py#3"]
    assert one.header == "@@ -1,7 +1,7 @@"
    assert two.header == "@@ -14,7 +14,6 @@ def first():"
    assert three.header == "@@ -29,3 +28,4 @@ def first():"
    assert two.lines == (
        b"     12\n",
        b"     13\n",
        b"     14\n",
        b"-    15\n",
        b"     16\n",
        b"     17\n",
        b"     18\n",
    )
    assert (two.old_start, two.old_lines, two.new_start, two.new_lines) == (13, 7, 13, 6)


def test_permissions_are_a_hunk_of_their_own_beside_a_text():
    found = hunks(Change("a", file(OLD), file(NEW, 0o755)), BLOBS)
    assert [hunk.id for hunk in found] == ["a#mode", "a#1", "a#2", "a#3"]
    assert found[0].header == "permissions 644 → 755"


@pytest.mark.parametrize(
    ("before", "after", "header"),
    [
        (None, file(b"x"), "new file"),
        (file(b"x"), None, "deleted file"),
        (None, Node.directory(), "new directory"),
        (file(b"\0"), file(b"\0\0"), "binary file changed"),
        (file(b"\0"), file(b"\0", 0o755), "permissions 644 → 755"),
        (Node.link(BLOBS.put(b"a")), Node.link(BLOBS.put(b"b")), "link changed"),
        (file(b"x"), Node.link(BLOBS.put(b"b")), "file → link"),
    ],
)
def test_anything_but_a_text_change_is_one_hunk(before, after, header):
    (hunk,) = hunks(Change("a", before, after), BLOBS)
    assert (hunk.id, hunk.header) == ("a#1", header)


@pytest.mark.spec("B9")
def test_one_hunk_of_many_can_be_had_alone():
    changes = between({"a": file(OLD)}, {"a": file(NEW, 0o755)})
    only_second = file(OLD.replace(b"    15\n", b""))
    assert select(changes, ["a#2"], BLOBS) == ChangeSet((Change("a", file(OLD), only_second),))
    assert select(changes, ["a#mode"], BLOBS) == ChangeSet((Change("a", file(OLD), file(OLD, 0o755)),))


def test_a_new_file_brings_its_directories_along():
    after = {"d": Node.directory(), "d/e": Node.directory(), "d/e/f": file(b"x"), "d/g": file(b"y")}
    assert select(between({}, after), ["d/e/f#1"], BLOBS).paths == {"d", "d/e", "d/e/f"}


def test_a_directory_stays_while_something_in_it_stays():
    before = {"d": Node.directory(), "d/e": Node.directory(), "d/e/f": file(b"x")}
    removed = between(before, {})
    assert select(removed, ["d#1", "d/e#1"], BLOBS).paths == set()
    assert select(removed, ["d#1", "d/e#1", "d/e/f#1"], BLOBS) == removed


def test_a_hunk_that_is_not_there_is_named():
    with pytest.raises(UsageError, match="'a#9'"):
        select(between({}, {"a": file(b"x")}), ["a#1", "a#9"], BLOBS)
