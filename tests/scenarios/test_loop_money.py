"""Money on a ladder: one purse for all that a loop asks of models, whatever it is asked for and however often."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest
from scenarios.story import Story, call, patch, say
from scenarios.test_loops import OLD, RIGHT, SIMPLE, WRONG, ends, loop

from pawl.core.run import DeliveryState
from pawl.core.tiers import AttemptEnd, Escalation, Tier, TierMode

PRICE = "0.04"
MOST = Decimal("0.05")
SPENT = Decimal("0.08")
"""A script has no price before it answers: the request that uses the purse up is the last one."""


def priced(*turns: dict) -> list[dict]:
    return [{**turn, "answer": {**turn["answer"], "cost": PRICE}} for turn in turns]


def tries(*news: str) -> list[dict]:
    return [turn for new in news for turn in priced(patch("dates.py", OLD, new), say("Done."))]


@pytest.mark.whole
@pytest.mark.spec("E6")
def test_the_samples_of_an_iteration_share_the_purse(story: Story):
    story.model_says(*tries(WRONG, "year % 100 != 0", "year % 3 == 0"))
    report = loop(story, Escalation(tiers=(replace(SIMPLE, samples=3),), max_cost=MOST))
    assert (report.cost, report.trouble.exit_code) == (SPENT, 54), report


@pytest.mark.whole
@pytest.mark.spec("E6")
def test_the_samples_of_an_iteration_share_the_purse_of_their_tier(story: Story):
    tier = replace(SIMPLE, samples=3, max_cost=MOST)
    story.model_says(*tries(WRONG, "year % 100 != 0", "year % 3 == 0"))
    report = loop(story, Escalation(tiers=(tier,), max_cost=Decimal(5)))
    assert (report.cost, report.refused) == (SPENT, ("its budget of $0.05 is spent",)), report


@pytest.mark.spec("E6")
def test_an_attempt_that_waits_for_the_provider_has_no_new_purse(story: Story):
    wait = {"answer": {"text": ""}, "fault": {"kind": "rate_limited", "wait_seconds": 0}}
    reads = priced(*(call("file_read", path="dates.py", offset=number) for number in range(1, 4)))
    story.model_says(*(turn for read in reads for turn in (read, wait)), say("Done."))
    report = loop(story, Escalation(tiers=(SIMPLE,), max_cost=MOST))
    assert (report.cost, report.trouble.exit_code) == (SPENT, 54), report


@pytest.mark.whole
@pytest.mark.spec("E6", "E7")
def test_the_test_that_a_model_writes_is_paid_from_the_same_purse(story: Story):
    story.user_writes({"later.py": "def after(year):\n    return year + 2\n"})
    test = "```python\nfrom later import after\n\n\ndef test_after():\n    assert after(1) == 2\n```"
    story.model_says(*priced(say(test), patch("later.py", "+ 2", "+ 3"), say("Done.")))
    report = loop(story, Escalation(tiers=(SIMPLE,), max_cost=MOST), target="later.py")
    assert (report.cost, report.trouble.exit_code) == (SPENT, 54), report


@pytest.mark.whole
@pytest.mark.spec("E6")
def test_for_no_money_the_reflex_and_free_models_work(story: Story):
    story.model_says(*tries(WRONG))
    reflex = Tier(name="reflex", mode=TierMode.REFLEX)
    report = loop(story, Escalation(tiers=(reflex, SIMPLE), max_cost=Decimal(0)))
    assert [end for _, end in ends(story)] == [AttemptEnd.REFUSED, AttemptEnd.OUT_OF_BUDGET]
    assert (report.cost, report.delivery) == (Decimal(PRICE), DeliveryState.NEEDS_WORK), report


@pytest.mark.whole
@pytest.mark.spec("E2", "E6")
def test_what_is_verified_stays_so_where_chaos_cannot_be_paid(story: Story):
    story.model_says(*tries(RIGHT))
    report = loop(story, Escalation(tiers=(replace(SIMPLE, chaos=True),), max_cost=MOST))
    assert (report.cost, report.delivery) == (SPENT, DeliveryState.DONE), report
    assert any("with inputs of the model: the next request" in note for note in report.notes), report.notes
