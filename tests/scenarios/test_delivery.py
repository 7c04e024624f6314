"""What is delivered is proved, reviewed, justified and remembered as it is, through `do` and `loop`."""

from __future__ import annotations

import json

import pytest
from scenarios.story import Story, call, patch, say

from pawl.core.events import Corrected, Warned
from pawl.core.run import DeliveryState, RunState
from pawl.store.memories import MemoryTier

LEAP = "return year % 4 == 0"
WRONG = "return year % 4 == 0 and year % 100 != 0"
RIGHT = "return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"


@pytest.mark.whole
@pytest.mark.spec("C11")
def test_done_without_a_change_after_a_refusal_is_sent_back_before_the_checks_run_again(story: Story):
    story.model_says(
        patch("dates.py", LEAP, WRONG),
        say("All done."),
        say("All done."),
        patch("dates.py", WRONG, RIGHT),
        say("Done."),
    )
    done = story.do("fix is_leap: test_century fails", approve="never")
    assert (done.delivery, done.requests) == (DeliveryState.DONE, 5)
    (sent_back,) = [event for event in story.events if isinstance(event, Corrected)]
    assert sent_back.name == "claims_done" and "tests: " in sent_back.why


WEEKS = "from dates import days\n\n\ndef weeks(year):\n    return days(year) // 7\n"
TEST_WEEKS = "from weeks import weeks\n\n\ndef test_weeks():\n    assert weeks(2023) == 52\n"
CHECKED = '{"state": "DONE", "evidence": ["weeks.py has it, with a test"], "remaining": []}'
MADE = (
    {"match": {"system": "Stage: delivery"}, "times": 0, **say(CHECKED)},
    call("file_write", path="weeks.py", content=WEEKS),
    call("file_write", path="tests/test_weeks.py", content=TEST_WEEKS),
    say("weeks(year) is in weeks.py."),
)
ROUNDED = (patch("weeks.py", "days(year) // 7", "round(days(year) / 7)"), say("It rounds now."))
BROKEN = (patch("weeks.py", "days(year) // 7", "days(year)"), say("It rounds now."))
ADD = "add a function weeks(year) with a test"


def review(*blocking: str) -> dict[str, object]:
    """Answers only a request that shows the change itself."""
    findings = [
        {"path": "weeks.py", "line": 5, "severity": "blocking", "problem": one, "suggestion": ""} for one in blocking
    ]
    body = {"summary": "read", "findings": findings, "missing_tests": [], "confidence": "high"}
    return {**say(json.dumps(body)), "match": {"system": "+    return"}}


@pytest.mark.whole
@pytest.mark.spec("C4", "C6")
def test_a_review_reads_the_diff_and_reaches_the_user_with_the_question(story: Story):
    story.model_says(*MADE, review("it rounds down"))
    waiting = story.do(ADD)
    assert waiting.state is RunState.WAITING and "weeks.py" not in story.files()
    assert (waiting.review.blocking, waiting.review.findings) == (1, ("weeks.py:5 blocking: it rounds down",))
    done = story.approve(waiting)
    assert (done.delivery, done.review, done.requests) == (DeliveryState.DONE, waiting.review, 5)


@pytest.mark.whole
@pytest.mark.spec("C4")
@pytest.mark.parametrize(
    ("answers", "why"),
    [
        pytest.param([say("Looks fine.")] * 2, "the answer does not fit", id="words where a form is asked for"),
        pytest.param([{"answer": {"text": "No.", "stop": "refused"}}], "no answer in the form asked for: refused"),
        pytest.param([{"answer": {"text": "{", "stop": "length"}}], "no answer in the form asked for: cut off"),
        pytest.param([{"fault": "overloaded", "answer": "x"}], "", id="nobody answers"),
    ],
)
def test_a_review_that_is_lost_is_said_and_the_verified_change_is_delivered(
    story: Story, answers: list[dict[str, object]], why: str
):
    story.model_says(*MADE, *answers)
    done = story.do(ADD, approve="never")
    assert (done.delivery, done.review, "weeks.py" in story.files()) == (DeliveryState.DONE, None, True)
    (said,) = [one.text for one in story.events if isinstance(one, Warned) and "not reviewed" in one.text]
    assert said.startswith(f"the change was not reviewed: {why}") and said != "the change was not reviewed: "


