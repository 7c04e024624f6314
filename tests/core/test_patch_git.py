"""Patches and real git: what Pawl writes git applies, and what git writes Pawl reads."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from core.worlds import (
    applied,
    between,
    files,
    git,
    histories,
    lay_tree,
    read_tree,
    without_empty_folders,
)
from hypothesis import assume, given, settings
from memory_blobs import MemoryBlobs

from pawl.code.patch_change import resolve
from pawl.code.patch_reader import read_patch
from pawl.core.change import Node, is_directory
from pawl.core.errors import BadPatch
from pawl.core.patch import git_object_name, git_patch

GIT_MODES = (0o644, 0o755)
EXAMPLES = 45


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def emptied(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return folder


def resolved(patch: bytes, tree, blobs: MemoryBlobs):
    return resolve(read_patch(patch), tree.get, blobs).changes if patch else ()


@pytest.mark.spec("F3")
@settings(max_examples=EXAMPLES)
@given(history=histories(steps=1, modes=GIT_MODES))
def test_git_applies_what_git_patch_writes(place, history):
    blobs, (before, after) = history
    before, after = without_empty_folders(before), without_empty_folders(after)
    patch = git_patch(between(before, after), blobs)
    folder = emptied(place / "applied")
    lay_tree(folder, before, blobs)
    if patch:
        git(folder, "apply", "--whitespace=nowarn", "-", data=patch)
    assert read_tree(folder, blobs) == files(after)


@pytest.mark.spec("F3")
@settings(max_examples=EXAMPLES)
@given(history=histories(steps=1, modes=GIT_MODES))
def test_git_takes_back_what_git_patch_writes(place, history):
    blobs, (before, after) = history
    before, after = without_empty_folders(before), without_empty_folders(after)
    patch = git_patch(between(before, after), blobs)
    folder = emptied(place / "reversed")
    lay_tree(folder, after, blobs)
    if patch:
        git(folder, "apply", "--reverse", "--whitespace=nowarn", "-", data=patch)
    assert read_tree(folder, blobs) == files(before)


@settings(max_examples=EXAMPLES * 2)
@given(history=histories(steps=1, modes=GIT_MODES))
def test_a_patch_read_again_is_the_change_set_it_was_written_from(history):
    blobs, (before, after) = history
    before, after = without_empty_folders(before), without_empty_folders(after)
    changes = between(before, after)
    again = resolved(git_patch(changes, blobs), before, blobs)
    assert files(applied(before, again)) == files(after)
    assert _of_files(again) == _of_files(changes)


def _of_files(changes) -> set:
    """Without the directories, which a patch does not carry."""
    return {change for change in changes if not (is_directory(change.before) or is_directory(change.after))}


def test_a_patch_without_context_is_read_again_because_its_object_names_prove_the_place():
    blobs = MemoryBlobs()
    before = {"f": Node.file(blobs.put(b"1\n2\n3\n"))}
    after = {"f": Node.file(blobs.put(b"1\nnew\n2\n3\n"))}
    changes = between(before, after)
    assert resolved(git_patch(changes, blobs, context=0), before, blobs) == changes


@pytest.mark.parametrize("options", [["--no-renames"], ["-M", "-C", "--find-copies-harder"], ["-B", "-M"], ["-U0"]])
@settings(max_examples=EXAMPLES // 3)
@given(history=histories(steps=1, modes=GIT_MODES))
def test_what_git_diff_writes_is_read_to_the_right_change_set(place, options, history):
    blobs, (before, after) = history
    before, after = without_empty_folders(before), without_empty_folders(after)
    folder = emptied(place / "repository")
    git(folder, "init", "-q")
    trees = []
    for tree in (before, after):
        git(folder, "rm", "-rqf", "--ignore-unmatch", ".")
        for entry in folder.iterdir():
            if entry.name != ".git":
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
        lay_tree(folder, tree, blobs)
        git(folder, "-c", "core.autocrlf=false", "add", "-A")
        trees.append(git(folder, "write-tree").decode().strip())
    patch = git(folder, "diff", "--binary", *options, *trees)
    assume(b"\ndelta " not in patch)
    changes = resolved(patch, before, blobs)
    assert files(applied(before, changes)) == files(after)


@pytest.mark.parametrize("data", [b"", b"hello\n", b"\0\xff binary"])
def test_contents_have_the_names_that_git_gives_them(place, data):
    assert git_object_name(data) == git(place, "hash-object", "--stdin", data=data).decode().strip()


def commit(folder: Path, message: str) -> None:
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", message)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    return tmp_path


def test_headers_and_hunks_are_written_exactly_as_git_writes_them(repository):
    blobs = MemoryBlobs()
    lines = [b"def first():\n", *(b"    a%d\n" % at for at in range(20)), b"class Second:\n"]
    text = b"".join(lines) + b"".join(b"    b%d\n" % at for at in range(20)) + b"end"
    changed = text.replace(b"a15\n", b"changed\n").replace(b"    b9\n", b"").replace(b"end", b"end\n")
    before = {
        "text.py": Node.file(blobs.put(text)),
        "with space": Node.file(blobs.put(b"one\n")),
        "caf\u00e9": Node.file(blobs.put(b"one\n")),
        'tab\t"quote"': Node.file(blobs.put(b"one")),
        "runs": Node.file(blobs.put(b"#!/bin/sh\n")),
        "gone": Node.file(blobs.put(b"1\n2\n"), 0o755),
        "link": Node.link(blobs.put(b"here")),
        "swapped": Node.file(blobs.put(b"text\n")),
        "runs and changes": Node.file(blobs.put(b"a\n")),
        "emptied": Node.file(blobs.put(b"a\n")),
    }
    after = {
        "text.py": Node.file(blobs.put(changed)),
        "with space": Node.file(blobs.put(b"two\n")),
        "caf\u00e9": Node.file(blobs.put(b"two\n")),
        'tab\t"quote"': Node.file(blobs.put(b"two")),
        "runs": Node.file(blobs.put(b"#!/bin/sh\n"), 0o755),
        "link": Node.link(blobs.put(b"there")),
        "swapped": Node.link(blobs.put(b"target")),
        "runs and changes": Node.file(blobs.put(b"b\n"), 0o755),
        "emptied": Node.file(blobs.put(b"")),
        "new": Node.file(blobs.put(b"x\r\ny")),
        "new and empty": Node.file(blobs.put(b"")),
    }
    lay_tree(repository, before, blobs)
    commit(repository, "before")
    for path in before:
        (repository / path).unlink()
    lay_tree(repository, after, blobs)
    git(repository, "add", "-A")
    written = git(repository, "diff", "--cached", "--binary", "--full-index", "--no-renames")
    by_path = set(written.split(b"diff --git "))
    assert set(git_patch(between(before, after), blobs).split(b"diff --git ")) == by_path


def test_a_binary_file_goes_to_git_and_comes_back_as_content_but_not_as_delta(repository):
    blobs = MemoryBlobs()
    old = bytes(range(256)) * 40
    new = old[:5000] + b"inserted" + old[5000:]
    (repository / "data").write_bytes(old)
    commit(repository, "before")
    (repository / "data").write_bytes(new)
    patch = git(repository, "diff", "--binary")
    assert b"\ndelta " in patch
    before, after = Node.file(blobs.put(old)), Node.file(blobs.put(new))
    changes = between({"data": before}, {"data": after})
    with pytest.raises(BadPatch, match="by a delta, which is not read"):
        read_patch(patch)
    written = git_patch(changes, blobs)
    assert b"\nliteral " in written and resolved(written, {"data": before}, blobs) == changes
    git(repository, "checkout", "-q", "data")
    git(repository, "apply", "-", data=git_patch(changes, blobs))
    assert (repository / "data").read_bytes() == new


def test_two_files_that_trade_names_are_read_as_git_means_it(repository):
    blobs = MemoryBlobs()
    one = b"".join(b"one %d\n" % at for at in range(200))
    two = b"".join(b"two %d\n" % at for at in range(200))
    for name, data in (("one", one), ("two", two)):
        (repository / name).write_bytes(data)
    commit(repository, "before")
    (repository / "one").write_bytes(two)
    (repository / "two").write_bytes(one + b"more\n")
    patch = git(repository, "diff", "--binary", "-B", "-M")
    assert patch.count(b"rename from") == 2
    before = {"one": Node.file(blobs.put(one)), "two": Node.file(blobs.put(two))}
    after = {"one": Node.file(blobs.put(two)), "two": Node.file(blobs.put(one + b"more\n"))}
    assert resolved(patch, before, blobs) == between(before, after)


def test_diffs_put_together_that_change_a_file_twice_are_refused(repository):
    (repository / "a").write_bytes(b"1\n2\n3\n")
    commit(repository, "first")
    (repository / "a").write_bytes(b"1\nchanged\n3\n")
    commit(repository, "second")
    (repository / "a").write_bytes(b"1\nchanged\n3\n4\n")
    commit(repository, "third")
    git(repository, "mv", "a", "b")
    commit(repository, "fourth")
    first, second, third = (git(repository, "diff", "-M", f"HEAD~{at}", f"HEAD~{at - 1}") for at in (3, 2, 1))
    with pytest.raises(BadPatch, match="'a' is changed a second time"):
        read_patch(first + second)
    with pytest.raises(BadPatch, match="'a' is changed and then renamed"):
        read_patch(first + third)


def test_a_copy_is_made_of_what_stood_there_before_its_source_was_changed(repository):
    blobs = MemoryBlobs()
    (repository / "a").write_bytes(b"1\n2\n3\n")
    commit(repository, "first")
    (repository / "a").write_bytes(b"1\nchanged\n3\n")
    (repository / "b").write_bytes(b"1\n2\n3\n")
    git(repository, "add", "-A")
    patch = git(repository, "diff", "--cached", "-C")
    assert b"copy from a" in patch
    before = {"a": Node.file(blobs.put(b"1\n2\n3\n"))}
    after = {"a": Node.file(blobs.put(b"1\nchanged\n3\n")), "b": before["a"]}
    assert resolved(patch, before, blobs) == between(before, after)


def test_a_file_that_was_rewritten_and_moved_elsewhere_is_read_as_git_means_it(repository):
    blobs = MemoryBlobs()
    one = b"".join(b"one %d\n" % at for at in range(200))
    two = b"".join(b"two %d\n" % at for at in range(200))
    (repository / "one").write_bytes(one)
    commit(repository, "before")
    (repository / "one").write_bytes(two)
    (repository / "two").write_bytes(one)
    git(repository, "add", "-A")
    patch = git(repository, "diff", "--cached", "-B", "-M")
    assert b"dissimilarity index" in patch
    assert b"rename from one" in patch or b"copy from one" in patch
    before = {"one": Node.file(blobs.put(one))}
    after = {"one": Node.file(blobs.put(two)), "two": Node.file(blobs.put(one))}
    assert resolved(patch, before, blobs) == between(before, after)


def test_one_mailed_commit_is_read_and_a_series_of_them_refused(repository):
    blobs = MemoryBlobs()
    (repository / "a").write_bytes(b"1\n2\n3\n")
    commit(repository, "first")
    (repository / "a").write_bytes(b"1\nchanged\n3\n")
    commit(repository, "second")
    (repository / "b").write_bytes(b"new\n")
    commit(repository, "third")
    before, after = ({"a": Node.file(blobs.put(b"1\n%s\n3\n" % line))} for line in (b"2", b"changed"))
    mail = git(repository, "format-patch", "--stdout", "-M", "HEAD~2..HEAD~1")
    assert resolved(mail, before, blobs) == between(before, after)
    with pytest.raises(BadPatch, match="another commit begins here"):
        read_patch(git(repository, "format-patch", "--stdout", "-M", "HEAD~2"))


@pytest.mark.parametrize("settings_", [["diff.noprefix=true"], ["diff.mnemonicPrefix=true"], ["core.quotePath=false"]])
def test_git_with_other_settings_is_read_too(repository, settings_):
    blobs = MemoryBlobs()
    (repository / "a").mkdir()
    (repository / "a" / "caf\u00e9").write_bytes(b"old\n")
    (repository / "top").write_bytes(b"")
    commit(repository, "before")
    (repository / "a" / "caf\u00e9").write_bytes(b"new\n")
    (repository / "top").chmod(0o755)
    patch = git(repository, "-c", settings_[0], "diff")
    before = {
        "a": Node.directory(),
        "a/caf\u00e9": Node.file(blobs.put(b"old\n")),
        "top": Node.file(blobs.put(b"")),
    }
    after = {**before, "a/caf\u00e9": Node.file(blobs.put(b"new\n")), "top": Node.file(blobs.put(b""), 0o755)}
    assert resolved(patch, before, blobs) == between(before, after)


def test_a_plain_diff_of_two_folders_is_read(tmp_path):
    blobs = MemoryBlobs()
    before = {"x": Node.file(blobs.put(b"1\n2\n")), "sub": Node.directory(), "sub/gone": Node.file(blobs.put(b"bye\n"))}
    after = {"x": Node.file(blobs.put(b"1\n3\n")), "sub": Node.directory(), "sub/new": Node.file(blobs.put(b"hi"))}
    for name, tree in (("old", before), ("new", after)):
        (tmp_path / name).mkdir()
        lay_tree(tmp_path / name, tree, blobs)
    done = subprocess.run(["diff", "-ruN", "old", "new"], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 1
    assert resolved(done.stdout, before, blobs) == between(before, after)
