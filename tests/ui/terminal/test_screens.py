"""The screens of a session in windows of three widths, held against files: `screens/NAME-WIDTH.txt`.

A screen is waited for: what is drawn meanwhile does not count, and what never comes is shown as a difference. A file
that is not there is written, and the test fails so that somebody reads it.
"""

from __future__ import annotations

import html
import re
import runpy
import time
from dataclasses import dataclass, field
from pathlib import Path

import nursery
import pytest
from models.provider_socket import provider
from ui.cli.test_cli_attachments import PNG
from ui.cli.test_cli_setup import home
from ui.terminal.conftest import Place
from ui.terminal.emulator import Emulator
from ui.terminal.test_first_start import answer
from ui.terminal.test_plan_and_history import git
from ui.terminal.test_pull_request import host
from ui.terminal.test_session import WAITS

__all__ = ["home", "host"]

FOLDER = Path(__file__).parent / "screens"
SAME = (
    # Where the line of the cost is folded depends on its figures.
    (
        re.compile(r"^.* · \d+ requests? · [^›]*?\brun\s+r[0-9a-f]{8}$", re.MULTILINE),
        lambda m: " ".join(m[0].split()),
    ),
    # A call that takes long is shown with its seconds, and cut to make room for them.
    (re.compile(r"^(· \w+ \S+)\n +(c.*), \d+\.\d s$", re.MULTILINE), r"\1 → \2"),
    (re.compile(r"^(· \w+), \d+\.\d s$", re.MULTILINE), r"\1"),
    (re.compile(r"(\d+ lines?|…),\s+\d+\.\d\s+s$", re.MULTILINE), r"\1"),
    (re.compile(r"^(✗ run_command for n in 1).*… → (exit 3)(?:, \d+\.\d s)?$", re.MULTILINE), r"\1… → \2"),
    (re.compile(r"^[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏] (\S+ \S+).*$", re.MULTILINE), r"⠋ \1…"),
    (re.compile(r"\d+\.\d s\b"), "0.1 s"),
    (re.compile(r"\br[0-9a-f]{8}\b"), "r5161e0c6"),
    (re.compile(r"\bc[0-9a-f]{8}\b"), "c5161e0c6"),
    (re.compile(r"\d[\d,]* tokens"), "900 tokens"),
    (re.compile(r"\btokens in, \d+ out"), "tokens in, 9 out"),
    (re.compile(r"\b[0-9a-f]{12}\b"), "5161e0c65161"),
    (re.compile(r"^(\d+  (?:c5161e0c6  )?)\d\d:\d\d ", re.MULTILINE), r"\g<1>09:30 "),
)
WIDTHS = pytest.mark.parametrize("columns", [50, 80, 120])
SETTLED, WRITTEN_AFTER = 3.0, 20.0
"""A new file is written when nothing is drawn for so many seconds, or after so many where it never stands still."""


@dataclass
class Screens:
    """The screens of one session; those that are new are written."""

    seen: Emulator
    columns: int
    new: list[str] = field(default_factory=list)

    def typed(self, text: str, *steps: tuple[str, str], name: str = "") -> None:
        """Types a line and answers each question, until the input is empty again."""
        self.seen.enter(text)
        for question, said in steps:
            self.seen.expect(question)
            self.seen.type(said)
        if name:
            self.shows(name, f"\n› {text[:1]}", until="\n›\n")
        else:
            self.seen.expect_idle()

    def shows(self, name: str, start: str, until: str = "") -> None:
        """Waits until the text from the last `start` on is that of the file; with `until`, the text before the last of
        these, and until nothing works any more."""
        file = FOLDER / f"{name}-{self.columns}.txt"
        wanted = file.read_text() if file.exists() else None
        deadline = time.monotonic() + (nursery.PATIENCE if wanted else WRITTEN_AFTER)
        while (shown := self._shown(start, until)) != wanted and time.monotonic() < deadline:
            if not self.seen.more(deadline if wanted else time.monotonic() + SETTLED):
                break
        assert max(map(len, self.seen.text.split("\n"))) <= self.columns
        if wanted is None:
            file.write_text(shown)
            self.new.append(name)
        else:
            assert shown == wanted
        if until:
            # The input is drawn before the session knows that its last command has ended.
            self.seen.expect_idle()

    def _shown(self, start: str, until: str) -> str:
        text = f"\n{self.seen.text}"
        if until:
            text = text.rpartition(until)[0]
        text = text[text.rfind(start) + 1 :].rstrip()
        for pattern, instead in SAME:
            text = pattern.sub(instead, text)
        return f"{text}\n"

    def leaves(self, name: str = "", start: str = "") -> None:
        self.seen.leave()
        if name:
            self.shows(name, start)
        assert not self.new, f"screens that were not there are written: read {', '.join(self.new)}"


