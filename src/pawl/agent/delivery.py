"""From a verified change set to the workspace: the delivery is recorded, the user asked, the change promoted once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pawl.agent.evidence import judged
from pawl.agent.nodes import wanted
from pawl.agent.record import QUESTION, RESPONSE
from pawl.agent.routing import NodeOutcome
from pawl.agent.workbench import Workbench
from pawl.agent.works import Work
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import counts_json
from pawl.core.errors import Conflicted, GitFailed, NothingToDo, PawlError
from pawl.core.run import Approval, ApprovalAnswer, ApprovalRequest, DeliveryState, RunCursor

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
    if record.value("verified") != work.changes.digest:
        rechecks = record.value("rechecks")
        count = rechecks if isinstance(rechecks, int) else 0
        if count >= MOST_RECHECKS:
            return _refused(bench, "the files keep changing while they are verified")
        record.put("rechecks", count + 1)
        return NodeOutcome.STALE
    record.keep_work("shown", work.changes)
    why = bench.works.breaches(work.changes)
    record.ask({"kind": CHANGE, "digest": work.changes.digest, "why": list(why)})
    record.note("proposed", {"digest": work.changes.digest, "paths": sorted(work.changes.paths)})
    if record.order.approval is Approval.NEVER and not why:
        record.put("decision", {"answer": ApprovalAnswer.APPROVE, "digest": work.changes.digest})
        return NodeOutcome.APPROVED
    return NodeOutcome.ASK


def approve(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Take the user's answer, which the record holds. Run again, it comes to the same."""
    record = bench.record
    asked, answer = record.value(QUESTION), record.value(RESPONSE)
    if not isinstance(asked, dict):
        # A file of an earlier version, interrupted here: the decision stands, or the question comes up again.
        answer = record.value("decision")
        return NodeOutcome.ANSWERED if not isinstance(answer, dict) else _decided(answer)
    assert isinstance(answer, dict)
    question = ApprovalRequest.of(asked)
    record.note("answered", {"kind": question.kind, "answer": answer.get("answer"), "digest": question.digest})
    if question.kind == CALL:
        record.put(f"permit {question.digest}", answer)
        return NodeOutcome.ANSWERED
    record.put("decision", answer)
    return _decided(answer)


def _decided(answer: Mapping[str, object]) -> NodeOutcome:
    return NodeOutcome.APPROVED if answer.get("answer") == ApprovalAnswer.APPROVE else NodeOutcome.REJECTED


