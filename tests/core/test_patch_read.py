"""Reading patches strictly: a malformed one is refused with its line, a misfit is said with the closest lines."""

from __future__ import annotations

import pytest
from core.worlds import between, histories
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_blobs import MemoryBlobs

from pawl.code.patch_change import resolve
from pawl.code.patch_reader import read_patch
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import BadPatch, Conflicted
from pawl.core.patch import git_patch

BLOBS = MemoryBlobs()
TEXT = b"".join(b"line %d\n" % at for at in range(1, 13))
HUNK = b"@@ -5,3 +5,3 @@\n line 5\n-line 6\n+changed\n line 7\n"
CHANGED = TEXT.replace(b"line 6\n", b"changed\n")


def file(data: bytes, mode: int = 0o644) -> Node:
    return Node.file(BLOBS.put(data), mode)


def read(patch: bytes, **tree: Node):
    return resolve(read_patch(patch), tree.get, BLOBS)


def changed(before: bytes, after: bytes) -> ChangeSet:
    return ChangeSet((Change("f", file(before), file(after)),))


@pytest.mark.parametrize(
    "header",
    [
        b"--- a/f\n+++ b/f\n",
        b"--- f\n+++ f\n",
        b"--- f.orig\n+++ f\n",
        b"--- f\n+++ f.new\n",
        b"--- a/f\t2026-01-01 10:00:00.000000000 +0100\n+++ b/f\t2026-01-01 10:00:01.000000000 +0100\n",
        b"--- a/f 2026-01-01 10:00:00\n+++ b/f 2026-01-01 10:00:01\n",
        b"--- old/f\n+++ new/f\n",
        b'--- "a/\\146"\n+++ "b/\\146"\n',
        b"Index: f\n=====\n--- f\t(revision 1)\n+++ f\t(working copy)\n",
        b"diff --git a/f b/f\n--- a/f\n+++ b/f\n",
        b"diff --git f f\nindex 83db48f..bf269f4 100644\n--- f\n+++ f\n",
        b"A letter first.\n---\n f | 2 +-\n\ndiff --git i/f w/f\n--- i/f\n+++ w/f\n",
    ],
)
def test_every_usual_way_to_name_the_file_is_read(header):
    assert read(header + HUNK, f=file(TEXT)).changes == changed(TEXT, CHANGED)


def test_a_mailed_patch_with_a_signature_is_read():
    assert read(b"--- a/f\n+++ b/f\n" + HUNK + b"-- \n2.39.5\n\n", f=file(TEXT)).changes == changed(TEXT, CHANGED)


def test_files_come_and_go_by_dev_null():
    patch = (
        b"--- /dev/null\n+++ b/d/new\n@@ -0,0 +1 @@\n+hello\n\\ No newline at end of file\n"
        b"--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-bye\n"
    )
    assert read(patch, gone=file(b"bye\n")).changes == ChangeSet(
        (
            Change("d", None, Node.directory()),
            Change("d/new", None, file(b"hello")),
            Change("gone", file(b"bye\n"), None),
        )
    )


def test_a_plain_diff_against_nothing_makes_a_file_that_is_not_there():
    assert read(b"--- a/f\n+++ b/f\n@@ -0,0 +1 @@\n+x\n").changes == ChangeSet((Change("f", None, file(b"x\n")),))


def test_the_executable_bit_follows_the_permissions_that_a_file_has():
    patch = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
    assert read(patch, f=file(b"x", 0o640)).changes == ChangeSet((Change("f", file(b"x", 0o640), file(b"x", 0o750)),))
    back = b"diff --git a/f b/f\nold mode 100755\nnew mode 100644\n"
    assert read(back, f=file(b"x", 0o750)).changes == ChangeSet((Change("f", file(b"x", 0o750), file(b"x", 0o640)),))
    already = read(patch, f=file(b"x", 0o755))
    assert (already.changes, len(already.notices)) == (ChangeSet(), 1)


