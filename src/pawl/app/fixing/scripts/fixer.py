"""From a red TypeScript or JavaScript project to a verified change set, or to a clear word about why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pawl.app.fixing import reasons
from pawl.app.fixing.disputing import Dispute, distinct, is_doubtful, is_progress, picked, repair_of, rivals_of
from pawl.app.fixing.ground import shown
from pawl.app.fixing.moving import fresh
from pawl.app.fixing.report import FixReport, Mended, Outcome, Repair
from pawl.app.fixing.scripts.ground import ScriptGround, findings_of, is_script_test
from pawl.app.fixing.scripts.recovering import ScriptRecovering
from pawl.app.fixing.scripts.searching import ScriptSearch
from pawl.app.verifying.settings import verify_settings
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.finding import Finding, Standing, Verdict
from pawl.repair.model import FoundPatch, RepairEnded
from pawl.verify.ladder import accepted
from pawl.verify.recover import javascript_map
from pawl.verify.recovery_map import merged
from pawl.workspace.bench import Bench


@dataclass(slots=True)
class ScriptFixer:
    ground: ScriptGround
    bench: Callable[[], Bench]
    repairs: list[Repair] = field(default_factory=list)
    dispute: Dispute | None = None
    picked: bool = False

    def work(self) -> FixReport:
        first_read, first = self.ground.first_runs()
        if not findings_of((*first_read, first)):
            return FixReport(outcome=Outcome.NOTHING_FAILS, before=first.counts, after=first.counts)
        entries = merged(javascript_map(), verify_settings(self.ground.shop.config).recovery)
        recovering = ScriptRecovering(self.ground, entries)
        read, tests = recovering.run(first_read, first)
        self.repairs += recovering.repairs
        search = ScriptSearch(self.ground)
        tests, ended = self._search(search, tests)
        failing = (*findings_of(first_read), *shown(first))
        left = findings_of((*read, tests))
        why = reasons.why_not(ended) if ended is not None else "no known recovery mends what is left"
        report = FixReport(
            outcome=Outcome.NOT_FIXED,
            reason=why if left else "",
            before=first.counts,
            failing_before=tuple(failing),
            advice="; ".join(recovering.advice) or ("a model can work on it: pawl do 'mend it'" if left else ""),
            notes=tuple(self.ground.notes),
            tried=search.tried,
            cpu_seconds=search.cpu_seconds,
        )
        if self.dispute is not None:
            reason, rivals = reasons.why_disputed(self.dispute.ended), rivals_of(self.ground, self.dispute)
            report = replace(report, outcome=Outcome.DISPUTED, reason=reason, rivals=rivals)
        if not self.repairs:
            return replace(report, after=tests.counts, failing_after=tuple(left))
        return self._judged(report, (first_read, first))

    def _search(self, search: ScriptSearch, verdict: Verdict) -> tuple[Verdict, RepairEnded | None]:
        """Searches as long as a patch makes the suite better; the last search says why something is left."""
        ended: RepairEnded | None = None
        while self.ground.left > 1:
            failing = self._wanted(verdict)
            if not failing:
                break
            ended = distinct(search.run(failing), self.ground.bench.files.read)
            if self._is_disputed(ended):
                self.dispute = Dispute.on(self.ground, ended)
                break
            better = self._take(ended, verdict)
            if better is None:
                break
            verdict = better
        return verdict, ended

    def _wanted(self, verdict: Verdict) -> list[Finding]:
        """The failing tests that the user asks about: all, or those of the test files that are named."""
        asked = [one for one in self.ground.request.targets if is_script_test(one)]
        failing = [finding for finding in verdict.findings if finding.test]
        return [one for one in failing if not asked or one.test.split(" > ")[0].startswith(tuple(asked))]

    def _is_disputed(self, ended: RepairEnded) -> bool:
        request = self.ground.request
        return is_doubtful(ended) and not request.accept_first and (request.pick is None or self.picked)

    def _take(self, ended: RepairEnded, verdict: Verdict) -> Verdict | None:
        """The first patch after which the suite is better and nothing that passed fails."""
        for patch in self._chosen(ended):
            before = self.ground.bench.files.read(patch.path)
            self.ground.write(patch.path, patch.applied(before).decode("utf-8"))
            after = self.ground.run_tests()
            if is_progress(after, verdict):
                repair = repair_of(patch, ended)
                self.repairs.append(repair)
                self.ground.listen(Mended(repair=repair, failing=len(findings_of((after,)))))
                return after
            self.ground.write(patch.path, before.decode("utf-8"))
        return None

    def _chosen(self, ended: RepairEnded) -> tuple[FoundPatch, ...]:
        pick = self.ground.request.pick
        if pick is None or not is_doubtful(ended):
            return ended.patches
        self.picked = True
        return (picked(ended, pick),)

    def _judged(self, report: FixReport, first: tuple[tuple[Verdict, ...], Verdict]) -> FixReport:
        """The ladder decides, on a bench that holds nothing but the edits."""
        baseline = self.ground.baseline(*first)
        with self.bench() as clean, fresh(self.ground, clean):
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
