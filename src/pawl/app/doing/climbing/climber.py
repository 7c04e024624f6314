"""Climbs the ladder of a run: iterations on benches of their own, until the checks accept one or a limit is reached.

What was tried is durable before the next step, so that a climb that was interrupted anywhere goes on from there: the
attempt under way is played from its tape, and nothing is paid for twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from pawl.app.doing.climbing.asked import Asker
from pawl.app.doing.climbing.attempting import Assignment
from pawl.app.doing.climbing.auditing import AuditTrail
from pawl.app.doing.climbing.climb_record import ClimbRecord
from pawl.app.doing.climbing.generating import Generator
from pawl.app.doing.climbing.judging import Tried
from pawl.app.doing.climbing.reflexing import reflex_attempt
from pawl.app.doing.climbing.side_by_side import SideBySide
from pawl.app.workshop import Workshop
from pawl.core.climb_event import (
    AttemptEnded,
    ClimbBegun,
    ClimbEnded,
    IterationBegun,
    TierBegun,
    TierLeft,
    Warned,
)
from pawl.core.errors import UnknownModel
from pawl.core.finding import Standing, Verdict
from pawl.core.tiers import AttemptEnd, Climb, Iteration, Ladder, StopReason, TierMode
from pawl.workflow.climbing.deciding import Escalate, Stop, Try, cost_of, following
from pawl.workflow.evidence import Wanted
from pawl.workflow.workbench import Climbed

_LAST = frozenset({AttemptEnd.VERIFIED, AttemptEnd.OUT_OF_BUDGET})
"""After such an attempt no other sample of its iteration is drawn."""


@dataclass(slots=True, kw_only=True)
class LadderClimber:
    """Fits `workbench.Climber`."""

    shop: Workshop
    asker: Asker
    listen: Callable[[Any], None]
    _last: Tried | None = None

    @property
    def record(self) -> ClimbRecord:
        return self.asker.record

    def climb(self, wanted: Wanted) -> Climbed:
        generator = Generator(shop=self.shop, record=self.record, talker=self.asker.talker, listen=self.listen)
        self.asker.verifier = generator.verifier(self.asker.verifier)
        before = self.record.baseline(self.asker.verifier)
        if before.standing is not Standing.FAIL and not self.record.objective:
            return Climbed(why=None, reason="nothing fails", answer="Nothing fails, and nothing else is asked for.")
        if before.standing is Standing.PASS and (before.counts is None or not before.counts.total):
            told = "the test command shows no tests and passes already: it decides nothing about what is wanted"
            self.listen(Warned(told))
        ladder = self.record.ladder
        climb = self.record.begun(ladder if self.record.is_begun else self._usable(ladder, before), before)
        if not climb.ladder.tiers and not self.asker.talker.configured:
            raise UnknownModel(
                "no tier can work here: no model is configured, and the reflex has nothing to search",
                advice="name a model with --model provider/name, or a tier file with --tiers",
            )
        with closing(AuditTrail(self.shop.config.state, self.record.base.run, self.listen)) as audit:
            audit.begun(self.shop.workspace, self.record.base.order.text, climb)
            self.listen(
                ClimbBegun(
                    ladder=climb.ladder,
                    failing=len(climb.failing),
                    done=len(climb.attempts),
                    spent=cost_of(climb.attempts),
                )
            )
            climb, step = self._climbed(climb, before, wanted, audit)
            self.listen(ClimbEnded(why=step.why, reason=step.reason))
            audit.ended(step.why, step.reason)
        return self._ended(climb, step, before)

    def _climbed(self, climb: Climb, before: Verdict, wanted: Wanted, audit: AuditTrail) -> tuple[Climb, Stop]:
        told = -1
        while True:
            # What an interruption left unfinished comes first, whatever its attempts have used up.
            at = self.record.under_way(climb.at)
            step = following(climb, seconds=self.record.seconds) if at is None else Try(at)
            if isinstance(step, Stop):
                return climb, step
            if isinstance(step, Escalate):
                self.listen(TierLeft(tier=climb.tier.name, reason=step.reason))
                audit.left(climb.at, step.reason)
                climb = climb.escalated(step.reason)
                self.record.keep(climb)
                continue
            if told != climb.at:
                told = climb.at
                self.listen(TierBegun(tier=climb.tier, number=told + 1, of=len(climb.ladder.tiers)))
            at = step.at
            task = self._assignment(climb, at, before, wanted)
            climb = self._iterated(climb, task, at, audit)

    def _assignment(self, climb: Climb, at: Iteration, before: Verdict, wanted: Wanted) -> Assignment:
        """The samples of one iteration know nothing of each other."""
        return Assignment(
            climb=replace(climb, attempts=tuple(one for one in climb.attempts if one.at != at)),
            objective=self.record.told,
            target=self.record.target,
            before=before,
            wanted=wanted,
            ground=self.record.ground,
        )

    def _iterated(self, climb: Climb, task: Assignment, at: Iteration, audit: AuditTrail) -> Climb:
        tier = climb.tier
        samples = 1 if tier.mode is TierMode.REFLEX else self.asker.samples(climb)
        self.listen(IterationBegun(tier=tier.name, number=at.number, of=tier.iterations, samples=samples))
        self.record.begin(at)
        made = {attempt.sample: attempt.end for attempt in climb.attempts if attempt.at == at}
        left = [] if not _LAST.isdisjoint(made.values()) else [one for one in range(1, samples + 1) if one not in made]
        for tried in self._attempts(task, at, left):
            climb = climb.tried(tried.attempt)
            # Of several that were verified side by side the first one counts.
            self._last = tried if self.record.won is None else self._last
            self.record.keep(climb, tried)
            audit.tried(climb)
            self.listen(AttemptEnded(attempt=tried.attempt, number=len(climb.attempts)))
        self.record.finish()
        return climb

    def _attempts(self, task: Assignment, at: Iteration, samples: list[int]) -> Iterator[Tried]:
        """One after the other, or some at a time, until one is verified."""
        together = min(task.climb.tier.parallel, len(samples))
        if together > 1:
            yield from SideBySide(self.asker, task, at, self.listen).tried(samples, together)
            return
        for sample in samples:
            tried = self._tried(task, at, sample)
            yield tried
            if tried.attempt.end in _LAST:
                return

    def _tried(self, task: Assignment, at: Iteration, sample: int) -> Tried:
        started = time.monotonic()
        if task.climb.tier.mode is TierMode.REFLEX:
            tried = reflex_attempt(self.shop, task, at, self.asker.verifier, self.listen)
        else:
            tried = self.asker.tried(task, at, sample)
        return replace(tried, attempt=replace(tried.attempt, seconds=round(time.monotonic() - started, 3)))

    def _usable(self, ladder: Ladder, before: Verdict) -> Ladder:
        """Without failing tests there is nothing for the reflex to search, and without a model nobody to ask."""
        tiers = ladder.tiers
        if before.standing is not Standing.FAIL:
            tiers = tuple(tier for tier in tiers if tier.mode is not TierMode.REFLEX)
        if not self.asker.talker.configured:
            asking = tuple(tier for tier in tiers if tier.mode is not TierMode.REFLEX and not tier.models)
            if asking:
                names = ", ".join(tier.name for tier in asking)
                self.listen(Warned(f"no model is configured for {names}: name one with --model provider/name"))
            tiers = tuple(tier for tier in tiers if tier not in asking)
        return replace(ladder, tiers=tiers)

    def _ended(self, climb: Climb, step: Stop, before: Verdict) -> Climbed:
        if step.why is not StopReason.VERIFIED:
            return Climbed(why=step.why, reason=step.reason, changes=self.record.ground, answer=_said(climb))
        changes, last = self.record.won, self._last
        assert changes is not None
        checked = last.checked if last is not None else None
        if checked is None or checked.digest != changes.digest:
            checked = self.asker.verifier.verify(changes, before)
        notes = last.notes if last is not None else ()
        return Climbed(
            why=step.why, reason=step.reason, changes=changes, checked=checked, notes=notes, answer=_said(climb)
        )


def _said(climb: Climb) -> str:
    """What the last attempt says that it did, for the report; the checks speak for themselves."""
    if not climb.attempts:
        return ""
    last = climb.attempts[-1]
    if last.mode is TierMode.REFLEX and last.end is AttemptEnd.VERIFIED:
        return "The reflex mended it; no model was asked."
    return last.said
