"""Loops from a wish to a promoted change: every way up the ladder, with a scripted model and the real checks."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from scenarios.story import Story, call, patch, say

from pawl.agent.briefing import REQUEST_SECONDS
from pawl.agent.escalation import NO_ESCALATION, LadderWish, LoopWish, escalation, ladder_of, loop_order
from pawl.core.diagnostic import CheckResult
from pawl.core.events import AttemptEnded, EscalationWarned, TierLeft, ToolEnded, Warned
from pawl.core.run import DeliveryState, Report, RunRequest, RunState, TaskState
from pawl.core.tiers import AttemptEnd, Escalation, Tier, TierMode
from pawl.store.audit import Audit

HALF = "export function half(n) {\n  return n / 2;\n}\n"
RIGHT = "year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)"
WRONG = "year % 4 == 0 and year % 100 != 0"
OLD = "year % 4 == 0"
AFTER = """\
from dates import after


def test_after():
    assert after(2024) == 2025
    assert after(-3) == -2
"""
SIMPLE = Tier(name="simple", mode=TierMode.SIMPLE, iterations=3)
FULL = Tier(name="full", mode=TierMode.FULL, iterations=2)


def attempt(new: str, said: str = "Done.", **match: str) -> list[dict]:
    first = patch("dates.py", OLD, new)
    return [{**first, "match": match} if match else first, say(said)]


def loop(story: Story, ladder: Escalation, **wish: object) -> Report:
    with story.session() as session:
        return session.do(loop_order(LoopWish(**{"model": f"scripted:{story.script}", **wish}), ladder))


def ends(story: Story) -> list[tuple[str, AttemptEnd]]:
    ended = [event.attempt for event in story.events if isinstance(event, AttemptEnded)]
    return [(f"{one.mode} {one.at.number}.{one.sample}", one.end) for one in ended]


@pytest.mark.whole
@pytest.mark.spec("E1", "E3")
def test_simple_mode_ends_at_the_first_attempt_that_passes_and_each_begins_afresh(story: Story):
    story.model_says(
        *attempt(WRONG, "I added centuries."), *attempt(RIGHT, user="PRIOR ATTEMPTS: 1"), say("never asked")
    )
    report = loop(story, Escalation(tiers=(SIMPLE,)))
    assert report.state is RunState.ENDED and report.delivery is DeliveryState.DONE, report
    assert story.read("dates.py").startswith(f"def is_leap(year):\n    return {RIGHT}\n")
    assert ends(story) == [("simple 1.1", AttemptEnd.REFUSED), ("simple 2.1", AttemptEnd.VERIFIED)]
    assert (report.before.failed, report.after.failed, report.requests) == (1, 0, 4)
    with story.shop() as shop:
        records = shop.store.requests.records(shop.workspace, run=report.run)
        assert len({record.conversation for record in records}) == 2, "no attempt sees the conversation of another"


@pytest.mark.whole
@pytest.mark.spec("E1", "F4")
def test_what_an_attempt_writes_by_a_script_is_held_to_the_rules(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "config.toml").write_text('[permissions]\ndeny = ["Edit(migrations/**)"]\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    program = "import os\nos.mkdir('migrations')\nopen('migrations/1.sql', 'w')\nos.remove('make.py')\n"
    story.model_says(
        call("file_write", path="make.py", content=program),
        call("run_command", command="python3 make.py"),
        *attempt(RIGHT),
    )
    report = loop(story, Escalation(tiers=(SIMPLE,)))
    assert report.entry is not None and RIGHT in story.read("dates.py")
    assert not (story.workspace / "migrations").exists()


def critic(verdict: str, *problems: str) -> dict:
    found = [
        {"path": "dates.py", "line": 2, "severity": "blocking", "problem": one, "suggestion": ""} for one in problems
    ]
    body = {"verdict": verdict, "summary": "seen", "problems": found}
    return {"match": {"system": "Role: critic"}, "answer": {"text": json.dumps(body)}}


def librarian(*paths: str) -> dict:
    files = [{"path": path, "relevance": "high", "why": "it defines is_leap"} for path in paths]
    body = {"summary": "one place", "files": files}
    return {"match": {"system": "Role: librarian"}, "answer": {"text": json.dumps(body)}}


@pytest.mark.whole
@pytest.mark.spec("E2", "E3")
def test_what_simple_mode_leaves_goes_to_full_mode_with_a_summary_of_what_failed(story: Story):
    story.model_says(
        *attempt(WRONG, "Centuries are no leap years."),
        {**librarian("dates.py"), "match": {"system": "Role: librarian", "user": WRONG}},
        {**patch("dates.py", OLD, RIGHT), "match": {"user": "PRIOR ATTEMPTS: 1"}},
        {**say("The fourth century is one."), "match": {"user": "# Excerpts"}},
        {**critic("approve"), "match": {"system": "Role: critic", "user": RIGHT}},
    )
    report = loop(story, Escalation(tiers=(replace(SIMPLE, iterations=1), FULL)))
    assert report.delivery is DeliveryState.DONE, report
    assert ends(story) == [("simple 1.1", AttemptEnd.REFUSED), ("full 1.1", AttemptEnd.VERIFIED)]
    assert [event for event in story.events if isinstance(event, TierLeft)] == [
        TierLeft(tier="simple", reason="1 iteration, none verified")
    ]
    assert RIGHT in story.read("dates.py")


@pytest.mark.whole
@pytest.mark.spec("E2")
def test_a_ranking_or_a_judgement_that_cannot_be_used_is_said_and_the_work_goes_on(story: Story):
    words = [{"match": {"system": f"Role: {role}"}, "times": 2, **say("Hm.")} for role in ("librarian", "critic")]
    story.model_says(*words, *attempt(RIGHT))
    assert loop(story, Escalation(tiers=(FULL,))).delivery is DeliveryState.DONE
    told = [one.text for one in story.events if isinstance(one, Warned)]
    assert told == [
        "the librarian's answer cannot be used; the files stay in the order of the search",
        "the critic's answer cannot be used; the change continues without it",
    ]


@pytest.mark.whole
@pytest.mark.spec("E2")
def test_the_critic_sends_work_back_before_a_test_is_run_and_ends_an_attempt_that_it_never_lets_through(story: Story):
    story.model_says(
        librarian("dates.py"),
        *attempt(WRONG),
        critic("send_back", "2000 is a leap year"),
        {**patch("dates.py", WRONG, RIGHT), "match": {"user": "2000 is a leap year"}},
        say("Mended."),
        critic("send_back", "I still do not like it"),
        librarian("dates.py"),
        *attempt(RIGHT, user="sent back by the critic: dates.py:2 I still do not like it"),
        critic("approve"),
    )
    report = loop(story, Escalation(tiers=(FULL,)))
    assert report.delivery is DeliveryState.DONE, report
    assert ends(story) == [("full 1.1", AttemptEnd.SENT_BACK), ("full 2.1", AttemptEnd.VERIFIED)]
    tested = [event for event in story.events if isinstance(event, CheckResult) and event.step == "tests"]
    assert len(tested) == 1, "no test was run for what the critic refused"


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_without_escalation_the_loop_ends_with_the_tier_and_what_it_made_better_is_kept(story: Story):
    story.user_writes(
        {"tests/test_more.py": "from dates import days\n\n\ndef test_more():\n    assert days(1) == 366\n"}
    )
    ladder, _ = ladder_of(LadderWish(simple=2, escalate=False, reflex=False))
    story.model_says(*attempt(RIGHT, "One of two."), say("I give up."))
    report = loop(story, ladder)
    assert report.delivery is DeliveryState.NEEDS_WORK and report.trouble is None
    assert report.refused == ("2 iterations, none verified",)
    assert story.read("dates.py").startswith(f"def is_leap(year):\n    return {OLD}\n"), "nothing was promoted"
    assert ends(story) == [("simple 1.1", AttemptEnd.REFUSED), ("simple 2.1", AttemptEnd.UNCHANGED)]
    with story.shop() as shop:
        kept = shop.entry(report.kept)
        assert shop.changes(kept).paths == {"dates.py"}, "the step forward is at hand"


@pytest.mark.whole
@pytest.mark.spec("E1", "E10")
def test_a_step_forward_is_the_ground_of_the_next_attempt(story: Story):
    story.user_writes(
        {
            "months.py": "def last(month):\n    return 29\n",
            "tests/test_months.py": "from months import last\n\n\ndef test_last():\n    assert last(1) == 31\n",
        }
    )
    left = {"user_regex": r"(?s)Failing now:\n- [^\n]*test_last(?!.*test_century)"}
    story.model_says(*attempt(RIGHT), {**patch("months.py", "29", "31"), "match": left}, say("And the other."))
    report = loop(story, Escalation(tiers=(SIMPLE,)))
    assert report.delivery is DeliveryState.DONE, report
    assert RIGHT in story.read("dates.py") and "31" in story.read("months.py")
    with story.shop() as shop:
        (entry,) = shop.entries()
        assert shop.changes(entry).paths == {"dates.py", "months.py"}, "promoted as one, after both were verified"


@pytest.mark.whole
@pytest.mark.spec("E6")
def test_a_tier_that_spends_its_budget_is_left_and_the_run_stops_before_the_call_that_could_cost_more(story: Story):
    def priced(turns: list[dict]) -> list[dict]:
        return [{**turn, "answer": {**turn["answer"], "cost": "0.04"}} for turn in turns]

    tiers = (replace(SIMPLE, name="cheap", max_cost=Decimal("0.05")), replace(SIMPLE, name="dear", iterations=9))
    story.model_says(*priced(attempt(WRONG)), *priced(attempt("year % 100 != 0")), *priced(attempt(RIGHT)))
    report = loop(story, Escalation(tiers=tiers, max_cost=Decimal("0.14")))
    left = [event for event in story.events if isinstance(event, TierLeft)]
    assert left == [TierLeft(tier="cheap", reason="its budget of $0.05 is spent")]
    assert (report.trouble.code, report.trouble.exit_code) == ("budget_exceeded", 54), report
    assert report.cost == Decimal("0.16"), "a script has no price before it answers"


@pytest.mark.spec("E3")
def test_a_tier_that_changes_nothing_new_is_stuck_and_the_loop_stops(story: Story):
    story.model_says({**say("I cannot."), "times": 0})
    report = loop(story, Escalation(tiers=(SIMPLE, replace(SIMPLE, name="other", iterations=9))))
    assert report.refused == ("stuck: 2 iterations in a row changed nothing, or what had been tried before",)
    assert [end for _, end in ends(story)] == [AttemptEnd.UNCHANGED] * 4
    assert report.delivery is DeliveryState.NEEDS_WORK


@pytest.mark.whole
def test_the_reflex_goes_first_and_no_model_is_asked_for_what_it_mends(story: Story):
    story.user_writes({"dates.py": "def after(year):\n    return year - 1\n", "tests/test_dates.py": AFTER})
    story.model_says(say("never asked"))
    report = loop(story, ladder_of(LadderWish())[0])
    assert (report.delivery, report.requests) == (DeliveryState.DONE, 0), story.events
    assert ends(story) == [("reflex 1.1", AttemptEnd.VERIFIED)]
    assert story.read("dates.py") == "def after(year):\n    return year + 1\n"


def test_nothing_fails_and_nothing_is_asked_for_so_that_nothing_is_done(story: Story):
    story.user_writes({"dates.py": story.read("dates.py").replace(OLD, RIGHT)})
    story.model_says(say("never asked"))
    report = loop(story, ladder_of(LadderWish())[0])
    assert (report.delivery, report.requests, ends(story)) == (DeliveryState.DONE, 0, [])


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_several_samples_are_drawn_and_the_checks_choose(story: Story):
    story.model_says(*attempt(WRONG), *attempt(RIGHT), say("never asked"))
    report = loop(story, Escalation(tiers=(replace(SIMPLE, samples=4),)))
    assert report.delivery is DeliveryState.DONE
    assert ends(story) == [("simple 1.1", AttemptEnd.REFUSED), ("simple 1.2", AttemptEnd.VERIFIED)]


@pytest.mark.whole
def test_tests_that_are_weakened_are_no_success(story: Story):
    weak = patch("tests/test_dates.py", "    assert not is_leap(1900)\n", "")
    story.model_says(weak, say("The tests pass now."))
    report = loop(story, Escalation(tiers=(replace(SIMPLE, iterations=1),)))
    assert report.delivery is DeliveryState.NEEDS_WORK
    assert ends(story) == [("simple 1.1", AttemptEnd.REFUSED)]


@pytest.mark.whole
def test_a_rate_limit_that_is_too_long_leaves_a_run_that_can_be_resumed(story: Story):
    limit = {"answer": {"text": ""}, "fault": {"kind": "rate_limited", "wait_seconds": 3600}}
    story.model_says(*attempt(WRONG), limit, *attempt(RIGHT))
    report = loop(story, Escalation(tiers=(SIMPLE,)))
    assert (report.state, report.trouble.exit_code) == (RunState.WORKING, 75)
    report = story.resume(report.run)
    assert report.delivery is DeliveryState.DONE, report
    assert ends(story) == [("simple 1.1", AttemptEnd.REFUSED), ("simple 2.1", AttemptEnd.VERIFIED)]


@pytest.mark.whole
@pytest.mark.spec("E5")
def test_an_audit_that_cannot_be_written_only_warns(story: Story, state_directory: Path):
    with Audit.open(state_directory):
        other = sqlite3.connect(state_directory / "audit.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
    story.model_says(*attempt(RIGHT))
    report = loop(story, Escalation(tiers=(SIMPLE,)))
    other.close()
    assert report.delivery is DeliveryState.DONE
    (warned,) = [event for event in story.events if isinstance(event, EscalationWarned)]
    assert "the run continues" in warned.text


def as_role(role: str, turn: dict) -> dict:
    return {**turn, "match": {"system": f"Role: {role}"}}


def answer(role: str, **body: object) -> dict:
    return as_role(role, {"answer": {"text": json.dumps(body)}})


def sends(role: str, to: str, task: str) -> dict:
    return as_role(role, call("delegate", role=to, task=task))


@pytest.mark.whole
@pytest.mark.spec("D1", "D6", "E4")
def test_a_team_plans_works_and_fixes_and_nobody_sends_whom_he_may_not(story: Story):
    done = {"id": 1, "path": "dates.py", "status": "completed", "detail": "centuries"}
    work = {"status": "completed", "results": [done], "files_modified": ["dates.py"], "files_failed": []}
    plan = [{"id": 1, "path": "dates.py", "action": "edit", "what": "centuries", "depends_on": []}]
    fix = {"path": "dates.py", "error": "2000", "fix": "the fourth century"}
    story.model_says(
        as_role("supervisor", call("file_read", path="dates.py")),
        sends("supervisor", "lead", "mend is_leap"),
        sends("lead", "worker", "mend it"),
        sends("lead", "planner", "mend is_leap"),
        sends("planner", "worker", "centuries are no leap years"),
        {**patch("dates.py", OLD, WRONG), "match": {"system": "Role: worker", "user": "Failing now:"}},
        answer("worker", **work),
        answer("planner", **work, plan=plan),
        as_role("lead", call("check", what="all")),
        sends("lead", "fixer", "2000 is a leap year"),
        as_role("fixer", patch("dates.py", WRONG, RIGHT)),
        answer(
            "fixer", status="completed", fixes_applied=[fix], build_status="passed", remaining_errors=[], attempts=1
        ),
        as_role("lead", say("Planned, made and mended.")),
        as_role("supervisor", say("The lead had it planned, made and mended.")),
    )
    report = loop(story, Escalation(tiers=(Tier(name="team", mode=TierMode.TEAM),)))
    assert report.delivery is DeliveryState.DONE, report
    assert report.answer == (
        "**Reported as made.** The lead had it planned, made and mended.\n\n"
        "| | change | file | | |\n| --- | --- | --- | --- | --- |\n"
        "| 1 | centuries | `dates.py` | made | centuries |\n\n"
        "Repaired:\n- `dates.py`: the fourth century"
    )
    assert RIGHT in story.read("dates.py")
    refused = [event for event in story.events if isinstance(event, ToolEnded) and event.answer.failed]
    assert [event.answer.text.partition("\n")[0] for event in refused] == [
        "policy_violation: 'file_read' is not a tool of this stage",
        "policy_violation: the role 'lead' may not delegate to 'worker'",
    ]
    with story.shop() as shop:
        records = shop.store.requests.records(shop.workspace, run=report.run)
    assert [record.role for record in records] == [
        "supervisor", "supervisor", "lead", "lead",
        "planner", "worker", "worker", "planner", "lead", "lead", "fixer", "fixer", "lead",
        "supervisor",
    ]  # fmt: skip


@pytest.mark.whole
@pytest.mark.spec("D1", "D7")
def test_a_planned_change_that_was_not_made_leaves_the_request_partly_done_and_a_fixer_is_sent_three_times(
    story: Story,
):
    done = {"id": 1, "path": "dates.py", "status": "completed", "detail": "centuries"}
    lost = {"id": 2, "path": "notes.md", "status": "failed", "detail": "no | such file"}
    plan = [
        {"id": number, "path": path, "action": "edit", "what": what, "depends_on": []}
        for number, path, what in ((1, "dates.py", "centuries"), (2, "notes.md", "say so"))
    ]
    work = {"status": "completed", "results": [done], "files_modified": ["dates.py"], "files_failed": []}
    partly = {**work, "status": "partial", "results": [done, lost], "files_failed": ["notes.md"]}
    nothing = {"fixes_applied": [], "build_status": "failed", "remaining_errors": ["no notes"], "attempts": 1}
    story.model_says(
        sends("supervisor", "lead", "mend is_leap"),
        sends("lead", "planner", "mend is_leap"),
        sends("planner", "worker", "centuries are no leap years"),
        {**patch("dates.py", OLD, RIGHT), "match": {"system": "Role: worker"}},
        answer("worker", **work),
        answer("planner", **partly, plan=plan),
        *(
            turn
            for number in range(3)
            for turn in (sends("lead", "fixer", f"try {number}"), answer("fixer", status="failed", **nothing))
        ),
        sends("lead", "fixer", "once more"),
        as_role("lead", say("The notes are missing.")),
        as_role("supervisor", say("Partly.")),
    )
    report = loop(story, Escalation(tiers=(Tier(name="team", mode=TierMode.TEAM),)))
    assert report.delivery is DeliveryState.PARTLY, report
    assert "| 2 | say so | `notes.md` | failed | no \\| such file |" in report.answer
    assert report.answer.startswith("**Reported as made in part.** Partly.") and "Left:\n- no notes" in report.answer
    assert [(one.what, one.state) for one in report.task_states if one.number == 2] == [
        ("say so (notes.md): no \\| such file", TaskState.FAILED)
    ]
    refused = [event.answer.text for event in story.events if isinstance(event, ToolEnded) and event.answer.failed]
    assert refused == ["policy_violation: fixer was sent 3 times\nnext: report what is left"]


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_drafts_are_whole_functions_drawn_several_times_and_the_same_one_is_not_tested_twice(story: Story):
    wrong = f"```python\ndef is_leap(year):\n    return {WRONG}\n```"
    story.model_says(say(wrong), say(wrong), say(f"```python\ndef is_leap(year):\n    return {RIGHT}\n```"))
    report = loop(story, Escalation(tiers=(replace(SIMPLE, samples=3, draft=True),)), target="dates.py")
    assert report.delivery is DeliveryState.DONE, report
    assert [end for _, end in ends(story)] == [AttemptEnd.REFUSED, AttemptEnd.REFUSED, AttemptEnd.VERIFIED]
    tested = [event for event in story.events if isinstance(event, CheckResult) and event.step == "tests"]
    assert (len(tested), report.requests) == (2, 3)
    assert story.read("dates.py").startswith(f"def is_leap(year):\n    return {RIGHT}\n\n\ndef days")


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_every_other_draft_is_asked_for_without_the_old_body_and_one_that_hangs_costs_no_more_than_a_try(
    story: Story, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pawl.agent.attempts.LEAST_PATIENCE", 5.0)
    monkeypatch.setattr("pawl.agent.attempts.SLOWER", 0)
    seen, hidden = rf"(?s)return {re.escape(OLD)}.*Failing now:.*test_century", r"(?s)def is_leap\(year\):\n    \.\.\."
    story.model_says(
        {**say("```python\ndef is_leap(year):\n    while True: pass\n```"), "match": {"user_regex": seen}},
        {**say(f"```python\ndef is_leap(year):\n    return {RIGHT}\n```"), "match": {"user_regex": hidden}},
    )
    report = loop(story, Escalation(tiers=(replace(SIMPLE, samples=3, draft=True),)), target="dates.py")
    assert report.delivery is DeliveryState.DONE, report
    assert [end for _, end in ends(story)] == [AttemptEnd.REFUSED, AttemptEnd.VERIFIED]


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_each_failing_test_has_a_draft_of_its_own_and_one_that_fixes_one_of_two_is_kept(story: Story):
    tests = "from months import last\n\n\ndef test_last():\n    assert last(1) == 31\n"
    story.user_writes({"months.py": "def last(month):\n    raise ValueError\n", "tests/test_months.py": tests})
    days = "def days(year):\n    return 366 if is_leap(year) else 365"
    story.user_writes({"dates.py": f"def is_leap(year):\n    assert year % 100\n    return {OLD}\n\n\n{days}\n"})
    about = {"match": {"user_regex": r"(?s)^(?!.*test_century).*the whole function last"}}
    story.model_says(
        say(f"```python\ndef is_leap(year):\n    return {WRONG}\n```"),
        {**say("```python\ndef last(month):\n    return 31\n```"), **about},
        {
            **say(f"```python\ndef is_leap(year):\n    return {RIGHT}\n```"),
            "match": {"user_regex": r"(?s)Failing now:(?!.*test_last).*the whole function is_leap"},
        },
    )
    report = loop(story, Escalation(tiers=(replace(SIMPLE, samples=3, draft=True),)))
    assert report.delivery is DeliveryState.DONE, report
    assert [name for name, _ in ends(story)] == ["simple 1.1", "simple 1.2", "simple 2.1"]


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_a_loop_ends_when_somebody_else_has_fixed_the_tests(story: Story):
    story.model_says(*attempt(WRONG), say("never asked"))

    def fixed(event: object) -> None:
        if isinstance(event, AttemptEnded):
            story.user_writes({"dates.py": story.read("dates.py").replace(OLD, RIGHT)})

    story.meanwhile = fixed
    report = loop(story, Escalation(tiers=(SIMPLE,)))
    assert (report.delivery, report.entry, report.requests) == (DeliveryState.DONE, None, 2), report
    assert "they were fixed meanwhile" in report.answer


@pytest.mark.whole
@pytest.mark.spec("E3")
def test_a_request_whose_checks_keep_refusing_climbs_the_ladder_within_what_it_may_spend(story: Story):
    # After the first refusal "Done." without a change is sent back once, and then the role is not asked again.
    wrong = [patch("dates.py", OLD, WRONG), *[say("Done.")] * 3]
    right = attempt(RIGHT, user="Earlier work on this was refused")
    story.model_says(*wrong, librarian("dates.py"), *right, critic("approve"))
    report = story.do("make test_century in tests/test_dates.py pass", approve="never", budget={"money": "1"})
    assert report.delivery is DeliveryState.DONE, report
    assert ends(story) == [("full 1.1", AttemptEnd.VERIFIED)]
    assert RIGHT in story.read("dates.py") and WRONG not in story.read("dates.py").replace(RIGHT, "")


@pytest.mark.whole
@pytest.mark.spec("E7", "E8")
def test_a_target_without_tests_gets_one_from_its_examples_which_then_decides(story: Story):
    shown = '    """\n    >>> last(1)\n    31\n    """\n'
    story.user_writes({"months.py": f"def last(month):\n{shown}    return 30\n"})
    story.model_says(patch("months.py", "return 30", "return 31"), say("Done."))
    report = loop(story, Escalation(tiers=(SIMPLE,)), target="months.py")
    assert report.delivery is DeliveryState.DONE, report
    assert "assert repr(last(1)) == '31'" in story.read("tests/test_months.py")
    assert (report.before.failed, report.after.passed) == (1, 1), "scoped to the test that was made"
    assert "return year % 4 == 0\n" in story.read("dates.py"), "what fails elsewhere is not asked for"


@pytest.mark.whole
@pytest.mark.spec("E7")
def test_a_test_that_is_made_for_a_script_is_run_by_the_projects_own_runner_and_decides(story: Story):
    package = '{"type": "module", "scripts": {"test": "node --test"}}'
    story.user_writes({"package.json": package, "half.js": HALF, "pyproject.toml": ""})
    imports = 'import test from "node:test";\nimport assert from "node:assert";\nimport { half } from "./half.js";\n'
    made = f'```js\n{imports}test("down", () => {{ assert.equal(half(3), 1); }});\n```'
    story.model_says(say(made), patch("half.js", "n / 2", "Math.floor(n / 2)"), say("Done."))
    report = loop(story, Escalation(tiers=(SIMPLE,)), target="half.js", objective="half rounds down")
    assert report.delivery is DeliveryState.DONE, report
    assert "node:test" in story.read("half.test.js")


@pytest.mark.whole
@pytest.mark.spec("E7")
def test_a_test_by_the_model_is_used_if_it_runs_and_asserts_and_else_there_is_only_a_warning(story: Story):
    story.user_writes({"months.py": "def last(month):\n    return 30\n"})
    made = "```python\nfrom months import last\n\n\ndef test_january():\n    assert last(1) == 31\n```"
    right = patch("months.py", "return 30", "return 31")
    story.model_says({**say(made), "match": {"user": "def test_leap"}}, right, say("Done."))
    report = loop(story, Escalation(tiers=(SIMPLE,)), target="months.py", objective="January has 31 days")
    assert report.delivery is DeliveryState.DONE, report
    assert "def test_january" in story.read("tests/test_months.py")
    story.user_writes({"weeks.py": "def days():\n    return 8\n"})
    story.model_says(say("```python\nprint('hello')\n```"), *attempt(RIGHT))
    report = loop(story, Escalation(tiers=(SIMPLE,)), target="weeks.py")
    assert report.delivery is DeliveryState.DONE, report
    assert any(isinstance(event, EscalationWarned) and "nothing was asserted" in event.text for event in story.events)


@pytest.mark.whole
@pytest.mark.spec("E2")
def test_chaos_breaks_what_the_tests_let_through_and_offers_the_failing_test(story: Story):
    old = "[whole // parts] * parts if 0 < parts < 99 else [1]"
    loose = "[whole // parts + (n < whole % parts) for n in range(min(parts, 99))] + [0] * (whole % parts * 0)"
    tight = f"({loose}) if 0 < parts < 99 else [1]"
    story.user_writes(
        {
            "dates.py": f"def share(whole, parts):\n    return {old}\n",
            "tests/test_dates.py": (
                "from dates import share\n\n\ndef test_share():\n    assert share(6, 3) == [2, 2, 2]\n\n\n"
                "def test_rest():\n    assert share(7, 3) == [3, 2, 2]\n"
            ),
        }
    )
    story.model_says(
        patch("dates.py", old, loose), say("Done."),
        {**patch("dates.py", old, tight), "match": {"user": "ZeroDivisionError"}}, say("Done."),
        {"match": {"system": "Role: chaos"}, "answer": {"text": json.dumps({"cases": [
            {"target": "dates.py::share", "input": "share(0, 0)", "expect": "[1]", "why": "nothing to share"}]})}},
    )  # fmt: skip
    report = loop(story, Escalation(tiers=(replace(SIMPLE, chaos=True),)))
    assert report.delivery is DeliveryState.DONE, report
    first, second = [event.attempt for event in story.events if isinstance(event, AttemptEnded)]
    assert first.end is AttemptEnd.REFUSED and "ZeroDivisionError" in first.refused[0]
    assert second.end is AttemptEnd.VERIFIED
    with story.shop() as shop:
        kept = next(entry for entry in shop.entries() if entry.title.startswith("chaos: a failing test"))
        assert shop.changes(kept).paths == {"tests/test_chaos_share.py"}


@pytest.mark.whole
@pytest.mark.spec("D2")
def test_of_attempts_side_by_side_the_first_that_is_verified_wins_and_the_others_are_cancelled(story: Story):
    right = f"```python\ndef is_leap(year):\n    return {RIGHT}\n```"
    quick = {**say(right), "times": 0, "match": {"user": "the whole function is_leap"}}
    slow = {**say("too late"), "times": 0, "delay_ms": 60_000, "match": {"user": "the whole function days"}}
    story.model_says(quick, slow)
    tier = replace(SIMPLE, samples=4, parallel=4, draft=True, iterations=1)
    report = loop(story, Escalation(tiers=(tier,)), target="dates.py")
    assert report.delivery is DeliveryState.DONE, report
    found = dict(ends(story))
    assert AttemptEnd.VERIFIED in found.values() and found["simple 1.4"] is AttemptEnd.CANCELLED
    assert RIGHT in story.read("dates.py")
    with story.shop() as shop:
        assert len(shop.entries()) == 1, "one of them was promoted"


@pytest.mark.whole
@pytest.mark.parametrize("climbs", [{}, dict(NO_ESCALATION), escalation()], ids=["unsaid", "never", "may"])
@pytest.mark.spec("A11")
def test_a_request_has_its_usual_time_whether_or_not_it_may_climb(story: Story, climbs: dict[str, object]):
    story.model_says(*[say("There is nothing to do.")] * 4)
    left: list[float] = []
    with story.session() as session:
        session.listen = lambda _: left.extend(() if session.shop.stop is None else [session.shop.stop.left])
        session.do(RunRequest(text="clean up dates.py", loop=climbs, model=f"scripted:{story.script}"))
    assert left and max(left) <= REQUEST_SECONDS