def test_a_rename_and_a_copy_are_deletion_and_creation():
    patch = (
        b"diff --git a/f b/copy\nsimilarity index 100%\ncopy from f\ncopy to copy\n"
        b"diff --git a/f b/moved\nsimilarity index 90%\nrename from f\nrename to moved\n--- a/f\n+++ b/moved\n" + HUNK
    )
    assert read(patch, f=file(TEXT, 0o755)).changes == ChangeSet(
        (
            Change("copy", None, file(TEXT, 0o755)),
            Change("f", file(TEXT, 0o755), None),
            Change("moved", None, file(CHANGED, 0o755)),
        )
    )


def test_a_hunk_is_found_on_other_lines_when_they_are_the_only_ones():
    moved = b"new\nlines\n" + TEXT
    result = read(b"--- a/f\n+++ b/f\n" + HUNK, f=file(moved))
    assert result.changes == changed(moved, b"new\nlines\n" + CHANGED)
    assert result.notices == ("'f': hunk 1 was found at line 7, 2 lines below what the patch says",)


def test_a_hunk_on_the_lines_it_names_needs_no_notice_even_if_others_are_the_same():
    text = b"a\nb\na\nb\na\nb\n"
    result = read(b"--- a/f\n+++ b/f\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n", f=file(text))
    assert result.changes == changed(text, b"a\nb\na\nc\na\nb\n")
    assert result.notices == ()


def test_lines_with_a_trimmed_space_are_context():
    text = b"a\n\nb\n"
    assert read(b"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", f=file(text)).changes == changed(
        text, b"a\n\nc\n"
    )


def test_a_text_with_windows_line_ends_keeps_them():
    text, after = TEXT.replace(b"\n", b"\r\n"), CHANGED.replace(b"\n", b"\r\n")
    body = b"\n".join([*HUNK.split(b"\n")[:1], HUNK.split(b"\n", 1)[1].replace(b"\n", b"\r\n")])
    assert read(b"--- a/f\n+++ b/f\n" + body, f=file(text)).changes == changed(text, after)


MALFORMED = {
    b"": "line 1 .*found no diff",
    b"just\nwords\n": "line 1 .*found no diff",
    b"@@ -1 +1 @@\n-a\n+b\n": "line 1 .*expected '---'",
    b"--- a/f\n+++ b/f\n": "line 3 .*expected a hunk",
    b"--- a/f\n+++ b/f\n@@ nonsense @@\n": "line 3 .*expected a hunk header",
    b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n": "line 6 .*found the end of the patch",
    b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\nwhat\n": "line 5 .*starting with a space",
    b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n": "line 6 .*more lines than its header",
    b"--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-a\n+b\n+c\n-d\n": "line 6 .*expected 2 old and 1 new",
    b"--- a/f\n+++ b/f\n@@ -0,0 +0,0 @@\n": "line 3 .*at least one line",
    b"--- a/f\n+++ b/f\n@@ -0,2 +1 @@\n": "line 3 .*counted from 1",
    b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n": "line 1 .*name of a file",
    b'--- "a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n': "line 1 .*closing quote",
    b'--- "a/\\q"\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n': "line 1 .*escape",
    b"diff --git a/f b/f\n": "line 2 .*expected a mode",
    b"diff --git a/f b/f\nold mode 1\n": "line 2 .*expected the mode",
    b"diff --git a/f b/f\nnew file mode 160000\n": "line 2 .*submodule",
    b"diff --git a/f b/f\nold mode 100644\nnew mode 120000\n": "line 3 .*becomes a link",
    b"diff --git a/f b/f\nindex zzz\n": "line 2 .*two object names",
    b"diff --git a/f b/g\nold mode 100644\nnew mode 100755\n": "line 1 .*without a rename",
    b"diff --git a/f b/f\nrename from f\n": "line 1 .*'rename from' and 'rename to'",
    b"diff --git a/f b/f\n--- a/f\n+++ b/other\n@@ -1 +1 @@\n-a\n+b\n": "line 1 .*expected 'b/f'",
    b"diff --git a/f b/f\nnew file mode 100644\n--- a/f\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n": "line 1 .*'/dev/null'",
    b"diff --git a/f b/f\nBinary files a/f and b/f differ\n": "line 2 .*content is missing",
    b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\nBinary files x and y differ\n": "line 6 .*content is missing",
    b"diff --cc f\n": "line 1 .*combined",
    b"diff --git a/f b/f\nindex 0000000..1111111\nGIT binary patch\nnothing\n": "line 4 .*'literal'",
    b"diff --git a/f b/f\nGIT binary patch\nliteral 1\n!abcde\n\n": "line 4 .*a letter",
    b"diff --git a/f b/f\nGIT binary patch\nliteral 1\nAabc\n\n": "line 4 .*expected 5 characters",
    b'diff --git a/f b/f\nGIT binary patch\nliteral 1\nA"""""\n\n': "line 4 .*base 85",
    b"diff --git a/f b/f\nGIT binary patch\nliteral 1\nHabcdeabcde\n\n": "line 3 .*cannot be decompressed",
    b"diff --git a/f b/f\nGIT binary patch\nliteral 7\nHcmV?d00001\n\n": "line 3 .*expected 7 bytes",
    b"diff --git a/f b/f\nGIT binary patch\nliteral 999999999999\nHcmV?d00001\n\n": "line 3 .*more than",
}


