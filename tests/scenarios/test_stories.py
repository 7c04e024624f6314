"""Requests from words to their end, with a scripted model: what the user sees is what is so."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scenarios.story import DELIVERED, Story, call, patch, say

from pawl.agent.edited_change import edited
from pawl.core.diagnostic import TestCounts as Counts
from pawl.core.diagnostic import Verdict
from pawl.core.errors import UnknownModel, UsageError
from pawl.core.events import ToolEnded, Warned
from pawl.core.run import DeliveryState, Intent, Mode, RunState

LEAP = "return year % 4 == 0"
RIGHT = "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
CHECKED = '{"state": "DONE", "evidence": ["it is there"], "remaining": []}'
REVIEW = {"summary": "as asked", "findings": [], "missing_tests": ["report.line"], "confidence": "high"}
FIX = (call("file_read", path="dates.py"), patch("dates.py", LEAP, RIGHT), say("Centuries are leap years only by 400."))

FIX_AGAIN = (patch("dates.py", "return year % 4 == 1", RIGHT), say("Centuries are leap years only by 400."))


@pytest.mark.whole
@pytest.mark.spec("A1", "B1", "B7", "C5")
def test_a_bug_is_fixed_shown_approved_the_next_day_and_can_be_undone(story: Story):
    story.model_says(*FIX)
    waiting = story.do("fix is_leap: test_century fails")
    assert (waiting.state, waiting.intent) == (RunState.WAITING, Intent.EDIT)
    assert (waiting.before, waiting.after) == (Counts(passed=2, failed=1), Counts(passed=3))
    assert LEAP + "\n" in story.read("dates.py")  # nothing is written before the yes
    done = story.approve(waiting)
    assert (done.state, done.delivery, done.entry) == (RunState.ENDED, DeliveryState.DONE, 1)
    assert RIGHT in story.read("dates.py")
    assert done.requests == 3 and done.score == 5
    assert done.seconds > waiting.seconds > 0, "those of both processes"
    with story.shop() as shop:
        assert [one["score"] for one in shop.store.runs.evaluations(shop.workspace)] == [5]
    undone = story.do("undo")
    assert undone.intent is Intent.UNDO and undone.requests == 0
    assert RIGHT not in story.read("dates.py")


@pytest.mark.whole
@pytest.mark.spec("B7", "A15")
def test_a_feature_in_new_files_is_promoted_without_asking_when_the_user_says_so(story: Story):
    story.model_says(
        call(
            "file_write",
            path="weeks.py",
            content="from dates import days\n\n\ndef weeks(year):\n    return days(year) // 7\n",
        ),
        call(
            "file_write",
            path="tests/test_weeks.py",
            content="from weeks import weeks\n\n\ndef test_weeks():\n    assert weeks(2023) == 52\n",
        ),
        call("check", what="all"),
        say("weeks(year) is in weeks.py."),
        DELIVERED,
    )
    done = story.do("add a function weeks(year) with a test", approve="never", reasoning="off")
    assert (done.delivery, done.refused) == (DeliveryState.DONE, ())
    assert (done.before, done.after) == (Counts(passed=2, failed=1), Counts(passed=3, failed=1))
    assert done.notes[0] == "1 test failed before and still fails"
    assert "tests/test_weeks.py was written in the run" in done.notes[1], "labelled as the run's own"
    assert "def weeks" in story.read("weeks.py")


@pytest.mark.whole
@pytest.mark.spec("A7", "A2")
def test_a_refactoring_over_three_files_is_one_justified_chain_and_one_undo(story: Story):
    story.user_writes(
        {"report.py": "from dates import days\n\n\ndef line(year):\n    return f'{year}: {days(year)}'\n"}
    )
    before = story.files()
    story.model_says(
        *(call("file_read", path=path) for path in ("dates.py", "report.py", "tests/test_dates.py")),
        call(
            "change_files",
            justification="days is renamed: report.py and the tests import it from dates.py",
            changes=[
                {"path": path, "action": "edit", "edit_type": "replace", "target": old, "content": new}
                for path, old, new in (
                    ("dates.py", "def days(", "def days_of("),
                    ("report.py", "import days\n", "import days_of as days\n"),
                    ("tests/test_dates.py", "import days,", "import days_of as days,"),
                )
            ],
        ),
        say("days is days_of now, in all three files."),
        {"match": {"system": "Stage: delivery"}, **say(CHECKED)},
        {"answer": {"text": json.dumps(REVIEW)}},
    )
    waiting = story.do("rename days to days_of everywhere and adapt the tests")
    assert waiting.verdict is Verdict.UNVERIFIED and any("changed expectation" in one for one in waiting.unproved)
    done = story.approve(waiting)
    assert done.delivery is DeliveryState.DONE, done
    assert done.review.missing_tests == ("report.line",)  # a larger change is looked at; that is advice
    assert "def days_of" in story.read("dates.py") and "days_of" in story.read("report.py")
    story.do("undo")
    assert story.files() == before


@pytest.mark.spec("B1")
def test_a_question_is_answered_from_the_files_and_changes_nothing(story: Story):
    before = story.files()
    story.model_says(call("file_read", path="dates.py"), say("In is_leap (dates.py:2)."))
    done = story.do("Where are leap years decided?")
    assert (done.intent, done.answer, done.exit_code) == (Intent.READ, "In is_leap (dates.py:2).", 0)
    assert story.files() == before


@pytest.mark.spec("B10")
def test_tests_are_run_without_a_model_and_their_failure_is_the_exit_code(story: Story):
    done = story.do("run the tests", model="")
    assert (done.intent, done.requests, done.exit_code) == (Intent.RUN, 0, 1)
    assert done.after == Counts(passed=2, failed=1)
    assert "test_century" in done.answer


@pytest.mark.spec("B10")
def test_a_program_is_run_in_the_sandbox_and_what_it_writes_is_kept_aside(story: Story):
    story.user_writes({"main.py": "print('hello')\nopen('made.txt', 'w').write('x')\n"})
    done = story.do("run main.py", model="")
    assert (done.answer.strip(), done.exit_code) == ("hello", 0)
    assert done.kept is not None and "made.txt" not in story.files()


def test_a_command_that_only_a_model_understands_is_run_by_it(story: Story):
    story.model_says(
        call("run_command", command="echo from the model"),
        say("It said: from the model."),
        {"match": {"schema": True}, **say(CHECKED)},
    )
    done = story.do("greet me from a shell, would you", reasoning="off")
    assert (done.intent, done.delivery, done.requests) == (Intent.READ, DeliveryState.DONE, 3)
    assert done.answer == "It said: from the model."


@pytest.mark.whole
@pytest.mark.spec("A8")
def test_tests_that_a_model_names_and_that_did_not_run_are_told_as_no_pass(story: Story):
    skips = "import pytest\n\n\n@pytest.mark.skip\ndef test_later():\n    assert False\n"
    story.user_writes({"tests/test_skips.py": skips})
    story.model_says(
        call("check", what="tests", tests=["tests/test_skips.py"]),
        {"match": {"tool": "tests: skipped: none of them ran (1 skipped)"}, **say("They did not run.")},
        {"match": {"schema": True}, **say(CHECKED)},
    )
    assert story.do("see whether the tests that skip would run", reasoning="off").answer == "They did not run."


@pytest.mark.whole
@pytest.mark.spec("B1")
def test_what_no_words_tell_goes_to_the_agent_which_may_change_something(story: Story):
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, RIGHT),
        say("Done."),
    )
    done = story.do("is_leap is wrong, please see to it", approve="never")
    assert (done.intent, done.delivery, done.after) == (Intent.EDIT, DeliveryState.DONE, Counts(passed=3))


@pytest.mark.whole
@pytest.mark.spec("B8")
def test_the_failing_tests_join_the_talk_that_is_about_them(story: Story):
    story.model_says(
        call("file_read", path="dates.py"),
        {"match": {"tool": "[the tests before any change]"}, **patch("dates.py", LEAP, RIGHT)},
        say("Done."),
    )
    done = story.do("is_leap is wrong, see to it: test_century fails", approve="never", reasoning="off")
    assert (done.delivery, done.requests) == (DeliveryState.DONE, 3)
    assert (done.before, done.after) == (Counts(passed=2, failed=1), Counts(passed=3))


@pytest.mark.whole
def test_the_model_is_asked_before_any_test_has_run(story: Story):
    """The tests before the change hang; what the model did meanwhile is kept."""
    story.user_writes({"tests/test_hangs.py": "import time\n\n\ndef test_hangs():\n    time.sleep(900)\n"})
    story.model_says(call("file_read", path="dates.py"), patch("dates.py", LEAP, RIGHT), say("Done."))
    done = story.do("clean up dates.py", approve="never", reasoning="off", budget={"seconds": 5})
    assert (done.requests, done.trouble.code, done.entry) == (3, "out_of_time", None)
    assert done.kept is not None


@pytest.mark.whole
@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    "conftest",
    ["collect_ignore = ['tests']\n", "def pytest_pyfunc_call(pyfuncitem):\n    return True\n"],
    ids=["no test runs", "every test passes"],
)
def test_tests_that_are_silenced_from_another_file_are_no_success(story: Story, conftest: str):
    before = story.files()
    story.model_says(
        call("file_write", path="conftest.py", content=conftest),
        say("All the tests pass now."),
        *(say("All the tests pass, I said.") for _ in range(9)),
    )
    ended = story.do("fix is_leap", approve="never")
    assert (ended.delivery, ended.entry) == (DeliveryState.NEEDS_WORK, None)
    assert any("conftest.py" in line for line in ended.refused), ended.refused
    assert story.files() == before


@pytest.mark.whole
def test_a_false_done_about_a_failing_file_of_tests_is_sent_back_though_nothing_was_changed(story: Story):
    story.model_says(
        say("All of test_dates.py passes now."),
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, RIGHT),
        say("Done."),
    )
    done = story.do("fix is_leap so that test_dates.py has no failure", approve="never")
    assert (done.delivery, done.after) == (DeliveryState.DONE, Counts(passed=3))


@pytest.mark.whole
def test_a_model_that_makes_no_plan_does_a_large_request_as_one_task(story: Story):
    check = say('{"state": "DONE", "evidence": ["each step is in the change"], "remaining": []}')
    story.model_says(say("First this, then that."), say("No JSON from me."), *FIX, check)
    done = story.do(f"fix what is wrong with dates:\n{steps()}", approve="never", reasoning="off")
    assert (done.delivery, len(done.tasks), done.after) == (DeliveryState.DONE, 1, Counts(passed=3))


@pytest.mark.spec("B12")
def test_what_pawl_can_do_is_told_without_a_model(story: Story):
    done = story.do("what can you do?", model="")
    assert done.intent is Intent.PROFILE and "run the tests" in done.answer and done.requests == 0


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_a_rejected_change_is_kept_and_not_promoted(story: Story):
    before = story.files()
    story.model_says(*FIX)
    rejected = story.reject(story.do("fix is_leap"), "use calendar.isleap")
    assert (rejected.delivery, rejected.rejected) == (DeliveryState.NEEDS_WORK, "use calendar.isleap")
    assert story.files() == before
    with story.shop() as shop:
        assert "dates.py" in shop.changes(shop.entry(rejected.kept)).paths


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_some_hunks_are_approved_verified_by_themselves_and_promoted(story: Story):
    spaced = "\n" * 12
    story.user_writes({"dates.py": story.read("dates.py").replace("\n\n\ndef days", f"\n{spaced}def days")})
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, RIGHT),
        patch("dates.py", "return 366 if", "return 366 if True and"),
        say("Fixed, and days tidied."),
    )
    waiting = story.do("fix is_leap")
    done = story.approve(waiting, hunks=[1])
    assert done.delivery is DeliveryState.DONE
    assert RIGHT in story.read("dates.py") and "True and" not in story.read("dates.py")
    assert done.kept is not None  # the whole of it is at hand


@pytest.mark.whole
@pytest.mark.spec("B7", "C5")
def test_hunks_that_mend_a_part_are_promoted_and_the_run_does_not_say_done(story: Story):
    spaced = "\n" * 12
    story.user_writes(
        {
            "dates.py": story.read("dates.py")
            .replace("\n\n\ndef days", f"\n{spaced}def days")
            .replace("else 365", "else 364")
        }
    )
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, RIGHT),
        patch("dates.py", "else 364", "else 365"),
        say("Both fixed."),
    )
    partly = story.approve(story.do("mend test_century and test_days"), hunks=[1])
    assert (partly.delivery, partly.after) == (DeliveryState.PARTLY, Counts(passed=2, failed=1))
    assert partly.entry is not None and partly.refused == ("tests: 1 test that failed before still fails",)
    assert RIGHT in story.read("dates.py") and "else 364" in story.read("dates.py")


@pytest.mark.whole
@pytest.mark.spec("B7", "C5")
def test_hunks_of_a_change_that_could_not_be_compared_with_the_request_are_not_called_verified(story: Story):
    twice = "def twice(year):\n    return None\n\n\ndef days"
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", "def days", twice),
        call("file_write", path="notes.txt", content="twice\n"),
        say("Added."),
    )
    waiting = story.do("Add a function twice(year) to dates.py")
    assert waiting.verdict is Verdict.UNVERIFIED
    part = story.approve(waiting, hunks=[1])
    assert part.entry is not None and part.verdict is Verdict.UNVERIFIED


@pytest.mark.whole
@pytest.mark.spec("B8", "C5")
def test_a_false_done_is_refused_and_the_errors_lead_to_the_right_change(story: Story):
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, "return year % 4 == 1"),
        say("Done. All tests pass."),
        {"match": {"user": "The checks refuse this work"}, **patch("dates.py", "return year % 4 == 1", RIGHT)},
        say("Now it holds."),
    )
    waiting = story.do("fix is_leap: test_century fails")
    assert waiting.state is RunState.WAITING
    assert waiting.after == Counts(passed=3)
    assert story.happened(waiting.run).count("verified") == 2


@pytest.mark.whole
@pytest.mark.spec("B8", "A1")
def test_after_three_retries_nothing_is_promoted_and_what_was_made_is_kept(story: Story):
    before = story.files()
    wrong = "return year % 4 == 1"
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, wrong),
        say("Done."),
        *(
            turn
            for number in range(2, 5)
            for turn in (patch("dates.py", f"== {number - 1}", f"== {number}"), say("Done."))
        ),
    )
    ended = story.do("fix is_leap", approve="never")
    assert (ended.state, ended.delivery, ended.entry) == (RunState.ENDED, DeliveryState.NEEDS_WORK, None)
    assert any("tests" in line for line in ended.refused)
    assert story.files() == before
    with story.shop() as shop:
        assert shop.changes(shop.entry(ended.kept)).paths == {"dates.py"}
    assert story.happened(ended.run).count("verified") == 4


@pytest.mark.whole
@pytest.mark.attack("A15")
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    assert not is_leap(1900)\n", ""),
        ("def test_century():", "def skip_century():"),
        ("def test_century():", "import pytest\n\n\n@pytest.mark.skip\ndef test_century():"),
    ],
    ids=["less asserted", "removed", "skipped"],
)
def test_a_test_that_is_made_to_pass_by_weakening_it_is_refused(story: Story, old: str, new: str):
    before = story.files()
    story.model_says(
        call("file_read", path="tests/test_dates.py"),
        patch("tests/test_dates.py", old, new),
        *(say("Done, the tests pass.") for _ in range(10)),
    )
    ended = story.do("mend the code: test_century in tests/test_dates.py fails", approve="never")
    assert ended.delivery is DeliveryState.NEEDS_WORK and ended.entry is None
    assert story.files() == before


def test_the_same_is_only_told_where_the_request_asks_for_it(story: Story):
    story.model_says(
        call("file_read", path="tests/test_dates.py"),
        patch("tests/test_dates.py", "def test_days():\n    assert days(2023) == 365\n", ""),
        say("test_days is gone."),
        DELIVERED,
    )
    done = story.do("remove the test of days from the tests", approve="never")
    assert done.delivery is DeliveryState.DONE
    assert any(" gone" in note or "is removed" in note for note in done.notes)


@pytest.mark.spec("C3")
def test_chat_mode_that_tries_to_edit_changes_nothing(story: Story):
    before = story.files()
    story.model_says(
        patch("dates.py", LEAP, RIGHT),
        {"match": {"tool": "is not a tool of this stage"}, "answer": {"text": "In chat I only say: see dates.py:2."}},
    )
    done = story.do("fix is_leap", mode=Mode.CHAT)
    assert done.intent is Intent.READ and "dates.py:2" in done.answer
    assert story.files() == before


@pytest.mark.whole
@pytest.mark.spec("B7")
@pytest.mark.attack("A43")
def test_an_approval_of_what_has_changed_since_is_stale_and_asks_again(story: Story):
    story.model_says(*FIX)
    waiting = story.do("fix is_leap")
    story.user_writes({"dates.py": story.read("dates.py") + "\n\ndef months():\n    return 12\n"})
    again = story.approve(waiting)
    assert again.state is RunState.WAITING and "you changed 'dates.py'" in again.stale
    assert RIGHT not in story.read("dates.py")
    assert again.question.digest != waiting.question.digest
    refused = story.approve(again, digest=waiting.question.digest)
    assert refused.state is RunState.WAITING and "a different change" in refused.stale
    done = story.approve(refused)
    assert done.delivery is DeliveryState.DONE
    assert RIGHT in story.read("dates.py") and "def months" in story.read("dates.py")


@pytest.mark.spec("B7", "A1")
def test_what_the_user_changed_meanwhile_in_the_same_place_stands(story: Story):
    story.model_says(*FIX)
    waiting = story.do("fix is_leap")
    mine = story.read("dates.py").replace(LEAP, "return year in (2000, 2024)")
    story.user_writes({"dates.py": mine})
    ended = story.approve(waiting)
    assert (ended.state, ended.delivery, ended.entry) == (RunState.ENDED, DeliveryState.NEEDS_WORK, None)
    assert story.read("dates.py") == mine
    assert ended.kept is not None and any("you changed" in line for line in ended.refused)


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_with_each_the_user_is_asked_before_an_edit_enters_the_bench(story: Story):
    story.model_says(*FIX)
    first = story.do("fix is_leap", approve="each")
    assert first.question.kind == "call" and first.question.tool == "strict_patch"
    shown = story.approve(first)
    assert shown.question.kind == "change" and shown.requests == 3
    assert story.approve(shown).delivery is DeliveryState.DONE


def test_with_each_a_refused_edit_is_told_to_the_model_with_the_reason(story: Story):
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, RIGHT),
        {"match": {"tool": "refused_by_user: too clever"}, "answer": {"text": "Then I leave it."}},
    )
    asked = story.do("simplify is_leap", approve="each")
    ended = story.reject(asked, "too clever")
    assert (ended.state, ended.answer) == (RunState.ENDED, "Then I leave it.")
    assert ended.entry is None


@pytest.mark.whole
@pytest.mark.spec("E1")
def test_failing_tests_are_mended_by_the_reflex_before_any_model_is_asked(story: Story):
    story.user_writes({"dates.py": story.read("dates.py").replace("365", "364")})
    tests = story.read("tests/test_dates.py").replace("    assert not is_leap(1900)\n", "")
    # A number that few examples speak for is offered, not taken.
    more = "".join(f"\n\ndef test_days_of_{year}():\n    assert days({year}) == 365\n" for year in (2021, 2022, 2025))
    story.user_writes({"tests/test_dates.py": tests + more})
    done = story.do("make the tests pass", approve="never", model="")
    assert (done.intent, done.delivery, done.requests) == (Intent.FIX, DeliveryState.DONE, 0)
    assert "365" in story.read("dates.py")


def test_with_no_model_what_needs_one_says_what_to_configure(story: Story):
    with pytest.raises(UnknownModel) as told:
        story.do("add a function weeks", model="")
    assert "--model" in told.value.advice


@pytest.mark.spec("A1")
def test_a_task_whose_preconditions_fail_names_all_of_them(story: Story):
    story.model_says(say("never asked"))
    ended = story.do("Task: change the settings\nScope: .env, ../outside.py\nRequirements: none")
    assert ended.trouble.code == "task_validation_error"
    assert ".env" in ended.trouble.message and "outside" in ended.trouble.message
    assert ended.requests == 0 and ended.delivery is DeliveryState.NEEDS_WORK


@pytest.mark.whole
@pytest.mark.spec("A14")
def test_the_commands_of_the_form_must_succeed(story: Story):
    story.model_says(*FIX, *(say("It holds.") for _ in range(3)))
    command = "python3 -c 'import weeks'"
    ended = story.do(f"Task: fix is_leap\nScope: dates.py\nVerification:\n- {command}", approve="never")
    assert ended.delivery is DeliveryState.NEEDS_WORK
    assert any("weeks" in line for line in ended.refused)


@pytest.mark.spec("A15")
def test_above_the_guardrails_limits_the_user_is_asked_even_with_never(story: Story):
    story.model_says(
        call("file_write", path="big.py", content="".join(f"x{n} = {n}\n" for n in range(150))),
        say("Made."),
        DELIVERED,
    )
    waiting = story.do("create big.py", approve="never")
    assert waiting.state is RunState.WAITING and "150 lines" in waiting.question.why[0]


def test_a_rule_of_the_user_denies_a_call_and_the_model_is_told(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text('[permissions]\ndeny = ["Edit(dates.py)"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    story.model_says(
        call("file_read", path="dates.py"),
        patch("dates.py", LEAP, RIGHT),
        {"match": {"tool": "permission_denied"}, "answer": {"text": "I may not edit dates.py."}},
    )
    ended = story.do("simplify is_leap", approve="never")
    assert (ended.answer, ended.entry) == ("I may not edit dates.py.", None)


@pytest.mark.spec("F8")
def rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    (tmp_path / "config.toml").write_text(f"[permissions]\n{text}\n")
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))


def by_script(*lines: str) -> tuple[dict[str, object], ...]:
    """A model that writes a program and runs it, which no rule sees through."""
    program = "\n".join(("import os", *lines, "os.remove('make.py')"))
    return (
        call("file_write", path="make.py", content=program),
        call("run_command", command="python3 make.py"),
        say("Ok."),
    )


@pytest.mark.spec("F4")
def test_what_a_script_of_the_agents_writes_is_held_to_the_rules(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rules(tmp_path, monkeypatch, 'deny = ["Edit(migrations/**)"]')
    story.model_says(
        *by_script("os.mkdir('migrations')", "open('migrations/1.sql', 'w')", "open('notes.txt', 'w').write('n')")
    )
    ended = story.do("create notes.txt", approve="never")
    assert ended.entry is not None and story.read("notes.txt") == "n"
    assert not (story.workspace / "migrations").exists()
    assert "held back: migrations/1.sql (denied: Edit(migrations/**))" in ended.notes
    with story.shop() as shop:
        assert "migrations/1.sql" in shop.changes(shop.entry(ended.kept)).paths


@pytest.mark.spec("F4")
def test_a_rule_that_asks_asks_before_delivery_whoever_wrote_the_file(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rules(tmp_path, monkeypatch, 'ask = ["Edit(notes.txt)"]')
    story.model_says(*by_script("open('notes.txt', 'w').write('n')"))
    waiting = story.do("create notes.txt", approve="never")
    assert waiting.state is RunState.WAITING and waiting.question.why == ("Edit(notes.txt) asks about 'notes.txt'",)
    assert not (story.workspace / "notes.txt").exists()
    assert story.approve(waiting).entry is not None and story.read("notes.txt") == "n"


@pytest.mark.spec("F4")
def test_a_change_that_the_user_edits_is_held_to_the_rules(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    rules(tmp_path, monkeypatch, 'deny = ["Edit(migrations/**)"]')
    text = "--- /dev/null\n+++ b/migrations/1.sql\n@@ -0,0 +1 @@\n+x\n"
    with story.shop() as shop, pytest.raises(UsageError, match="denied by the rule Edit"):
        edited(shop, text)


@pytest.mark.whole
def test_the_instructions_of_the_workspace_are_told_to_the_model(story: Story):
    story.user_writes({"AGENTS.md": "Write dates as ISO 8601.\n"})
    story.model_says(
        {"match": {"system": "Write dates as ISO 8601."}, **patch("dates.py", LEAP, RIGHT)},
        {"match": {"tool": "never_read"}, **call("file_read", path="dates.py")},
        patch("dates.py", LEAP, RIGHT),
        say("Done."),
    )
    assert story.do("fix is_leap").state is RunState.WAITING


@pytest.mark.whole
@pytest.mark.spec("B11", "C4")
def test_review_and_score_by_a_model_are_advice_and_their_failure_is_no_failure(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text('review = "on"\nevaluator = "model"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    bad = {"path": "dates.py", "line": 2, "severity": "blocking", "problem": "slow", "suggestion": ""}
    story.model_says(
        *FIX, {"answer": {"text": json.dumps({**REVIEW, "findings": [bad]})}}, {"fault": "overloaded", "answer": "x"}
    )
    done = story.do("fix is_leap", approve="never")
    assert (done.delivery, done.entry, done.answer) == (DeliveryState.DONE, 1, FIX[2]["answer"]["text"])
    assert done.review.findings == ("dates.py:2 blocking: slow",)
    assert done.score == 4 and done.trouble is None


def steps(mark: str = "{}.") -> str:
    return "\n".join(f"{mark.format(number)} step of the work" for number in range(1, 8))


@pytest.mark.whole
@pytest.mark.spec("A2")
def test_a_large_request_in_bullets_is_planned_into_tasks_by_the_import_graph_each_verified(story: Story):
    story.user_writes({"report.py": "from dates import days\n\n\ndef line(year):\n    return days(year)\n"})
    changes = [
        {"id": 1, "path": "report.py", "action": "edit", "what": "show the year", "depends_on": []},
        {"id": 2, "path": "dates.py", "action": "edit", "what": "mend centuries", "depends_on": []},
    ]
    story.model_says(
        call("file_read", path="dates.py"),
        {"answer": {"text": json.dumps({"plan": changes})}},
        # What the planner has read is there for who works.
        {"match": {"user": "Task 1 of 2: mend centuries", "tool": "def is_leap"}, **patch("dates.py", LEAP, RIGHT)},
        say("Centuries hold."),
        {"match": {"user": "Task 2 of 2: show the year"}, **call("file_read", path="report.py")},
        patch("report.py", "return days(year)", "return f'{year}: {days(year)}'"),
        say("The line shows the year."),
        {"match": {"system": "Stage: delivery"}, **say(CHECKED)},
        {"answer": {"text": json.dumps(REVIEW)}},
    )
    done = story.do(f"fix what is wrong with dates:\n{steps('-')}", approve="never")
    assert done.delivery is DeliveryState.DONE, done
    assert done.tasks == ("mend centuries", "show the year")
    assert story.happened(done.run).count("task verified") == 2
    assert RIGHT in story.read("dates.py") and "{year}: " in story.read("report.py")
    with story.shop() as shop:
        sheet = shop.store.snapshots.get(shop.workspace, done.conversation, "worksheet") or {}
    assert str(sheet["task"]).startswith("fix what is wrong with dates") and sheet["next"] == []


@pytest.mark.whole
@pytest.mark.spec("A2")
def test_a_large_request_that_numbers_its_steps_is_done_in_the_order_of_its_plan(story: Story):
    story.user_writes({"report.py": "from dates import days\n\n\ndef line(year):\n    return days(year)\n"})
    names = (("report.py", "show the year"), ("dates.py", "mend centuries"))
    changes = [
        {"id": number, "path": path, "action": "edit", "what": what, "depends_on": []}
        for number, (path, what) in enumerate(names, 1)
    ]
    story.model_says(
        {"match": {"system": "in the order of a request"}, **say(json.dumps({"plan": changes}))},
        {
            "match": {"user": "Task 1 of 2: show the year"},
            **patch("report.py", "return days(year)", "return f'{year}: {days(year)}'"),
        },
        say("The line shows the year."),
        {"match": {"user": "Task 2 of 2: mend centuries"}, **patch("dates.py", LEAP, RIGHT)},
        say("Centuries hold."),
        {"match": {"system": "Stage: delivery"}, **say(CHECKED)},
        {"answer": {"text": json.dumps(REVIEW)}},
    )
    done = story.do(f"fix what is wrong with dates:\n{steps()}", approve="never")
    assert (done.delivery, done.tasks) == (DeliveryState.DONE, ("show the year", "mend centuries")), done


@pytest.mark.whole
@pytest.mark.spec("A2")
@pytest.mark.parametrize(
    "answers",
    [
        (say("First the dates, then the rest."), say("As I said.")),
        ({"answer": {"text": "I will not.", "stop": "refused"}},),
    ],
)
def test_a_plan_that_cannot_be_used_is_said_and_the_request_is_done_as_one_task(story: Story, answers: tuple):
    story.model_says(*answers, patch("dates.py", LEAP, RIGHT), say("Done."))
    done = story.do(f"fix what is wrong with dates:\n{steps()}", approve="never", reasoning="off")
    assert (done.after, RIGHT in story.read("dates.py")) == (Counts(passed=3), True)
    told = [one.text for one in story.events if isinstance(one, Warned)]
    assert "the planner's answer cannot be used; the request is done as one task" in told


@pytest.mark.whole
def test_a_hunk_that_is_not_there_is_a_wrong_request_and_the_run_still_waits(story: Story):
    story.model_says(*FIX)
    waiting = story.do("fix is_leap")
    with pytest.raises(UsageError):
        story.approve(waiting, hunks=[7])
    assert story.approve(waiting, hunks=[1]).delivery is DeliveryState.DONE


@pytest.mark.whole
@pytest.mark.spec("A11")
def test_when_the_time_of_a_request_is_up_what_is_there_is_kept_and_reported(story: Story):
    before = story.files()
    story.model_says(
        call("file_write", path="half.txt", content="half\n"),
        {"delay_ms": 60_000, **say("never heard")},
    )
    ended = story.do("write both halves", approve="never", budget={"seconds": 5})
    assert (ended.ended, ended.delivery, ended.entry) == ("out_of_time", DeliveryState.NEEDS_WORK, None)
    assert ended.answer.startswith("The time was up. Done by then:\n") and "- file_write" in ended.answer
    assert ended.kept is not None
    assert story.files() == before


def test_a_protected_file_is_never_promoted_along_and_is_kept_for_the_user_to_look_at(story: Story):
    before = story.files()
    story.model_says(call("run_command", command="mkdir -p .vscode && echo {} > .vscode/tasks.json"), say("Made."))
    ended = story.do("create a task for the editor", approve="never")
    assert (ended.delivery, ended.entry) == (DeliveryState.NEEDS_WORK, None)
    assert story.files() == before
    with story.shop() as shop:
        assert ".vscode/tasks.json" in shop.changes(shop.entry(ended.kept)).paths


@pytest.mark.whole
@pytest.mark.spec("B7")
def test_what_the_user_writes_while_the_model_works_is_merged_and_verified_with_it(story: Story):
    story.model_says(*FIX)

    def edits(event: object) -> None:
        if isinstance(event, ToolEnded) and event.call.name == "strict_patch":
            story.user_writes({"dates.py": story.read("dates.py") + "\n\ndef months():\n    return 12\n"})

    story.meanwhile = edits
    done = story.do("fix is_leap", approve="never")
    assert done.delivery is DeliveryState.DONE, done
    assert RIGHT in story.read("dates.py") and "def months" in story.read("dates.py")
    story.do("undo")
    assert RIGHT not in story.read("dates.py") and "def months" in story.read("dates.py")
