"""Line edits: validated against what is there, applied from the last to the first, all or none."""

from __future__ import annotations

import pytest
from folder import GUARDRAILS
from hypothesis import given
from hypothesis import strategies as st

from pawl.code.code_model import LineEdit
from pawl.code.file_edits import line_edits
from pawl.core.errors import LineMismatch, NothingToDo, SyntaxBroken, TooManyEdits

pytestmark = pytest.mark.spec("B5")


def edited(data: bytes, *edits: tuple[int, str, str | None] | LineEdit, path: str = "notes.txt") -> bytes | None:
    chosen = [one if isinstance(one, LineEdit) else LineEdit(line=one[0], old=one[1], new=one[2]) for one in edits]
    return line_edits(path, data, chosen, GUARDRAILS).data


def test_numbers_are_those_before_the_call_whatever_the_edits_add_or_take_out():
    data = b"a\nb\nc\nd\n"
    assert edited(data, (1, "a", "a1\na2\na3"), (3, "c", None), (4, "d", "D")) == b"a1\na2\na3\nb\nD\n"


def test_a_new_text_with_a_line_break_at_its_end_is_still_one_line():
    assert edited(b"a\nb\n", (1, "a\n", "A\n")) == b"A\nb\n"


def test_an_empty_new_text_leaves_an_empty_line():
    assert edited(b"a\nb\n", (1, "a", "")) == b"\nb\n"


def test_every_mismatch_is_named_with_the_line_that_is_there_and_where_the_text_is_now():
    with pytest.raises(LineMismatch) as caught:
        edited(b"new\none\ntwo\n\tthree\n", (1, "one", "1"), (2, "two", "2"), (4, "three", "3"), (9, "x", "y"))
    message = caught.value.message
    assert "line 1 is 'new', not 'one'; that text is now at line 2" in message
    assert "line 2 is 'one', not 'two'; that text is now at line 3" in message
    assert "line 4 is '\\tthree', not 'three'; that text, but for its whitespace, is at line 4" in message
    assert "line 9: the file has 4 lines; that text is nowhere in the file" in message


def test_one_line_cannot_be_edited_twice():
    with pytest.raises(LineMismatch, match="line 1 is edited 2 times"):
        edited(b"a\n", (1, "a", "b"), (1, "a", "c"))


def test_a_range_is_replaced_or_taken_out_by_its_first_line():
    data = b"a\nb\nc\nd\ne\n"
    assert edited(data, LineEdit(line=2, old="b", end=4)) == b"a\ne\n"
    assert edited(data, LineEdit(line=1, old="a", new="A\nAA", end=2), (4, "d", None)) == b"A\nAA\nc\ne\n"
    assert edited(b"a\r\nb\r\nc", LineEdit(line=2, old="b", end=3)) == b"a\r\n"


@pytest.mark.parametrize(
    ("edits", "said"),
    [
        ((LineEdit(line=2, old="b", end=4),), "lines 2 to 4 are not a range of the file's 3 lines"),
        ((LineEdit(line=3, old="c", end=2),), "lines 3 to 2 are not a range"),
        ((LineEdit(line=1, old="a", end=2), LineEdit(line=2, old="b")), "line 2 is edited 2 times"),
        ((LineEdit(line=1, old="b", end=2),), "line 1 is 'a', not 'b'; that text is now at line 2"),
    ],
)
def test_a_range_that_is_none_or_overlaps_changes_nothing(edits: tuple[LineEdit, ...], said: str):
    with pytest.raises(LineMismatch) as caught:
        edited(b"a\nb\nc\n", *edits)
    assert said in caught.value.message


def test_thirty_edits_pass_and_thirty_one_do_not():
    data = b"x\n" * 40
    assert edited(data, *((number, "x", "y") for number in range(1, 31))) == b"y\n" * 30 + b"x\n" * 10
    with pytest.raises(TooManyEdits, match="31 line edits"):
        edited(data, *((number, "x", "y") for number in range(1, 32)))


@pytest.mark.parametrize("edits", [(), ((1, "a", "a"),)])
def test_edits_that_change_nothing_are_an_error(edits):
    with pytest.raises(NothingToDo):
        edited(b"a\n", *edits)


def test_carriage_returns_and_a_missing_final_line_break_stay():
    assert edited(b"a\r\nb\r\nc", (1, "a", "1\n2"), (3, "c", "C")) == b"1\r\n2\r\nb\r\nC"


def test_the_syntax_is_judged_after_all_edits_and_not_between_them():
    data = b"x = (1,\n     2)\n"
    assert edited(data, (1, "x = (1,", "x = [1,"), (2, "     2)", "     2]"), path="a.py") == b"x = [1,\n     2]\n"
    with pytest.raises(SyntaxBroken):
        edited(data, (1, "x = (1,", "x = [1,"), path="a.py")


LINES = st.lists(st.text(alphabet="ab\t", max_size=3), min_size=1, max_size=8)


@given(lines=LINES, ends=st.data())
def test_all_edits_are_applied_or_none_and_other_lines_keep_their_bytes(lines: list[str], ends):
    breaks = [ends.draw(st.sampled_from(["\n", "\r\n"])) for _ in lines]
    data = "".join(line + end for line, end in zip(lines, breaks, strict=True)).encode()
    numbers = ends.draw(st.lists(st.integers(1, len(lines)), unique=True, min_size=1))
    wrong = ends.draw(st.sampled_from([None, *numbers]))
    edits = [(number, "zz" if number == wrong else lines[number - 1], f"new {number}") for number in numbers]

    if wrong is not None:
        with pytest.raises(LineMismatch, match=f"line {wrong} is"):
            edited(data, *edits)
        return
    expected = [f"new {number}" if number in numbers else line for number, line in enumerate(lines, 1)]
    assert edited(data, *edits) == "".join(a + b for a, b in zip(expected, breaks, strict=True)).encode()
