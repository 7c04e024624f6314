"""A question is a run like the others: in the record, resumed from its tape, under the hooks, without a change."""

from __future__ import annotations

import pytest
from scenarios.story import Story, call, patch, say

from pawl.core.errors import ScriptEnded
from pawl.core.run import Approval, DeliveryState, Intent, Mode, Report, RunRequest, RunState

QUESTION = "how are leap years found?"


def asked(story: Story, text: str = QUESTION, **more: object) -> Report:
    order = RunRequest(
        text=text, mode=Mode.CHAT, intent=Intent.READ, approval=Approval.NEVER, model=f"scripted:{story.script}", **more
    )
    with story.session() as session:
        return session.do(order)


@pytest.mark.spec("C3", "C15")
def test_it_stands_among_the_runs_with_its_answer_and_what_it_cites(story: Story):
    story.model_says(call("file_read", path="dates.py"), say("By four, in dates.py:2; see gone.py:1."))
    report = asked(story)
    with story.session() as session:
        (row,) = session.runs()
        again = session.report(row.id)
    assert (row.state, row.order.mode, row.order.intent) == (RunState.ENDED, Mode.CHAT, Intent.READ)
    assert again == report and report.delivery is DeliveryState.DONE
    assert [(one.path, one.line, one.holds) for one in report.citations] == [
        ("dates.py", 2, True),
        ("gone.py", 1, False),
    ]
    assert (report.ended, report.exit_code, report.asked_model) == ("answered", 0, f"scripted:{story.script}")


@pytest.mark.spec("C1")
def test_what_sounds_like_a_command_is_only_answered_and_nothing_can_be_changed(story: Story):
    story.model_says(patch("dates.py", "4", "5"), call("run_command", command="rm dates.py"), say("I may only read."))
    before = story.files()
    report = asked(story, "run the tests")
    assert (report.intent, report.answer, story.files()) == (Intent.READ, "I may only read.", before)


@pytest.mark.spec("F5")
def test_one_that_was_stopped_goes_on_from_its_tape(story: Story):
    story.model_says(call("file_read", path="dates.py"))
    stopped = asked(story)
    assert (stopped.state, stopped.trouble.code) == (RunState.WORKING, "script_ended")
    story.model_says(call("file_read", path="dates.py"), say("By four (dates.py:2)."))
    report = story.resume(stopped.run)
    assert (report.state, report.answer, report.requests) == (RunState.ENDED, "By four (dates.py:2).", 2)


@pytest.mark.spec("B4")
def test_an_answer_from_a_tape_is_not_kept_for_the_next_question(story: Story):
    """What was read before the stop was not looked at again, so that nobody knows what the answer rests on."""
    story.model_says(call("file_read", path="dates.py"))
    stopped = asked(story)
    story.model_says(call("file_read", path="dates.py"), say("By four (dates.py:2)."), say("Asked anew (dates.py:2)."))
    story.resume(stopped.run)
    story.model_says(say("Asked anew (dates.py:2)."))
    assert asked(story).cached == ""
    assert asked(story).cached != "" and asked(story, fresh=True).cached == ""


def test_what_stopped_it_is_at_hand_as_the_error(story: Story):
    story.model_says(call("file_read", path="dates.py"))
    with story.session() as session:
        session.do(RunRequest(text=QUESTION, mode=Mode.CHAT, intent=Intent.READ, model=f"scripted:{story.script}"))
        assert isinstance(session.error, ScriptEnded)
