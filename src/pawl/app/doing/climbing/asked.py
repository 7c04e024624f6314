"""Attempts that ask a model: a workplace is opened, the tier's roles work there, and the checks judge what stands."""

from __future__ import annotations

import select
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal

from pawl.app.asking.opening import Models
from pawl.app.doing.climbing.attempting import Assignment, Worked, full, simple, stands, team, what_failed
from pawl.app.doing.climbing.chaos import attacked
from pawl.app.doing.climbing.climb_record import ClimbRecord
from pawl.app.doing.climbing.drafting import draft
from pawl.app.doing.climbing.judging import Tried, changed_lines, judged_attempt
from pawl.app.doing.climbing.workplace import (
    AttemptRecord,
    TierTalker,
    Workplace,
    opened_workplace,
    spent_in,
    spent_on_tier,
    unasked,
)
from pawl.app.doing.talking import Talker, rules_of
from pawl.app.doing.verifying import Verifier
from pawl.app.doing.works import BenchWorks
from pawl.app.permitting import Permit
from pawl.app.rules import model_of
from pawl.app.telemetry import Telemetry
from pawl.app.workshop import Workshop
from pawl.core.climb_event import ClimbEvent, Warned
from pawl.core.errors import (
    AnswerInterrupted,
    AnswerUnusable,
    BudgetExceeded,
    Cancelled,
    Conflicted,
    PolicyViolation,
    RateLimited,
    RequestRejected,
    SchemaUnmet,
)
from pawl.core.ports import Cancel
from pawl.core.run import RoleName
from pawl.core.tiers import Attempt, AttemptEnd, Climb, Iteration, TierMode
from pawl.models.ledger import Ledger
from pawl.models.names import ModelName
from pawl.workflow.workbench import Unanswered

LONGEST_WAIT = 900.0
"""Seconds that a rate limit is waited for; the run can be resumed after a longer one."""
LOCAL_SAMPLES = 5
WARMEST = 0.8
"""The temperature of samples after the first, so that they differ."""
_FAILS_ATTEMPT = (
    AnswerUnusable,
    AnswerInterrupted,
    RequestRejected,
    SchemaUnmet,
    PolicyViolation,
    Conflicted,
    Unanswered,
)
"""What ends an attempt and not the run: a fresh one may do better. Nobody is there to answer a question."""


