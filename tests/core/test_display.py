"""Hostile text is shown, not obeyed: nothing reaches a terminal that moves, hides or reorders what a person reads."""

from __future__ import annotations

import itertools
import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.core.display import Flag, SafeStream, SafeText, SafeWords, safe_text

any_text = st.text(st.characters(codec=None), max_size=40)
COLOUR = re.compile(r"\x1b\[[0-9;:]*m")


@pytest.mark.attack("A44")
@pytest.mark.parametrize(
    ("text", "shown", "flags"),
    [
        ("ls \x1b[2K\x1b[1Gecho", "ls \\x1b[2K\\x1b[1Gecho", {Flag.CONTROL}),
        ("safe\rrm -rf", "safe\\rrm -rf", {Flag.CONTROL}),
        ("\x9b2J", "\\x9b2J", {Flag.CONTROL}),
        ("a\x00\x08\x7f", "a\\x00\\x08\\x7f", {Flag.CONTROL}),
        ("build\u202etxt.exe", "build\\u{202e}txt.exe", {Flag.BIDI}),
        ("a\u2066b\u2069", "a\\u{2066}b\\u{2069}", {Flag.BIDI}),
        ("a\u200b.txt", "a\\u{200b}.txt", {Flag.INVISIBLE}),
        ("\U000e0072\U000e006d", "\\u{e0072}\\u{e006d}", {Flag.INVISIBLE}),
        ("\ufeffa\u00ad\u3164\u2800", "\\u{feff}a\\xad\\u{3164}\\u{2800}", {Flag.INVISIBLE}),
        ("a\u00a0b\u3000", "a\\xa0b\\u{3000}", {Flag.SPACE}),
        ("a\u2028b", "a\\u{2028}b", {Flag.CONTROL}),
        ("byte \udcff", "byte \\xff", {Flag.CONTROL}),
        ("o" + "\u0301" * 6, "o" + "\u0301" * 3 + "\\u{301}" * 3, {Flag.INVISIBLE}),
        ("cat f\u0456le", "cat f\u0456le", {Flag.MIXED_SCRIPT}),
        ("run \u0430.out", "run \u0430.out", {Flag.MIXED_SCRIPT}),
        ("\u0441\u043e\u0440\u0443 x", "\u0441\u043e\u0440\u0443 x", {Flag.MIXED_SCRIPT}),
        ("\uff52\uff4d -rf", "\uff52\uff4d -rf", {Flag.MIXED_SCRIPT}),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_written_out_and_flagged(text, shown, flags):
    assert safe_text(text) == SafeText(shown, frozenset(flags))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain\ttext\n",
        "na\u00efve caf\u00e9 \u2192 \u2713",
        "\u0444\u0430\u0439\u043b.txt \u0441 \u043d\u0430\u043c\u0438",
        "\u65e5\u672c\u8a9e Python\u5165\u9580",
        "\u03a9 = 5 \u00b5m",
        "e\u0301",
    ],
)
def test_honest_text_of_any_language_stays_as_it_is(text):
    assert safe_text(text) == SafeText(text, frozenset())


def test_windows_line_ends_are_shown_but_no_cause_for_alarm():
    assert safe_text("a\r\nb") == SafeText("a\\r\nb", frozenset())


