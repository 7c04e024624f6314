"""Climbs the ladder of a run: iterations on benches of their own, until the checks accept one or a limit is reached.

What was tried is durable before the next step, so that a climb that was interrupted anywhere goes on from there: the
attempt under way is played from its tape, and nothing is paid for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from typing import Any

from pawl.agent.attempts import LAST, ModelAttempts, side_by_side
from pawl.agent.climb_record import AuditTrail, ClimbRecord, Tried, judged_attempt
from pawl.agent.demands import is_about_tests
from pawl.agent.escalation import Escalate, StopEscalation, Try, cost_of, following, is_progress
from pawl.agent.generated_tests import TestGenerator, keeps_behaviour
from pawl.agent.record import RunRecord
from pawl.agent.talker import Talker
from pawl.agent.workplace import Assignment
from pawl.checks.verdict import Requirements, Verification, proves
from pawl.checks.verifier import Verifier
from pawl.code.librarian import source_files
from pawl.core.change import EMPTY, ChangeSet, EntryKind
from pawl.core.diagnostic import CheckResult, Status
from pawl.core.errors import CannotFix, NoTests, OutOfTime, UnknownModel, UsageError
from pawl.core.events import AttemptEnded, ClimbBegun, ClimbEnded, EscalationWarned, IterationBegun, TierBegun, TierLeft
from pawl.core.lazy_dataclass import dataclass
from pawl.core.tiers import Attempt, AttemptEnd, Escalation, EscalationEnd, EscalationState, Iteration, TierMode
from pawl.workspace.project import Project


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """The end of a climb through the tiers."""

    why: EscalationEnd | None
    """None when there was nothing to climb for."""
    reason: str
    changes: ChangeSet = EMPTY
    """The changes that the checks accepted; else the best so far, which may be none."""
    checked: Verification | None = None
    """The verification of what was accepted, or of what only a person can accept."""
    attempts: tuple[Attempt, ...] = ()
    """Those that came to nothing."""
    notes: tuple[str, ...] = ()
    answer: str = ""
    left: tuple[str, ...] = ()
    """Planned changes that the last attempt did not make."""


def _offered(shop: Project, task: Assignment, changes: ChangeSet) -> str:
    """Keeps a patch for which too little speaks as an entry that the user may promote; where it is."""
    whole = task.ground.then(changes) if task.ground else changes
    entry = shop.keep(
        shop.new_entry(EntryKind.EDIT, "loop: a patch that is offered", "too little evidence for it"), whole
    )
    return f"; offered as entry {entry}: pawl diff {entry}, pawl promote {entry}"


def reflex_attempt(
    record: RunRecord, task: Assignment, at: Iteration, verifier: Verifier, listen: Callable[[Any], None]
) -> Tried:
    """One search by the reflex. A patch that only a guessed test or a single example supports is offered, not taken."""
    from pawl.repair.fixer import fix
    from pawl.repair.model import FixOutcome, FixRequest
    from pawl.repair.strategy import kept_rivals

    shop, made = record.shop, record.data.generated
    minutes = task.climb.tier.max_minutes
    request = FixRequest(
        targets=(task.target,) if task.target else (),
        test_command=verifier.test_command,
        seconds=shop.config.settings.fix_seconds if minutes is None else minutes * 60,
        dry_run=True,
        ground=task.ground,
    )
    begun = Attempt(at=at, mode=TierMode.REFLEX, end=AttemptEnd.REFUSED)
    try:
        report = fix(shop, request, listen)
    except (NoTests, CannotFix, UsageError) as error:
        return Tried(attempt=replace(begun, refused=(error.message,), end=AttemptEnd.FAILED))
    suspects = ", ".join(f"{one.path}:{one.line}" for one in report.suspicious[:5])
    rivals = "; ".join(f"{one.path}:{one.line} {one.what}" for one in report.rivals[:3])
    found = (f"suspicious lines: {suspects}" if suspects else "", f"patches that disagree: {rivals}" if rivals else "")
    said = " | ".join(part for part in found if part)
    if report.outcome not in (FixOutcome.FIXED, FixOutcome.PARTLY):
        left = tuple(one.test for one in report.failing_after if one.test) or task.climb.failing
        reason = report.reason or str(report.outcome)
        if report.rivals:
            data = record.data
            record.keep(replace(data, alternatives=kept_rivals(shop, report.rivals, task.ground)))
            first, last = record.data.alternatives[0][0], record.data.alternatives[-1][0]
            kept = f"entry {first}" if first == last else f"entries {first} to {last}"
            reason += f"; offered as {kept}: pawl diff {first}, pawl promote {first}"
        return Tried(attempt=replace(begun, refused=(reason,), said=said, failing=left))
    if made is not None and made.guessed:
        reason = "only a test written by a model supports the patch" + _offered(shop, task, report.changes)
        return Tried(attempt=replace(begun, refused=(reason,), said=said, failing=task.climb.failing))
    changes = task.ground.then(report.changes) if task.ground else report.changes
    repairs = "; ".join(f"{one.path}:{one.line} {one.what}" for one in report.repairs)
    partly = said if report.outcome is FixOutcome.PARTLY else ""
    begun = replace(begun, said=" | ".join(part for part in (repairs, partly) if part))
    return judged_attempt(begun, changes, verifier, task)


@dataclass(slots=True, kw_only=True)
class LadderClimber:
    """Climbs the tiers of one run."""

    asker: ModelAttempts
    listen: Callable[[Any], None]
    _last: Tried | None = None
    _stamps: object = None
    """The files of the workspace as they stood when the tests were last run there."""

    @property
    def shop(self) -> Project:
        return self.asker.shop

    @property
    def record(self) -> ClimbRecord:
        return self.asker.record

    def climb(self, wanted: Requirements) -> Climbed:
        generator = TestGenerator(shop=self.shop, record=self.record, talker=self.asker.talker, listen=self.listen)
        self.asker.verifier = generator.verifier(self.asker.verifier)
        if not self.record.is_begun:
            tiers = self.record.ladder.tiers
            self.asker.talker.warn_of_models(model for tier in tiers for _, model in tier.models)
        before = self.record.baseline(self.asker.verifier)
        if before.standing is not Status.FAIL and not self.record.objective:
            if not proves(before):
                told = f"no test passed: {before.reason}"
                return Climbed(why=EscalationEnd.EXHAUSTED, reason=told, answer=told)
            return Climbed(why=None, reason="nothing fails", answer="Nothing fails, and nothing else is asked for.")
        if before.standing is Status.PASS and (before.counts is None or not before.counts.total):
            told = "the test command shows no tests and passes already: it cannot tell whether the request is fulfilled"
            self.listen(EscalationWarned(told))
        elif before.standing is Status.PASS and not keeps_behaviour(self.record.objective):
            self.listen(EscalationWarned("the tests pass already: none of them proves what is wanted"))
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

    def _climbed(
        self, climb: EscalationState, before: CheckResult, wanted: Requirements, audit: AuditTrail
    ) -> tuple[EscalationState, StopEscalation]:
        told = -1
        while True:
            # What an interruption left unfinished comes first, whatever its attempts have used up.
            at = self.record.under_way(climb.at)
            step = following(climb, seconds=self.record.seconds) if at is None else Try(at)
            if self._fixed_meanwhile(climb):
                return climb, StopEscalation(EscalationEnd.NEEDLESS, "the tests pass now: they were fixed meanwhile")
            if isinstance(step, StopEscalation):
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
            try:
                climb = self._iterated(climb, task, at, audit)
            except OutOfTime as error:
                return climb, StopEscalation(EscalationEnd.TIME, error.message)

    def _fixed_meanwhile(self, climb: EscalationState) -> bool:
        """Whether the user, or somebody else, has made the tests pass that this is all about. They are run where a file
        of the workspace has changed since."""
        objective = self.record.objective
        if not climb.failing or self.record.won is not None or (objective and not is_about_tests(objective)):
            return False
        known, self._stamps = self._stamps, source_files(self.shop).stamps()
        if known in (None, self._stamps):
            return False
        return self.asker.verifier.tests().standing is Status.PASS

    def _assignment(
        self, climb: EscalationState, at: Iteration, before: CheckResult, wanted: Requirements
    ) -> Assignment:
        """The samples of one iteration know nothing of each other."""
        return Assignment(
            climb=replace(climb, attempts=tuple(one for one in climb.attempts if one.at != at)),
            objective=self.record.told,
            target=self.record.target,
            before=before,
            wanted=wanted,
            ground=self.record.ground,
        )

    def _iterated(self, climb: EscalationState, task: Assignment, at: Iteration, audit: AuditTrail) -> EscalationState:
        tier = climb.tier
        samples = 1 if tier.mode is TierMode.REFLEX else self.asker.samples(climb)
        self.listen(IterationBegun(tier=tier.name, number=at.number, of=tier.iterations, samples=samples))
        self.record.begin(at)
        made = {attempt.sample: attempt for attempt in climb.attempts if attempt.at == at}
        left = [one for one in range(1, samples + 1) if one not in made and not any(map(ends, made.values()))]
        for tried in self._attempts(task, at, left):
            if tried.attempt.better and not is_progress(tried.attempt, climb.best):
                # Another one of this iteration came further.
                tried = replace(tried, attempt=replace(tried.attempt, better=False))
            climb = climb.tried(tried.attempt)
            # Of several that were verified side by side the first one counts.
            self._last = tried if self.record.won is None else self._last
            self.record.keep(climb, tried)
            audit.tried(climb)
            self.listen(AttemptEnded(attempt=tried.attempt, number=len(climb.attempts), samples=samples))
        self.record.finish()
        return climb

    def _attempts(self, task: Assignment, at: Iteration, samples: list[int]) -> Iterator[Tried]:
        """One after the other, or some at a time, until one is verified; what is better is the next ground."""
        together = min(task.climb.tier.parallel, len(samples))
        if together > 1:
            yield from side_by_side(self.asker, task, at, samples, most=together)
            return
        for sample in samples:
            tried = self._tried(task, at, sample)
            yield tried
            if ends(tried.attempt):
                return

    def _tried(self, task: Assignment, at: Iteration, sample: int) -> Tried:
        if task.climb.tier.mode is TierMode.REFLEX:
            return reflex_attempt(self.record.base, task, at, self.asker.verifier, self.listen)
        return self.asker.tried(task, at, sample)

    def _usable(self, ladder: Escalation, before: CheckResult) -> Escalation:
        """Without failing tests there is nothing for the reflex to search, and without a model nobody to ask."""
        tiers = ladder.tiers
        if before.standing is not Status.FAIL:
            tiers = tuple(tier for tier in tiers if tier.mode is not TierMode.REFLEX)
        if not self.asker.talker.configured:
            asking = tuple(tier for tier in tiers if tier.mode is not TierMode.REFLEX and not tier.models)
            if asking:
                names = ", ".join(tier.name for tier in asking)
                self.listen(
                    EscalationWarned(f"no model is configured for {names}: name one with --model provider/name")
                )
            tiers = tuple(tier for tier in tiers if tier not in asking)
        return replace(ladder, tiers=tiers)

    def _ended(self, climb: EscalationState, step: StopEscalation, before: CheckResult) -> Climbed:
        if step.why is EscalationEnd.NEEDLESS:
            return Climbed(why=None, reason=step.reason, answer=f"Nothing is left to do: {step.reason}.")
        said, left = _said(climb), climb.attempts[-1].left if climb.attempts else ()
        if step.why is not EscalationEnd.VERIFIED:
            made = self._last
            if made is not None and made.unproved:
                checked = made.checked
                return Climbed(
                    why=step.why, reason=step.reason, changes=made.changes, checked=checked, answer=said, left=left
                )
            return Climbed(
                why=step.why, reason=step.reason, changes=self.record.ground, attempts=climb.attempts, answer=said
            )
        changes, last = self.record.won, self._last
        assert changes is not None
        checked = last.checked if last is not None else None
        if checked is None or checked.digest != changes.digest:
            checked = self.asker.verifier.evidence(changes, before, self.record.ground)
        notes = last.notes if last is not None else ()
        return Climbed(
            why=step.why, reason=step.reason, changes=changes, checked=checked, notes=notes, answer=said, left=left
        )


def ends(attempt: Attempt) -> bool:
    """Whether no other sample of its iteration is drawn after it."""
    return attempt.better or attempt.end in LAST


def _said(climb: EscalationState) -> str:
    """The last attempt's own account, for the report; the checks speak for themselves."""
    if not climb.attempts:
        return ""
    last = climb.attempts[-1]
    if last.mode is TierMode.REFLEX and last.end is AttemptEnd.VERIFIED:
        return "The reflex found the fix; no model was asked."
    return last.said


def climber(talker: Talker, verifier: Verifier, *, listen: Callable[[Any], None]) -> LadderClimber:
    asker = ModelAttempts(record=ClimbRecord(talker.record), talker=talker, verifier=verifier, listen=listen)
    return LadderClimber(asker=asker, listen=listen)
