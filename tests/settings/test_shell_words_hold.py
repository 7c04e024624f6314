"""What is read as known is what real shells run."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pawl.settings.shell import read_shell

_NUMBER = re.compile(rb"\$[?#$]|[0-9]+")
SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
PIECES = [
    *(
        "p",
        "p",
        " ",
        " ",
        "'",
        '"',
        "\\",
        "\n",
        ";",
        " && ",
        " | ",
        "a",
        "b",
        "#",
        "{",
        "}",
        "(",
        ")",
        "!",
        "=",
        "$",
        "x=",
    ),
    *("-", "{}", "\\\n", "$?", "'q r'", '"s t"', "<", ">", "2>&1", "`", "[", "]", ",", "1"),
]


@pytest.fixture
def room(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "work").mkdir()
    program = tmp_path / "bin" / "p"
    # A file of its own for each, because the parts of a pipe run at the same time.
    program.write_text('#!/bin/sh\n: > ../said.$$\n[ $# = 0 ] || printf "%s\\0" "$@" >> ../said.$$\n')
    program.chmod(0o755)
    return tmp_path


def ran(shell: str, command: str, room: Path) -> list[bytes]:
    """The words of every `p` that the shell ran."""
    for old in room.glob("said.*"):
        old.unlink()
    subprocess.run(
        [shutil.which(shell), "-c", command],
        cwd=room / "work",
        env={"PATH": str(room / "bin"), "HOME": "/nowhere"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=20,
    )
    return sorted(path.read_bytes() for path in room.glob("said.*"))


@pytest.mark.spec("F8")
@pytest.mark.skipif(not SHELLS, reason="neither dash nor bash is here")
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.sampled_from(PIECES), max_size=6), min_size=1, max_size=3),
    st.sampled_from(["\n", ";", "&&", "|"]),
)
def test_no_shell_runs_more_or_other_than_what_is_known(room: Path, parts: list[list[str]], glue: str):
    command = glue.join("p " + "".join(part) for part in parts)
    script = read_shell(command)
    known = [
        b"".join(word.text.encode() + b"\0" for word in one.words[1:])
        for one in script.commands
        if one.words and one.words[0].text == "p"
    ]
    if script.doubts or not known:
        return
    for shell in SHELLS:
        left = list(known)
        for words in ran(shell, command, room):
            match = next((one for one in left if _same(one, words)), None)
            assert match is not None, (shell, command, words, known)
            left.remove(match)


def _same(known: bytes, ran: bytes) -> bool:
    """A status is one number or another."""
    return _NUMBER.sub(b"", known) == _NUMBER.sub(b"", ran)
