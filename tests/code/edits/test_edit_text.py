"""Text: whatever the encoding and the line breaks, bytes that an edit does not touch do not change."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.errors import BadEncoding, BinaryFile
from pawl.core.text import Text, changed_lines, plain

WORDS = st.text(alphabet="ab \té", max_size=4)
BREAKS = st.sampled_from(["\n", "\r\n", "\r"])
CONTENTS = st.builds(
    lambda lines, last: "".join(line + end for line, end in lines) + last,
    st.lists(st.tuples(WORDS, BREAKS), max_size=8),
    WORDS,
)
ENCODINGS = st.sampled_from(
    [
        (b"", "utf-8"),
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (b"", "latin-1"),
    ]
)


def raw_offset(text: Text, offset: int) -> int:
    """Where an offset of the text with line feeds lies in the text as it is."""
    normal = exact = 0
    for line, ending in zip(text.lines, text.endings, strict=True):
        if offset <= normal + len(line):
            return exact + offset - normal
        normal += len(line) + bool(ending)
        exact += len(line) + len(ending)
    return exact


@pytest.mark.spec("A6")
@given(content=CONTENTS, encoding=ENCODINGS, new=st.text(alphabet="abé\r\n", max_size=6), data=st.data())
def test_bytes_before_and_after_a_splice_never_change(content: str, encoding: tuple[bytes, str], new: str, data):
    mark, name = encoding
    before = mark + content.encode(name)
    text = Text.decode(before, "file")
    assert text.encode("file") == before
    whole = text.plain
    start = data.draw(st.integers(0, len(whole)))
    stop = data.draw(st.integers(start, len(whole)))
    if name == "latin-1" and text.encoding == "utf-8":
        new = new.replace("é", "e")

    after = text.spliced(start, stop, new)

    assert after.plain == whole[:start] + plain(new) + whole[stop:]
    encoded = after.encode("file")
    assert encoded.startswith(mark + content[: raw_offset(text, start)].encode(name))
    assert encoded.endswith(content[raw_offset(text, stop) :].encode(name))


@pytest.mark.spec("A6")
@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_new_lines_get_the_line_break_of_the_file(line_break: str):
    text = Text.decode(f"one{line_break}two{line_break}".encode(), "file")
    assert text.spliced(4, 7, "2\n3").encode("file") == f"one{line_break}2{line_break}3{line_break}".encode()


@pytest.mark.spec("A6")
def test_in_a_file_of_mixed_line_breaks_only_the_touched_line_changes():
    text = Text.decode(b"a\r\nb\nc\r\nd", "file")
    assert text.spliced(2, 3, "B\nB2").encode("file") == b"a\r\nB\nB2\nc\r\nd"


def test_lines_within_the_replaced_part_that_stay_keep_their_endings():
    text = Text.decode(b"one\r\ntwo\nthree\r\nfour\n", "file")
    changed = text.spliced(0, len(text.plain), "one\ntwo\nTHREE\nfour\n")
    assert changed.encode("file") == b"one\r\ntwo\nTHREE\r\nfour\n"


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\x00\x00",
        bytes(range(256)),
        b"text\x00text",
        b"\x1f\x8b\x08\xff\xfe",
        codecs.BOM_UTF16_LE + b"a\x00\x00\x00",
        codecs.BOM_UTF16_LE + b"a",
        codecs.BOM_UTF32_LE + "a".encode("utf-32-le"),
        codecs.BOM_UTF8 + b"\xff",
    ],
)
@pytest.mark.spec("A5")
def test_what_is_no_text_is_a_binary_file(data: bytes):
    with pytest.raises(BinaryFile, match="'picture'"):
        Text.decode(data, "picture")


def test_bytes_that_are_not_utf8_are_read_as_latin1():
    text = Text.decode("café\n".encode("latin-1"), "menu.txt")
    assert (text.encoding, text.lines) == ("latin-1", ("café",))


@pytest.mark.parametrize("new", ["€", "\ud800", "\0"])
@pytest.mark.spec("A5")
def test_a_character_that_the_file_cannot_hold_is_refused_by_name(new: str):
    text = Text.decode("café\n".encode("latin-1"), "menu.txt")
    with pytest.raises(BadEncoding, match=r"'menu\.txt'"):
        text.spliced(0, 0, new).encode("menu.txt")


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [
        (b"", b"", 0),
        (b"a\nb\n", b"a\nb\n", 0),
        (b"a\nb\n", b"a\nB\n", 1),
        (b"a\nb\n", b"a\nb\nc\nd\n", 2),
        (b"a\nb\nc\n", b"", 3),
        (b"a\nb", b"a\nb\n", 1),
        (b"a\r\n", b"a\n", 1),
    ],
)
def test_a_replaced_line_counts_as_one_changed_line(before: bytes, after: bytes, count: int):
    assert changed_lines(before, after) == count
