"""The input line as it is used all day: commands of one's own, notes, attached files, menus, search, pastes, modes."""

from __future__ import annotations

from ui.terminal.conftest import Place

TALK = """
[[turn]]
match = { user_regex = "ten lines" }
answer = "Ten it is."
[[turn]]
match = { user_regex = "(?s)app.py:2.*" , answered = ["file_read"] }
answer = "It adds two."
[[turn]]
times = 0
answer = "Nothing."
"""


def test_a_command_of_the_user_runs_on_a_bench_its_change_is_offered_and_the_model_is_told(place: Place):
    model = place.model('[[turn]]\nmatch = { system = "ran `echo out" }\nanswer = "I saw it."\n')
    with place.open("--model", model, "--mode", "chat", columns=100) as seen:
        seen.enter("!echo out; echo more >> notes.txt; exit 3")
        seen.expect("promote this? [y yes, n no]")
        assert "\n  out\n✗ exit 3" in seen.text and "2 + more" in seen.text
        assert (place.workspace / "notes.txt").read_text() == "first\n"
        seen.type("y\r")
        seen.expect("promoted as entry 1")
        assert (place.workspace / "notes.txt").read_text() == "first\nmore\n"
        seen.enter("#tests run with make")
        seen.expect("remembered as 1")
        seen.enter("what did I do?")
        seen.expect("I saw it.")
        seen.expect("run r")
        seen.leave()
    assert seen.text.rstrip().endswith("continue this conversation with: pawl -c")


def test_menus_search_pastes_and_modes_take_a_key_each(place: Place):
    with place.open("--model", place.model(TALK), "--mode", "chat", columns=100) as seen:
        seen.expect_status("chat")
        seen.type("\x1b[Z")
        seen.expect_status("· agent ·")
        seen.type("\x1b[Z")
        seen.expect_status("· plan ·")
        seen.type("\x1b[Z")
        seen.expect_status("· chat ·")
        seen.type("/co")
        seen.expect("> /compact")
        seen.type("\x1b[B")
        seen.expect("> /context")
        seen.type("\r\r")
        seen.expect("empty: a new conversation")
        seen.type("/que")
        seen.expect("> /queue [REQUEST|clear]")
        seen.type("\r\r")
        seen.expect("nothing is queued")
        seen.paste("\n".join(f"ten lines {number}" for number in range(12)))
        seen.expect("› [12 lines]")
        seen.expect_idle()
        seen.type("\r")
        seen.expect("Ten it is.")
        assert "  ten lines 4\n" in seen.text
        seen.expect("run r")
        seen.enter("what does @app.py:2 say?")
        seen.expect("It adds two.")
        seen.expect("run r", times=2)
        seen.type("\x0f")
        seen.expect("  start: 2\n  end: 2\n")
        seen.type("\x12what does")
        seen.expect("search: what does")
        seen.type("\r")
        seen.expect("› what does @app.py:2 say?", times=2)
        seen.expect_idle()
        seen.type("\x03\x04")
        assert seen.finish() == 0


def test_words_typed_while_a_command_of_the_user_works_are_a_request_of_their_own_with_the_model_of_the_session(
    place: Place,
):
    model = place.model('[[turn]]\nmatch = { user_regex = "and now" }\nanswer = "Now it is."\n')
    (place.workspace / "flag").write_text("wait\n")
    with place.open("--model", model, "--mode", "chat", columns=100) as seen:
        seen.enter("!echo begun; until grep -q go flag; do sleep 0.05; done")
        seen.expect("\n  begun")
        seen.expect_status("Enter queue, Esc stop")
        seen.type("and now?\r")
        seen.expect("waits for the current command")
        (place.workspace / "flag").write_text("go\n")
        seen.expect("Now it is.")
        seen.expect("run r")
        seen.leave()
    assert "next step" not in seen.text and "no model is configured" not in seen.text
