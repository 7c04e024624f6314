"""The pieces of a session by themselves: blocks of Markdown, the status line, commands as data, what is typed again."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from pawl.agent.own_commands import own_commands
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import UsageError
from pawl.core.run import ApprovalRequest
from pawl.settings.config import load
from pawl.settings.trust import trust
from pawl.ui.cli.overview import COMMANDS
from pawl.ui.screen.approval import always_kinds
from pawl.ui.screen.diff import diff_lines, folded
from pawl.ui.screen.markdown import Blocks, drawn
from pawl.ui.screen.renderer import Meter
from pawl.ui.screen.screen import cells
from pawl.ui.terminal.actions import Actions
from pawl.ui.terminal.commands import Commands, SessionCommand, built_in, split, spoken_here
from pawl.ui.terminal.input_line import PrivateHistory, Suggestions
from pawl.ui.terminal.status import KEYS, SessionChoices, status_line
from pawl.ui.terminal.work_actions import GROUPS

TEXT = """\
# Title

A paragraph
of two lines.

1. one

   more of one
2. two

```python
def f():

    return 1
```
after
"""


def test_an_answer_is_cut_into_blocks_wherever_its_pieces_begin():
    whole = ["# Title", "A paragraph\nof two lines.", "1. one\n\n   more of one\n2. two"]
    whole += ["```python\ndef f():\n\n    return 1\n```", "after"]
    for size in (1, 3, 7, len(TEXT)):
        blocks = Blocks()
        found = [one for at in range(0, len(TEXT), size) for one in blocks.feed(TEXT[at : at + size])]
        assert [*found, *blocks.close()] == whole


@given(st.lists(st.sampled_from(["a\n", "\n", "```\n", "  x\n", "- y\n", "z"]), max_size=80))
def test_no_word_of_an_answer_is_lost_between_blocks(pieces: list[str]):
    blocks = Blocks()
    found = [one for piece in pieces for one in blocks.feed(piece)]
    found += blocks.close()
    words = [word for one in found for word in one.split() if word != "```"]
    assert words == [word for word in "".join(pieces).split() if word != "```"]


def test_a_long_fence_is_shown_in_parts_that_are_fences_themselves():
    blocks = Blocks()
    text = "```c\n" + "".join(f"line {number}\n" for number in range(200)) + "```\n"
    found = [*blocks.feed(text), *blocks.close()]
    assert len(found) > 2
    assert all(one.startswith("```c\n") and one.endswith("\n```") for one in found)


@pytest.mark.attack("A44")
@pytest.mark.parametrize("text", ["a \x1b[31mred", "&#27;[2J", "&#x202e;gnp", "[x](https://a.b/\u202e)", "`\x9b31m`"])
def test_nothing_in_an_answer_is_obeyed_by_the_terminal(text: str):
    blocks = Blocks()
    shown = "".join(drawn(one, 60, color=False) for one in (*blocks.feed(text), *blocks.close()))
    assert not any(one in shown for one in "\x1b\x9b\u202e")


@given(st.text("aé日本 -", max_size=200), st.integers(2, 40))
def test_folded_text_fits_and_loses_nothing(text: str, width: int):
    parts = list(folded(text, width))
    assert "".join(parts) == text
    assert all(cells(part) <= width for part in parts)


class Contents:
    def __init__(self) -> None:
        self.known: dict[str, bytes] = {}

    def node(self, data: bytes) -> Node:
        name = str(len(self.known))
        self.known[name] = data
        return Node.file(name)

    def get(self, digest: str) -> bytes:
        return self.known[digest]


@pytest.mark.parametrize("width", [40, 80])
def test_a_diff_is_numbered_and_fits_the_window(width: int):
    blobs = Contents()
    old = b"one\ntwo\n" + b"long " * 40 + b"\nlast\n"
    change = Change("src/a.py", blobs.node(old), blobs.node(old.replace(b"two", b"2\x1b[2J").replace(b"last", b"end")))
    lines = [text for text, _ in diff_lines(ChangeSet((change,)), blobs, width)]
    assert lines[:5] == ["src/a.py", "[1] @@ -1,4 +1,4 @@", "1   one", "2 - two", "2 + 2\\x1b[2J"]
    assert lines[-2:] == ["4 - last", "4 + end"]
    assert all(cells(line) <= width for line in lines)


def test_a_file_that_comes_or_goes_is_shown_whole_and_what_is_no_text_is_named():
    blobs = Contents()
    changes = ChangeSet.of(
        [
            Change("come.txt", None, blobs.node(b"new\n")),
            Change("gone.txt", blobs.node(b"old\n"), None),
            Change("logo.bin", None, blobs.node(b"\x00\x01")),
        ]
    )
    lines = [text for text, _ in diff_lines(changes, blobs, 80)]
    assert lines[:3] == ["come.txt", "[1] new file", "1 + new"]
    assert lines[3:6] == ["gone.txt", "[2] deleted file", "1 - old"]
    assert lines[6:] == ["logo.bin", lines[7]] and lines[7].startswith("[3] ")


@pytest.mark.parametrize(
    ("agreed", "other", "same"),
    [
        ({"path": "src/app.py"}, {"path": "src/app.py"}, True),
        ({"path": f"src/{'deep/' * 10}one.py"}, {"path": f"src/{'deep/' * 10}two.py"}, False),
        ({"command": "git push"}, {"command": "git push --tags"}, True),
        ({"command": "cd a && git push"}, {"command": "cd a && rm -r b"}, False),
        ({"command": "A=1 git push"}, {"command": "A=1 rm -r b"}, False),
        ({"url": "https://docs.python.org/3/"}, {"url": "https://docs.python.org/2/"}, True),
        ({"url": "https://docs.python.org/3/"}, {"url": "https://example.org/?key=1"}, False),
    ],
)
def test_always_is_about_what_was_named_and_nothing_else(
    agreed: dict[str, object], other: dict[str, object], same: bool
):
    first, second = (ApprovalRequest(kind="call", digest="", tool="tool", arguments=one) for one in (agreed, other))
    assert (always_kinds(first, "r1")["p"] == always_kinds(second, "r2")["p"]) is same


def test_the_status_line_leaves_out_what_does_not_fit_and_keeps_what_matters():
    wishes, meter = SessionChoices(), Meter(context_tokens=500, context_window=1000)
    for width in range(10, 140):
        line = status_line(wishes, meter, model="openai/gpt-5", doing="working", width=width)
        assert cells(line) <= width
    assert line == "openai/gpt-5 · agent · asks at the end · $0.00 · context 50% · Enter steer, Tab queue, Esc stop"
    assert status_line(wishes, meter, model="", doing="idle", width=40).startswith("no model · agent · ")


def test_every_command_has_something_behind_it():
    names = {one.name for one in built_in() if not one.line}
    assert [name for name in sorted(names) if not callable(getattr(Actions, name, None))] == []
    assert {one.line[0] for one in built_in() if one.line} <= set(COMMANDS)
    assert {one.group for one in built_in()} <= set(GROUPS)
    every = [name for one in built_in() for name in (one.name, *one.others)]
    assert len(every) == len(set(every))


def test_an_unknown_command_says_which_one_may_be_meant_and_a_path_is_no_command():
    with pytest.raises(UsageError) as caught:
        Commands().find("stauts")
    assert caught.value.advice == "did you mean /status?"
    assert split("/etc/hosts is wrong") is None
    assert split("/plan  add it ") == ("plan", "add it")
    assert Commands((SessionCommand(name="undo", help="mine", group="yours"),)).find("undo").help != "mine"


def test_a_hint_of_the_command_line_is_said_in_the_words_of_the_session():
    assert spoken_here("see it with: pawl diff 3     promote it with: pawl promote 3") == (
        "see it with: /diff 3     promote it with: /promote 3"
    )
    assert spoken_here("bring it back with 'pawl undo 2' or 'pawl redo'") == "bring it back with '/undo 2' or '/redo'"
    assert spoken_here("'pawl queue list' lists them") == "'/jobs list' lists them"
    assert spoken_here("pip install pawl; pawl gc") == "pip install pawl; pawl gc"
    assert spoken_here("resume it with: pawl do --resume r1") == "resume it with: /resume r1"
    assert spoken_here("resume it with: pawl do --resume r1", ends=True) == "resume it with: pawl -r r1"


def test_hidden_files_and_installed_packages_are_offered_last():
    paths = (
        ".venv/lib/site-packages/thing.py",
        "web/node_modules/thing.js",
        ".hidden/thing.py",
        "tests/deep/test_thing.py",
    )
    suggestions = Suggestions(lambda: built_in(), lambda: paths)
    found = [one.text.strip() for one in suggestions.get_completions(Document("look at @thing"), CompleteEvent())]
    assert found[0] == "@tests/deep/test_thing.py" and len(found) == 4


def test_commands_and_files_are_completed():
    suggestions = Suggestions(lambda: built_in(), lambda: ("deep/er/thing.py", "thing.txt", "a/nothing"))

    def offered(text: str) -> list[str]:
        return [one.text for one in suggestions.get_completions(Document(text), CompleteEvent())]

    assert offered("/rew") == ["/rewind "]
    assert offered("look at @thing") == ["@thing.txt ", "@deep/er/thing.py ", "@a/nothing "]
    assert offered("me@thing") == [] and offered("plain") == []


@pytest.mark.spec("F8")
def test_commands_of_a_folder_count_only_where_it_is_trusted(tmp_path: Path):
    config = load({"HOME": str(tmp_path / "home"), "PAWL_STATE": str(tmp_path / "state")})
    mine = config.file.parent / "commands"
    mine.mkdir(parents=True)
    (mine / "greet.md").write_text("---\ndescription: Says hello\nargument-hint: NAME\n---\nGreet $1, $ARGUMENTS.\n")
    folder = tmp_path / "work"
    (folder / ".pawl" / "commands").mkdir(parents=True)
    (folder / ".pawl" / "commands" / "ship.md").write_text("# Ship it\n\nRelease the thing.\n")
    assert {one.name for one in own_commands(config, str(folder))} & {"greet", "ship"} == {"greet"}
    trust(config, str(folder))
    found = {one.name: one for one in own_commands(config, str(folder))}
    greet, ship = found["greet"], found["ship"]
    assert found["refactoring"].text.startswith("# Refactoring")
    assert (greet.description, greet.arguments, ship.description) == ("Says hello", "NAME", "Ship it")


def test_what_was_typed_is_kept_for_its_user_alone_and_without_secrets(tmp_path: Path):
    path = tmp_path / "input" / "a.jsonl"
    history = PrivateHistory(path)
    key = "sk-ant-" + "api03-" + "A1b2C3d4" * 11 + "AA"
    for line in ("first", f"use {key} please", "two\nlines", "x" * 30_000):
        history.append_string(line)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert key not in path.read_text()
    with path.open("a") as file:
        file.write('"torn')
    again = list(PrivateHistory(path).load_history_strings())
    assert again[0] == "two\nlines" and again[-1] == "first" and len(again) == 3


def test_every_command_and_key_is_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "terminal.md").read_text()
    for one in built_in():
        usage = one.usage.replace("|", "\\|")
        assert f"| `{usage}` | {one.help}" in page, one.name
        assert all(f"`/{name}`" in page for name in one.others)
    assert [what for _, what in KEYS if f" | {what} |\n" not in page] == []