def apply(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Promotes exactly what was approved, once. An approval of something else, or of an older state, is refused."""
    record = bench.record
    if isinstance(record.value("entry"), int):
        promoted = record.work("shown")
        if promoted is not None and record.value("commit") is None:
            _commit(bench, promoted)
        return _delivered(bench)
    decision = record.value("decision")
    shown = record.work("shown")
    assert isinstance(decision, dict) and shown is not None
    if decision.get("digest") != shown.digest:
        return _not_taken(bench, "the approval is for another change than the one that stands here")
    chosen, whose = _chosen(bench, decision, shown)
    # A run that was interrupted right after it promoted finds its own work in the workspace.
    entry = bench.works.promoted(chosen)
    if entry is None:
        refusal = _stale(bench, shown) or (_unverified(bench, chosen, whose) if whose else "")
        if refusal:
            return _not_taken(bench, refusal)
        try:
            entry = bench.works.promote(chosen, record.order.text)
        except NothingToDo:
            record.put("notes", ["the workspace already stands as the change wants it"])
            return _delivered(bench)
    record.put("entry", entry)
    _keep_rest(bench, shown, chosen)
    record.keep_work("shown", chosen)
    _commit(bench, chosen)
    return _delivered(bench)


def _commit(bench: Workbench, chosen: ChangeSet) -> None:
    """Only where the user wants it. A commit that cannot be made is told; the change stands."""
    record = bench.record
    try:
        name, notes = bench.works.commit(chosen, record.order.text)
    except GitFailed as error:
        name, notes = "", (f"not committed: {error.message}" + (f" ({error.advice})" if error.advice else ""),)
    for note in notes:
        _note(bench, note)
    if name:
        record.put("commit", name)
        record.note("committed", {"commit": name})


def _note(bench: Workbench, *lines: str) -> None:
    known = bench.record.value("notes")
    bench.record.put("notes", [*(known if isinstance(known, list) else ()), *lines])


def _chosen(bench: Workbench, decision: Mapping[str, object], shown: ChangeSet) -> tuple[ChangeSet, str]:
    """What of it the user wants, and what that is called where it is not the whole as it was shown."""
    edited = bench.record.work("edited") if decision.get("edited") else None
    if edited is not None:
        return edited, "the change as you edited it does"
    hunks = decision.get("hunks")
    if isinstance(hunks, Sequence) and hunks:
        return bench.works.select(shown, [int(number) for number in hunks]), "these hunks alone do"
    return shown, ""


def keep(bench: Workbench, place: RunCursor) -> NodeOutcome:
    """Nothing is promoted; what was made is kept as an entry, so that nothing is lost."""
    record = bench.record
    record.deliver(DeliveryState.NEEDS_WORK)
    decision = record.value("decision")
    if isinstance(decision, dict) and decision.get("answer") == ApprovalAnswer.REJECT:
        record.put("rejected", str(decision.get("reason", "")))
    if record.value("kept") is not None:
        return NodeOutcome.DONE
    work = _whatever_is_there(bench)
    everything = record.work("bench") if work is None else work.changes.then(work.spare.without(work.changes.paths))
    if everything:
        reason = "rejected" if record.value("rejected") is not None else "not verified"
        record.put("kept", bench.works.keep(everything, record.order.text, reason))
        record.keep_work("shown", everything)
    record.note("kept", {"entry": record.value("kept")})
    return NodeOutcome.DONE


def _delivered(bench: Workbench) -> NodeOutcome:
    """From here on the delivery is written, and nothing later can erase it. A part is what the user wanted of it, and
    still not the whole that the request asks for."""
    bench.record.deliver(DeliveryState.NEEDS_WORK if bench.record.value("refused") else DeliveryState.DONE)
    bench.record.note("delivered", {"entry": bench.record.value("entry")})
    return NodeOutcome.DONE


def _whatever_is_there(bench: Workbench) -> Work | None:
    try:
        return bench.works.now()
    except PawlError:
        return None


def _nothing(bench: Workbench, work: Work) -> NodeOutcome:
    record = bench.record
    if work.spare:
        # All that was made is held back: it needs the user's own yes, one way or another.
        record.put("refused", [f"{one.path}: {one.reason}" for one in work.held])
        return NodeOutcome.GIVE_UP
    # A change was asked for, and words are no change.
    record.put("refused", ["nothing was changed"])
    record.deliver(DeliveryState.NEEDS_WORK)
    return NodeOutcome.NOTHING


def _refused(bench: Workbench, why: str) -> NodeOutcome:
    bench.record.put("refused", [why])
    return NodeOutcome.GIVE_UP


def _not_taken(bench: Workbench, why: str) -> NodeOutcome:
    bench.record.put("stale", why)
    bench.record.note("stale", {"why": why})
    return NodeOutcome.STALE


def _stale(bench: Workbench, shown: ChangeSet) -> str:
    moved = bench.works.stale(shown)
    return f"you changed {', '.join(map(repr, moved))} since it was shown" if moved else ""


def _unverified(bench: Workbench, chosen: ChangeSet, whose: str) -> str:
    """Why what was chosen cannot stand by itself; empty when it makes nothing worse, for the user chose it."""
    checked = bench.works.verify(chosen)
    whole = wanted(bench)
    least = judged(checked, replace(whole, all_tests=False, named=""))
    if not least.accepted:
        return f"{whose} not pass: " + "; ".join(least.refused)
    bench.record.put("refused", list(judged(checked, whole).refused))
    bench.record.put("after", counts_json(checked.tests.counts) if checked.tests else None)
    return ""


def _keep_rest(bench: Workbench, shown: ChangeSet, chosen: ChangeSet) -> None:
    """What the user left out, and what is held back, stays at hand."""
    record = bench.record
    spare, held = record.work("spare"), record.value("held")
    if spare and isinstance(held, list):
        _note(bench, *(f"held back: {path} ({reason})" for path, reason in held))
    if chosen.digest != shown.digest:
        record.put(
            "kept", bench.works.keep(shown, record.order.text, "taken in part or edited; this is what was shown")
        )
    elif spare:
        record.put("kept", bench.works.keep(spare, record.order.text, "held back"))