@pytest.mark.whole
@pytest.mark.spec("C4")
@pytest.mark.parametrize(("amended", "expected"), [(ROUNDED, "round("), (BROKEN, "// 7"), ((), "// 7")])
def test_where_nobody_reads_the_review_there_is_one_more_attempt_which_spoils_nothing(
    story: Story, amended: tuple[dict, ...], expected: str
):
    """What is verified is delivered, also where the attempt breaks it or the model has nothing more to say."""
    again = (review("still odd"),) if amended is ROUNDED else ()
    story.model_says(*MADE, review("it rounds down"), *amended, *again)
    done = story.do(ADD, approve="never")
    assert done.delivery is DeliveryState.DONE, done
    assert expected in story.read("weeks.py")
    assert done.review.blocking == 1, "advice is told, and decides nothing"


@pytest.mark.whole
@pytest.mark.spec("A3", "A1")
def test_a_verified_task_is_a_checkpoint_to_which_the_run_falls_back_when_the_next_fails(story: Story):
    request = "Task:\n1. is_leap knows centuries\n2. last knows the days\nScope: dates.py, months.py\n"
    test = "from months import last\n\n\ndef test_april():\n    assert last(4) == 30\n"
    story.user_writes({"months.py": "def last(month):\n    return 30\n", "tests/test_months.py": test})
    wrong = patch("months.py", "return 30", "return 31")
    story.model_says(patch("dates.py", LEAP, RIGHT), say("Centuries are known."), wrong, *[say("I cannot.")] * 4)
    report = story.do(request, approve="never")
    assert report.delivery is DeliveryState.PARTLY, report
    assert [str(one.state) for one in report.task_states] == ["done", "failed"]
    with story.shop() as shop:
        (known,) = shop.checkpoints()
        assert (known.run, known.changes.paths) == (report.run, {"dates.py"})
        assert (known.progress["task"], known.progress["of"]) == (1, 2)
        assert known.verification["checks"]["tests"] == "pass" and known.policy.depth == 5
        entries = {entry.id: shop.changes(entry).paths for entry in shop.entries(run=report.run)}
    assert entries == {report.task_states[1].entry: {"months.py"}, report.entry: {"dates.py"}}
    assert RIGHT in story.files()["dates.py"] and "return 30" in story.files()["months.py"]


@pytest.mark.whole
@pytest.mark.spec("A7")
@pytest.mark.parametrize("reason", ["months.py counts with the same calendar.", "It is better so."])
def test_single_edits_of_files_that_nothing_links_need_one_reason_before_delivery(story: Story, reason: str):
    story.user_writes({"months.py": "def last(month):\n    return 30\n"})
    edits = (patch("dates.py", LEAP, RIGHT), patch("months.py", "return 30", "return 31 - month % 2"), say("Done."))
    asked = {**say(reason), "match": {"user": "No import links months.py to the other files"}}
    story.model_says(*edits, asked, say(json.dumps({**REVIEW})))
    report = story.do("mend is_leap in dates.py: test_century fails", approve="never")
    if "months.py" in reason:
        assert (report.delivery, report.requests) == (DeliveryState.DONE, 5), report
    else:
        assert report.state is RunState.WAITING, "nobody said why, so the user is asked"
        assert report.question.why == ("'months.py' is changed too, and nothing says why",)


@pytest.mark.whole
def test_work_of_a_model_that_then_refuses_is_not_called_done(story: Story):
    story.model_says(patch("dates.py", LEAP, RIGHT), {**say("I will not go on."), "fault": "refused"})
    report = story.do("fix is_leap: test_century fails", approve="never")
    assert (report.delivery, report.entry) == (DeliveryState.NEEDS_WORK, None), report
    assert RIGHT not in story.read("dates.py") and report.kept is not None


REVIEW = {"summary": "read", "findings": [], "missing_tests": [], "confidence": "high"}


@pytest.mark.whole
@pytest.mark.spec("C14", "B11")
def test_memory_score_and_report_tell_what_the_checks_said(story: Story):
    story.user_writes({"months.py": "def last(month):\n    return 30\n"})
    story.model_says(patch("dates.py", "else 365", "else 365  # usual"), say("All tests pass now."), say(CHECKED))
    done = story.do("add a comment to days. From now on numbers have a comment.", approve="never")
    assert (done.delivery, done.after.passed, done.after.failed) == (DeliveryState.DONE, 2, 1)
    with story.shop() as shop:
        kept = {one.tier: one.text for one in shop.store.memories.all(shop.workspace)}
        (scored,) = shop.store.runs.evaluations(shop.workspace)
    assert kept[MemoryTier.OUTCOME].endswith("changed dates.py; tests: 2 passed, 1 failed")
    assert kept[MemoryTier.DECISION] == "The user said: From now on numbers have a comment."
    assert kept[MemoryTier.FACT].startswith("The checks of this project are ")
    assert (scored["score"], done.score) == (4, 4) and "1 failing as before" in scored["reason"]
