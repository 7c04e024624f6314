"""Sessions as a person has them, in a terminal of their own: said, shown, asked, answered, stopped, gone on with."""

from __future__ import annotations

import signal

import nursery
import pytest
from ui.terminal.conftest import FILES, FIX, Place
from ui.terminal.emulator import Emulator
from ui.terminal.test_plan_and_history import git

RIGHT = "def after(number):\n    return number + 1\n"
ASKED = "promote this? [y yes, n no, e edit, d diff, l later]"
WAITS = 'while read -r word < flag; [ \\"$word\\" != go ]; do sleep 0.05; done'
WORKS = f"""
[[turn]]
match = {{ user = "slowly", answered = [] }}
answer = {{ text = "I wait.", calls = [{{ name = "run_command", arguments = {{ command = "{WAITS}" }} }}] }}
[[turn]]
match = {{ user = "in blue" }}
answer = "It is blue."
[[turn]]
times = 0
answer = "Nothing was said of a colour."
"""


def begin(seen: Emulator) -> None:
    """A run that works until the flag says `go`."""
    seen.enter("fix the bug slowly")
    seen.expect("run_command while read")
    seen.expect_status("Enter steer, Tab queue, Esc stop")


@pytest.mark.whole
@pytest.mark.spec("A1", "B7")
def test_a_change_is_made_shown_approved_and_taken_back(place: Place):
    with place.open("--model", place.model(FIX)) as seen:
        seen.expect_status("scripted:script.toml · agent · asks at the end · $0.00 · /help")
        seen.type("fix the bug in @app")
        seen.expect("\n> app.py")
        seen.type("\t\r\r")
        seen.expect(ASKED)
        shown = seen.text
        assert "› fix the bug in @app.py\n" in shown
        assert "· file_read app.py → 2 lines" in shown
        assert "1   def after(number):\n2 -     return number + 2\n2 +     return number + 1\n" in shown
        assert (place.workspace / "app.py").read_text() == FILES["app.py"]
        seen.type("maybe\r")
        seen.expect("'maybe' is not an answer")
        seen.type("y\r")
        seen.expect("done, unverified; promoted as entry 1; undo with: /undo 1")
        assert (place.workspace / "app.py").read_text() == RIGHT
        # What is finished is printed once, and never drawn again.
        assert seen.text.count("One is added") == 1
        assert seen.raw.count(b"One is added \x1b[1mnow\x1b[0m.") == 1
        seen.enter("/undo")
        seen.expect("undo with: /undo 2")
        seen.enter("/cost")
        seen.expect("this session: $0.00")
        seen.leave()
    # What was undone does not stand any more.
    assert "continue this conversation" in seen.text and "promoted in this session" not in seen.text
    assert (place.workspace / "app.py").read_text() == FILES["app.py"]
    # The screen is left as it was found: nothing of the input line stays, and pasting is as before.
    assert "asks at the end" not in seen.text
    assert seen.raw.rfind(b"\x1b[?2004l") > seen.raw.rfind(b"\x1b[?2004h")


@pytest.mark.whole
def test_words_said_while_a_run_works_are_taken_at_its_next_step_and_queued_ones_follow(place: Place):
    (place.workspace / "flag").write_text("wait\n")
    with place.open("--model", place.model(WORKS), "--approve", "never", columns=100) as seen:
        begin(seen)
        seen.type("y\r")
        seen.expect("no question is open yet; answer when one comes")
        seen.type("in blue, please\r")
        seen.expect("the model gets this at its next step")
        seen.type("what can you do?\t")
        seen.expect("queued; 1 to follow")
        seen.type("half a sentence")
        (place.workspace / "flag").write_text("go\n")
        seen.expect("the model has your message")
        seen.expect("It is blue.")
        seen.expect("Pawl changes code on a bench")
        # It is named again where it begins.
        assert seen.text.count("› what can you do?") == 2
        # What was being typed is still there.
        seen.expect("› half a sentence")
        seen.expect_idle()
        seen.type("\x03")
        seen.enter("/quit")
        assert seen.finish() == 0


