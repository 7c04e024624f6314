"""The work of a run: a task is proved, worked on and checked; what is verified is shown, approved and promoted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from pawl.agent.context import LoopEnd, TurnInput, Unanswered
from pawl.agent.delivery import (
    UNCHANGED,
    deliver_verified,
    delivery_of,
    demands_of,
    doubt_unchecked,
    end_task,
    give_up_task,
    keep_tasks,
)
from pawl.agent.demands import is_about_tests, requirements
from pawl.agent.inbox import Event
from pawl.agent.intents import as_one, task_text
from pawl.agent.record import GivenAnswer, RunData, RunRecord, WorkName
from pawl.agent.routes import RETRIES, NodeOutcome
from pawl.agent.run_hooks import Hooking
from pawl.agent.talker import Talker
from pawl.agent.works import BenchWorks, Work
from pawl.checks.verdict import ChangeVerdict, Evidence, Requirements, Verification, decide, to_pass, told
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import Status, Verdict
from pawl.core.dialogue import Speaker
from pawl.core.errors import (
    BudgetExceeded,
    Conflicted,
    GitFailed,
    LimitReached,
    ModelError,
    NothingToDo,
    PawlError,
    PolicyViolation,
    PromptError,
    SchemaUnmet,
    TaskValidationError,
)
from pawl.core.events import Warned
from pawl.core.lazy_dataclass import dataclass
from pawl.core.run import (
    Approval,
    ApprovalAnswer,
    ApprovalRequest,
    DeliveryState,
    Intent,
    RoleName,
    RunCursor,
    Stage,
    TaskOutcome,
    TaskState,
    trouble_of,
)
from pawl.core.tiers import AttemptEnd, EscalationEnd
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.project import Project

if TYPE_CHECKING:
    from pawl.agent.climber import Climbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Workbench:
    """Everything that a node of the run works with."""

    record: RunRecord
    talks: Talker
    works: BenchWorks
    hooking: Hooking
    listen: Callable[[Event], None]
    cancel: CancelToken | None = None

    @property
    def shop(self) -> Project:
        return self.record.shop

    def within(self, seconds: float) -> float:
        """So long at most, and not longer than the run has."""
        return seconds if self.cancel is None else max(1.0, min(seconds, self.cancel.left))


def prove(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Checks what the tasks need, all of it at once. The tests without the change run while the model is asked."""
    unmet = bench.works.unmet(bench.record.data.plan) if place.task == 1 else ()
    if unmet:
        raise TaskValidationError(
            "the request cannot be carried out: " + "; ".join(unmet),
            unmet,
            advice="correct the request or the workspace",
        )
    return NodeOutcome.DONE


