"""From a red TypeScript or JavaScript project to a verified change set, or to a clear word about why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pawl.app.fixing.ground import shown
from pawl.app.fixing.report import FixReport, Outcome, Repair
from pawl.app.fixing.scripts.ground import ScriptGround, findings_of
from pawl.app.fixing.scripts.recovering import ScriptRecovering
from pawl.app.verifying.settings import verify_settings
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.finding import Standing, Verdict
from pawl.verify.ladder import accepted
from pawl.verify.recover import javascript_map
from pawl.verify.recovery_map import merged
from pawl.workspace.bench import Bench


@dataclass(slots=True)
class ScriptFixer:
    ground: ScriptGround
    bench: Callable[[], Bench]
    repairs: list[Repair] = field(default_factory=list)

    def work(self) -> FixReport:
        first_read, first = self.ground.first_runs()
        if not findings_of((*first_read, first)):
            return FixReport(outcome=Outcome.NOTHING_FAILS, before=first.counts, after=first.counts)
        entries = merged(javascript_map(), verify_settings(self.ground.shop.config).recovery)
        recovering = ScriptRecovering(self.ground, entries)
        read, tests = recovering.run(first_read, first)
        self.repairs += recovering.repairs
        failing = (*findings_of(first_read), *shown(first))
        left = findings_of((*read, tests))
        report = FixReport(
            outcome=Outcome.NOT_FIXED,
            reason="no known recovery mends what is left" if left else "",
            before=first.counts,
            failing_before=tuple(failing),
            advice="; ".join(recovering.advice) or ("a model can work on it: pawl do 'mend it'" if left else ""),
            notes=tuple(self.ground.notes),
        )
        if not self.repairs:
            return replace(report, after=tests.counts, failing_after=tuple(left))
        return self._judged(report, (first_read, first))

    def _judged(self, report: FixReport, first: tuple[tuple[Verdict, ...], Verdict]) -> FixReport:
        """The ladder decides, on a bench that holds nothing but the edits."""
        baseline = self.ground.baseline(*first)
        with self.bench() as clean, self.ground.fresh(clean):
            verdicts = self.ground.verify(baseline)
        after = verdicts[-1]
        left = [one for verdict in verdicts for one in (*verdict.findings, *verdict.old)]
        report = replace(report, verdicts=verdicts, after=after.counts, failing_after=tuple(left))
        if not accepted(verdicts):
            broken = next((one for one in verdicts if one.standing is Standing.FAIL), after)
            return replace(report, reason=f"a patch was found, but {broken.step} says: {broken.reason}")
        report = replace(report, repairs=tuple(self.repairs))
        if left:
            return replace(report, outcome=Outcome.PARTLY)
        return replace(report, outcome=Outcome.FIXED, reason="", advice="")

    def changes(self) -> ChangeSet:
        blobs, tree = self.ground.shop.store.blobs, self.ground.shop.tree
        made = []
        for path, data in self.ground.edited.items():
            seen = tree.look(path)
            contents = (self.ground.originals[path], data)
            made.append(Change(path, *(Node.file(blobs.put(one), seen.mode if seen else 0o644) for one in contents)))
        return ChangeSet.of(made)
