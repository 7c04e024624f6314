"""The reflex as a tier: a search with no model, judged by the same checks as every other attempt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pawl.app.doing.climbing.attempting import Assignment
from pawl.app.doing.climbing.judging import Tried, changed_lines, judged_attempt
from pawl.app.doing.verifying import Verifier
from pawl.app.workshop import Workshop
from pawl.core.errors import CannotFix, NoTests, UsageError
from pawl.core.tiers import Attempt, AttemptEnd, Iteration, TierMode


def reflex_attempt(
    shop: Workshop, task: Assignment, at: Iteration, verifier: Verifier, listen: Callable[[Any], None]
) -> Tried:
    from pawl.app.fixing import FixRequest, Outcome, fix

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
    if report.outcome not in (Outcome.FIXED, Outcome.PARTLY):
        left = tuple(one.test for one in report.failing_after if one.test) or task.climb.failing
        reason = report.reason or str(report.outcome)
        return Tried(attempt=replace(begun, refused=(reason,), said=said, failing=left))
    changes = task.ground.then(report.changes) if task.ground else report.changes
    repairs = "; ".join(f"{one.path}:{one.line} {one.what}" for one in report.repairs)
    begun = replace(
        begun,
        said=" | ".join(part for part in (repairs, said if report.outcome is Outcome.PARTLY else "") if part),
        paths=tuple(sorted(changes.paths)),
        digest=changes.digest,
        diff=changed_lines(shop, changes),
    )
    checked = verifier.verify(changes, task.before)
    attempt, judgement = judged_attempt(begun, checked, task.wanted, task.climb)
    return Tried(attempt=attempt, changes=changes, checked=checked, notes=judgement.notes)
