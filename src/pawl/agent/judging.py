"""What became of an attempt: what stands on its bench is captured, verified on a fresh one, and judged."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from pawl.agent.briefing import findings_of, messages_of
from pawl.agent.escalation import is_progress
from pawl.agent.evidence import ChangeVerdict, Requirements, Verification, failing, judged
from pawl.agent.record import RunRecord
from pawl.agent.works import MOST_FINDINGS
from pawl.checks.verifier import Verifier
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.diagnostic import CheckResult, Diagnostic, Status
from pawl.core.errors import NoTests
from pawl.core.patch import unified
from pawl.core.tiers import (
    Attempt,
    AttemptEnd,
    Escalation,
    EscalationState,
    Iteration,
    climb_body,
    climb_from,
    ladder_body,
    ladder_from,
)
from pawl.workspace.project import Project

MOST_DIFF_LINES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An attempt with what only the climb itself needs."""

    attempt: Attempt
    changes: ChangeSet = EMPTY
    checked: Verification | None = None
    notes: tuple[str, ...] = ()


def judged_attempt(
    begun: Attempt, checked: Verification, wanted: Requirements, climb: EscalationState
) -> tuple[Attempt, ChangeVerdict]:
    """The attempt with what the checks say about it."""
    judgement = judged(checked, wanted)
    after = checked.tests
    fails = failing(findings_of(after))
    made = replace(
        begun,
        end=AttemptEnd.VERIFIED if judgement.accepted else AttemptEnd.REFUSED,
        failing=fails,
        messages=messages_of(every_finding(checked.verdicts)),
        refused=judgement.refused,
        verdicts=tuple((one.step, str(one.standing), one.reason) for one in checked.verdicts),
    )
    # Nothing may be worse, whatever the request wants.
    harmless = judged(checked, Requirements(tests_may_change=wanted.tests_may_change)).accepted
    better = not judgement.accepted and harmless and is_progress(made, climb.best)
    return replace(made, better=better), judgement


def every_finding(verdicts: Iterable[CheckResult]) -> list[Diagnostic]:
    return [finding for verdict in verdicts for finding in findings_of(verdict)]


def changed_lines(shop: Project, changes: ChangeSet) -> tuple[str, ...]:
    """The first of the lines that a change set takes away and adds, for whoever tries next."""
    lines = unified(shop.read_gate().shown(changes), shop.store.blobs, 0).splitlines()
    signed = (line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---")) and line[1:].strip())
    return tuple(line for line, _ in zip(signed, range(MOST_DIFF_LINES), strict=False))


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

    def deadline(self, ladder: Escalation) -> float:
        """By the monotonic clock."""
        if ladder.max_minutes is None:
            return float("inf")
        return self._started + ladder.max_minutes * 60 - self._before

    @property
    def ladder(self) -> Escalation:
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

    def baseline(self, verifier: Verifier) -> CheckResult:
        """The tests before the first attempt; run once."""
        body = self.base.value(BASELINE)
        known = CheckResult.from_json(body) if isinstance(body, dict) else None
        if known is None:
            known = verifier.tests(self.ground)
            if known.standing is Status.SKIPPED and not verifier.commands and not self._is_escalated:
                raise NoTests(
                    f"no test decides: {known.reason}",
                    advice="write one, name the command with --test, or leave out --no-generate",
                )
            self.base.put(BASELINE, known.to_json(MOST_FINDINGS))
        return known

    def begun(self, ladder: Escalation, before: CheckResult) -> EscalationState:
        """The climb as it was left, or a new one."""
        known = self.base.value(CLIMB)
        if isinstance(known, dict):
            return climb_from(ladder, known)
        self.base.put(LADDER, ladder_body(ladder))
        return EscalationState(ladder=ladder, failing=failing(before.findings))

    def keep(self, climb: EscalationState, tried: Tried | None = None) -> None:
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
