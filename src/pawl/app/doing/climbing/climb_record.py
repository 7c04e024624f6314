"""How far a climb is, in the record of its run: durable after each attempt, read back when the run is resumed."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pawl.app.doing.climbing.judging import Tried
from pawl.app.doing.record import RunRecord
from pawl.app.doing.verifying import Verifier, verdict_json, verdict_of
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.errors import NoTests
from pawl.core.finding import Standing, Verdict
from pawl.core.tiers import AttemptEnd, Climb, Iteration, Ladder, climb_body, climb_from, ladder_body, ladder_from
from pawl.workflow.evidence import failing

CLIMB, LADDER, WON, GROUND = "climb", "climb ladder", "climb won", "climb ground"
BASELINE, SECONDS, UNDER_WAY = "climb baseline", "climb seconds", "climb under way"


@dataclass(slots=True)
class ClimbRecord:
    base: RunRecord
    _started: float = field(default_factory=time.monotonic)
    _before: float = 0.0
    """Seconds that the climb had taken when it was interrupted."""

    def __post_init__(self) -> None:
        known = self.base.value(SECONDS)
        self._before = float(known) if isinstance(known, int | float) else 0.0

    @property
    def seconds(self) -> float:
        return round(self._before + time.monotonic() - self._started, 1)

    def deadline(self, ladder: Ladder) -> float:
        """By the monotonic clock."""
        if ladder.max_minutes is None:
            return float("inf")
        return self._started + ladder.max_minutes * 60 - self._before

    @property
    def ladder(self) -> Ladder:
        """As the order has it, or as the climb began with it: what could be used then is used to the end."""
        loop = self.base.order.loop
        body = self.base.value(LADDER) or loop.get("ladder") or loop["escalate"]
        assert isinstance(body, dict)
        return ladder_from(body)

    @property
    def is_begun(self) -> bool:
        return self.base.value(LADDER) is not None

    @property
    def target(self) -> str:
        return str(self.base.order.loop.get("target", ""))

    @property
    def objective(self) -> str:
        """What the user wants beside tests that pass."""
        return self.base.order.text if self._is_escalated else str(self.base.order.loop.get("objective", ""))

    @property
    def told(self) -> str:
        """The objective as attempts are told it; after an ordinary request with what the checks said to it."""
        if not self._is_escalated:
            return self.base.order.text
        words = self.base.value("refused")
        refused = "; ".join(map(str, words)) if isinstance(words, list) else ""
        return f"{self.base.order.text}\n\nEarlier work on this was refused: {refused}"

    @property
    def _is_escalated(self) -> bool:
        return "escalate" in self.base.order.loop

    @property
    def ground(self) -> ChangeSet:
        """What the next attempt stands on."""
        return self.base.work(GROUND) or EMPTY

    @property
    def won(self) -> ChangeSet | None:
        return self.base.work(WON)

    def baseline(self, verifier: Verifier) -> Verdict:
        """The tests before the first attempt; run once."""
        known = verdict_of(self.base.value(BASELINE))
        if known is None:
            known = verifier.tests(self.ground)
            if known.standing is Standing.SKIPPED and not verifier.commands and not self._is_escalated:
                raise NoTests(
                    f"no test decides: {known.reason}",
                    advice="write one, name the command with --test, or leave out --no-generate",
                )
            self.base.put(BASELINE, verdict_json(known))
        return known

    def begun(self, ladder: Ladder, before: Verdict) -> Climb:
        """The climb as it was left, or a new one."""
        known = self.base.value(CLIMB)
        if isinstance(known, dict):
            return climb_from(ladder, known)
        self.base.put(LADDER, ladder_body(ladder))
        return Climb(ladder=ladder, failing=failing(before.findings))

    def keep(self, climb: Climb, tried: Tried | None = None) -> None:
        """All that the next step needs becomes durable as one."""
        with self.base.shop.store.together():
            self.base.put(CLIMB, climb_body(climb))
            self.base.put(SECONDS, self.seconds)
            if tried is not None and tried.attempt.better:
                self.base.keep_work(GROUND, tried.changes)
            if tried is not None and tried.attempt.end is AttemptEnd.VERIFIED and self.won is None:
                self.base.keep_work(WON, tried.changes)

    def begin(self, at: Iteration) -> None:
        self.base.put(UNDER_WAY, [at.tier, at.number])

    def finish(self) -> None:
        self.base.put(UNDER_WAY, None)

    def under_way(self, tier: int) -> Iteration | None:
        """The iteration that an interruption left unfinished."""
        known = self.base.value(UNDER_WAY)
        if isinstance(known, list) and known[0] == tier:
            return Iteration(tier=known[0], number=known[1])
        return None
