"""`modify`: its eight ways to edit, creating and deleting."""

from __future__ import annotations

import pytest
from folder import GUARDRAILS

from pawl.code.code_model import EditType, FileOperation, Modification
from pawl.code.file_edits import EditOutcome, modify
from pawl.core.errors import (
    AlreadyThere,
    AmbiguousMatch,
    BadArguments,
    BadEncoding,
    LineMismatch,
    NotFound,
    NothingToDo,
    TextNotFound,
    TooLarge,
)

pytestmark = pytest.mark.spec("D3")


def edited(data: bytes, edit_type: EditType, content: str, *, target: str | None = None, line: int | None = None):
    modification = Modification(
        path="a.txt", action=FileOperation.EDIT, edit_type=edit_type, content=content, target=target, line=line
    )
    return modify(data, modification, GUARDRAILS).data


@pytest.mark.parametrize(
    ("edit_type", "arguments", "expected"),
    [
        (EditType.REPLACE, {"target": "two"}, b"one\nNEW\nthree\n"),
        (EditType.INSERT_BEFORE, {"target": "wo"}, b"one\nNEW\ntwo\nthree\n"),
        (EditType.INSERT_AFTER, {"target": "one\ntw"}, b"one\ntwo\nNEW\nthree\n"),
        (EditType.INSERT_AFTER, {"target": "two\n"}, b"one\ntwo\nNEW\nthree\n"),
        (EditType.APPEND, {}, b"one\ntwo\nthree\nNEW\n"),
        (EditType.PREPEND, {}, b"NEW\none\ntwo\nthree\n"),
        (EditType.FULL_REPLACE, {}, b"NEW"),
        (EditType.REPLACE_LINE, {"line": 2}, b"one\nNEW\nthree\n"),
        (EditType.REPLACE_LINE, {"line": 2, "target": "two"}, b"one\nNEW\nthree\n"),
        (EditType.INSERT_AT_LINE, {"line": 2}, b"one\nNEW\ntwo\nthree\n"),
        (EditType.INSERT_AT_LINE, {"line": 4}, b"one\ntwo\nthree\nNEW\n"),
    ],
)
def test_each_way_of_editing_does_what_its_name_says(edit_type: EditType, arguments, expected: bytes):
    data = b"one\ntwo\nthree\n"
    assert edited(data, edit_type, "NEW", **arguments) == expected
    dos = data.replace(b"\n", b"\r\n")
    assert edited(dos, edit_type, "NEW", **arguments) == expected.replace(b"\n", b"\r\n")


@pytest.mark.parametrize("content", ["NEW", "NEW\n"])
def test_inserted_content_is_lines_of_its_own_with_or_without_a_line_break(content: str):
    assert edited(b"a\nb\n", EditType.INSERT_AT_LINE, content, line=2) == b"a\nNEW\nb\n"
    assert edited(b"a\nb\n", EditType.APPEND, content) == b"a\nb\nNEW\n"


def test_a_file_without_a_final_line_break_stays_without():
    assert edited(b"a\nb", EditType.APPEND, "c\n") == b"a\nb\nc"
    assert edited(b"a\nb", EditType.INSERT_AFTER, "c", target="b") == b"a\nb\nc"
    assert edited(b"a\nb", EditType.PREPEND, "c") == b"c\na\nb"


def test_an_empty_file_can_be_appended_to():
    assert edited(b"", EditType.APPEND, "first") == b"first\n"
    assert edited(b"", EditType.INSERT_AT_LINE, "first", line=1) == b"first\n"


def test_prepending_keeps_the_byte_order_mark_first():
    assert edited(b"\xef\xbb\xbfa\n", EditType.PREPEND, "top") == b"\xef\xbb\xbftop\na\n"


def test_a_full_replacement_keeps_the_encoding_and_line_breaks():
    data = b"\xff\xfe" + "a\r\nb\r\n".encode("utf-16-le")
    assert edited(data, EditType.FULL_REPLACE, "x\ny\n") == b"\xff\xfe" + "x\r\ny\r\n".encode("utf-16-le")