@pytest.mark.parametrize("patch", MALFORMED)
def test_a_malformed_patch_is_refused_with_its_line_and_what_was_expected(patch):
    with pytest.raises(BadPatch, match=MALFORMED[patch]):
        read_patch(patch)


@pytest.mark.attack("A11")
@pytest.mark.parametrize(
    "third",
    [
        b"--- a/../../x\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n",
        b"diff --git a/../../x b/../../x\nnew file mode 100644\n--- /dev/null\n+++ b/../../x\n@@ -0,0 +1 @@\n+x\n",
        b"diff --git a/f b/../x\nsimilarity index 100%\nrename from f\nrename to ../x\n",
        b"diff --git a/f b/x\nsimilarity index 100%\ncopy from /etc/passwd\ncopy to x\n",
        b"--- /etc/passwd\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n",
        b"--- a//etc/passwd\n+++ b//etc/passwd\n@@ -0,0 +1 @@\n+x\n",
        b"--- a/\n+++ b/\n@@ -0,0 +1 @@\n+x\n",
        b'--- "a/\\056\\056/x"\n+++ "b/\\056\\056/x"\n@@ -0,0 +1 @@\n+x\n',
        b'--- "a/nul\\000"\n+++ "b/nul\\000"\n@@ -0,0 +1 @@\n+x\n',
        b"--- a/./x\n+++ b/./x\n@@ -0,0 +1 @@\n+x\n",
    ],
)
def test_one_path_outside_refuses_the_whole_patch(third):
    good = b"".join(b"--- /dev/null\n+++ b/good%d\n@@ -0,0 +1 @@\n+x\n" % number for number in range(2))
    assert len(read_patch(good)) == 2
    with pytest.raises(
        BadPatch, match=r"line 9 .*is not a path inside the workspace|line 1[012] .*is not a path inside"
    ):
        read_patch(good + third)