@pytest.mark.attack("A44")
@given(any_text)
def test_no_text_leaves_anything_that_a_terminal_obeys(text):
    shown = safe_text(text).text
    categories = {unicodedata.category(character) for character in shown if character not in "\n\t"}
    assert categories.isdisjoint({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
    assert safe_text(shown).text == shown


def through(stream: SafeStream, *pieces: bytes) -> str:
    return "".join(map(stream.feed, pieces)) + stream.close()


def test_colours_newlines_tabs_and_carriage_returns_pass():
    data = b"\x1b[1;31mred\x1b[0m\t50%\r100%\n\x1b[38;5;8mgrey\x1b[48:2::1:2:3mcolour\x1b[m"
    assert through(SafeStream(), data) == data.decode()


@pytest.mark.attack("A44")
@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (b"\x1b[2J\x1b[H", "\\x1b[2J\\x1b[H"),
        (b"\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        (b"\x1b]8;;http://x\x1b\\link", "\\x1b]8;;http://x\\x1b\\link"),
        (b"\x1bP+q\x1b\\", "\\x1bP+q\\x1b\\"),
        (b"\x1b[8mhidden", "\\x1b[8mhidden"),
        (b"\x1b[0;08mhidden", "\\x1b[0;08mhidden"),
        (b"\x1b[?25l", "\\x1b[?25l"),
        (b"\xc2\x9b2J", "\\x9b2J"),
        (b"back\x08\x08", "back\\x08\\x08"),
        ("a\u202eb".encode(), "a\\u{202e}b"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b"end \x1b", "end \\x1b"),
        (b"end \x1b[31", "end \\x1b[31"),
        (b"end \xe2\x82", "end \ufffd"),
        (b"\x1b[" + b"1" * 100 + b"m", "\\x1b[" + "1" * 100 + "m"),
    ],
)
def test_every_other_sequence_is_written_out(data, shown):
    assert through(SafeStream(), data) == shown


def test_a_colour_that_is_left_on_ends_with_the_output():
    assert through(SafeStream(), b"\x1b[31mred") == "\x1b[31mred\x1b[0m"


def test_emoji_and_joined_scripts_pass():
    text = "\U0001f468\u200d\U0001f4bb \u26a0\ufe0f \u00a0"
    assert through(SafeStream(), text.encode()) == text


@given(st.binary(max_size=80), st.lists(st.integers(0, 80), max_size=6))
def test_how_the_output_is_cut_makes_no_difference(noise, cuts):
    data = b"\x1b[31m" + noise + "\u20ac\x1b[2J\x1b[0m".encode() + noise[::-1]
    places = sorted({0, len(data), *(min(cut, len(data)) for cut in cuts)})
    pieces = [data[start:end] for start, end in itertools.pairwise(places)]
    assert through(SafeStream(), *pieces) == through(SafeStream(), data)


@pytest.mark.attack("A44")
@given(st.binary(max_size=80).map(lambda data: data.replace(b"\x00", b"\x1b[").replace(b"\x01", b"\x1b")))
def test_no_output_leaves_a_sequence_other_than_a_colour(data):
    rest = COLOUR.sub("", through(SafeStream(), data))
    assert not any(unicodedata.category(character) == "Cc" for character in rest if character not in "\n\t\r")


def test_what_is_held_back_stays_small_whatever_comes():
    stream = SafeStream()
    shown = sum(len(stream.feed(b"\x1b[" + b"1;" * 500)) for _ in range(50))
    assert shown >= 50 * 1000 - 100


SPOKEN = {
    "four\rfive": "four\\rfive",
    "one\r\ntwo\ttabbed\n": "one\ntwo\ttabbed\n",
    "\x1b[31mred\x1b[0m": "\\x1b[31mred\\x1b[0m",
    "\x1b[2J\x1b]0;title\x07": "\\x1b[2J\\x1b]0;title\\x07",
    "b\bB \x9b1A \u202eoff": "b\\x08B \\x9b1A \\u{202e}off",
    "e\u0301\u0301\u0301\u0301": "e\u0301\u0301\u0301\\u{301}",
    "✔️ naïve 你好 👩\u200d💻": "✔️ naïve 你好 👩\u200d💻",
    "ends\r": "ends\\r",
}


@pytest.mark.attack("A44")
@pytest.mark.parametrize("said", SPOKEN)
def test_of_a_models_words_a_terminal_obeys_nothing_however_they_are_cut(said: str):
    for pieces in ([said], list(said)):
        words = SafeWords()
        assert "".join(map(words.feed, pieces)) + words.close() == SPOKEN[said]
