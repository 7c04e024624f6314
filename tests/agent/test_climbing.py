"""What comes next on a ladder, what counts as progress, and what a fresh context is told of the attempts before it."""

from __future__ import annotations

import dataclasses
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pawl.agent.briefing import HEADING, lines_of, prior_attempts
from pawl.agent.escalation import Escalate, StopEscalation, Try, following, is_progress, is_stuck
from pawl.core.tiers import (
    Attempt,
    AttemptEnd,
    Escalation,
    EscalationEnd,
    EscalationState,
    Iteration,
    Tier,
    TierMode,
)
from pawl.core.typed import plain, typed

SIMPLE = Tier(name="simple", mode=TierMode.SIMPLE, iterations=3)
FULL = Tier(name="full", mode=TierMode.FULL, iterations=2, max_cost=Decimal("1.00"))
LADDER = Escalation(tiers=(SIMPLE, FULL))


def attempt(tier: int, number: int, end: AttemptEnd = AttemptEnd.REFUSED, **fields: object) -> Attempt:
    given = {"digest": f"d{tier}.{number}", "failing": ("t::a", "t::b"), **fields}
    mode = (TierMode.SIMPLE, TierMode.FULL)[tier]
    return Attempt(at=Iteration(tier=tier, number=number), mode=mode, end=end, **given)


def climbed(*attempts: Attempt, ladder: Escalation = LADDER) -> EscalationState:
    climb = EscalationState(ladder=ladder, failing=("t::a", "t::b"))
    for one in attempts:
        while one.at.tier > climb.at:
            climb = climb.escalated("it was time")
        climb = climb.tried(one)
    return climb


@pytest.mark.spec("E3", "E4")
def test_a_tier_is_tried_as_often_as_it_may_be_then_left_then_the_climb_ends():
    climb = climbed()
    assert following(climb, seconds=0) == Try(Iteration(tier=0, number=1))
    for number in (1, 2, 3):
        climb = climb.tried(attempt(0, number))
    gate = following(climb, seconds=0)
    assert gate == Escalate("3 iterations, none verified")
    climb = climb.escalated(gate.reason)
    assert following(climb, seconds=0) == Try(Iteration(tier=1, number=1))
    climb = climb.tried(attempt(1, 1)).tried(attempt(1, 2))
    assert following(climb, seconds=0) == StopEscalation(EscalationEnd.EXHAUSTED, "2 iterations, none verified")


@pytest.mark.spec("E3")
def test_what_is_verified_on_the_last_allowed_iteration_counts():
    ladder = dataclasses.replace(LADDER, max_iterations=3, max_cost=Decimal("0.01"), max_minutes=0.1)
    last = attempt(0, 3, AttemptEnd.VERIFIED, failing=(), cost=Decimal(1))
    climb = climbed(attempt(0, 1), attempt(0, 2), last, ladder=ladder)
    assert following(climb, seconds=10_000).why is EscalationEnd.VERIFIED


@pytest.mark.spec("E4", "E6")
@pytest.mark.parametrize(
    ("limits", "cost", "seconds", "why"),
    [
        ({"max_iterations": 1}, "0", 0, EscalationEnd.ITERATIONS),
        ({"max_cost": Decimal("0.10")}, "0.10", 0, EscalationEnd.MONEY),
        ({"max_minutes": 2.0}, "0", 120, EscalationEnd.TIME),
    ],
)
def test_the_limits_of_the_whole_end_it_in_any_tier(limits: dict, cost: str, seconds: float, why: EscalationEnd):
    climb = climbed(attempt(0, 1, cost=Decimal(cost)), ladder=dataclasses.replace(LADDER, **limits))
    step = following(climb, seconds=seconds)
    assert isinstance(step, StopEscalation) and step.why is why


@pytest.mark.spec("E6")
def test_the_reflex_is_no_iteration_and_a_tier_has_a_budget_of_its_own():
    reflex = Attempt(at=Iteration(tier=0, number=1), mode=TierMode.REFLEX, end=AttemptEnd.REFUSED)
    tiers = (Tier(name="reflex", mode=TierMode.REFLEX), FULL, SIMPLE)
    climb = EscalationState(ladder=Escalation(tiers=tiers, max_iterations=1)).tried(reflex)
    assert isinstance(following(climb, seconds=0), Escalate)
    dear = Attempt(
        at=Iteration(tier=1, number=1), mode=TierMode.FULL, end=AttemptEnd.REFUSED, digest="x", cost=Decimal(2)
    )
    climb = EscalationState(ladder=Escalation(tiers=tiers)).tried(reflex).escalated("it found nothing").tried(dear)
    assert following(climb, seconds=0) == Escalate("its budget of $1.00 is spent")


def test_a_tier_that_repeats_itself_is_stuck_and_new_changes_are_not():
    same = [attempt(0, number, digest="same") for number in (1, 2, 3)]
    assert is_stuck(same[:2]) == ""
    assert "2 iterations in a row" in is_stuck(same)
    assert is_stuck([attempt(0, number) for number in range(1, 9)]) == ""
    nothing = [attempt(0, number, AttemptEnd.UNCHANGED, digest="") for number in (1, 2)]
    assert is_stuck(nothing)
    assert is_stuck([*nothing, attempt(0, 3)]) == ""
    climb = climbed(attempt(1, 1, digest=""), attempt(1, 2, digest=""))
    assert following(climb, seconds=0).why is EscalationEnd.STUCK
    assert isinstance(following(climbed(*nothing), seconds=0), Escalate)


