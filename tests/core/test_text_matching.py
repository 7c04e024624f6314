"""Lines and how two texts match: always right, close to the fewest edits, and bounded for any input."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.text import Matching, edits, grouped, is_binary, matching_blocks, split_lines

few_lines = st.lists(st.sampled_from([b"a\n", b"b\n", b"c\n", b"\n"]), max_size=14)


def rebuilt(a, b, matching):
    """The second text from the first one and the edits, checking on the way that the edits are in order."""
    result, at = [], 0
    for edit in edits(a, b, matching):
        assert edit.a_start >= at
        assert edit.a_start < edit.a_end or edit.b_start < edit.b_end
        result += a[at : edit.a_start] + b[edit.b_start : edit.b_end]
        assert len(result) == edit.b_end
        at = edit.a_end
    return result + a[at:]


def longest_common(a, b):
    row = [0] * (len(b) + 1)
    for x in a:
        new = [0]
        for at, y in enumerate(b):
            new.append(row[at] + 1 if x == y else max(row[at + 1], new[at]))
        row = new
    return row[-1]


@given(st.binary(max_size=60).map(lambda data: data.replace(b"\x00", b"\n").replace(b"\x01", b"\r")))
def test_lines_put_together_are_the_text_again(data):
    lines = split_lines(data)
    assert b"".join(lines) == data
    assert all(line.count(b"\n") == 1 and line.endswith(b"\n") for line in lines[:-1])
    assert all(lines)


def test_line_ends_and_marks_stay_as_they_are():
    assert split_lines(b"") == []
    assert split_lines(b"\xef\xbb\xbfa\r\nb\rc\n\n") == [b"\xef\xbb\xbfa\r\n", b"b\rc\n", b"\n"]
    assert split_lines(b"a\nb") == [b"a\n", b"b"]


def test_a_nul_makes_a_content_binary_only_near_its_start():
    assert is_binary(b"a\0b")
    assert not is_binary(b"caf\xe9\xff")
    assert not is_binary(b"a" * 8000 + b"\0")


@pytest.mark.parametrize("matching", Matching)
@given(few_lines, few_lines)
def test_the_edits_lead_from_one_text_to_the_other(matching, a, b):
    assert rebuilt(a, b, matching) == b


@pytest.mark.parametrize("matching", [way for way in Matching if way is not Matching.ANCHORS])
@given(few_lines, few_lines)
def test_matching_by_distance_keeps_as_many_lines_as_possible(matching, a, b):
    assert sum(block.size for block in matching_blocks(a, b, matching)) == longest_common(a, b)


@given(few_lines, few_lines, st.integers(0, 4))
def test_groups_hold_all_edits_and_lie_apart(a, b, context):
    changes = edits(a, b)
    groups = list(grouped(changes, context))
    assert [edit for group in groups for edit in group] == changes
    for one, two in pairwise(groups):
        assert two[0].a_start - one[-1].a_end > 2 * context


def test_a_function_put_between_two_others_is_one_edit():
    first = [b"def a():\n", b"    return 1\n", b"\n", b"\n"]
    last = [b"def c():\n", b"    return 3\n"]
    new = [b"def b():\n", b"    return 2\n", b"\n", b"\n"]
    assert edits(first + last, first + new + last) == [(4, 4, 4, 8)]


def test_a_moved_block_is_matched_by_the_lines_that_occur_once():
    a = [b"{\n", b"one\n", b"}\n", b"{\n", b"two\n", b"}\n"]
    b = [b"{\n", b"zero\n", b"}\n", *a]
    kept = [line for block in matching_blocks(a, b) for line in a[block.a : block.a + block.size]]
    assert kept == a


HOSTILE = {
    "small edits in a large file": lambda rng: (
        (lines := [b"line %d\n" % at for at in range(50_000)]),
        [b"new\n" if at % 5_000 == 0 else line for at, line in enumerate(lines)],
    ),
    "equal lines": lambda rng: ([b"x\n"] * 20_000, [b"x\n"] * 19_000),
    "equal lines with changes": lambda rng: (
        [b"x\n"] * 20_000,
        [b"new %d\n" % at if at % 10 == 0 else b"x\n" for at in range(20_000)],
    ),
    "two lines at random": lambda rng: tuple([rng.choice((b"x\n", b"y\n")) for _ in range(20_000)] for _ in range(2)),
    "shuffled": lambda rng: (
        (lines := [b"%d\n" % at for at in range(20_000)]),
        rng.sample(lines, len(lines)),
    ),
    "periods out of step": lambda rng: ([b"x\n", b"y\n"] * 10_000, [b"y\n", b"x\n", b"x\n"] * 7_000),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("matching", [Matching.ANCHORS, Matching.FORWARD])
def test_large_and_repetitive_texts_are_matched_with_bounded_work(name, matching):
    a, b = HOSTILE[name](random.Random(5))
    assert rebuilt(a, b, matching) == b


def test_few_changes_among_many_equal_lines_are_all_that_is_edited():
    a, b = HOSTILE["equal lines with changes"](random.Random(5))
    assert sum(edit.b_end - edit.b_start for edit in edits(a, b)) == 2_000
