"""The screens of a session in windows of three widths, held against files: `screens/NAME-WIDTH.txt`.

A file that is not there is written, and the test fails so that somebody reads it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ui.terminal.conftest import Place
from ui.terminal.emulator import Emulator

FOLDER = Path(__file__).parent / "screens"
TALK = '''
[[turn]]
match = { user = "fix the bug", answered = [] }
answer = { text = "I look at `app.py`.", calls = [
  { name = "run_command", arguments = { command = """
for n in 1 2 3 4 5; do echo "checking part $n of the project"; done; echo broken >&2; exit 3""" } },
] }
[[turn]]
match = { answered = ["run_command"] }
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 1" } }] }
[[turn]]
times = 0
answer = "One is added **now**."
'''
SAME = (
    (re.compile(r"\d+\.\d s\b"), "0.1 s"),
    (re.compile(r"\br[0-9a-f]{8}\b"), "r5161e0c6"),
    (re.compile(r"\bc[0-9a-f]{8}\b"), "c5161e0c6"),
    (re.compile(r"\d[\d,]* tokens"), "900 tokens"),
)


def check(seen: Emulator, name: str, columns: int) -> bool:
    """The text from the last input on, against the file; False where there was none."""
    text = seen.text.rpartition("\n›\n")[0]
    shown = text[max(text.rfind(f"\n› {sign}") for sign in "f/!") + 1 :].rstrip()
    if re.search(r"(?:exit 3|1 line), \d+\.\d s$", shown, re.MULTILINE):
        pytest.skip("calls that take long are shown with their seconds: the machine is busy")
    for pattern, instead in SAME:
        shown = pattern.sub(instead, shown)
    assert all(len(line) <= columns for line in shown.split("\n"))
    file = FOLDER / f"{name}-{columns}.txt"
    if not file.exists():
        FOLDER.mkdir(exist_ok=True)
        file.write_text(f"{shown}\n")
        return False
    assert f"{shown}\n" == file.read_text()
    return True


@pytest.mark.whole
@pytest.mark.parametrize("columns", [50, 80, 120])
def test_screens_are_as_they_were(place: Place, columns: int):
    known = []
    with place.open("--model", place.model(TALK), columns=columns, rows=60) as seen:
        seen.expect_status("agent")
        seen.type("fix the bug in the app\r")
        seen.expect("promote this?")
        seen.type("y\r")
        seen.expect("requests ·" if columns > 50 else "requests")
        seen.expect_status("scripted")
        known.append(check(seen, "run", columns))
        seen.type("!echo more >> notes.txt\r")
        seen.expect("promote this? [y yes, n no]")
        seen.type("n\r")
        seen.expect("kept as entry 2")
        seen.expect_status("scripted")
        seen.expect("promote it with: /promote 2" if columns > 50 else "/promote 2")
        known.append(check(seen, "command", columns))
        seen.type("/help\r")
        seen.expect("Ctrl-D")
        seen.expect_status("scripted")
        known.append(check(seen, "help", columns))
        seen.type("\x04")
        assert seen.finish() == 0
    assert all(known), "screens that were not there are written: read them"
