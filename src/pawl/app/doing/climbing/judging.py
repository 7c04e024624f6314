"""What became of an attempt: what stands on its bench is captured, verified on a fresh one, and judged."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pawl.app.doing.climbing.briefing import findings_of, messages_of
from pawl.app.workshop import Workshop
from pawl.core.change import EMPTY, ChangeSet
from pawl.core.finding import Finding, Verdict
from pawl.core.patch import unified
from pawl.core.tiers import Attempt, AttemptEnd, Climb
from pawl.workflow.climbing.deciding import is_progress
from pawl.workflow.evidence import Checked, Judgement, Wanted, failing, judged

MOST_DIFF_LINES = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """An attempt with what only the climb itself needs."""

    attempt: Attempt
    changes: ChangeSet = EMPTY
    checked: Checked | None = None
    notes: tuple[str, ...] = ()


def judged_attempt(begun: Attempt, checked: Checked, wanted: Wanted, climb: Climb) -> tuple[Attempt, Judgement]:
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
    harmless = judged(checked, Wanted(tests_may_change=wanted.tests_may_change)).accepted
    better = not judgement.accepted and harmless and is_progress(made, climb.best)
    return replace(made, better=better), judgement


def every_finding(verdicts: Iterable[Verdict]) -> list[Finding]:
    return [finding for verdict in verdicts for finding in findings_of(verdict)]


def changed_lines(shop: Workshop, changes: ChangeSet) -> tuple[str, ...]:
    """The first of the lines that a change set takes away and adds."""
    lines = unified(changes, shop.store.blobs, 0).splitlines()
    signed = (line for line in lines if line[:1] in "+-" and not line.startswith(("+++", "---")) and line[1:].strip())
    return tuple(line for line, _ in zip(signed, range(MOST_DIFF_LINES), strict=False))
