"""Attempts that ask a model: a workplace is opened, the tier's roles work there, and the checks judge what stands.

Of those side by side the first that is verified wins.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field, replace
from decimal import Decimal

from pawl.agent.climb_record import ClimbRecord, Tried, judged_attempt, with_change
from pawl.agent.context import Unanswered
from pawl.agent.generated_tests import attacked
from pawl.agent.policy import rules_of
from pawl.agent.record import RunRecord, WorkName
from pawl.agent.side_by_side import SideBySide
from pawl.agent.talker import Talker
from pawl.agent.workplace import DRAFT_FORMS, Assignment, Worked, Workplace, draft, work
from pawl.agent.works import BenchWorks
from pawl.checks.verifier import Verifier
from pawl.core.errors import (
    AnswerInterrupted,
    AnswerUnusable,
    BudgetExceeded,
    Conflicted,
    OutOfTime,
    PolicyViolation,
    RateLimited,
    RequestRejected,
    SchemaUnmet,
)
from pawl.core.events import ClimbEvent, EscalationWarned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import RoleName
from pawl.core.tiers import Attempt, AttemptEnd, EscalationState, Iteration, TierMode
from pawl.models.ledger import Ledger
from pawl.models.router import Models
from pawl.models.telemetry import Telemetry
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.settings.permissions import unasked
from pawl.workspace.project import Project

LONGEST_WAIT = 900.0
"""Seconds that a rate limit is waited for; the run can be resumed after a longer one."""
LOCAL_SAMPLES, MOST_DRAFTS = 5, 12
WARMEST = 0.8
"""The temperature of samples after the first, so that they differ."""
LEAST_PATIENCE, SLOWER = 60.0, 10
"""Seconds that the tests of a draft may take, or so many times what they took before: one that hangs is one of many."""
_FAILS_ATTEMPT = (
    AnswerUnusable,
    AnswerInterrupted,
    RequestRejected,
    SchemaUnmet,
    PolicyViolation,
    Conflicted,
    Unanswered,
)
"""Errors that end an attempt and not the run: a fresh one may do better. Nobody is there to answer a question."""
LAST = frozenset({AttemptEnd.VERIFIED, AttemptEnd.OUT_OF_BUDGET})
"""After such an attempt no other sample of its iteration is drawn."""


@dataclass(slots=True, kw_only=True)
class ModelAttempts:
    record: ClimbRecord
    talker: Talker
    """That of the run, whose models are shared by all attempts."""
    verifier: Verifier
    listen: Callable[[ClimbEvent], object]
    capped: bool = False
    """The account already has the limit of the iteration."""
    _judgements: dict[str, Attempt] = field(default_factory=dict)
    """Refused attempts, by the digest of their changes."""

    @property
    def shop(self) -> Project:
        return self.record.base.shop

    def tried(self, task: Assignment, at: Iteration, sample: int) -> Tried:
        """One attempt. A rate limit is waited for, where that is not too long."""
        started = time.monotonic()
        while True:
            try:
                with self._workplace(task, at, sample) as place:
                    begun = Attempt(
                        at=at,
                        sample=sample,
                        mode=task.climb.tier.mode,
                        model=place.talker.terms.model_for(RoleName.ARTISAN),
                        end=AttemptEnd.FAILED,
                    )
                    tried = self._worked(place, task, begun)
                    return replace(tried, attempt=replace(tried.attempt, seconds=round(time.monotonic() - started, 3)))
            except RateLimited as error:
                self._wait(error)

    def samples(self, climb: EscalationState) -> int:
        """Several where a model costs nothing but time, for each failing test one; one where it costs money."""
        drafts = min(max(LOCAL_SAMPLES, len(climb.best)), MOST_DRAFTS)
        return climb.tier.samples or (drafts if self._drafts(climb) else 1)

    def _drafts(self, climb: EscalationState) -> bool:
        if climb.tier.mode is not TierMode.SIMPLE:
            return False
        if climb.tier.draft is not None:
            return climb.tier.draft
        return replace(self.talker, tier=climb.tier).asks_once(RoleName.ARTISAN)

    def _worked(self, place: Workplace, task: Assignment, begun: Attempt) -> Tried:
        """The work, then the checks. What stands on the bench is judged by them, however the talk ended."""
        worked, trouble, broke = Worked(said=""), "", False
        try:
            worked = self._work(place, task, begun.sample)
        except BudgetExceeded as error:
            trouble, broke = error.message, True
        except (*_FAILS_ATTEMPT, OutOfTime) as error:
            # Its own time is up, or that of the whole run.
            raise_if_stopped(self.talker.cancel)
            trouble = f"{error.code}: {error.message}"
        tried = self._judged(place, task, replace(begun, said=worked.said, left=worked.left), worked.problems)
        if task.climb.tier.chaos:
            before = tried.notes
            tried = attacked(self.shop, self.verifier, place, tried)
            for note in tried.notes[len(before) :]:
                self.listen(EscalationWarned(note))
        cost, tokens = self.spent_in(place.talker.conversation)
        attempt = replace(tried.attempt, cost=cost, tokens=tokens)
        if trouble and attempt.end is not AttemptEnd.VERIFIED:
            end = AttemptEnd.OUT_OF_BUDGET if broke else AttemptEnd.FAILED
            attempt = replace(attempt, end=end, refused=(*attempt.refused, trouble))
        return replace(tried, attempt=attempt)

    def _work(self, place: Workplace, task: Assignment, sample: int) -> Worked:
        drafted = draft(place, task, sample) if self._drafts(task.climb) else None
        if drafted is None and task.climb.tier.draft and sample == 1:
            self.listen(EscalationWarned("nothing says which function to draft; the tools are used instead"))
        return drafted or work(self.shop, place, task)

    def _judged(self, place: Workplace, task: Assignment, begun: Attempt, problems: tuple[str, ...]) -> Tried:
        try:
            stands = place.works.now()
        except Conflicted as error:
            return Tried(attempt=replace(begun, refused=(error.message,)))
        changes = stands.changes
        notes = tuple(f"held back: {one.path} ({one.told})" for one in stands.held)
        if changes.digest == task.ground.digest:
            unchanged = replace(begun, end=AttemptEnd.UNCHANGED, refused=("nothing was changed",))
            return Tried(attempt=unchanged, notes=notes)
        known = self._judgements.get(changes.digest)
        if known is not None:
            # The same change has the same verdicts, and running the tests again would tell nothing.
            who = replace(known, at=begun.at, sample=begun.sample, mode=begun.mode, model=begun.model)
            return Tried(attempt=replace(who, said=begun.said, better=False), notes=notes)
        if problems:
            begun = with_change(self.shop, begun, changes)
            return Tried(attempt=replace(begun, end=AttemptEnd.SENT_BACK, refused=problems), notes=notes)
        patience = max(LEAST_PATIENCE, SLOWER * task.before.seconds) if self._drafts(task.climb) else None
        tried = judged_attempt(begun, changes, self.verifier, task, patience)
        if tried.attempt.end is AttemptEnd.REFUSED:
            self._judgements[changes.digest] = tried.attempt
        return replace(tried, notes=(*notes, *tried.notes))

    def _workplace(self, task: Assignment, at: Iteration, sample: int) -> Workplace:
        """The place of the attempt: as it was left, or on the ground that the climb stands on."""
        number = f"{at.tier}.{at.number}.{sample}"
        name, base = f"climb {number}", self.record.base
        models, telemetry = self._opened(task.climb)
        record = RunRecord(base.shop, base.order, base.run, prefix=name, base=base)
        if record.work(WorkName.BENCH) is None:
            record.keep_work(WorkName.BENCH, task.ground)
        works = BenchWorks(base.shop, record, lambda: self.verifier)
        talker = replace(
            self.talker,
            record=record,
            works=works,
            conversation=self._conversation(number),
            permit=unasked(self.talker.permit or rules_of(base.shop, base.order.mode)),
            cancel=CancelToken(above=self.talker.cancel, seconds=self.talker.config.budget.seconds),
            tier=task.climb.tier,
            warmth=self._warmth(task.climb, at, sample),
            _standing=None,
            _models=models,
            _telemetry=telemetry,
        )
        return Workplace(name=name, record=record, works=works, talker=talker)

    def _conversation(self, number: str) -> str:
        return f"{self.talker.conversation}.{number}"

    def _warmth(self, climb: EscalationState, at: Iteration, sample: int) -> float | None:
        """The first sample is as the tier says, and of drafts the first of each form the surest one; others differ."""
        chosen = dict(climb.tier.temperatures).get(RoleName.ARTISAN)
        if chosen is None and at.number == 1 and sample <= DRAFT_FORMS and self._drafts(climb):
            return 0.0
        return None if sample == 1 else max(WARMEST, chosen or WARMEST)

    def _opened(self, climb: EscalationState) -> tuple[Models, Telemetry]:
        """The models, which may spend what the tier and the run leave."""
        models, telemetry = self.talker._opened()
        ledger = models.router.ledger
        if not self.capped:
            ledger.budget = replace(ledger.budget, money=self._most(climb, ledger.spent.money))
        return models, telemetry

    def _most(self, climb: EscalationState, spent: Decimal) -> Decimal | None:
        """The limit of the account: all that the run may spend, or less where the tier has a limit of its own.

        It is the account that counts, not the attempts: samples of one iteration, an attempt that goes on and the test
        that was made before the climb have one purse.
        """
        whole, own = self.talker.config.budget.money, climb.tier.max_cost
        if own is None:
            return whole
        of_tier = self._conversation(f"{climb.at}.")
        costs = [cost for name, cost, _ in self._requests() if cost is not None and name.startswith(of_tier)]
        limit = spent + own - sum(costs, Decimal(0))
        return limit if whole is None else min(whole, limit)

    def ledger(self, climb: EscalationState) -> Ledger:
        """The one account, with the limit of the next iteration."""
        return self._opened(climb)[0].router.ledger

    def spent_in(self, conversation: str) -> tuple[Decimal | None, int]:
        """The cost of a conversation's requests, None where a price is unknown, and their tokens."""
        made = [(cost, tokens) for name, cost, tokens in self._requests() if name == conversation]
        known = [cost for cost, _ in made if cost is not None]
        return sum(known, Decimal(0)) if len(known) == len(made) else None, sum(tokens for _, tokens in made)

    def _requests(self) -> Iterator[tuple[str, Decimal | None, int]]:
        """The conversation, cost and tokens of each request of the run."""
        for record in self.shop.store.requests.records(self.shop.workspace, run=self.record.base.run):
            yield record.conversation, record.cost, record.input_tokens + record.output_tokens

    def _wait(self, error: RateLimited) -> None:
        seconds, cancel = error.wait_seconds, self.talker.cancel
        if seconds is None or seconds > LONGEST_WAIT:
            raise error
        self.listen(EscalationWarned(f"{error.message}; continues in {seconds:.0f} s"))
        (cancel or CancelToken()).wait(seconds)
        raise_if_stopped(cancel)

    def cancelled(self, task: Assignment, at: Iteration, sample: int) -> Tried:
        """An attempt that another one has made needless."""
        cost, tokens = self.spent_in(self._conversation(f"{at.tier}.{at.number}.{sample}"))
        attempt = Attempt(
            at=at,
            sample=sample,
            mode=task.climb.tier.mode,
            end=AttemptEnd.CANCELLED,
            refused=("another attempt was verified first",),
            cost=cost,
            tokens=tokens,
        )
        return Tried(attempt=attempt)


def side_by_side(
    asker: ModelAttempts, task: Assignment, at: Iteration, samples: Sequence[int], *, most: int
) -> Iterator[Tried]:
    """The attempts as they end; after the first that is verified the others are cancelled, and say so."""

    def work(talker: Talker, sample: int) -> Tried:
        own = replace(
            asker,
            record=ClimbRecord(talker.record),
            talker=talker,
            verifier=replace(asker.verifier, shop=talker.shop, listen=lambda verdict: None),
            listen=together.events.put,
            capped=True,
        )
        return own.tried(task, at, sample)

    together = SideBySide(talker=asker.talker, ledger=asker.ledger(task.climb), work=work, listen=asker.listen)
    for sample, tried in together.ended(samples, most):
        if tried is not None and tried.attempt.end in LAST:
            together.stop()
        yield tried or asker.cancelled(task, at, sample)