def test_progress_is_that_fewer_tests_fail_and_none_that_passed():
    before = ("t::a", "t::b")
    assert is_progress(attempt(0, 1, failing=("t::a",)), before)
    assert not is_progress(attempt(0, 1, failing=before), before)
    assert not is_progress(attempt(0, 1, failing=("t::c",)), before)
    assert not is_progress(attempt(0, 1, failing=None), before)


@pytest.mark.spec("E10")
def test_going_on_leaves_what_was_handed_over_as_it_was():
    first = climbed(attempt(0, 1))
    second = first.tried(attempt(0, 2)).escalated("enough")
    assert (len(first.attempts), first.at, first.iteration) == (1, 0, 1)
    assert (len(second.attempts), second.at, second.iteration) == (2, 1, 0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.attempts = ()
    with pytest.raises(TypeError):
        first.attempts[0] = attempt(0, 9)


names = st.text(st.characters(codec="utf-8", exclude_characters="\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=300)
lists = st.lists(names, max_size=6).map(tuple)
attempts = st.builds(
    Attempt,
    at=st.builds(Iteration, tier=st.integers(0, 1), number=st.integers(1, 9)),
    sample=st.integers(1, 3),
    mode=st.sampled_from(TierMode),
    model=names,
    end=st.sampled_from([end for end in AttemptEnd if end is not AttemptEnd.VERIFIED]),
    said=names,
    paths=lists,
    digest=st.sampled_from(["", "a", "b", "c"]),
    diff=lists,
    failing=st.none() | lists,
    messages=lists,
    refused=lists,
    verdicts=st.just((("tests", "fail", "1 failed"),)),
    better=st.booleans(),
    cost=st.none() | st.decimals(0, 5, places=4),
    tokens=st.integers(0, 10**6),
    seconds=st.floats(0, 1e4),
)
climbs = st.builds(
    lambda made, failing, room: EscalationState(
        ladder=dataclasses.replace(LADDER, summary=room), failing=failing, attempts=tuple(made)
    ),
    st.lists(attempts, max_size=12),
    lists,
    st.sampled_from([200, 2_000, 4_000]),
)


@pytest.mark.spec("E3", "E4")
@given(climbs)
def test_a_summary_is_bounded_in_whole_lines_and_the_same_each_time(climb: EscalationState):
    text = prior_attempts(climb)
    assert len(text) <= climb.ladder.summary
    assert text == prior_attempts(climb)
    whole = "\n".join(lines_of(climb)).split("\n") if climb.attempts else []
    shown = text.split("\n") if text else []
    if shown and shown[-1].endswith("more lines are left out]"):
        shown = shown[:-1]
    left = list(whole)
    for line in shown:  # in the order of the whole, none of them cut
        left = left[left.index(line) + 1 :]
    if climb.attempts:
        assert text.startswith(HEADING)


@pytest.mark.spec("E10")
@given(climbs)
def test_a_climb_is_read_back_from_the_record_as_it_was_written(climb: EscalationState):
    assert typed(EscalationState, json.loads(json.dumps(plain(climb)))) == climb


@pytest.mark.spec("E3")
def test_a_summary_says_what_still_fails_first_then_what_was_tried_then_what_not_to_repeat():
    climb = climbed(
        attempt(
            0, 1, paths=("cart.py",), diff=("-a = 1", "+a = 2"), failing=("t::a", "t::b", "t::c"), said="I raised a"
        ),
        attempt(
            0, 2, paths=("cart.py",), diff=("-b = 1", "+b = 3"), failing=("t::b",), messages=("t::b: assert 1 == 2",)
        ),
    )
    lines = prior_attempts(climb).splitlines()
    assert lines == [
        "PRIOR ATTEMPTS: 2, none was accepted. Do something else than they did.",
        "still failing:",
        "- t::b: assert 1 == 2",
        "#2 simple 2: changed cart.py; 1 of 2 still fail; fixed t::a",
        "#1 simple 1: changed cart.py; BROKE t::c",
        "do not make these changes again:",
        "#2:",
        "  -b = 1",
        "  +b = 3",
        "#1:",
        "  -a = 1",
        "  +a = 2",
        "#1 said: I raised a",
    ]
    assert prior_attempts(EscalationState(ladder=LADDER)) == ""


@pytest.mark.spec("E3")
def test_a_line_too_long_for_a_summary_keeps_its_beginning_also_where_it_is_one_long_word():
    long = "a" * 500
    climb = climbed(attempt(0, 1, failing=("t::b",), messages=(f"t::b: {long}",), diff=(f"+{long}",)))
    cut = [line for line in prior_attempts(climb).splitlines() if line.endswith("…")]
    assert [(line[:8], len(line)) for line in cut] == [("- t::b: ", 240), ("  +aaaaa", 240)]
