"""From a red TypeScript or JavaScript project to a verified change set, or to a clear word about why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pawl.app.fixing import reasons
from pawl.app.fixing.frame import Frame, Told
from pawl.app.fixing.report import FixReport, Outcome
from pawl.app.fixing.scripts.ground import ScriptGround, findings_of, is_script_test
from pawl.app.fixing.scripts.recovering import ScriptRecovering
from pawl.app.fixing.scripts.searching import ScriptSearch
from pawl.app.verifying.settings import verify_settings
from pawl.core.finding import Finding, Verdict
from pawl.repair.model import RepairEnded
from pawl.verify.recover import javascript_map, own_entries
from pawl.verify.recovery_map import merged


@dataclass(slots=True)
class ScriptFixer(Frame[ScriptGround]):
    search: ScriptSearch = field(init=False)
    first_read: tuple[Verdict, ...] = ()
    """What the compilers said before anything was changed."""
    read: tuple[Verdict, ...] = ()

    def begin(self) -> FixReport | None:
        self.search = ScriptSearch(self.ground)
        self.first_read, self.first = self.ground.first_runs()
        self.read, self.verdict = self.first_read, self.first
        if self.found():
            return None
        return FixReport(outcome=Outcome.NOTHING_FAILS, before=self.first.counts, after=self.first.counts)

    def found(self) -> tuple[Finding, ...]:
        return tuple(findings_of((*self.read, self.verdict)))

    def mend(self) -> Told:
        entries = merged(javascript_map(), own_entries(verify_settings(self.ground.shop.config).recovery))
        recovering = ScriptRecovering(self.ground, entries)
        self.read, self.verdict = recovering.run(self.first_read, self.first)
        self.repairs += recovering.repairs
        self.dispute, self.picked = recovering.dispute, recovering.picked
        ended = self.searched() if self.dispute is None else None
        if not findings_of((*self.read, self.verdict)):
            return "", "; ".join(recovering.advice)
        why = reasons.why_not(ended) if ended is not None else "no known recovery mends what is left"
        return why, "; ".join(recovering.advice) or "a model can work on it: pawl do 'mend it'"

    def mendable(self) -> list[Finding]:
        """All failing tests, or those of the test files that are named."""
        asked = tuple(one for one in self.ground.request.targets if is_script_test(one))
        failing = [finding for finding in self.verdict.findings if finding.test]
        return [one for one in failing if not asked or one.test.split(" > ")[0].startswith(asked)]

    def search_part(self, failing: list[Finding]) -> tuple[RepairEnded, Verdict | None]:
        ended = self.distinct(self.search.run(failing))
        return ended, self.take(ended)

    def verify(self) -> tuple[Verdict, ...]:
        return self.ground.verify(self.ground.baseline(self.first_read, self.first))

    def left(self, verdicts: Sequence[Verdict]) -> tuple[Finding, ...]:
        return tuple(one for verdict in verdicts for one in (*verdict.findings, *verdict.old))
