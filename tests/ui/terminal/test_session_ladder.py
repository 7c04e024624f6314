"""The ladder as a session shows it: who works on which tier, and what came of each attempt."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest

from pawl.core.dialogue import TextDelta
from pawl.core.events import (
    AttemptEnded,
    ClimbBegun,
    EscalationWarned,
    IterationBegun,
    RequestSent,
    RunEvent,
    TierBegun,
    TierLeft,
)
from pawl.core.run import RoleName, Stage
from pawl.core.tiers import Attempt, AttemptEnd, Escalation, Iteration, Tier, TierMode
from pawl.ui.screen.renderer import EventRenderer, Meter
from pawl.ui.screen.screen import Screen

FULL = Tier(name="full", mode=TierMode.FULL, iterations=3)
REFUSED = Attempt(
    at=Iteration(tier=0, number=1), mode=TierMode.FULL, end=AttemptEnd.REFUSED, failing=("t",), refused=("one fails",)
)


@dataclass
class Page:
    """A face that keeps what it is shown."""

    written: io.StringIO = field(default_factory=io.StringIO)
    doing: str = ""

    @property
    def out(self) -> Screen:
        return Screen(self.written, color=False)

    aside = out

    def activity(self, text: str) -> None:
        self.doing = text

    live = True

    def preview(self, text: str) -> None:
        pass

    def make_room(self) -> None:
        pass


@pytest.mark.spec("E4")
def test_a_session_tells_tiers_attempts_and_warnings():
    page = Page()
    showing = EventRenderer(page, Meter())
    showing.hear(ClimbBegun(ladder=Escalation(tiers=(FULL,), max_cost=Decimal(1)), failing=1, done=0, spent=Decimal(0)))
    showing.hear(TierBegun(tier=FULL, number=1, of=1))
    showing.hear(IterationBegun(tier="full", number=1, of=3, samples=1))
    showing.hear(AttemptEnded(attempt=REFUSED, number=1))
    showing.hear(IterationBegun(tier="full", number=2, of=3, samples=2))
    showing.hear(AttemptEnded(attempt=replace(REFUSED, sample=2), number=2, samples=2))
    showing.hear(EscalationWarned("the disk is full"))
    showing.hear(TierLeft(tier="full", reason="1 iteration, none verified"))
    assert page.written.getvalue().splitlines() == [
        "loop: full 3, at most $1.00; 1 failing",
        "── tier 1 of 1: full (full)",
        "· full 1 of 3",
        "  ✗ refused, 1 failing, $0.00, 0.0 s: one fails",
        "· full 2 of 3, up to 2 samples",
        "  sample 2: ✗ refused, 1 failing, $0.00, 0.0 s: one fails",
        "! the disk is full",
        "  full ends: 1 iteration, none verified",
    ]


def said(role: RoleName, stage: Stage, text: str, number: int = 1) -> tuple[RunEvent, ...]:
    return RequestSent(number=number, stage=stage, role=role, model="m/x", tools=()), TextDelta(text)


@pytest.mark.spec("E2", "D6")
def test_what_roles_answer_by_contract_is_told_in_other_words():
    events = (
        *said(RoleName.LIBRARIAN, Stage.STUDY, '{"files": []}'),
        *said(RoleName.ARTISAN, Stage.ACT, "It is mended."),
        *said(RoleName.CRITIC, Stage.STUDY, '{"verdict": "approve"}'),
        *said(RoleName.WORKER, Stage.ACT, "I look.", 1),
        *said(RoleName.WORKER, Stage.ACT, '{"status": "completed"}', 2),
    )
    page, raw = Page(), Page()
    showing, talk = EventRenderer(page, Meter()), EventRenderer(raw, Meter(), raw=True)
    for event in events:
        showing.hear(event)
        talk.hear(event)
    showing.finish()
    talk.finish()
    told = [
        "· the librarian chooses the files that matter",
        "It is mended.",
        "· the critic reads the change",
        "· a worker works",
    ]
    assert [line for line in page.written.getvalue().splitlines() if line] == told
    assert raw.written.getvalue().splitlines() == told