@pytest.mark.whole
@pytest.mark.spec("F4")
@pytest.mark.parametrize("key", ["\x1b", "\x03"])
def test_a_run_is_stopped_by_one_key_and_can_be_gone_on_with(place: Place, key: str):
    (place.workspace / "flag").write_text("wait\n")
    with place.open("--model", place.model(WORKS), "--approve", "never", columns=100) as seen:
        begin(seen)
        seen.type("in green, please\r")
        seen.expect("the model gets this at its next step")
        seen.type(key)
        seen.expect("resume it with: /resume r")
        seen.expect("not read by the model yet, sent along with what you say next: in green, please")
        (place.workspace / "flag").write_text("go\n")
        seen.enter("/resume")
        seen.expect("stopped: fix the bug slowly")
        seen.type("1\r")
        seen.expect("Nothing was said of a colour.")
        seen.expect_status("/help")
        seen.type("\x03")
        seen.expect("Ctrl-C again, or Ctrl-D, leaves")
        # Twice, for a machine on which it took longer to see that than a second press may take.
        seen.type("\x03\x03")
        assert seen.finish() == 0


WORKS_AND_ASKS = f"""
[[turn]]
match = {{ user = "slowly", answered = [] }}
answer = {{ text = "I wait.", calls = [{{ name = "run_command", arguments = {{ command = "{WAITS}" }} }}] }}
{FIX.replace("answered = []", 'answered = ["run_command"]')}"""


@pytest.mark.whole
def test_a_queued_request_is_named_once_when_the_question_is_left_and_follows_once_it_is_answered(place: Place):
    (place.workspace / "flag").write_text("wait\n")
    with place.open("--model", place.model(WORKS_AND_ASKS), columns=100) as seen:
        begin(seen)
        seen.type("what can you do?\t")
        seen.expect("queued; 1 to follow")
        (place.workspace / "flag").write_text("go\n")
        seen.expect(ASKED)
        seen.type("\x1b")
        seen.expect("queued, to follow this run: what can you do?")
        seen.expect_idle()
        seen.enter("/approve")
        seen.expect(ASKED, times=2)
        seen.type("y\r")
        seen.expect("promoted as entry 1")
        seen.expect("Pawl changes code on a bench")
        seen.expect_idle()
        assert seen.text.count("queued, to follow") == 1, seen.text
        assert (place.workspace / "app.py").read_text() == RIGHT
        seen.leave()


@pytest.mark.whole
@pytest.mark.spec("F4")
def test_who_leaves_while_a_run_works_is_told_once_what_is_queued_and_goes_on_with_it_the_next_day(place: Place):
    (place.workspace / "flag").write_text("wait\n")
    words = ("--model", place.model(WORKS), "--approve", "never")
    with place.open(*words, columns=100) as seen:
        begin(seen)
        for number, request in enumerate(("what can you do?", "help"), start=1):
            seen.type(f"{request}\t")
            seen.expect(f"queued; {number} to follow")
        seen.type("\x03\x03")
        assert seen.finish() == 0
    assert "resume it with: pawl -r r" in seen.text
    assert seen.text.endswith("\nqueued, to follow that run: what can you do?; help")
    assert seen.text.count("queued, to follow") == 1
    (place.workspace / "flag").write_text("go\n")
    with place.open("-c", *words, columns=140) as seen:
        seen.expect("was stopped (fix the bug slowly, queued after it: what can you do?; help)")
        seen.expect("resume run r")
        seen.type("y\r")
        seen.expect("Pawl changes code on a bench", times=2)
        seen.leave()
    assert "› what can you do?" in seen.text and "› help" in seen.text
    assert "continue this conversation with: pawl -c" in seen.text and "was stopped;" not in seen.text