@pytest.mark.parametrize("edit_type", [EditType.REPLACE, EditType.INSERT_BEFORE, EditType.INSERT_AFTER])
def test_a_missing_target_is_answered_with_similar_lines_and_the_way_by_number(edit_type: EditType):
    with pytest.raises(TextNotFound) as caught:
        edited(b"alpha\nbeta gamma\ndelta\n", edit_type, "x", target="beta gama")
    assert "    2 | beta gamma" in caught.value.message
    assert "replace_line" in caught.value.advice and "insert_at_line" in caught.value.advice


def test_a_target_that_occurs_twice_is_ambiguous():
    with pytest.raises(AmbiguousMatch, match="lines 1, 2"):
        edited(b"a\na\n", EditType.INSERT_BEFORE, "x", target="a")


@pytest.mark.parametrize(("line", "target"), [(0, None), (4, None), (2, "three")])
def test_a_line_that_is_not_there_or_not_as_said_is_a_mismatch(line: int, target: str | None):
    with pytest.raises(LineMismatch, match=f"line {line}"):
        edited(b"one\ntwo\nthree\n", EditType.REPLACE_LINE, "x", line=line, target=target)


def test_inserting_beyond_the_end_is_a_mismatch():
    with pytest.raises(LineMismatch, match=r"the file has 1 line$"):
        edited(b"one\n", EditType.INSERT_AT_LINE, "x", line=3)


def test_an_edit_that_changes_nothing_is_an_error():
    with pytest.raises(NothingToDo):
        edited(b"one\n", EditType.FULL_REPLACE, "one\n")


@pytest.mark.parametrize(
    ("action", "edit_type", "missing"),
    [
        (FileOperation.CREATE, None, "content"),
        (FileOperation.EDIT, None, "edit_type, content"),
        (FileOperation.EDIT, EditType.REPLACE, "target, content"),
        (FileOperation.EDIT, EditType.INSERT_AT_LINE, "line, content"),
        (FileOperation.EDIT, EditType.APPEND, "content"),
    ],
)
def test_what_an_action_needs_is_named_all_at_once(action: FileOperation, edit_type: EditType | None, missing: str):
    with pytest.raises(BadArguments, match=f"needs {missing}$"):
        modify(b"", Modification(path="a.txt", action=action, edit_type=edit_type), GUARDRAILS)


def test_a_file_is_created_with_the_line_breaks_it_is_given():
    create = Modification(path="a.py", action=FileOperation.CREATE, content="x = 1\r\n")
    assert modify(None, create, GUARDRAILS) == EditOutcome(data=b"x = 1\r\n", changed_lines=1, notes=())


def test_creating_a_file_that_is_there_fails_even_when_it_is_empty():
    with pytest.raises(AlreadyThere):
        modify(b"", Modification(path="a.py", action=FileOperation.CREATE, content="x"), GUARDRAILS)


def test_a_new_file_that_does_not_parse_is_made_and_said_to_be_broken():
    create = Modification(path="fixture.py", action=FileOperation.CREATE, content="def broken(:\n")
    outcome = modify(None, create, GUARDRAILS)
    assert outcome.data == b"def broken(:\n"
    assert "does not parse: line 1" in outcome.notes[0]


def test_content_that_cannot_be_written_or_is_too_large_is_not_created():
    with pytest.raises(BadEncoding):
        modify(None, Modification(path="a", action=FileOperation.CREATE, content="\udcff"), GUARDRAILS)
    with pytest.raises(TooLarge):
        modify(None, Modification(path="a", action=FileOperation.CREATE, content="x" * (1 << 20) + "x"), GUARDRAILS)


def test_deleting_gives_no_content_and_what_is_not_there_cannot_be_deleted():
    delete = Modification(path="a.txt", action=FileOperation.DELETE)
    assert modify(b"a\nb\n", delete, GUARDRAILS) == EditOutcome(data=None, changed_lines=2)
    with pytest.raises(NotFound):
        modify(None, delete, GUARDRAILS)


def test_editing_what_is_not_there_is_not_found():
    with pytest.raises(NotFound):
        modify(
            None, Modification(path="a", action=FileOperation.EDIT, edit_type=EditType.APPEND, content="x"), GUARDRAILS
        )
