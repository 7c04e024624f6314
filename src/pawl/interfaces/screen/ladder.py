"""The climb of a ladder in lines: a banner at the start, a header for each tier, a line for each attempt."""

from __future__ import annotations

from pawl.core.climb_event import (
    AttemptEnded,
    ClimbBegun,
    ClimbEvent,
    IterationBegun,
    TierBegun,
    TierLeft,
    Warned,
)
from pawl.core.tiers import Attempt, AttemptEnd, TierMode
from pawl.interfaces.screen.screen import brief
from pawl.interfaces.screen.talk import money

MARKS = {AttemptEnd.VERIFIED: "✓", AttemptEnd.REFUSED: "✗", AttemptEnd.SENT_BACK: "↩"}


def lines_of(event: ClimbEvent) -> tuple[str, ...]:
    """What a person is told: a banner at the start, a header for each tier, a line for each attempt."""
    match event:
        case ClimbBegun(ladder=ladder, failing=failing, done=done, spent=spent):
            names = " → ".join(
                tier.name if tier.mode is TierMode.REFLEX else f"{tier.name} {tier.iterations}" for tier in ladder.tiers
            )
            cost = "" if ladder.max_cost is None else f", at most {money(ladder.max_cost)}"
            time = "" if ladder.max_minutes is None else f" and {ladder.max_minutes:g} minutes"
            first = f"loop: {names or 'no tier can work here'}{cost}{time}; {failing} failing"
            gone = f"  goes on after {attempts(done)}, {money(spent)} spent"
            return (first, gone) if done else (first,)
        case TierBegun(tier=tier, number=number, of=of):
            models = ", ".join(f"{role} {model}" for role, model in tier.models)
            return (f"── tier {number} of {of}: {tier.name} ({tier.mode}{f'; {models}' if models else ''})",)
        case IterationBegun(tier=tier, number=number, of=of, samples=samples) if of > 1:
            return (f"· {tier} {number} of {of}" + (f", up to {samples} samples" if samples > 1 else ""),)
        case AttemptEnded(attempt=attempt):
            return (f"  {told(attempt)}",)
        case TierLeft(tier=tier, reason=reason):
            return (f"  {tier} is left: {brief(reason, 120)}",)
        case Warned(text=text):
            return (f"! {text}",)
    return ()


def told(attempt: Attempt) -> str:
    mark = MARKS.get(attempt.end, "–")
    failing = "" if attempt.failing is None else f", {len(attempt.failing)} failing"
    cost = (
        ""
        if attempt.mode is TierMode.REFLEX
        else f", {'price unknown' if attempt.cost is None else money(attempt.cost)}"
    )
    why = f": {brief(attempt.refused[0], 90)}" if attempt.refused and attempt.end is not AttemptEnd.VERIFIED else ""
    better = " (a step forward, kept)" if attempt.better else ""
    return f"{mark} {attempt.end}{better}{failing}{cost}, {attempt.seconds:.1f} s{why}"


def attempts(number: int) -> str:
    return f"{number} attempt{'' if number == 1 else 's'}"
