"""Three-way merge: symmetric, careful, and never cleaner than git."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.merge import merge3

texts = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"d\n", b"e\n", b"\n"]), max_size=12).map(b"".join)


@given(texts, texts)
def test_a_side_that_changed_nothing_gives_way(base, changed):
    assert merge3(base, changed, base) == changed
    assert merge3(base, base, changed) == changed
    assert merge3(base, changed, changed) == changed


@given(texts, texts, texts)
def test_both_sides_are_treated_alike(base, ours, theirs):
    assert merge3(base, ours, theirs) == merge3(base, theirs, ours)


@pytest.mark.spec("B9")
def test_changes_in_different_places_are_both_kept():
    base = b"1\n2\n3\n4\n5\n"
    merged = merge3(base, base.replace(b"1", b"one"), base.replace(b"5\n", b"five"))
    assert merged == b"one\n2\n3\n4\nfive"


def test_changes_of_neighbouring_lines_are_a_conflict_as_for_git():
    base = b"1\n2\n3\n4\n"
    assert merge3(base, base.replace(b"2", b"two"), base.replace(b"3", b"three")) is None


def test_the_same_change_on_both_sides_is_had_once():
    base = b"1\n2\n3\n4\n5\n"
    both = base.replace(b"2", b"two")
    assert merge3(base, both, both.replace(b"5", b"five")) == b"1\ntwo\n3\n4\nfive\n"


def test_a_merge_that_depends_on_how_equal_lines_are_matched_is_a_conflict():
    assert merge3(b"b\na\nb\nend\n", b"a\nb\nb\nend\n", b"b\na\nb\nb\nend\n") is None


class Cases:
    """Texts and two edited versions of them, from lines that repeat a lot or hardly at all."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, kinds: int) -> tuple[bytes, bytes, bytes]:
        base = [self._line(kinds) for _ in range(self.random.choice((0, 3, 6, 12, 25)))]
        return b"".join(base), self._edited(base, kinds), self._edited(base, kinds)

    def _line(self, kinds: int) -> bytes:
        number = self.random.randrange(kinds)
        return b"%d%s\n" % (number, b"\r" if number % 7 == 3 else b"")

    def _edited(self, base: list[bytes], kinds: int) -> bytes:
        lines = list(base)
        for _ in range(self.random.randrange(1, 4)):
            at, size = self.random.randrange(len(lines) + 1), self.random.randrange(1, 4)
            act = self.random.random()
            new = [self._line(kinds) for _ in range(size)]
            lines[at : at + (0 if act < 0.4 else size)] = [] if 0.4 <= act < 0.7 else new[:size]
        text = b"".join(lines)
        return text[:-1] if self.random.random() < 0.1 else text


def git_merge(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    for name, data in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(data)
    done = subprocess.run(
        ["git", "merge-file", "-p", "-q", "ours", "base", "theirs"], cwd=folder, capture_output=True, check=False
    )
    return done.stdout if done.returncode == 0 else None


def compare_with_git(folder: Path, seed: int, count: int) -> None:
    case = Cases(seed)
    clean = git_clean = only_here = 0
    for number in range(count):
        base, ours, theirs = case((2, 3, 5, 10, 30, 1000)[number % 6])
        from_git = git_merge(folder, base, ours, theirs)
        merged = merge3(base, ours, theirs)
        git_clean += from_git is not None
        clean += merged is not None
        only_here += merged is not None and from_git is None
        assert merged is None or from_git in (None, merged), (base, ours, theirs)
    assert clean > 0.9 * git_clean > 0.2 * count
    # Among lines of two kinds git finds a conflict where every way to match them comes to the same text.
    assert only_here <= 0.001 * count


@pytest.mark.spec("B9")
def test_what_merges_cleanly_here_merges_cleanly_in_git_to_the_same_text(tmp_path):
    compare_with_git(tmp_path, seed=20, count=300)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.spec("B9")
def test_thousands_of_merges_agree_with_git(tmp_path):
    compare_with_git(tmp_path, seed=21, count=15_000)