MISFITS = {
    "no such file": (b"--- a/g\n+++ b/g\n" + HUNK, "'g' .*there is no such file"),
    "a directory": (b"--- a/d\n+++ b/d\n" + HUNK, "'d' .*a directory is there"),
    "a link": (
        b"diff --git a/l b/l\nindex 1111111..2222222 100644\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-x\n+y\n",
        "'l' .*it is a link, the patch expects a file",
    ),
    "other lines": (
        b"--- a/f\n+++ b/f\n@@ -5,3 +5,3 @@\n line 5\n-line six\n+changed\n line 7\n",
        "'f' \\(line 3 of the patch\\): the hunk expects 'line six' at line 6; line 6 is 'line 6'",
    ),
    "other line ends": (
        b"--- a/crlf\n+++ b/crlf\n@@ -1 +1 @@\n-one\n+two\n",
        "'crlf' .*expects 'one' at line 1, which differs only in its line end",
    ),
    "several places": (b"--- a/same\n+++ b/same\n@@ -9 +9 @@\n-x\n+y\n", "'same' .*several places: lines 1, 2, 3"),
    "beyond the end": (
        b"--- a/f\n+++ b/f\n@@ -90,2 +90,2 @@\n-gone\n+y\n nowhere\n",
        "'f' .*expects 'gone' at line 12",
    ),
    "no context": (b"--- a/f\n+++ b/f\n@@ -3,0 +4 @@\n+new\n", "'f' .*no line of the file to place it by"),
    "it exists": (b"--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+other\n", "'f' .*already exists; line 1 is 'line 1'"),
    "it exists and is the same": (b"--- /dev/null\n+++ b/one\n@@ -0,0 +1 @@\n+x\n", "'one' .*exists with this content"),
    "a directory in the way": (
        b"--- /dev/null\n+++ b/d\n@@ -0,0 +1 @@\n+other\n",
        "'d' .*a directory is in its place",
    ),
    "a file above": (b"--- /dev/null\n+++ b/f/x\n@@ -0,0 +1 @@\n+x\n", "'f/x' .*'f' is a file, not a directory"),
    "more to delete": (b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-line 1\n", "'f' .*holds 11 lines"),
    "nothing known to delete": (b"diff --git a/f b/f\ndeleted file mode 100644\n", "'f' .*holds 12 lines .*line 1 is"),
    "a line without its newline": (
        b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-line 1\n+first\n\\ No newline at end of file\n line 2\n",
        "'f' .*a line without a newline",
    ),
    "a target that exists": (
        b"diff --git a/f b/one\nsimilarity index 100%\nrename from f\nrename to one\n",
        "'one' .*already exists",
    ),
    "another binary content": (
        b"diff --git a/f b/f\nindex 1111111..e69de29 100644\nGIT binary patch\nliteral 0\nHcmV?d00001\n\n",
        "'f' .*not the one that the patch starts from",
    ),
}


@pytest.mark.parametrize("name", MISFITS)
def test_a_patch_that_does_not_fit_says_where_and_what_is_there(name):
    patch, message = MISFITS[name]
    tree = {
        "f": file(TEXT),
        "d": Node.directory(),
        "l": Node.link(BLOBS.put(b"x\n")),
        "crlf": file(b"one\r\n"),
        "same": file(b"x\nx\nx\n"),
        "one": file(b"x\n"),
    }
    with pytest.raises(Conflicted, match=message) as error:
        read(patch, **tree)
    assert len(error.value.conflicts) == 1


def test_all_misfits_of_a_patch_are_reported_and_the_closest_lines_with_them():
    patch = b"".join(b"--- a/%s\n+++ b/%s\n" % (name, name) + HUNK for name in (b"f", b"g", b"h", b"i", b"j"))
    tree = {"f": file(TEXT), "g": file(TEXT.replace(b"line 6", b"line six"))}
    with pytest.raises(Conflicted, match="; and 1 more") as error:
        read(patch, **tree)
    first = error.value.conflicts[0]
    assert (first.path, first.line) == ("g", 10)
    assert first.closest == ((6, b"line six\n"), (7, b"line 7\n"), (8, b"line 8\n"))


def test_a_binary_content_that_is_not_the_one_named_is_refused():
    blob = b"\0content"
    patch = git_patch(between({}, {"f": file(blob)}), BLOBS)
    assert read(patch).changes == ChangeSet((Change("f", None, file(blob)),))
    forged = patch.replace(b"index " + b"0" * 40 + b"..", b"index " + b"0" * 40 + b"..dead", 1)
    forged = forged.replace(forged.split(b"..")[1].split(b"\n")[0], b"dead" * 10)
    with pytest.raises(BadPatch, match=r"line 1 .*not the one that the 'index' line names"):
        read(forged)


@settings(max_examples=300)
@given(histories(steps=1), st.data())
def test_a_damaged_patch_is_read_or_refused_and_nothing_else(history, data):
    blobs, (before, after) = history
    patch = bytearray(git_patch(between(before, after), blobs))
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(patch)))
        end = start + data.draw(st.integers(0, 30))
        patch[start:end] = data.draw(
            st.sampled_from([b"", b"\n", b"+", b"-", b"@@", b"..", b"9", b"\0", b"\xff", b"/"])
        )
    try:
        resolve(read_patch(bytes(patch)), before.get, blobs)
    except (BadPatch, Conflicted) as error:
        assert error.message
