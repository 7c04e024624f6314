"""What stood there before a change, so that it is judged by what it broke and not by what was broken."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pawl.core.finding import UNFINISHED, Finding, Standing, Verdict

Identity = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The verdicts from before the change, by step."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)

    @classmethod
    def of(cls, verdicts: Iterable[Verdict]) -> Baseline:
        return cls({verdict.step: verdict for verdict in verdicts})

    def against(self, verdict: Verdict) -> Verdict:
        """The verdict with old findings set apart; a step whose findings are all old has passed.

        A step that was skipped before says nothing about what stood there.
        """
        before = self.verdicts.get(verdict.step)
        if before is None or before.standing is Standing.SKIPPED or not verdict.findings:
            return verdict
        new, old = separated(verdict.findings, (*before.findings, *before.old))
        if new or not old:
            return dataclasses.replace(verdict, findings=tuple(new), old=tuple(old))
        reason = f"nothing new; {len(old)} of before: {verdict.reason}"
        return dataclasses.replace(verdict, standing=Standing.PASS, reason=reason, findings=(), old=tuple(old))


def separated(now: Iterable[Finding], before: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """New findings and old ones. Equal findings count as often as they stood there before."""
    known = Counter(_identity(finding) for finding in before)
    new, old = [], []
    for finding in now:
        identity = _identity(finding)
        if finding.code == UNFINISHED:
            # What did not come to its end before proves nothing about what it would have found (A11).
            new.append(finding)
        elif finding.test and identity in known:
            old.append(finding)
        elif known[identity] > 0:
            known[identity] -= 1
            old.append(finding)
        else:
            new.append(finding)
    return new, old


def _identity(finding: Finding) -> Identity:
    """A finding's key; a test that failed before is the same failure whatever it says now."""
    return (finding.tool, finding.test) if finding.test else finding.key
