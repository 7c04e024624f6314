"""Names and contents made to deceive: written out and flagged, one line each, and JSON that every reader takes."""

from __future__ import annotations

import base64
import os

import pytest
from ui.cli.console import Pawl

pytestmark = pytest.mark.attack("A44")

NAMES = {
    b"a\npromoted as entry 99": ("a\\npromoted as entry 99", "control characters"),
    b"\x1b[2J\x1b[31mred": ("\\x1b[2J\\x1b[31mred", "control characters"),
    b"back\rforth": ("back\\rforth", "control characters"),
    b"c1\xc2\x9b2J": ("c1\\x9b2J", "control characters"),
    "pay\u202etxt.exe".encode(): ("pay\\u{202e}txt.exe", "characters that reorder text"),
    "zero\u200bwidth".encode(): ("zero\\u{200b}width", "invisible characters"),
    "tag\U000e0072".encode(): ("tag\\u{e0072}", "invisible characters"),
    "аdmіn.py".encode(): ("аdmіn.py", "letters that look like others"),
    b"caf\xe9": ("caf\\xe9", "bytes that are not text"),
}
MAKE = f"for name in {list(NAMES)!r}: open(name, 'wb').write(b'x\\x1b[2Jy\\xe2\\x80\\xae\\n')"
COMMAND = ("python3", "-c", MAKE)


@pytest.fixture
def hostile(pawl: Pawl) -> Pawl:
    """A workspace with an entry that created a file of each name."""
    assert pawl("run", "--apply", "--", *COMMAND).code == 0
    return pawl


def test_names_are_written_out_one_line_each_with_a_warning(pawl: Pawl):
    said = pawl("run", "--", *COMMAND)
    assert len(said.err.splitlines()) == len(NAMES) + 2
    for text, flag in NAMES.values():
        (row,) = [line for line in said.err.splitlines() if line.startswith(f"  + {text}  ")]
        assert row.endswith(f"! {flag}")
    assert not set("\x1b\r\x9b\u202e\u200b\U000e0072") & set(said.err)


def test_every_command_that_lists_paths_writes_them_out(hostile: Pawl):
    for said in hostile.many([["diff", "--stat"], ["undo", "--dry-run"], ["undo"], ["redo"]]):
        assert said.code == 0
        assert all(any(text in line for line in said.lines) for text, _ in NAMES.values()), said
        assert not set("\x1b\r\x9b\u202e\u200b\U000e0072") & set(said.out)


def test_json_has_names_that_are_text_and_the_bytes_of_those_that_are_not(hostile: Pawl):
    rows = hostile.json("diff")["changes"]
    exact = {base64.b64decode(row["path_base64"]) if "path_base64" in row else row["path"].encode() for row in rows}
    assert exact == set(NAMES)
    assert [row["path"] for row in rows if "path_base64" in row] == ["caf\\xe9"]


def test_words_that_are_not_text_are_json_too(pawl: Pawl):
    said = pawl("run", "--json", "--", "printf", b"caf\xe9")
    assert '"caf\\\\xe9"' in said.out
    assert pawl.json("history", "--all") == {"entries": [], "total": 0}


def test_a_file_is_named_exactly_on_the_command_line(hostile: Pawl):
    assert hostile("undo", "--file", b"caf\xe9").code == 0
    assert not os.path.exists(os.fsencode(hostile.workspace) + b"/caf\xe9")
    assert hostile("undo", "--file", "a\npromoted as entry 99").code == 0


def test_a_terminal_gets_neither_names_nor_contents_that_it_would_obey(hostile: Pawl):
    with hostile.terminal("diff") as terminal:
        assert terminal.finish() == 0
    assert "+x\\x1b[2Jy\\u{202e}" in terminal.text
    assert "note: it holds characters that reorder text, control characters, written out above" in terminal.text
    assert not set("\x1b\x9b\u202e\u200b") & set(terminal.text)


def test_the_output_of_a_command_cannot_rewrite_the_screen(pawl: Pawl):
    with pawl.terminal("run", "--", "printf", r"\033[2Jgone\033]0;title\007\302\233\033[1;31mred\n") as terminal:
        assert terminal.finish() == 0
    assert "\\x1b[2Jgone\\x1b]0;title\\x07\\x9b\x1b[1;31mred" in terminal.raw


def test_a_title_and_a_checkpoint_stay_on_their_line(pawl: Pawl):
    pawl("run", "--apply", "--", "sh", "-c", "touch a\n: \x1b[2J\u202e")
    assert len(pawl("history").lines) == 2
    assert pawl("checkpoint", "two words").lines[1] == "come back with: pawl restore 1"
    said = pawl("checkpoint", "odd\n\x1b[2Jname")
    assert (said.code, len(said.err.splitlines()), "\x1b" in said.err) == (42, 2, False)


def test_errors_write_out_what_they_name(pawl: Pawl):
    calls = [["undo", "--file", "/\x1b[2J"], ["patch", "\x1b[2J"], ["restore", "\x1b[2J"], ["-C", "\x1b", "gc"]]
    for said in pawl.many(calls):
        assert said.code in (1, 42)
        assert "\x1b" not in said.err