HUNKS = """
[[turn]]
match = { user = "both" }
answer = { calls = [
  { name = "file_write", arguments = { path = "one.txt", content = "1\\n" } },
  { name = "file_write", arguments = { path = "two.txt", content = "2\\n" } },
] }
[[turn]]
match = { answered = ["file_write", "file_write"] }
answer = "Both are written."
[[turn]]
match = { user = "third", system = "took only a part of your change; left out: 'one.txt new file'" }
answer = { calls = [{ name = "file_write", arguments = { path = "three.txt", content = "3\\n" } }] }
[[turn]]
match = { user = "fourth", system = "edited your change before it was promoted" }
answer = { calls = [{ name = "file_write", arguments = { path = "four.txt", content = "4\\n" } }] }
[[turn]]
match = { user = "what is in five", system_regex = "(?s)^(?!.*(took only a part|five.txt' the user took)).*$" }
answer = "It is all there."
[[turn]]
match = { user = "fifth" }
answer = { calls = [{ name = "file_write", arguments = { path = "five.txt", content = "5\\n" } }] }
[[turn]]
match = { user = "what now?", system = "rejected your change, nothing of it was promoted: not wanted" }
answer = "I leave it."
[[turn]]
times = 0
answer = "Written."
"""


@pytest.mark.whole
@pytest.mark.spec("B7", "F7")
@pytest.mark.parametrize(
    ("words", "told"),
    [(("--yes",), "done, unverified; promoted as entry 1"), (("--reject", "not this way"), "rejected")],
)
def test_a_question_that_somebody_else_answers_goes_from_the_screen_and_what_came_of_it_is_told(
    place: Place, words: tuple[str, ...], told: str
):
    with place.open("--model", place.model(FIX), columns=100) as seen:
        seen.enter("fix the bug in after")
        seen.expect(ASKED)
        assert nursery.run(("approve", *words), place.workspace)[0] in (0, 1, 7)
        seen.expect("answered in another window")
        seen.expect(told)
        seen.expect_status("/help")
        assert seen.text.count(ASKED) == 1
        assert ((place.workspace / "app.py").read_text() == RIGHT) == (words == ("--yes",))
        # The session goes on as after an answer of its own.
        seen.enter("/queue")
        seen.expect("nothing is queued")
        seen.leave()


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_some_hunks_are_taken_a_change_is_edited_another_rejected_with_a_reason(
    place: Place, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("EDITOR", "sed -i s/^+3/+33/")
    with place.open("--model", place.model(HUNKS)) as seen:
        seen.enter("write both files: add one.txt and two.txt")
        seen.expect("promote this? [y yes, n no, 1 only that hunk, e edit, d diff, l later]")
        seen.type("7\r")
        seen.expect("there is no hunk 7; the hunks are 1 to 2")
        seen.type("2\r")
        seen.expect("done; promoted as entry")
        assert [(place.workspace / name).exists() for name in ("one.txt", "two.txt")] == [False, True]
        seen.enter("add a third file three.txt")
        seen.expect(ASKED)
        seen.type("e\r")
        seen.expect("done; promoted as entry", times=2)
        assert (place.workspace / "three.txt").read_text() == "33\n"
        seen.enter("add a fourth file four.txt")
        seen.expect(ASKED, times=2)
        seen.type("n\r")
        seen.expect("why? [Enter: no reason]")
        seen.type("not wanted\r")
        seen.expect("not done: rejected: not wanted; nothing was promoted")
        seen.enter("what now?")
        seen.expect("I leave it.")
        seen.enter("add a fifth file five.txt")
        seen.expect(ASKED, times=3)
        seen.type("1\r")
        seen.expect("done; promoted as entry", times=3)
        seen.enter("what is in five.txt?")
        seen.expect("It is all there.")
        seen.leave()
    assert not (place.workspace / "four.txt").exists()


TOLD = f"""
[[turn]]
match = {{ user = "slowly", answered = [] }}
answer = {{ calls = [{{ name = "run_command", arguments = {{ command = "{WAITS}" }} }}] }}
[[turn]]
match = {{ user = "and then?", system = "edited flag, notes.txt; read a file again" }}
answer = "The notes are yours (notes.txt:1)."
[[turn]]
match = {{ user = "and now?", system = "undo 1: echo more >> notes.txt (notes.txt)" }}
answer = "It is undone (notes.txt:1)."
[[turn]]
match = {{ user = "next day", system = "edited app.py; read a file again" }}
answer = "The app is yours (app.py:1)."
[[turn]]
match = {{ user = "slowly" }}
answer = "I waited."
"""


@pytest.mark.whole
def test_the_model_is_told_of_edits_and_undone_entries_also_by_what_was_queued_and_on_the_next_day(place: Place):
    (place.workspace / "flag").write_text("wait\n")
    words = ("--model", place.model(TOLD), "--approve", "never")
    with place.open(*words, columns=100) as seen:
        seen.enter("fix it slowly")
        seen.expect("run_command")
        (place.workspace / "notes.txt").write_text("mine\n")
        seen.type("and then?\t")
        seen.expect("queued; 1 to follow")
        (place.workspace / "flag").write_text("go\n")
        seen.expect("The notes are yours")
        seen.enter("!echo more >> notes.txt")
        seen.expect("promote this? [y yes, n no]")
        seen.type("y\r")
        seen.expect("promoted as entry 1")
        seen.enter("/undo")
        seen.expect("this is entry 2")
        seen.enter("and now?")
        seen.expect("It is undone")
        seen.leave()
    (place.workspace / "app.py").write_text(RIGHT)
    with place.open("-c", *words, columns=100) as seen:
        seen.expect("continues")
        seen.enter("next day")
        seen.expect("The app is yours")
        seen.leave()


SEEN = """
[[turn]]
match = { user = "after one", system = "created fresh.txt" }
answer = "Told of one."
[[turn]]
match = { user = "after two", system = "deleted deep/er/thing.py" }
answer = "Told of two."
[[turn]]
match = { user = "after three", system = "edited 'two words.txt'; read a file again" }
answer = "Told of three."
[[turn]]
match = { user = "after four", system = "promote 1: sh -c 'echo 1 >> notes.txt' (notes.txt)" }
answer = "Told of four."
[[turn]]
match = { user = "after five", system = "entry 3: sh -c 'echo 2 >> app.py' (app.py)" }
answer = "Told of five."
[[turn]]
match = { user = "after six", system = "the user did this" }
answer = "Told of what was told before."
[[turn]]
match = { user = "after seven", system_regex = "entry 4: undo 3: .*app.py.\\n- edited app.py" }
answer = "Told of seven."
[[turn]]
match = { user = "after eight", system_regex = "entry 5: redo of undo 3: .*app.py.\\n- deleted app.py" }
answer = "Told of eight."
[[turn]]
times = 0
answer = "Told of nothing."
"""


@pytest.mark.whole
def test_the_model_is_told_of_new_and_deleted_files_and_of_what_was_promoted_by_hand_or_elsewhere(place: Place):
    project = place.workspace
    (project / "two words.txt").write_text("first\n")
    place.piped(words=("run", "--", "sh", "-c", "echo 1 >> notes.txt"))
    with place.open("--model", place.model(SEEN), "--mode", "chat", columns=100) as seen:

        def then(count: str) -> None:
            seen.enter(f"what is there after {count}?")
            seen.expect(f"Told of {count}.")
            seen.expect_idle()

        seen.expect_status("chat")
        then("nothing")
        (project / "fresh.txt").write_text("new\n")
        then("one")
        (project / "deep/er/thing.py").unlink()
        then("two")
        (project / "two words.txt").write_text("second\n")
        then("three")
        seen.enter("/promote 1")
        seen.expect("promoted as entry")
        seen.expect_idle()
        then("four")
        place.piped(words=("run", "--apply", "--", "sh", "-c", "echo 2 >> app.py"))
        then("five")
        seen.enter("what is there after six?")
        seen.expect("Told of nothing.", times=2)
        seen.expect_idle()
        place.piped(words=("undo", "3"))
        (project / "app.py").write_text("x = 1\n" + (project / "app.py").read_text())
        then("seven")
        place.piped(words=("redo",))
        (project / "app.py").unlink()
        then("eight")
        seen.leave()


TWICE = """
[[turn]]
match = { user = "Task 1 of 2", answered = [] }
answer = { calls = [{ name = "file_write", arguments = { path = "one.txt", content = "1\\n" } }] }
[[turn]]
match = { user = "Task 2 of 2", answered = [] }
answer = { calls = [{ name = "file_write", arguments = { path = "two.txt", content = "2\\n" } }] }
[[turn]]
times = 0
answer = "It adds two."
"""


def test_a_conversation_shows_what_the_user_said_and_not_what_pawl_sent_to_the_model(place: Place):
    words = ("--model", place.model(TWICE))
    place.piped("what does app.py do?", words=("--mode", "chat", *words))
    said = place.piped("/resume", "", "/export told.md", words=("-c", *words))
    assert [line for line in said.split("\n") if line.startswith("› ")][:1] == ["› what does app.py do?"]
    assert said.count("It adds two.") == 1 and "names no place" not in said
    assert "1 request: what does app.py do?" in said
    tasks = "Task:\n1. write one.txt\n2. write two.txt\nScope: one.txt, two.txt"
    place.piped(words=("do", tasks, "--approve", "never", *words), ends=5)
    said = place.piped("/resume", "", words=("-c", *words))
    assert "2. write two.txt Scope: one.txt, two.txt\nIt adds two.\n" in said
    assert "1 request: Task: 1. write one.txt" in said and "of 2" not in said
    page = (place.workspace / "told.md").read_text()
    assert page.count("## You") == 1
    assert "Your answer names no place" in page.partition("## Pawl to the model")[2].partition("##")[0]


@pytest.mark.whole
def test_a_command_that_stands_for_a_request_is_shown_as_it_was_typed(place: Place):
    git(place, "init", "-q")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    (place.workspace / "notes.txt").write_text("second\n")
    answers = """
[[turn]]
match = { user_regex = "(?s)Review this change.*the notes.*[+]second" }
answer = "It is sound."
[[turn]]
match = { user = "Write the AGENTS.md" }
answer = "# Rules for app.py and notes.txt"
"""
    words = ("--model", place.model(answers))
    with place.open(*words, columns=100) as seen:
        seen.enter("/review the notes")
        seen.expect("It is sound.")
        seen.enter("/rewind")
        seen.expect("–      /review the notes\n")
        seen.expect("go back to before which request?")
        seen.type("\r")
        seen.enter("/init")
        seen.expect("1 + # Rules for app.py and notes.txt")
        seen.expect("promote this?")
        seen.type("n\r")
        seen.expect("nothing was written")
        seen.leave()
    with place.open("-r", *words, columns=100) as seen:
        seen.expect("1 request: /init\n")
        seen.expect("1 request: /review the notes\n")
        seen.expect("which? [number or id")
        seen.type("2\r")
        seen.expect("› /review the notes\nIt is sound.")
        seen.expect("continues")
        seen.leave()
    assert "Review this change" not in seen.text


@pytest.mark.attack("A44")
def test_hostile_words_pasted_lines_and_wide_letters_are_shown_as_they_are(place: Place):
    hostile = 'answer = "bad \\u001b[2J\\u202e \\u001b]0;title\\u0007 日本語 end"'
    with place.open("--model", place.model(f"[[turn]]\ntimes = 0\n{hostile}\n"), "--mode", "chat", columns=40) as seen:
        seen.expect_status("chat")
        seen.paste("what is\n日本語\there?")
        seen.expect("  日本語")
        assert "bad" not in seen.text
        seen.type("\r")
        seen.expect("日本語 end")
        assert "bad \\x1b[2J\\u{202e} \\x1b]0;title\\x07" in seen.text.replace("\n", " ")
        assert b"\x1b]0;" not in seen.raw and "\u202e".encode() not in seen.raw
        seen.expect("run r")
        seen.resize(60)
        seen.enter("/status")
        seen.expect("conversation  c")
        assert all(len(line) <= 60 for line in seen.lines)
        seen.leave()


def test_a_conversation_is_gone_on_with_and_forked(place: Place):
    model = place.model('[[turn]]\ntimes = 0\nanswer = "It says first (notes.txt:1)."\n')
    said = place.piped("what does notes.txt say?", "/status", words=("--model", model, "--mode", "chat"))
    first = said.partition("conversation  ")[2].split()[0]
    assert first.startswith("c")
    with place.open("-c", "--fork-session", "--model", model) as seen:
        seen.expect("› what does notes.txt say?")
        seen.expect("It says first (notes.txt:1).")
        seen.expect("the first one is unchanged")
        seen.enter("/new")
        seen.enter("/resume")
        seen.expect("which? [number or id, Enter: none]")
        seen.type(f"{first}\r")
        seen.expect(f"conversation {first} continues")
        seen.leave()
    said = place.piped("/status", words=("-r", first, "--model", model))
    assert f"conversation  {first}" in said


def test_an_answer_of_ask_is_folded_between_words_with_a_line_below_it_that_goes(place: Place):
    words = "word " * 40
    answer = f'answer = {{ text = "**First** {words}\\n\\nSecond.", calls = [] }}'
    with place.open("ask", "--model", place.model(f"[[turn]]\ntimes = 0\n{answer}\n"), "what?", columns=40) as seen:
        assert seen.finish() == 0
    assert b"waiting for an answer" in seen.raw
    assert "waiting for an answer" not in seen.text
    assert seen.lines[0] == "First word word word word word word"
    assert "\n\nSecond.\n" in seen.text
    assert set(" ".join(seen.text.partition("\n\nSecond")[0].split()).split()) == {"First", "word"}


@pytest.mark.spec("F4")
def test_a_session_ended_from_outside_leaves_the_terminal_as_it_was_and_its_run_to_be_gone_on_with(
    place: Place,
):
    (place.workspace / "flag").write_text("wait\n")
    with place.open("--model", place.model(WORKS), "--approve", "never", columns=100) as seen:
        begin(seen)
        seen.process.send_signal(signal.SIGTERM)
        assert seen.finish() == 143
    assert "resume it with: pawl -r r" in seen.text
    assert seen.raw.rfind(b"\x1b[?2004l") > seen.raw.rfind(b"\x1b[?2004h")


FAILS = '''
[[turn]]
match = { user = "what fails", answered = [] }
answer = { calls = [
  { name = "run_command", arguments = { command = """
for n in 1 2 3 4 5; do echo line $n; done; echo broken >&2
: a command that is much longer than the window is wide; exit 3""" } },
  { name = "file_read", arguments = { path = "missing.py" } },
] }
[[turn]]
times = 0
answer = "It is broken."
'''


@pytest.mark.parametrize("columns", [50, 80])
def test_a_failed_command_is_seen_with_its_exit_code_and_last_lines_and_a_key_shows_all_of_it(
    place: Place, columns: int
):
    with place.open("--model", place.model(FAILS), columns=columns) as seen:
        seen.expect_status("agent")
        seen.enter("add a file, and see what fails")
        seen.expect("not done; nothing was changed")  # An answer is seen while it comes, perhaps before the calls.
        lines = seen.lines
        failed = next(line for line in lines if line.startswith("✗ run_command for n in"))
        assert "… → exit 3" in failed
        at = lines.index(failed)
        assert lines[at + 1 : at + 5] == ["  | … 3 more lines", "  | line 4", "  | line 5", "  | broken"]
        # A call that takes long is cut to make room for its seconds.
        assert "missing.py" in seen.text.partition("✗ file_read")[2].partition("It is broken")[0]
        seen.type("\x0f")
        seen.expect("  path: missing.py")
        assert "  | line 1\n" not in seen.text
        seen.type("\x0f")
        seen.expect("  | line 1\n")
        seen.type("\x0f")
        seen.expect("there is no earlier call")
        seen.leave()
