"""A plan that is handed over, the to-do list of a run, the way back in a conversation, and a commit."""

from __future__ import annotations

import subprocess

import pytest
from ui.terminal.conftest import Place

TALK = """
[[turn]]
match = { system = "Plan only" }
answer = "1. Write `one.txt`."
[[turn]]
match = { user = "Carry out the plan", answered = [] }
answer = { calls = [{ name = "file_write", arguments = { path = "one.txt", content = "1\\n" } }] }
[[turn]]
match = { user = "a second", answered = [] }
answer = { calls = [{ name = "file_write", arguments = { path = "two.txt", content = "2\\n" } }] }
[[turn]]
times = 0
answer = "Written."
"""


def git(place: Place, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=place.workspace, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.mark.whole
def test_a_plan_is_handed_over_committed_and_a_later_request_rewound(place: Place):
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    with place.open("--model", place.model(TALK), "--approve", "never", columns=100) as seen:
        seen.expect_status("agent")
        seen.enter("/plan add a file one.txt")
        seen.expect("carry out this plan? [y yes, e edit it first, n no]")
        assert not (place.workspace / "one.txt").exists()
        seen.type("y\r")
        seen.expect("promoted as entry 1")
        seen.expect_status("· agent ·")
        seen.enter("/commit")
        seen.expect("commit this? [y yes, n no, e edit the message]")
        seen.type("y\r")
        seen.expect("committed as")
        assert git(place, "log", "-1", "--format=%s") == "add a file one.txt"
        seen.enter("add a second file two.txt")
        seen.expect("promoted as entry 2")
        seen.enter("/rewind")
        seen.expect("go back to before which request? [number, Enter: none]")
        assert "add a file one.txt" in seen.text and "Plan only" not in seen.text
        seen.type("3\r")
        seen.expect("rewound to before 'add a second file two.txt'; entry 2 is undone")
        seen.leave()
    assert (place.workspace / "one.txt").exists() and not (place.workspace / "two.txt").exists()


EDITS = """
[[turn]]
match = { user = "fix the bug", answered = [] }
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 2", new = "+ 3" } }] }
[[turn]]
match = { answered = ["strict_patch"] }
answer = { calls = [{ name = "strict_patch", arguments = { path = "app.py", old = "+ 3", new = "+ 1" } }] }
[[turn]]
times = 0
answer = "Done."
"""


@pytest.mark.whole
def test_before_each_edit_its_diff_is_shown_with_the_reason_and_always_is_asked_once(place: Place):
    with place.open("--model", place.model(EDITS), "--approve", "each", columns=100) as seen:
        seen.expect_status("asks before each edit")
        seen.enter("fix the bug in the app")
        seen.expect("carry it out? [y yes, a always in this run, p always for app.py, n no")
        patch = "@@ -1,2 +1,2 @@", " def after(number):", "-    return number + 2", "+    return number + 3"
        assert "\n  ".join(("  app.py", *patch, "asked because approval is 'each'")) in seen.text
        seen.type("p\r")
        seen.expect("strict_patch app.py: yes, as you said")
        seen.expect("promote this?")
        assert seen.text.count("carry it out?") == 1
        seen.type("y\r")
        seen.expect("promoted as entry 1")
        seen.leave()
