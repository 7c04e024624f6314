"""A specification in the page of `pawl web`, in Chromium: what is unclear is asked and answered, and what is done and
proved is told as `pawl spec status` tells it; and a command of the user's own that needs a yes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from browser.chrome import Site
from ui.cli.projects import SETTINGS

pytestmark = [pytest.mark.browser, pytest.mark.spec("F7")]

Open = Callable[..., Site]
FOLDER = "specs/001-lines"
SPEC = "# Lines\n\n- **FR-001**: lines are counted [NEEDS CLARIFICATION: empty ones too?]\n"
CLEAR = "# Lines\n\n- **FR-001**: lines are counted, empty ones too\n\n## Clarifications\n\n- empty ones: yes\n"
TASKS = "## Phase 1: Lines\n- [x] T001 Count lines in lines.py\n- [ ] T002 Tell them in tell.py\n"
TALK = """
[[turn]]
match = {{ user = "by these answers", answered = ["file_write"] }}
answer = "It is clear."
[[turn]]
match = {{ user = "by these answers" }}
answer = {{ calls = [{{ name = "file_write", arguments = {{ path = "{0}/spec.md", content = {1!r} }} }}] }}
[[turn]]
match = {{ user = "whose answers change", answered = ["file_write"] }}
answer = "It is asked."
[[turn]]
match = {{ user = "whose answers change" }}
answer = {{ calls = [{{ name = "file_write", arguments = {{ path = "{0}/questions.md", content = {2!r} }} }}] }}
[[turn]]
match = {{ schema = true }}
times = 0
answer = '{{"state": "DONE", "evidence": ["it"], "remaining": []}}'
"""
ASKED = "# Questions\n\n1. Are empty lines counted? (yes, no)\n   Answer:\n"


@pytest.mark.spec("E11")
def test_what_a_specification_leaves_open_is_answered_and_what_is_proved_is_not_claimed(opened: Open):
    talk = TALK.format(FOLDER, "TEXT", "ASKED").replace("'TEXT'", toml(CLEAR)).replace("'ASKED'", toml(ASKED))
    site = opened({**SETTINGS, f"{FOLDER}/spec.md": SPEC}, talk)
    tab, folder = site.tab, site.pawl.workspace / FOLDER
    tab.go("time")
    card = tab.css(".spec")
    card.css("summary").click()
    card.button("Ask what is unclear").click()
    tab.css(".model-says").having("It is asked.").seen()
    tab.status("ready")
    question = card.label("Are empty lines counted? (yes, no)")
    question.seen()
    tab.status("ready")
    tab.shot("spec-questions-1280")
    question.fill("yes")
    card.button("Answer").click()
    tab.css(".model-says").having("It is clear.").seen()
    question.gone()
    tab.status("ready")
    assert (folder / "spec.md").read_text() == CLEAR
    assert (folder / "questions.md").read_text() == "# Questions\n\nNone open.\n"
    # A task that somebody ticked is done, not proved, and that its file is not there is told.
    (folder / "tasks.md").write_text(TASKS)
    tab.go("code")
    tab.css(".tree").seen()
    tab.go("time")
    card.css("summary").having("1 of 2 tasks done, 0 proved").click()
    rows = [line.split() for line in card.css("tbody tr").all_words()]
    assert [(one[0], one[2]) for one in rows] == [("T001", "done"), ("T002", "open")]
    card.text("T001 is ticked, but lines.py does not exist").seen()
    card.text("pawl spec orchestrate").seen()
    tab.shot("spec-status-1280")
    tab.size(360)
    tab.shot("spec-status-360")


def toml(text: str) -> str:
    return '"' + text.replace("\n", "\\n").replace('"', '\\"') + '"'


def test_a_command_of_ones_own_runs_what_the_user_says_yes_to(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    trusted = f'[trust]\nfolders = ["{tmp_path / "project"}"]\n'
    (tmp_path / "config.toml").write_text(f'{trusted}[permissions]\nask = ["Bash(expr *)"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    files = {**SETTINGS, ".claude/commands/sum.md": "Explain: !`expr 40 + 2`\n"}
    talk = """
[[turn]]
match = { system = "was not run: the user said no" }
times = 0
answer = "Then not."
[[turn]]
match = { system = "42" }
times = 0
answer = "It is the answer. **DONE, verified.**"
"""
    site = opened(files, talk)
    tab = site.tab
    tab.ask("/sum")
    tab.css(".approval").text("expr 40 + 2").seen()
    tab.shot("own-command-1280")
    tab.button("No").click()
    tab.css(".model-says").having("Then not.").seen()
    tab.status("ready")
    tab.ask("/sum")
    tab.css(".approval").text("expr 40 + 2").seen()
    tab.button("Yes").click()
    # Whatever it says of itself, it stands there as the words of the model.
    said = tab.css(".model-says").having("DONE, verified.")
    said.seen()
    assert said.css(".badge").count() == 0 and said.words().startswith("model")