@dataclass(slots=True, kw_only=True)
class Asker:
    shop: Workshop
    record: ClimbRecord
    talker: Talker
    """That of the run, whose models are shared by all attempts."""
    verifier: Verifier
    conversation: str
    listen: Callable[[ClimbEvent], object]
    cancel: Cancel | None = None
    permit: Permit | None = None
    capped: bool = False
    """The account already has the limit of the iteration."""
    _judgements: dict[str, Attempt] = field(default_factory=dict)
    """What was refused, by the digest of its changes."""

    def tried(self, task: Assignment, at: Iteration, sample: int) -> Tried:
        """One attempt. A rate limit is waited for, where that is not too long."""
        name = f"climb {at.tier}.{at.number}.{sample}"
        while True:
            try:
                with self._workplace(name, task, sample) as place:
                    begun = Attempt(
                        at=at,
                        sample=sample,
                        mode=task.climb.tier.mode,
                        model=place.talker.terms.model_for(RoleName.ARTISAN),
                        end=AttemptEnd.FAILED,
                    )
                    return self._worked(place, task, begun)
            except RateLimited as error:
                self._wait(error)

    def samples(self, climb: Climb) -> int:
        """Several where a model costs nothing but time, one where it costs money."""
        return climb.tier.samples or (LOCAL_SAMPLES if self._drafts(climb) else 1)

    def _drafts(self, climb: Climb) -> bool:
        if climb.tier.mode is not TierMode.SIMPLE:
            return False
        if climb.tier.draft is not None:
            return climb.tier.draft
        policy, config = self.talker.policy, self.talker.config
        model = climb.tier.model_for(RoleName.ARTISAN) or model_of(config, policy.role(RoleName.ARTISAN))
        return ModelName.parse(model, config.providers).is_local_file

    def _worked(self, place: Workplace, task: Assignment, begun: Attempt) -> Tried:
        """The work, then the checks. What stands on the bench is judged by them, however the talk ended."""
        worked, trouble, broke = Worked(said=""), "", False
        try:
            worked = self._work(place, task, begun.sample)
        except BudgetExceeded as error:
            trouble, broke = error.message, True
        except _FAILS_ATTEMPT as error:
            trouble = what_failed(error)
        tried = self._judged(place, task, replace(begun, said=worked.said), worked.problems)
        if task.climb.tier.chaos:
            tried = attacked(self.shop, self.verifier, place, tried)
        cost, tokens = spent_in(self.record.base, place.conversation)
        attempt = replace(tried.attempt, cost=cost, tokens=tokens)
        if trouble and attempt.end is not AttemptEnd.VERIFIED:
            end = AttemptEnd.OUT_OF_BUDGET if broke else AttemptEnd.FAILED
            attempt = replace(attempt, end=end, refused=(*attempt.refused, trouble))
        return replace(tried, attempt=attempt)

    def _work(self, place: Workplace, task: Assignment, sample: int) -> Worked:
        if self._drafts(task.climb) and (drafted := draft(place, task, sample)) is not None:
            return drafted
        match task.climb.tier.mode:
            case TierMode.FULL:
                return full(self.shop, place, task)
            case TierMode.TEAM:
                return team(place, task)
        return simple(place, task)

    def _judged(self, place: Workplace, task: Assignment, begun: Attempt, problems: tuple[str, ...]) -> Tried:
        try:
            changes, notes = stands(place)
        except Conflicted as error:
            return Tried(attempt=replace(begun, refused=(error.message,)))
        if changes.digest == task.ground.digest:
            unchanged = replace(begun, end=AttemptEnd.UNCHANGED, refused=("nothing was changed",))
            return Tried(attempt=unchanged, notes=notes)
        paths, diff = tuple(sorted(changes.paths)), changed_lines(self.shop, changes)
        begun = replace(begun, paths=paths, digest=changes.digest, diff=diff)
        known = self._judgements.get(changes.digest)
        if known is not None:
            # The same change has the same verdicts, and running the tests again would tell nothing.
            who = replace(known, at=begun.at, sample=begun.sample, mode=begun.mode, model=begun.model)
            same = replace(who, said=begun.said, better=False)
            return Tried(attempt=same, notes=notes)
        if problems:
            return Tried(attempt=replace(begun, end=AttemptEnd.SENT_BACK, refused=problems), notes=notes)
        checked = self.verifier.verify(changes, task.before)
        attempt, judgement = judged_attempt(begun, checked, task.wanted, task.climb)
        if attempt.end is AttemptEnd.REFUSED:
            self._judgements[changes.digest] = attempt
        return Tried(attempt=attempt, changes=changes, checked=checked, notes=(*notes, *judgement.notes))

    def _workplace(self, name: str, task: Assignment, sample: int) -> Workplace:
        models, telemetry = self._opened(task.climb)
        tier = task.climb.tier

        def talker(record: AttemptRecord, works: BenchWorks) -> TierTalker:
            return TierTalker(
                shop=self.shop,
                record=record,
                works=works,
                conversation=f"{self.conversation}.{name.split()[-1]}",
                listen=self.talker.listen,
                inbox=self.talker.inbox,
                hooking=self.talker.hooking,
                cancel=self.cancel,
                permit=unasked(self.permit or rules_of(self.shop, record.order.mode)),
                tier=tier,
                opened=(models, telemetry),
                deadline=self.record.deadline(task.climb.ladder),
                warmth=self._warmth(task.climb, sample),
            )

        return opened_workplace(name, base=self.record.base, ground=task.ground, verifier=self.verifier, talker=talker)

    def _warmth(self, climb: Climb, sample: int) -> float | None:
        """The first sample is as the tier says, and of drafts the surest one; the others differ."""
        chosen = dict(climb.tier.temperatures).get(RoleName.ARTISAN)
        if sample == 1:
            return 0.0 if chosen is None and self._drafts(climb) else None
        return max(WARMEST, chosen or WARMEST)

    def _opened(self, climb: Climb) -> tuple[Models, Telemetry]:
        """The models, which may spend what the tier and the run leave."""
        models, telemetry = self.talker._opened()
        ledger = models.router.ledger
        if not self.capped:
            ledger.budget = replace(ledger.budget, money=self._most(climb, ledger.spent.money))
        return models, telemetry

    def _most(self, climb: Climb, spent: Decimal) -> Decimal | None:
        """What the account may come to: all that the run may spend, or less where the tier has a limit of its own.

        It is the account that counts, not the attempts: samples of one iteration, an attempt that goes on and the test
        that was made before the climb have one purse.
        """
        whole, own = self.talker.config.budget.money, climb.tier.max_cost
        if own is None:
            return whole
        of_tier = spent + own - spent_on_tier(self.record.base, f"{self.conversation}.{climb.at}.")
        return of_tier if whole is None else min(whole, of_tier)

    def ledger(self, climb: Climb) -> Ledger:
        """The one account, with the limit of the next iteration."""
        return self._opened(climb)[0].router.ledger

    def _wait(self, error: RateLimited) -> None:
        seconds = error.wait_seconds
        if seconds is None or seconds > LONGEST_WAIT:
            raise error
        self.listen(Warned(f"{error.message}; goes on in {seconds:.0f} s"))
        select.select([] if self.cancel is None else [self.cancel.fileno()], [], [], seconds)
        if self.cancel is not None and self.cancel.requested:
            raise Cancelled("stopped by the user")
