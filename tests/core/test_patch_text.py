"""Change sets as text for people: names, the readable diff and one line per file."""

from __future__ import annotations

import pytest
from core.worlds import between
from memory_blobs import MemoryBlobs

from pawl.core.change import Node, NodeKind
from pawl.core.patch import FileSummary, What, git_patch, quoted, summary, unified

BLOBS = MemoryBlobs()


def file(data: bytes, mode: int = 0o644) -> Node:
    return Node.file(BLOBS.put(data), mode)


def link(target: bytes) -> Node:
    return Node.link(BLOBS.put(target))


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("plain/path with space", "plain/path with space"),
        ("caf\u00e9", '"caf\\303\\251"'),
        ("tab\tnew\nline", '"tab\\tnew\\nline"'),
        ('q"b\\', '"q\\"b\\\\"'),
        ("\x01\x7f\udcff", '"\\001\\177\\377"'),
    ],
)
def test_names_are_quoted_like_git_does(path, shown):
    assert quoted(path) == shown


BEFORE = {
    "bin": file(b"\0a"),
    "dir": Node.directory(),
    "dir/gone": file(b"1\n2\n"),
    "link": link(b"here"),
    "mode": file(b"x\n"),
    "private": file(b"x\n"),
    "swap": file(b"x\n"),
    "text": file(b"1\n2\n3\n"),
}
AFTER = {
    "bin": file(b"\0b"),
    "link": link(b"there"),
    "mode": file(b"x\n", 0o755),
    "private": file(b"x\n", 0o600),
    "swap": link(b"x"),
    "text": file(b"1\ntwo\n3\n4"),
    "new": file(b"a\nb\nc"),
}


@pytest.mark.spec("F3")
def test_a_summary_has_a_line_for_every_path_even_those_git_does_not_know():
    assert summary(between(BEFORE, AFTER), BLOBS) == (
        FileSummary(path="bin", what=What.MODIFIED, kind=NodeKind.FILE, binary=True),
        FileSummary(path="dir", what=What.DIRECTORY, kind=NodeKind.DIRECTORY),
        FileSummary(path="dir/gone", what=What.DELETED, kind=NodeKind.FILE, removed=2),
        FileSummary(path="link", what=What.LINK, kind=NodeKind.LINK, added=1, removed=1),
        FileSummary(path="mode", what=What.MODE, kind=NodeKind.FILE),
        FileSummary(path="new", what=What.CREATED, kind=NodeKind.FILE, added=3),
        FileSummary(path="private", what=What.MODE, kind=NodeKind.FILE),
        FileSummary(path="swap", what=What.REPLACED, kind=NodeKind.LINK, added=1, removed=1),
        FileSummary(path="text", what=What.MODIFIED, kind=NodeKind.FILE, added=2, removed=1),
    )


def test_a_git_patch_leaves_out_what_git_does_not_know():
    changes = between(BEFORE, AFTER).only(["dir", "private"])
    assert git_patch(changes, BLOBS) == b""


def test_the_readable_diff_says_what_lines_do_not_show():
    changes = between(BEFORE, AFTER).only(["bin", "dir", "mode", "text", "new"])
    assert unified(changes, BLOBS) == (
        "--- a/bin\n+++ b/bin\nbinary: 2 → 2 bytes\n"
        "--- a/dir\n+++ /dev/null\ndirectory 755\n"
        "--- a/mode\n+++ b/mode\nfile 644 → file 755\n"
        "--- /dev/null\n+++ b/new\n@@ -0,0 +1,3 @@\n+a\n+b\n+c\n\\ No newline at end of file\n"
        "--- a/text\n+++ b/text\n@@ -1,3 +1,4 @@\n 1\n-2\n+two\n 3\n+4\n\\ No newline at end of file\n"
    )


@pytest.mark.attack("A44")
def test_the_readable_diff_is_safe_to_show():
    changes = between({}, {"na\x1b[2Jme\n": file(b"ok \x1b]0;title\x07 \xe2\x80\xae\xff\r\n")})
    assert unified(changes, BLOBS) == (
        "--- /dev/null\n+++ b/na\\x1b[2Jme\\n\n@@ -0,0 +1 @@\n+ok \\x1b]0;title\\x07 \\u{202e}\\xff\\r\n"
    )