def act(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """A role works on the task with the tools, on the bench, within its limits."""
    record = bench.record
    tasks, name = record.data.plan, f"{place.task}.{place.attempt}"
    if place.attempt == 1:
        text = task_text(tasks[place.task - 1], record.order.text, len(tasks))
        # A task that failed was taken back, and is no part of the history.
        done = max((one.number for one in record.data.task_ends if one.state is TaskState.DONE), default=0)
        last = record.data.last_talk.get(str(done), f"{done}.1")
        history = bench.talks.history(last) if done else bench.talks.earlier()
    else:
        before = f"{place.task}.{place.attempt - 1}"
        text, history = record.talk(before).refused, bench.talks.history(before)
    try:
        spoken = bench.talks.say(TurnInput(talk=name, role=RoleName.ARTISAN, text=text, history=history))
    except Unanswered as waiting:
        record.keep(replace(record.data, question=waiting.question, response=None))
        return NodeOutcome.ASK
    except PASSED_OVER as error:
        if not record.data.amends or bench.works.roll_back() is None:
            raise
        record.note("not amended", {"error": error.code})
        return NodeOutcome.DONE
    if record.data.amends and spoken.ended is not LoopEnd.ANSWERED and bench.works.roll_back() is not None:
        return NodeOutcome.DONE
    last_talk = {**record.data.last_talk, str(place.task): name}
    record.keep(replace(record.data, answer=spoken.text, ended=spoken.ended, last_talk=last_talk))
    return NodeOutcome.DONE


def verify(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """The checks decide. What they say is recorded, and told to the role if it is to try again."""
    record = bench.record
    try:
        work = bench.works.now()
    except Conflicted as error:
        record.keep(replace(record.data, refused=(error.message,)))
        return NodeOutcome.GIVE_UP
    record.keep_work(WorkName.SHOWN, work.changes)
    record.keep(replace(record.data, held=tuple((one.path, one.told) for one in work.held)))
    if not work.changes:
        return _unchanged(bench, place)
    if place.task == len(record.data.plan) and _asks_why(bench, place, work.changes):
        return NodeOutcome.RETRY
    same = place.attempt > 1 and record.data.verdict is Verdict.FAILED and record.data.verified == work.changes.digest
    checked = bench.works.verify(work.changes)
    some_failed = any(one.number == place.task and one.entry is not None for one in record.data.task_ends)
    wishes = wanted(bench, place.task)
    judgement = decide(checked, wishes.least if some_failed else wishes)
    _keep(bench, checked, judgement)
    if judgement.verdict is not Verdict.FAILED:
        if record.data.ended in (LoopEnd.OUT_OF_TIME, LoopEnd.OUT_OF_TURNS, LoopEnd.STUCK, LoopEnd.REFUSED):
            # What is there holds, but the role says itself that it is not all.
            return give_up_task(record, bench.works, place)
        if not some_failed:
            # Before its checkpoint: a run that is killed between the two finds its work new, and says so again.
            if work.changes.digest != bench.works.settled.digest:
                end_task(record, place.task, TaskState.DONE)
            elif not any(one.number == place.task for one in record.data.task_ends):
                end_task(record, place.task, TaskState.FAILED, UNCHANGED)
            bench.works.settle(place.task)
        return NodeOutcome.NEXT if place.task < len(record.data.plan) else NodeOutcome.DONE
    outcome = NodeOutcome.GIVE_UP if some_failed else _again(bench, place, judgement, last=same)
    return give_up_task(record, bench.works, place) if outcome is NodeOutcome.GIVE_UP and not some_failed else outcome


def _asks_why(bench: Workbench, place: RunCursor, changes: ChangeSet) -> bool:
    """Whether the role is asked, once, why files change together that no import links; without a reason the user is.

    What the user names needs none, nor what the reflex changes: failing tests asked for it.
    """
    record, talk = bench.record, f"{place.task}.{place.attempt}"
    if len(changes) < 2 or (record.data.mend is not None and record.data.mend.found):
        return False
    said = [one for name in record.data.last_talk.values() for one in bench.talks.history(name)]
    own = [one.text for one in said if one.speaker is Speaker.ASSISTANT]
    own += [str((call.arguments or {}).get("justification", "")) for one in said for call in one.calls]
    words = "\n".join((record.order.text, record.data.answer, *own))
    left = bench.works.unjustified(changes, words)
    asks = bool(left) and not record.data.unlinked and bench.talks.configured and not record.data.amends
    record.keep(replace(record.data, unlinked=left))
    if asks:
        text = (
            f"No import links {', '.join(left)} to the other files that you changed. Say why each has to change with "
            "them and name it, or take it back if the request does not need it."
        )
        record.keep_talk(talk, replace(record.talk(talk), refused=text))
        bench.listen(Warned(f"the model is asked why {', '.join(left)} must change too: no import links them"))
    return asks


def _unchanged(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Nothing was changed: fine where nothing had to be, and no success where something fails that should pass."""
    wishes = wanted(bench, place.task)
    waits = wishes.all_tests or wishes.fixes or is_about_tests(bench.record.order.text)
    before = bench.works.before() if waits else bench.works.known_before()
    left = to_pass(before.findings, wishes) if before is not None else ()
    if before is not None and left and before.standing is Status.FAIL:
        checked = Verification(digest="", before=before, verdicts=())
        reason = f"tests: {before.reason}; nothing was changed"
        judgement = ChangeVerdict(verdict=Verdict.FAILED, refused=(reason,), findings=tuple(left))
        _keep(bench, checked, judgement)
        return _again(bench, place, judgement)
    if place.task < len(bench.record.data.plan):
        return NodeOutcome.NEXT
    # Perhaps the answer was all that was wanted.
    intent = bench.record.data.intent
    return NodeOutcome.DONE if intent is not None and intent.unsaid else NodeOutcome.NOTHING


def _again(bench: Workbench, place: RunCursor, judgement: ChangeVerdict, *, last: bool = False) -> NodeOutcome:
    """Another attempt with the errors as context, as long as attempts, time and a model are left.

    One that left the refused change as it was is the last: asked again, a role says the same again.
    """
    record = bench.record
    words = told(replace(judgement, findings=bench.shop.read_gate().told(judgement.findings)))
    name = f"{place.task}.{place.attempt}"
    record.keep_talk(name, replace(record.talk(name), refused=words))
    out = record.data.ended in (LoopEnd.OUT_OF_TIME, LoopEnd.OUT_OF_TURNS, LoopEnd.REFUSED)
    if record.data.amends:
        # What was verified before the review stands: advice makes nothing worse.
        return NodeOutcome.GIVE_UP if bench.works.roll_back() is None else NodeOutcome.DONE
    last = last or place.attempt > RETRIES
    if last and not out and record.order.loop.get("escalate"):
        return NodeOutcome.ESCALATE
    if last or out or not bench.talks.configured:
        return NodeOutcome.GIVE_UP
    bench.listen(Warned(f"refused, and sent back to the model: {'; '.join(judgement.refused)}"))
    return NodeOutcome.RETRY


def _keep(bench: Workbench, checked: Verification, judgement: ChangeVerdict) -> None:
    record = bench.record
    record.keep(replace(_checked(record, checked, judgement), notes=judgement.notes))
    record.note(
        "verified",
        {
            "accepted": judgement.accepted,
            "verdict": judgement.verdict,
            "verdicts": {one.step: one.standing for one in checked.verdicts},
            "refused": [*judgement.refused, *judgement.unproved],
        },
    )


def _checked(record: RunRecord, checked: Verification, judgement: ChangeVerdict) -> RunData:
    record.keep_evidence(Evidence.of(checked, judgement))
    return replace(
        record.data,
        verified=checked.digest,
        verdict=judgement.verdict,
        witnessed=judgement.witnessed,
        own_only=judgement.own_only,
        refused=judgement.refused,
        unproved=judgement.unproved,
        verdicts=tuple((one.step, str(one.standing), one.reason) for one in checked.verdicts),
        before=checked.before.counts,
        after=checked.tests.counts if checked.tests else None,
    )


def wanted(bench: Workbench, task: int = 0) -> Requirements:
    """The demands of the request on the checks; of a task before the last one those of its own words."""
    plan = bench.record.data.plan
    if 0 < task < len(plan):
        return requirements(bench.record.order.text, plan[task - 1].what.partition("\n\n")[0])
    return demands_of(bench.record)


_LIMITS: Mapping[EscalationEnd, type[PawlError]] = {
    EscalationEnd.MONEY: BudgetExceeded,
    EscalationEnd.ITERATIONS: LimitReached,
    EscalationEnd.TIME: LimitReached,
}
PASSED_OVER = (ModelError, BudgetExceeded, LimitReached, PolicyViolation, PromptError)
"""Advice is not worth failing for."""
ADVICE = {
    EscalationEnd.MONEY: "allow more with --max-cost or --max-tokens, or use a cheaper model",
    EscalationEnd.ITERATIONS: "allow more with --max-iterations",
    EscalationEnd.TIME: "allow more with --max-minutes",
}


def climb(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Climbs; what the checks accepted stands on the bench of the run then, or else the best that came of it."""
    # Most runs climb nothing.
    from pawl.agent.climber import climber

    record = bench.record
    came = climber(bench.talks, bench.works.verifier, listen=bench.listen).climb(wanted(bench))
    record.keep(replace(record.data, answer=came.answer, notes=came.notes))
    if came.why is None:
        record.deliver(DeliveryState.DONE)
        return NodeOutcome.NOTHING
    bench.works.clear()
    if came.changes:
        bench.works.adopt(came.changes)
    if came.checked is None:
        return _given_up(bench, came)
    # Where the user has changed the files meanwhile, the work is verified as one task.
    plan = as_one(record.order.text)
    judgement = decide(came.checked, wanted(bench))
    left = tuple(
        TaskOutcome(number=number, what=what, state=TaskState.FAILED, reason="the team did not finish it")
        for number, what in enumerate(came.left, 2)
    )
    record.keep(replace(_checked(record, came.checked, judgement), plan=plan, task_ends=left))
    record.keep_work(WorkName.SHOWN, came.changes)
    bench.works.settle(1)
    return NodeOutcome.DONE


def _given_up(bench: Workbench, came: Climbed) -> NodeOutcome:
    assert came.why is not None
    kind = _LIMITS.get(came.why)
    trouble = None if kind is None else trouble_of(kind(came.reason, advice=ADVICE[came.why]))
    verdict = Verdict.FAILED if any(one.end is AttemptEnd.REFUSED for one in came.attempts) else None
    bench.record.keep(replace(bench.record.data, refused=(came.reason,), trouble=trouble, verdict=verdict))
    return NodeOutcome.GIVE_UP


def report(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """The record is complete; the report is composed from it. A result by a schema of the user's is asked for here."""
    record = bench.record
    order = record.order
    if order.schema is not None and record.data.structured is None:
        # Loaded where an answer in JSON is asked for.
        from pawl.agent.contracts import MOST_TRIES, again, asked, fitted

        text = asked(order.schema, order.text, record.data.answer)
        for attempt in range(1, MOST_TRIES + 1):
            line = TurnInput(talk=f"structured.{attempt}", role=RoleName.ARTISAN, text=text, stage=Stage.FINAL)
            said = bench.talks.say(line).text
            value, mistakes = fitted(said, order.schema)
            if not mistakes:
                record.keep(replace(record.data, structured=value))
                break
            text = again(order.schema, said, mistakes)
        else:
            raise SchemaUnmet("the result does not fit the schema: " + "; ".join(mistakes), mistakes)
    record.note("ended", {"delivery": record.delivery, "entry": record.data.entry})
    return NodeOutcome.DONE


MOST_RECHECKS = 3
CHANGE, CALL = "change", "call"


def deliver(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Nothing but verified work is delivered. Where the user has changed the files since, it is verified again."""
    record = bench.record
    try:
        work = bench.works.now()
    except Conflicted as error:
        return _refused(bench, error.message)
    if not work.changes:
        return _nothing(bench, work)
    digest = work.changes.digest
    if record.data.verified != digest:
        if record.data.rechecks >= MOST_RECHECKS:
            return _refused(bench, "the files keep changing while they are verified")
        record.keep(replace(record.data, rechecks=record.data.rechecks + 1))
        return NodeOutcome.STALE
    record.keep_work(WorkName.SHOWN, work.changes)
    breaches = bench.works.breaches(work.changes)
    breaches += tuple(f"{path!r} is changed too, and nothing says why" for path in record.data.unlinked)
    unproved = record.data.unproved if record.data.verdict is Verdict.UNVERIFIED else ()
    checked = record.data.fulfilment
    left = () if checked is None else checked.open_parts
    if checked is not None and checked.nothing_fulfilled and record.order.approval is Approval.NEVER:
        return NodeOutcome.GIVE_UP
    why = (*(f"unverified: {one}" for one in unproved), *left, *breaches)
    question = ApprovalRequest(kind=CHANGE, digest=digest, why=why)
    record.keep(replace(record.data, question=question, response=None))
    record.note("proposed", {"digest": digest, "paths": sorted(work.changes.paths)})
    if record.order.approval is Approval.NEVER and unproved and not record.order.accept_unverified:
        # Nobody is there to say yes.
        return deliver(bench, place) if deliver_verified(record, bench.works) else NodeOutcome.GIVE_UP
    if record.order.approval is Approval.NEVER and not breaches:
        record.keep(replace(record.data, decision=GivenAnswer(answer=ApprovalAnswer.APPROVE, digest=digest)))
        return NodeOutcome.APPROVED
    return NodeOutcome.ASK


def approve(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Take the user's answer, which the record holds. Run again, it comes to the same."""
    record = bench.record
    question, answer = record.data.question, record.data.response
    if question is None:
        # A file of an earlier version, interrupted here: the decision stands, or the question comes up again.
        decision = record.data.decision
        return NodeOutcome.ANSWERED if decision is None else _decided(decision)
    assert answer is not None
    record.note("answered", {"kind": question.kind, "answer": answer.answer, "digest": question.digest})
    if question.kind == CALL:
        record.keep(replace(record.data, permits={**record.data.permits, question.digest: answer}))
        intent = record.data.intent
        return NodeOutcome.READ if intent is not None and intent.intent is Intent.READ else NodeOutcome.ANSWERED
    record.keep(replace(record.data, decision=answer))
    return _decided(answer)


def _decided(answer: GivenAnswer) -> NodeOutcome:
    return NodeOutcome.APPROVED if answer.answer is ApprovalAnswer.APPROVE else NodeOutcome.REJECTED


def apply(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Promotes exactly what was approved, once. An approval of something else, or of an older state, is refused."""
    record = bench.record
    shown, decision = record.work(WorkName.SHOWN), record.data.decision
    if record.data.entry is not None:
        if shown is not None and not record.data.commit:
            _commit(bench, shown)
        return _delivered(bench)
    assert decision is not None and shown is not None
    if decision.digest != shown.digest:
        return _not_taken(bench, "the approval is for a different change than this one")
    chosen, whose = _chosen(bench, decision, shown)
    # A run that was interrupted right after it promoted finds its own work in the workspace.
    entry = bench.works.promoted(chosen)
    if entry is None:
        refusal = _stale(bench, shown) or (_unverified(bench, chosen, whose) if whose else _moved(bench, chosen))
        if refusal:
            return _not_taken(bench, refusal)
        try:
            entry = bench.works.promote(chosen, record.order.text)
        except NothingToDo:
            record.keep(replace(record.data, notes=("the workspace already has this change",)))
            return _delivered(bench)
    if chosen.digest != shown.digest:
        # Who looks at the bench from here on sees the workspace as it is now; the rest would be in conflict with it.
        bench.works.clear()
    record.keep(replace(record.data, entry=entry))
    _keep_rest(bench, shown, chosen)
    record.keep_work(WorkName.SHOWN, chosen)
    _commit(bench, chosen)
    return _delivered(bench)


def _commit(bench: Workbench, chosen: ChangeSet) -> None:
    """Only where the user wants it. A commit that cannot be made is told; the change stands."""
    record = bench.record
    try:
        name, notes = bench.works.commit(chosen, record.order.text)
    except GitFailed as error:
        name, notes = "", (f"not committed: {error.message}" + (f" ({error.advice})" if error.advice else ""),)
    record.keep(replace(record.data, notes=(*record.data.notes, *notes), commit=name))
    if name:
        record.note("committed", {"commit": name})


def _chosen(bench: Workbench, decision: GivenAnswer, shown: ChangeSet) -> tuple[ChangeSet, str]:
    """The part that the user approved, and its name where it is not the whole as shown."""
    edited = bench.record.work(WorkName.EDITED) if decision.edited else None
    if edited is not None:
        return edited, "the change as you edited it does"
    if decision.hunks:
        return bench.works.select(shown, decision.hunks), "these hunks alone do"
    return shown, ""


def keep(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Nothing is promoted; what was made is kept as an entry, so that nothing is lost."""
    record = bench.record
    decision = record.data.decision
    if decision is not None and decision.answer is ApprovalAnswer.REJECT:
        record.keep(replace(record.data, rejected=decision.reason))
    record.deliver(delivery_of(record.data, promoted=False))
    if record.data.kept is not None:
        return NodeOutcome.DONE
    work = _whatever_is_there(bench)
    everything = (
        record.work(WorkName.BENCH) if work is None else work.changes.then(work.spare.without(work.changes.paths))
    )
    digest = work.changes.digest if work is not None else ""
    if record.data.verified != digest:
        record.keep(_without_word(record.data, is_work=bool(work and work.changes)))
    if everything:
        reason = "rejected" if record.data.rejected is not None else str(record.data.verdict or "not verified")
        kept = bench.works.keep(everything, record.order.text, reason, digest)
        record.keep(replace(record.data, kept=kept))
        record.keep_work(WorkName.SHOWN, everything)
        if record.data.rejected is None:
            keep_tasks(record, bench.works)
        trouble, ended = record.data.trouble, {one.number for one in record.data.task_ends}
        if trouble is not None and 0 < place.task <= len(record.data.plan) and place.task not in ended:
            end_task(record, place.task, TaskState.FAILED, trouble.message, kept)
    record.note("kept", {"entry": record.data.kept})
    return NodeOutcome.DONE


def _without_word(data: RunData, *, is_work: bool) -> RunData:
    """The verdict was on something else than what stands there now, such as the attempt before."""
    if data.trouble is not None and data.climb is None and is_work:
        why = f"not verified: {data.trouble.message}"
        return replace(data, verdict=Verdict.UNVERIFIED, verdicts=(), refused=(), unproved=(why,), notes=(), after=None)
    return data if data.verdict is Verdict.FAILED else replace(data, verdict=None, verdicts=())


def _delivered(bench: Workbench) -> NodeOutcome:
    """From here on the delivery is written, and nothing later can erase it. A part is what the user wanted of it, and
    still not the whole that the request asks for."""
    data = bench.record.data
    bench.record.deliver(delivery_of(data, promoted=True))
    bench.record.note("delivered", {"entry": data.entry})
    return NodeOutcome.DONE


def _whatever_is_there(bench: Workbench) -> Work | None:
    try:
        return bench.works.now()
    except PawlError:
        return None


def _nothing(bench: Workbench, work: Work) -> NodeOutcome:
    record = bench.record
    if work.held:
        # All that was made is held back.
        record.keep(replace(record.data, held=()))
        return _refused(bench, *(f"{one.path}: {one.told}" for one in work.held))
    if record.data.verified and record.work(WorkName.BENCH) and bench.works.has_moved():
        return _refused(bench, "the same change was promoted meanwhile, and nothing is left of this one")
    # A change was asked for, and words are no change.
    how = "answered in words and " if record.data.ended in (LoopEnd.ANSWERED, LoopEnd.CUT_OFF) else ""
    how = "repeated itself, was stopped and " if record.data.ended == LoopEnd.STUCK else how
    record.keep(replace(record.data, refused=(f"the model {how}changed no file",)))
    record.deliver(DeliveryState.NEEDS_WORK)
    return NodeOutcome.NOTHING


def _refused(bench: Workbench, *why: str) -> NodeOutcome:
    bench.record.keep(replace(bench.record.data, refused=why))
    return NodeOutcome.GIVE_UP


def _not_taken(bench: Workbench, why: str) -> NodeOutcome:
    bench.record.keep(replace(bench.record.data, stale=why))
    bench.record.note("stale", {"why": why})
    return NodeOutcome.STALE


def _stale(bench: Workbench, shown: ChangeSet) -> str:
    moved = bench.works.stale(shown)
    return f"{bench.shop.changed_by(moved)} since it was shown" if moved else ""


def _moved(bench: Workbench, chosen: ChangeSet) -> str:
    """Why the answer does not stand, where files beside the change were changed since it was verified."""
    if not bench.works.has_moved():
        return ""
    checked, was = bench.works.verify(chosen), bench.record.data.verdict
    judgement = decide(checked, wanted(bench))
    data = _checked(bench.record, checked, judgement)
    if judgement.accepted or judgement.verdict is was:
        bench.record.keep(data)
        doubt_unchecked(bench.record)
        return ""
    # What fails goes back to the checks; what nothing proves any more is asked about anew.
    bench.record.keep(replace(data, verified="" if judgement.verdict is Verdict.FAILED else data.verified))
    reasons = "; ".join((*judgement.refused, *judgement.unproved))
    return f"other files were changed since it was shown, and now it is {judgement.verdict}: {reasons}"


def _unverified(bench: Workbench, chosen: ChangeSet, whose: str) -> str:
    """Why what was chosen cannot stand by itself; empty when it makes nothing worse, for the user chose it."""
    checked = bench.works.verify(chosen)
    whole = wanted(bench)
    harmless = decide(checked, whole.least)
    if harmless.verdict is Verdict.FAILED:
        return f"{whose} not pass: " + "; ".join(harmless.refused)
    bench.record.keep(_checked(bench.record, checked, decide(checked, whole)))
    doubt_unchecked(bench.record)
    return ""


def _keep_rest(bench: Workbench, shown: ChangeSet, chosen: ChangeSet) -> None:
    """Keep as an entry what the user left out and what is held back."""
    record = bench.record
    spare, data = record.work(WorkName.SPARE), record.data
    kept = data.kept
    if chosen.digest != shown.digest:
        kept = bench.works.keep(shown, record.order.text, "taken in part or edited; this is what was shown")
    elif spare:
        kept = bench.works.keep(spare, record.order.text, "held back")
    record.keep(replace(record.data, kept=kept))
