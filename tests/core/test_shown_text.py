"""Nothing of a text is lost where it is shown: what does not stand there is counted, and only Pawl can count."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.run_hooks import shown_call
from pawl.core.display import safe_drawing, safe_text, safe_words, shown_line, shown_text

pytestmark = pytest.mark.attack("A44")

COUNTED = re.compile(r"… ([\d,]+) (spaces|tabs|blanks|empty lines|characters|lines, [\d,]+ characters not shown) …")
PIECES = st.lists(
    st.one_of(
        st.sampled_from(["a", "rm -rf x", ";", "\n", "…", "… 9 spaces …", "\x1b[2J", "\u202e", "\r", "ä", "\\x1b"]),
        st.builds(str.__mul__, st.sampled_from([" ", "\t", "\n", " \n", "x"]), st.integers(1, 200)),
    ),
    max_size=12,
).map("".join)


def number(text: str) -> int:
    return int(text.replace(",", ""))


def restored(lines: tuple[str, ...]) -> list[str]:
    """The rows of the text again, with what was counted put back; blanks of mixed kinds as spaces."""
    rows: list[str] = []
    for line in lines:
        whole = COUNTED.fullmatch(line)
        if whole and whole[2] == "empty lines":
            rows += [""] * number(whole[1])
        else:
            rows.append(COUNTED.sub(lambda one: ("\t" if one[2] == "tabs" else " ") * number(one[1]), line))
    return rows


@given(PIECES)
def test_the_whole_form_is_the_text_again(text: str):
    lines = shown_text(text, whole=True).lines
    expected = [
        "" if not row.strip(" \t\r") else safe_text(row).text.replace("…", "\\u{2026}") for row in text.split("\n")
    ]
    mixed = re.compile(r"[ \t]{33,}")
    assert [mixed.sub(lambda run: " " * len(run[0]), row) for row in restored(lines)] == [
        mixed.sub(lambda run: " " * len(run[0]), row) for row in expected
    ]


@given(PIECES)
def test_the_short_form_is_short_and_starts_and_ends_as_the_text_does(text: str):
    whole, short = shown_text(text, whole=True), shown_text(text)
    assert short.flags == whole.flags
    assert len(short.lines) <= 41 and all(len(line) < 700 for line in short.lines)
    assert short.lines[0][:100] == whole.lines[0][:100] and short.lines[-1][-100:] == whole.lines[-1][-100:]


@given(PIECES, st.integers(0, 60))
def test_no_line_that_is_shown_holds_what_a_terminal_would_obey(text: str, many: int):
    call = shown_call("run_command", {"command": text * many, text: [text, {text: text}]})
    for line in call.lines:
        assert not set("\x1b\r\n\u202e") & set(line)


@pytest.mark.parametrize("runs", [90, 120, 100_000])
def test_a_line_of_a_file_is_left_as_it_is_unless_it_is_far_too_long(runs: int):
    line = f"+x = 1  # wait…{' ' * runs}y"
    assert shown_line(line) == (line if runs < 120 else f"+x = 1  # wait\\u{{2026}}… {runs:,} spaces …y")


def test_only_colours_and_a_new_beginning_of_a_line_are_drawn():
    drawn = "\r\x1b[K\x1b[31mred\x1b[0m\n"
    assert safe_drawing(drawn) == drawn
    assert safe_words(drawn) == "\\r\\x1b[K\\x1b[31mred\\x1b[0m\n"
    assert "\x1b" not in safe_drawing("\x1b[2J\x1b]52;c;x\x07\x1b[8mhidden\x1b[1;8m\x1b[3A")
