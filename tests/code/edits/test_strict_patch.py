"""The strict patch: exactly one place, or an error that says where to look."""

from __future__ import annotations

import pytest
from folder import GUARDRAILS
from hypothesis import assume, given
from hypothesis import strategies as st

from pawl.code.file_edits import EditOutcome, strict_patch
from pawl.core.errors import (
    AmbiguousMatch,
    BadArguments,
    BadEncoding,
    BinaryFile,
    ImportsDropped,
    NothingToDo,
    SyntaxBroken,
    TextNotFound,
    TooLarge,
    TooManyLines,
)

pytestmark = pytest.mark.spec("A6")

SOURCE = b"""\
import os


def first(path):
    return os.path.basename(path)


def second(path):
    return path.upper()
"""


FIRST = SOURCE[: SOURCE.index(b"def second")]


def patched(data: bytes, old: str, new: str, path: str = "notes.txt", end: int | None = None) -> EditOutcome:
    return strict_patch(path, data, old, new, GUARDRAILS, end=end)


def test_a_text_that_occurs_once_is_replaced_and_the_changed_lines_are_counted():
    outcome = patched(SOURCE, "path.upper()", "path.lower()", "module.py")
    assert outcome == EditOutcome(data=SOURCE.replace(b"upper", b"lower"), changed_lines=1, notes=())


@pytest.mark.spec("B5")
@pytest.mark.parametrize(
    ("old", "new", "end", "after"),
    [
        ("def first(path):", "", 7, b"import os\n\n\ndef second(path):\n    return path.upper()\n"),
        ("return os.path", "return path", 5, SOURCE.replace(b"os.path.basename(path)", b"path")),
        ("return os.path", "", 7, SOURCE.replace(b"    return os.path.basename(path)\n\n\n", b"")),
        (
            "def first(path):\n",
            "def first(path):\n    ...\n",
            5,
            SOURCE.replace(b"return os.path.basename(path)", b"..."),
        ),
        ("def second(path):", "one = 1", 9, FIRST + b"one = 1\n"),
        ("def second(path):", "", 9, FIRST),
        ("second(path):\n    return path.upper", "second(path): ...", 9, FIRST + b"def second(path): ...\n"),
    ],
)
def test_with_an_end_all_lines_to_there_go_without_being_quoted(old: str, new: str, end: int, after: bytes):
    outcome = patched(SOURCE, old, new, end=end)
    assert outcome.data == after
    assert outcome.notes[0].endswith(
        f"to {end}, the last of which was {SOURCE.splitlines()[end - 1].decode().strip()!r}"
    )


def test_an_end_leaves_what_follows_its_bytes():
    data = b"a\r\nb\r\nc\nd"
    assert patched(data, "a", "1\n2", end=2).data == b"1\r\n2\r\nc\nd"
    assert patched(data, "c", "", end=4).data == b"a\r\nb\r\n"


@pytest.mark.parametrize("end", [0, 3, 10, -1])
def test_an_end_that_is_none_of_the_lines_from_the_text_on_is_refused(end: int):
    with pytest.raises(BadArguments, match="reaches from line 4 to 5, and the file has 9 lines"):
        patched(SOURCE, "def first(path):\n    return", "", end=end)


@pytest.mark.spec("A5")
def test_a_text_that_is_not_there_is_answered_with_the_closest_lines_and_their_numbers():
    with pytest.raises(TextNotFound) as caught:
        patched(SOURCE, "def secnd(path):\n    return path.uper()", "", "module.py")
    assert "    8 | def second(path):\n    9 |     return path.upper()" in caught.value.message
    assert "the lines shown" in caught.value.advice


def test_a_text_that_differs_in_tabs_is_said_to_differ_in_whitespace_only_and_is_not_applied():
    with pytest.raises(TextNotFound) as caught:
        patched(b"if x:\n\treturn 1\n", "if x:\n    return 1", "pass")
    assert "the same but for spaces and tabs" in caught.value.message
    assert "    2 | \\treturn 1" in caught.value.message


def test_a_line_break_too_many_at_the_end_of_the_file_is_named():
    with pytest.raises(TextNotFound, match="its last line has no line break"):
        patched(b"one\nlast", "last\n", "new\n")


def test_nothing_alike_says_so():
    with pytest.raises(TextNotFound, match="nor anything like it"):
        patched(b"aaaa\nbbbb\n", "zzzzzzzzzz", "y")


@pytest.mark.spec("A5")
def test_a_text_that_occurs_twice_is_answered_with_every_place():
    with pytest.raises(AmbiguousMatch, match=r"occurs 2 times .* at lines 4, 8$"):
        patched(SOURCE, "(path):", "(file):", "module.py")