RUN = '''
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


@pytest.mark.whole
@WIDTHS
def test_screens_are_as_they_were(place: Place, columns: int):
    with place.open("--model", place.model(RUN), columns=columns, rows=60) as seen:
        screens = Screens(seen, columns)
        seen.expect_status("agent")
        seen.enter("fix the bug in the app")
        seen.expect("promote this?")
        seen.type("y\r")
        screens.shows("run", "\n› f", until="\n›\n")
        seen.enter("!echo more >> notes.txt")
        seen.expect("promote this? [y yes, n no]")
        seen.type("n\r")
        screens.shows("command", "\n› !", until="\n›\n")
        seen.enter("/help")
        screens.shows("help", "\n› /", until="\n›\n")
        screens.leaves("farewell", "\npromoted in")


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


@pytest.fixture
def quiet(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """A status line without what depends on the width of a name."""
    config = place.workspace.parent / "config.toml"
    config.write_text('[session]\nstatus_line = ["keys", "model"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(config))


@pytest.mark.whole
@WIDTHS
def test_screens_of_questions_plans_stops_and_the_way_back_are_as_they_were(
    place: Place, host: Path, quiet: None, columns: int
):
    (place.workspace / "flag").write_text("wait\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "flag")
    (host / "known").mkdir()
    (host / "known/app.py").write_text((place.workspace / "app.py").read_text())
    with place.open("--model", place.model(DAY), "--approve", "each", columns=columns, rows=60) as seen:
        screens = Screens(seen, columns)
        seen.expect_status("scripted")
        screens.typed(
            "fix the bug in the app", ("carry it out?", "y\r"), ("promote this?", "y\r"), ("as entry", ""), name="each"
        )
        screens.typed("/pr add one", ("open a pull request", "y\r"), ("opened: ", ""), name="pr")
        screens.typed("/approval never")
        screens.typed("/plan add one.txt", ("carry out this plan?", "y\r"), ("as entry 2", ""), name="plan")
        screens.typed("/commit", ("commit this?", "y\r"), ("committed as", ""), name="commit")
        screens.typed("/rewind", ("which request?", "2\r"), ("rewound to", ""), name="rewind")
        seen.enter("fix it slowly")
        screens.shows("stream", "\n› f")
        seen.type("\x1b")
        seen.expect("/resume r")
        screens.shows("stop", "\n› f", until="\n›\n")
        screens.leaves()


TYPED = """
[[turn]]
times = 0
answer = "It adds two."
"""


@WIDTHS
def test_screens_of_menus_pastes_searches_and_attached_files_are_as_they_were(place: Place, quiet: None, columns: int):
    (place.workspace / "shot.png").write_bytes(PNG)
    with place.open("--model", place.model(TYPED), "--mode", "chat", columns=columns, rows=60) as seen:
        screens = Screens(seen, columns)
        seen.expect_status("scripted")
        seen.type("/co")
        screens.shows("menu", "\n› ")
        seen.type("\x1b[B")
        screens.shows("menu-moved", "\n› ")
        seen.type("\x1b\x03@app")
        screens.shows("menu-files", "\n› ")
        seen.type("\x1b\x03")
        seen.paste("\n".join(f"line {number}" for number in range(12)))
        screens.shows("paste", "\n› ")
        seen.type("\x03")
        screens.typed("what is on @shot.png beside @app.py:2?", ("run r", ""), name="attached")
        seen.type("\x12what is")
        screens.shows("search", "\n› ")
        seen.type("\r\x03")
        screens.leaves("farewell-chat", "\ncontinue")


@WIDTHS
def test_screens_of_the_first_start_and_of_the_choice_of_a_model_are_as_they_were(
    place: Place, home: Path, monkeypatch: pytest.MonkeyPatch, columns: int
):
    (place.workspace / "shot.png").write_bytes(PNG)
    with place.open("--mode", "chat", columns=columns, rows=60) as seen:
        screens = Screens(seen, columns)
        screens.shows("start-without", "\n! no model")
        seen.type("\r")
        screens.shows("start-none-chosen", "\n! no model")
        screens.leaves()
    monkeypatch.setenv("OPENAI_API_KEY", "sk-first-start-0123456789")
    with provider(*[[answer]] * 30) as playing:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{playing.port}/v1")
        with place.open("--mode", "chat", columns=columns, rows=60) as seen:
            screens = Screens(seen, columns)
            seen.expect("which?")
            seen.type("1\r")
            screens.shows("start", "\n! no model", until="\n›\n")
            seen.enter("/model")
            screens.shows("model", "\n› /")
            seen.type("1\r")
            screens.shows("model-chosen", "\n› /", until="\n›\n")
            with (home / ".config/pawl/config.toml").open("a") as file:
                file.write('[models."openai/*"]\nimages = true\n')
            screens.typed("what is on @shot.png beside @app.py:2?", ("run r", ""), name="picture")
            screens.leaves()


@WIDTHS
def test_screens_of_words_notes_modes_outputs_and_what_can_be_taken_up_are_as_they_were(
    place: Place, quiet: None, columns: int
):
    words = ("what does @app.py do?", "--model", place.model(TYPED), "--mode", "chat")
    with place.open(*words, columns=columns, rows=60) as seen:
        screens = Screens(seen, columns)
        seen.expect("run r")
        screens.shows("words", "\n› w", until="\n›\n")
        screens.typed("#we release on Fridays", ("remembered as", ""), name="note")
        seen.type("\x1b[Z")
        seen.expect_status("scripted")
        screens.typed("/mode", name="mode")
        screens.typed("!mkdir .benchmarks; touch .coverage; exit 3", ("exit 3", ""), name="by-products")
        screens.typed("/resume", ("which?", "\r"), ("Enter: none]", ""), name="resume")
        screens.leaves()


REFUSED = """
[[turn]]
match = { user = "The checks refuse this work" }
answer = { calls = [{ name = "strict_patch", arguments = { path = "one.py", old = "onne", new = "1" } }] }
[[turn]]
match = { user = "Task 1 of 2", answered = [] }
answer = { calls = [{ name = "file_write", arguments = { path = "one.py", content = "one = onne\\n" } }] }
[[turn]]
match = { user = "Task 2 of 2", answered = [] }
answer = { calls = [{ name = "file_write", arguments = { path = "two.py", content = "two = 2\\n" } }] }
[[turn]]
times = 0
answer = "Done."
"""


@pytest.mark.whole
@WIDTHS
def test_screens_of_tasks_refusals_and_whole_outputs_are_as_they_were(place: Place, quiet: None, columns: int):
    with place.open("--model", place.model(REFUSED), "--approve", "never", columns=columns, rows=60) as seen:
        screens = Screens(seen, columns)
        seen.expect_status("scripted")
        seen.paste("Task:\n1. write one.py\n2. write two.py\nScope: one.py, two.py")
        seen.type("\r")
        seen.expect("\nscripted:script.toml · ")
        screens.shows("tasks", "\n› T", until="\n›\n")
        seen.type("\x0f")
        screens.shows("expanded", "\n· file_write", until="\n›\n")
        screens.leaves()


ROOT = Path(__file__).resolve().parents[3]
LONG = re.compile(r"(?<=✗ run_command python).*(?=→ exit 1)|, \d+\.\d s| · \d+\.\d s")


@pytest.mark.whole
def test_the_picture_of_the_readme_shows_the_session_as_it_is(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("HOME", "PAWL_STATE", "VIRTUAL_ENV", "PATH", "TERM", "LC_ALL", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"):
        monkeypatch.setenv(name, "")  # the script sets them, and they are put back
    capture = runpy.run_path(str(ROOT / "scripts/capture"))
    with capture["play"](tmp_path) as seen:
        shown = "\n".join("".join(text for text, *_ in row) for row in capture["rows_of"](seen))
    drawn = re.findall(r"<text [^>]*>(.*)</text>", (ROOT / "docs/images/session.svg").read_text())
    told = "\n".join(html.unescape(re.sub(r"<[^>]*>", "", line)) for line in drawn)
    # Where lines are cut and folded depends on the seconds in them.
    assert LONG.sub("", shown).split() == LONG.sub("", told).split(), f"scripts/capture draws it anew:\n{shown}"
