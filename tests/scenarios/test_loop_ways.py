"""Loops with roles and models of the user's own, tests made from behaviour, and attacks on methods."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from models.provider_socket import provider, streamed
from models.wire_scripts import Said, openai
from scenarios.story import DELIVERED, Story, call, patch, say
from scenarios.test_loops import (
    FULL,
    OLD,
    RIGHT,
    SIMPLE,
    WRONG,
    answer,
    as_role,
    attempt,
    critic,
    ends,
    librarian,
    loop,
    sends,
)  # fmt: skip

from pawl.agent.escalation import LadderWish, ladder_of
from pawl.core.events import AttemptEnded, EscalationWarned, ToolEnded
from pawl.core.run import DeliveryState
from pawl.core.tiers import AttemptEnd, Escalation, Tier, TierMode

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "tiers.yaml"
ARTISAN = """\
description = "Writes the change with patches only."
prompt = "roles/artisan"
tools = ["file_read", "strict_patch"]
"""
READER = """\
description = "Reads what is to change, and says what it would do."
prompt = "roles/worker"
tools = ["file_read"]
"""


@pytest.mark.whole
@pytest.mark.spec("D1", "E2", "E4")
def test_a_tier_has_the_roles_prompts_and_models_that_the_user_gives_it(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "settings"
    for name, text in {
        "config.toml": 'review = "off"\n',
        "roles/artisan.toml": ARTISAN,
        "prompts/roles/critic.md": "Role: critic of the house. Say what is wrong with the change.\n",
    }.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    monkeypatch.setenv("PAWL_CONFIG", str(folder / "config.toml"))
    other = tmp_path / "critic.jsonl"
    story.model_says({**critic("approve"), "match": {"system": "critic of the house"}})
    story.script.rename(other)
    story.model_says(librarian("dates.py"), call("run_command", command="true"), *attempt(RIGHT))
    tier = replace(FULL, models=(("*", f"scripted:{story.script}"), ("critic", f"scripted:{other}")))
    report = loop(story, Escalation(tiers=(tier,), max_iterations=1), model="")
    assert report.delivery is DeliveryState.DONE, report
    assert ends(story) == [("full 1.1", AttemptEnd.VERIFIED)], "what is verified on the last one allowed counts"
    refused = [event.answer for event in story.events if isinstance(event, ToolEnded) and event.answer.failed]
    assert len(refused) == 1 and "run_command" in refused[0].text, "this artisan may not run commands"
    with story.shop() as shop:
        asked = {one.role: one.model for one in shop.store.requests.records(shop.workspace, run=report.run)}
    assert asked["critic"].endswith("critic.jsonl") and asked["artisan"].endswith("script.jsonl")


@pytest.mark.spec("D1", "E4")
def test_a_team_has_the_roles_that_the_user_gives_it(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "roles").mkdir()
    (tmp_path / "config.toml").write_text('review = "off"\n')
    (tmp_path / "roles" / "worker.toml").write_text(READER)
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    work = {"status": "failed", "results": [], "files_modified": [], "files_failed": ["dates.py"]}
    story.model_says(
        sends("supervisor", "lead", "mend is_leap"),
        sends("lead", "planner", "mend is_leap"),
        sends("planner", "worker", "centuries are no leap years"),
        as_role("worker", patch("dates.py", OLD, RIGHT)),
        answer("worker", **work),
        answer("planner", **work, plan=[]),
        as_role("lead", say("It could not be done.")),
        as_role("supervisor", say("The lead could not do it.")),
    )
    loop(story, Escalation(tiers=(Tier(name="team", mode=TierMode.TEAM),)))
    assert ends(story) == [("team 1.1", AttemptEnd.UNCHANGED)]
    refused = [event.answer.text for event in story.events if isinstance(event, ToolEnded) and event.answer.failed]
    assert len(refused) == 1 and "strict_patch" in refused[0], "this worker may only read"


@pytest.mark.whole
@pytest.mark.spec("E4")
def test_the_example_of_tiers_works_with_a_server_that_speaks_the_format_of_openai(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    ladder, _ = ladder_of(LadderWish(tiers=EXAMPLE))
    edit = json.dumps({"path": "dates.py", "old": OLD, "new": RIGHT})
    patched, done = Said(calls=(("c1", "strict_patch", edit),), stop="calls"), Said(text=("Done.",))
    with provider(streamed(*openai(patched)), streamed(*openai(done))) as server:
        (tmp_path / "config.toml").write_text(
            f'review = "off"\n[providers.ollama]\nbase_url = "{server.url}/v1"\n'
            '[models."ollama/*"]\ntools = "native"\nonce = false\n'
        )
        monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
        report = loop(story, replace(ladder, tiers=ladder.tiers[1:]), model="")
    assert report.delivery is DeliveryState.DONE, report
    assert [request.json["model"] for request in server.requests] == ["qwen2.5-coder:1.5b"] * 2
    assert report.cost == 0, "a server of one's own costs nothing"


@pytest.mark.whole
@pytest.mark.spec("E7")
def test_where_behaviour_is_to_stay_the_calls_that_other_tests_make_become_the_test(story: Story):
    story.user_writes(
        {
            "months.py": (
                "class Month:\n    def __init__(self, number):\n        self.number = number\n\n"
                "    def last(self):\n        return 28 if self.number == 2 else 31\n\n\n"
                "def name(number):\n    if number == 1:\n        return 'January'\n    return 'later'\n"
            ),
            "year.py": (
                "import months\n\n\ndef told(number):\n"
                "    return f'{months.name(number)} {months.Month(number).last()}'\n"
            ),
            "tests/test_dates.py": "from year import told\n\n\ndef test_told():\n    assert told(1) == 'January 31'\n",
            "examples/show.py": "from year import told\n\nprint(told(2))\n",
        }
    )
    short = "return 'January' if number == 1 else 'later'"
    old = "if number == 1:\n        return 'January'\n    return 'later'"
    story.model_says(
        patch("months.py", old, "return 'January'"),
        say("Shorter."),
        patch("months.py", old, short),
        say("Shorter."),
        DELIVERED,
    )
    report = loop(story, Escalation(tiers=(SIMPLE,)), target="months.py", objective="simplify name in months.py")
    assert report.delivery is DeliveryState.DONE, report
    assert [end for _, end in ends(story)] == [AttemptEnd.REFUSED, AttemptEnd.VERIFIED], "the first changed behaviour"
    made = story.read("tests/test_months.py")
    assert "assert name(1) == 'January'" in made and "assert name(2) == 'later'" in made
    assert "assert Month(2).last() == 28" in made


@pytest.mark.whole
@pytest.mark.spec("E7")
def test_a_test_that_passes_already_is_said_not_to_show_what_is_wanted(story: Story):
    story.user_writes({"months.py": "def last(month):\n    return 30\n"})
    made = "```python\nfrom months import last\n\n\ndef test_last():\n    assert last(1) > 0\n```"
    story.model_says(say(made), patch("months.py", "return 30", "return 31"), say("Done."), DELIVERED)
    report = loop(story, Escalation(tiers=(SIMPLE,)), target="months.py", objective="January has 31 days")
    assert report.delivery is DeliveryState.DONE, report
    assert any(isinstance(event, EscalationWarned) and "passes already" in event.text for event in story.events)


@pytest.mark.whole
@pytest.mark.spec("E2")
def test_chaos_attacks_methods_as_the_tests_construct_their_objects(story: Story):
    source = (
        "from dataclasses import dataclass\n\n\n@dataclass\nclass Cart:\n    prices: list\n\n"
        "    def mean(self, parts):\n        return 0 if not parts else sum(self.prices) // parts + 1\n\n"
        "    @staticmethod\n    def half(number):\n        return number // 2\n"
    )
    story.user_writes(
        {
            "dates.py": source,
            "tests/test_dates.py": (
                "from dates import Cart\n\n\ndef test_mean():\n    assert Cart([2, 4]).mean(2) == 3\n\n\n"
                "def test_half():\n    assert Cart.half(4) == 2\n"
            ),
        }
    )
    old = "0 if not parts else sum(self.prices) // parts + 1"
    kept = "0 if not parts else sum(self.prices) // parts"
    story.model_says(
        patch("dates.py", old, "sum(self.prices) // parts"), say("Done."),
        {**patch("dates.py", old, kept), "match": {"user": "ZeroDivisionError"}}, say("Done."),
        {"match": {"system": "Role: chaos"}, "answer": {"text": '{"cases": [{"target": "dates.py::Cart.mean", '
            '"input": "Cart([1]).mean(0)", "expect": "0", "why": "no parts"}]}'}},
    )  # fmt: skip
    report = loop(story, Escalation(tiers=(replace(SIMPLE, chaos=True),)))
    assert report.delivery is DeliveryState.DONE, report
    first, second = [event.attempt for event in story.events if isinstance(event, AttemptEnded)]
    assert first.end is AttemptEnd.REFUSED and "Cart([" in first.refused[0] and second.end is AttemptEnd.VERIFIED
    with story.shop() as shop:
        kept_entry = next(entry for entry in shop.entries() if entry.title.startswith("chaos: a failing test"))
        (change,) = shop.changes(kept_entry)
        text = shop.store.blobs.get(change.after.blob).decode()
    assert "from dates import Cart\n" in text and "    Cart([" in text and ".mean(0)" in text


@pytest.mark.whole
@pytest.mark.parametrize(("command", "warns"), [(("true",), True), ((), False)])
def test_a_command_that_shows_no_tests_and_passes_already_is_warned_about(
    story: Story, command: tuple[str, ...], warns: bool
):
    story.user_writes({"dates.py": story.read("dates.py").replace(OLD, RIGHT)})
    story.model_says(patch("dates.py", "366", "300 + 66"), say("Done."))
    loop(story, Escalation(tiers=(SIMPLE,)), objective="write 366 as a sum", test_command=command)
    warned = [event.text for event in story.events if isinstance(event, EscalationWarned)]
    assert any("cannot tell whether" in text for text in warned) is warns, warned


@pytest.mark.whole
def test_a_change_that_was_refused_before_is_told_of_whoever_makes_it_again(story: Story):
    story.model_says(*attempt(WRONG), librarian("dates.py"), *attempt(WRONG), critic("approve"))
    loop(story, Escalation(tiers=(replace(SIMPLE, iterations=1), replace(FULL, iterations=1))))
    made = [event.attempt for event in story.events if isinstance(event, AttemptEnded)]
    assert [(one.mode, one.end) for one in made] == [("simple", AttemptEnd.REFUSED), ("full", AttemptEnd.REFUSED)]