def test_places_that_overlap_are_ambiguous_too():
    with pytest.raises(AmbiguousMatch, match="occurs 2 times"):
        patched(b"aaa\n", "aa", "b")


def test_an_empty_old_text_matches_nothing():
    with pytest.raises(TextNotFound, match="is empty"):
        patched(b"one\n", "", "two")


def test_a_patch_that_changes_nothing_is_an_error():
    with pytest.raises(NothingToDo):
        patched(b"one\n", "one", "one")


def test_line_breaks_that_differ_in_kind_only_are_nothing_to_do():
    with pytest.raises(NothingToDo):
        patched(b"a\r\nb\r\n", "a\nb", "a\r\nb")


def test_fifty_changed_lines_pass_and_fifty_one_do_not():
    data = b"".join(b"line %d\n" % number for number in range(60))
    old = "".join(f"line {number}\n" for number in range(50))
    assert patched(data, old, old.replace("line", "word")).changed_lines == 50
    longer = old + "line 50\n"
    with pytest.raises(TooManyLines, match="changes 51 lines"):
        patched(data, longer, longer.replace("line", "word"))


def test_only_lines_that_differ_count_however_much_is_quoted():
    data = b"".join(b"line %d\n" % number for number in range(60))
    whole = data.decode()
    assert patched(data, whole, whole.replace("line 7\n", "seven\n")).changed_lines == 1


def test_old_text_with_line_feeds_is_found_in_a_file_with_carriage_returns_and_written_with_them():
    outcome = patched(b"a\r\n\tb\r\nc\r\n", "a\n\tb", "a\n\tb2\n\tb3")
    assert outcome.data == b"a\r\n\tb2\r\n\tb3\r\nc\r\n"


def test_a_byte_order_mark_and_a_missing_final_line_break_stay():
    assert patched(b"\xef\xbb\xbfone\ntwo", "two", "2").data == b"\xef\xbb\xbfone\n2"


def test_utf16_stays_utf16():
    data = b"\xff\xfe" + "naïve\r\nend".encode("utf-16-le")
    assert patched(data, "naïve", "wise").data == b"\xff\xfe" + "wise\r\nend".encode("utf-16-le")


def test_a_binary_file_is_refused():
    with pytest.raises(BinaryFile):
        patched(b"\x00\x01", "a", "b")


@pytest.mark.spec("A15")
def test_a_file_over_one_megabyte_is_refused_and_one_of_exactly_that_size_is_not():
    data = b"a" * ((1 << 20) - 2) + b"b\n"
    assert patched(data, "b", "c").changed_lines == 1
    with pytest.raises(TooLarge, match="1,048,577 bytes"):
        patched(data + b"\n", "b", "c")
    with pytest.raises(TooLarge):
        patched(data, "b", "cc")


@pytest.mark.parametrize("new", ["\ud800", "a\0"])
def test_text_that_cannot_be_written_is_refused(new: str):
    with pytest.raises(BadEncoding):
        patched(b"one\n", "one", new)


def test_a_patch_that_breaks_the_syntax_is_refused_with_the_line():
    with pytest.raises(SyntaxBroken, match="line 9"):
        patched(SOURCE, "    return path.upper()", "    return path.upper(", "module.py")


def test_a_patch_that_drops_an_import_still_in_use_is_refused_by_its_name():
    with pytest.raises(ImportsDropped, match="import os"):
        patched(SOURCE, "import os\n", "", "module.py")


LINES = st.lists(st.text(alphabet="ab\t é", max_size=5), min_size=1, max_size=8)


@given(
    lines=LINES,
    line_break=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    new=st.text(alphabet="xy\n", min_size=1, max_size=5),
    data=st.data(),
)
def test_a_patch_and_then_its_inverse_give_the_same_bytes_back(lines, line_break, mark, new, data):
    # A first line that stays, so that the kind of line break is not lost on the way.
    lines = ["top", *lines]
    before = mark + line_break.join(lines).encode()
    whole = "\n".join(lines)
    start = data.draw(st.integers(len("top\n"), len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    old = whole[start:stop]
    # Both texts are unique, so both patches are possible.
    assume(old and old != new and whole.count(old) == 1 and (whole[:start] + new + whole[stop:]).count(new) == 1)
    try:
        there = patched(before, old, new)
        assert there.data is not None
        back = patched(there.data, new, old)
    except AmbiguousMatch:
        assume(False)
    assert back.data == before
