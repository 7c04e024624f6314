"""The screens of a session in windows of three widths, held against files: `screens/NAME-WIDTH.txt`.

A file that is not there is written, and the test fails so that somebody reads it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from ui.terminal.conftest import Place
from ui.terminal.emulator import Emulator
from ui.terminal.test_plan_and_history import git
from ui.terminal.test_session import WAITS

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
    # A call that takes long is shown with its seconds, and cut to make room for them.
    (re.compile(r"^(· strict_patch app.py)\n +(changed .*), \d+\.\d s$", re.MULTILINE), r"\1 → \2"),
    (re.compile(r"(1 line|…), \d+\.\d s$", re.MULTILINE), r"\1"),
    (re.compile(r"^(✗ run_command for n in 1).*… → (exit 3)(?:, \d+\.\d s)?$", re.MULTILINE), r"\1… → \2"),
    (re.compile(r"\d+\.\d s\b"), "0.1 s"),
    (re.compile(r"\br[0-9a-f]{8}\b"), "r5161e0c6"),
    (re.compile(r"\bc[0-9a-f]{8}\b"), "c5161e0c6"),
    (re.compile(r"\d[\d,]* tokens"), "900 tokens"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "5161e0c65161"),
    (re.compile(r"^(\d+  )\d\d:\d\d ", re.MULTILINE), r"\g<1>09:30 "),
)


def check(seen: Emulator, name: str, columns: int) -> bool:
    """The text from the last input on, against the file; False where there was none."""
    text = seen.text.rpartition("\n›\n")[0]
    shown = text[max(text.rfind(f"\n› {sign}") for sign in "f/!") + 1 :].rstrip()
    assert all(len(line) <= columns for line in shown.split("\n"))
    for pattern, instead in SAME:
        shown = pattern.sub(instead, shown)
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


DAY = f"""
[[turn]]
match = {{ user = "fix the bug", answered = [] }}
answer = {{ calls = [{{ name = "strict_patch", arguments = {{ path = "app.py", old = "+ 2", new = "+ 1" }} }}] }}
[[turn]]
match = {{ system = "Plan only" }}
answer = "1. Write `one.txt`."
[[turn]]
match = {{ user = "Carry out the plan", answered = [] }}
answer = {{ calls = [{{ name = "file_write", arguments = {{ path = "one.txt", content = "1\\n" }} }}] }}
[[turn]]
match = {{ user = "slowly", answered = [] }}
answer = {{ calls = [{{ name = "run_command", arguments = {{ command = "echo part one; {WAITS}" }} }}] }}
[[turn]]
times = 0
answer = "Done."
"""


@pytest.mark.whole
@pytest.mark.parametrize("columns", [50, 80, 120])
def test_screens_of_questions_plans_stops_and_the_way_back_are_as_they_were(
    place: Place, columns: int, monkeypatch: pytest.MonkeyPatch
):
    known = []
    config = place.workspace.parent / "config.toml"
    config.write_text('[session]\nstatus_line = ["keys", "model"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(config))
    (place.workspace / "flag").write_text("wait\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        git(place, *words)

    def typed(text: str, *steps: tuple[str, str], name: str = "") -> None:
        """What is typed, each question with its answer, and the screen when it is over."""
        seen.type(f"{text}\r")
        for question, said in steps:
            seen.expect(question)
            seen.type(said)
        seen.expect_status("/help")
        if name:
            known.append(check(seen, name, columns))

    with place.open("--model", place.model(DAY), "--approve", "each", columns=columns, rows=60) as seen:
        seen.expect_status("scripted")
        typed(
            "fix the bug in the app", ("carry it out?", "y\r"), ("promote this?", "y\r"), ("as entry", ""), name="each"
        )
        typed("/approval never")
        typed("/plan add one.txt", ("carry out this plan?", "y\r"), ("as entry 2", ""), name="plan")
        typed("/commit", ("commit this?", "y\r"), ("committed as", ""), name="commit")
        typed("/rewind", ("which request?", "2\r"), ("rewound to", ""), name="rewind")
        typed("fix it slowly", ("part one", "\x1b"), ("/resume r", ""), name="stop")
        seen.type("\x04")
        assert seen.finish() == 0
    assert all(known), "screens that were not there are written: read them"
