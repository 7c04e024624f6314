"""From a red suite to a promoted patch, or to a clear word about why not."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from pawl.app.environments import brought_along, own_python
from pawl.app.fixing import reasons
from pawl.app.fixing.disputing import Dispute, distinct, is_doubtful, is_progress, picked, repair_of, rivals_of
from pawl.app.fixing.ground import Ground, failing_tests, is_uncollected, shown
from pawl.app.fixing.moving import fresh
from pawl.app.fixing.reaching import reaching, test_file
from pawl.app.fixing.recovering import Recovering
from pawl.app.fixing.report import FixReport, FixRequest, Listener, Mended, Outcome, Repair
from pawl.app.fixing.scripts.fixer import ScriptFixer
from pawl.app.fixing.scripts.ground import ScriptGround, is_script_project
from pawl.app.fixing.searching import Search
from pawl.app.running import bench_places, open_bench
from pawl.app.verifying.packages import Wanted, provide
from pawl.app.workshop import Workshop
from pawl.core.change import Change, ChangeSet, Node
from pawl.core.errors import Conflicted, PromotionFailed, ProtectedRefused, Refused
from pawl.core.finding import Finding, Standing, Verdict
from pawl.core.history import EntryKind
from pawl.repair.model import Agreement, FoundPatch, RepairEnded, StageBegun, Status
from pawl.repair.stream import start_script
from pawl.verify.ladder import accepted
from pawl.verify.recover import beyond
from pawl.verify.recoveries.symbols import symbols_of
from pawl.verify.steps.step import amount
from pawl.workspace.bench import Bench, sweep

MOST_ALONE = 4
"""How many failing tests of one group are tried one by one."""


def fix(shop: Workshop, request: FixRequest, listen: Listener) -> FixReport:
    """Repairs what fails, verifies the whole, and promotes it unless it is a dry run."""
    started = time.monotonic()
    for place in bench_places(shop.config):
        sweep(place)
    readable = (start_script().rsplit("/", 1)[0], *brought_along().values(), *own_python()[1])

    notes: list[str] = []
    wanted = Wanted(install=request.install, say=lambda _: listen(StageBegun(name="install")))

    def bench() -> Bench:
        opened = open_bench(shop, extra_readonly=readable)
        try:
            opened.apply(request.ground, shop.store.blobs)
            notes.extend(one.note for one in provide(shop, opened, wanted))
        except BaseException:
            opened.discard()
            raise
        return opened

    with bench() as first:
        fixer: _Fixer | ScriptFixer
        if is_script_project(first.files, request.test_command):
            fixer = ScriptFixer(ScriptGround(shop, first, request, listen, notes=list(notes)), bench)
        else:
            fixer = _Fixer(Ground(shop, first, request, listen), bench)
        report = fixer.work()
        changes = fixer.changes()
    report = replace(report, seconds=time.monotonic() - started)
    if changes:
        report = _landed(shop, report, changes, dry_run=request.dry_run)
    shop.note("fixed", {"outcome": report.outcome, "repairs": len(report.repairs), "seconds": round(report.seconds, 2)})
    return report


def _landed(shop: Workshop, report: FixReport, changes: ChangeSet, *, dry_run: bool) -> FixReport:
    """Promotes what was accepted. What was not, or cannot be promoted, is kept as an entry, so that it is not lost."""
    titles = ", ".join(dict.fromkeys(repair.what for repair in report.repairs)) or "a patch that was not accepted"
    entry = shop.new_entry(EntryKind.EDIT, f"fix: {titles}")
    if report.outcome not in (Outcome.FIXED, Outcome.PARTLY):
        return report if dry_run else replace(report, kept=shop.keep(entry, changes))
    if dry_run:
        return replace(report, changes=changes)
    try:
        protected = [change.path for change in changes if shop.guardrails.is_protected(change.path)]
        if protected:
            raise ProtectedRefused(f"{protected[0]!r} is protected", advice="look at it first")
        promotion = shop.promote(entry, changes)
    except (Conflicted, PromotionFailed, Refused) as error:
        kept = shop.keep(entry, changes)
        raise PromotionFailed(
            f"the patch could not be promoted: {error.message}",
            advice=f"it is kept: see it with 'pawl diff {kept}', promote it with 'pawl promote {kept}'",
        ) from error
    return replace(report, promotion=promotion, changes=promotion.changes)


@dataclass(slots=True)
class _Fixer:
    ground: Ground
    bench: Callable[[], Bench]
    repairs: list[Repair] = field(default_factory=list)
    dispute: Dispute | None = None
    """The first one that was met; the others would have other numbers."""
    picked: bool = False

    def work(self) -> FixReport:
        first = self.ground.first_run()
        wanted = [finding for finding in first.findings if self.ground.aim.wants(finding)]
        if first.standing is Standing.PASS or not wanted:
            others = _not_asked(first)
            return FixReport(outcome=Outcome.NOTHING_FAILS, reason=others, before=first.counts, after=first.counts)
        recovering = Recovering(self.ground)
        search = Search(self.ground)
        verdict = recovering.run(first)
        self.repairs += recovering.repairs
        report = FixReport(outcome=Outcome.NOT_FIXED, before=first.counts, failing_before=shown(first))
        reason, advice = self._hopeless(verdict, first)
        if not reason:
            aside = [one.test for one in verdict.findings if one.test and beyond(one) and self.ground.aim.wants(one)]
            self.ground.note_tests("set aside, what they need is missing", aside)
        ended: RepairEnded | None = None
        if not reason and verdict.standing is not Standing.PASS:
            verdict, ended = self._search(search, verdict)
            reason, advice = self._why(ended, verdict, search, first)
        told = [advice] if advice else recovering.advice
        report = replace(
            report,
            reason=reason,
            advice="; ".join(dict.fromkeys(filter(None, told))),
            suspicious=tuple(sorted(search.suspicious.values(), key=lambda line: -line.score)[:10]),
            tried=search.tried,
            cpu_seconds=search.cpu_seconds,
            notes=tuple(self.ground.notes),
        )
        if self.dispute is not None and not {one.test for one in verdict.findings}.isdisjoint(self.dispute.ended.tests):
            reason, rivals = reasons.why_disputed(self.dispute.ended), rivals_of(self.ground, self.dispute)
            report = replace(report, outcome=Outcome.DISPUTED, reason=reason, rivals=rivals)
        if not self.repairs:
            return replace(report, after=verdict.counts, failing_after=shown(verdict))
        return self._judged(report, first, verdict)

    def _hopeless(self, verdict: Verdict, first: Verdict) -> tuple[str, str]:
        """Why a search would be in vain, and what to do instead; empty where it may help."""
        if verdict.standing is Standing.PASS:
            return "", ""
        if self._mendable(verdict):
            return reasons.too_slow(self.ground, first)
        unmended = [finding for finding in verdict.findings if self.ground.aim.wants(finding)]
        reason, advice = reasons.needs(self.ground, unmended, symbols_of(self.ground.sources()))
        return (reason, advice) if reason else reasons.uncollected(unmended)

    def _why(self, ended: RepairEnded | None, verdict: Verdict, search: Search, first: Verdict) -> tuple[str, str]:
        """Why the search left something, and what to do about it."""
        if verdict.standing is Standing.PASS:
            return "", ""
        left = [finding for finding in verdict.findings if self.ground.aim.wants(finding)]
        missing, advice = reasons.needs(self.ground, left, symbols_of(self.ground.sources()))
        late = self.ground.left <= 1 or (ended is not None and ended.status is Status.OUT_OF_TIME)
        if late and not advice:
            advice = reasons.more_time(first)
        odd = {finding.test: search.unsteady[finding.test] for finding in left if finding.test in search.unsteady}
        if ended is not None:
            reason = reasons.why_not(ended)
        elif late and self._mendable(verdict):
            reason = reasons.WHY_NOT[Status.OUT_OF_TIME]
        else:
            unloaded, mend = reasons.uncollected(left)
            unreached = reasons.WHY_NOT[Status.NO_SOURCES] if self.ground.aim.sources else verdict.reason
            reason, advice = missing or unloaded or unreached, advice or mend
        return reason, "; ".join(filter(None, (reasons.unsteady(odd), advice)))

    def _search(self, search: Search, verdict: Verdict) -> tuple[Verdict, RepairEnded | None]:
        """Searches as long as time and failures are left. What is disputed is set aside, and the first dispute told.

        The last search that mended nothing says why something is left.
        """
        unmended: RepairEnded | None = None
        aside: set[str] = set()
        while self.ground.left > 1 and verdict.standing is not Standing.PASS:
            failing = [finding for finding in self._mendable(verdict) if finding.test not in aside]
            near = reaching(failing, self.ground.aim.sources, self.ground.sources())
            if len(near) < len(failing):
                far = [finding.test for finding in failing if finding not in near]
                self.ground.note_tests("set aside, they do not reach what may be edited", far)
                aside.update(far)
                failing = near
            if not failing:
                break
            ended, better = self._search_part(search, failing, verdict)
            if better is not None:
                verdict = better
                continue
            unmended = ended
            if self._is_disputed(ended):
                self.dispute = self.dispute or Dispute.on(self.ground, ended)
            if not ended.tests:
                break
            aside.update(ended.tests)
        return verdict, unmended

    def _mendable(self, verdict: Verdict) -> list[Finding]:
        """The failing tests that a patch could mend and that the user asks about."""
        wanted = (finding for finding in failing_tests(verdict) if self.ground.aim.wants(finding))
        return [finding for finding in wanted if beyond(finding) is None and not is_uncollected(finding)]

    def _search_part(
        self, search: Search, failing: list[Finding], verdict: Verdict
    ) -> tuple[RepairEnded, Verdict | None]:
        """One search for the failures that belong together; where there is no patch for them all, for one by one."""
        share = self.ground.left if len(failing) == 1 else self.ground.left * 0.5
        ended = self._decided(search.run(failing, share), len(failing), verdict)
        if not self._is_disputed(ended):
            better = self._take(ended, verdict)
            if better is not None:
                return ended, better
        together = [finding for finding in failing if finding.test in ended.tests]
        if ended.status is not Status.NO_PATCH or len(together) < 2:
            return ended, None
        for part in self._parts(together):
            if self.ground.left < 2:
                break
            alone = self._decided(search.run(part, self.ground.left * 0.5), len(part), verdict)
            if not self._is_disputed(alone):
                better = self._take(alone, verdict)
                if better is not None:
                    return alone, better
        return ended, None

    def _parts(self, together: list[Finding]) -> list[list[Finding]]:
        """The tests of each file where sources are named, since not all may run them; else each test alone."""
        files: dict[str, list[Finding]] = {}
        for finding in together:
            files.setdefault(test_file(finding, {}), []).append(finding)
        alone = [[finding] for finding in together]
        return [*(files.values() if self.ground.aim.sources and len(files) > 1 else ()), *alone][:MOST_ALONE]

    def _decided(self, ended: RepairEnded, asked: int, verdict: Verdict) -> RepairEnded:
        """Where a search was for part of the failures, the others speak for the patch that mends the most of them."""
        ended = distinct(ended, self.ground.bench.files.read)
        failing = failing_tests(verdict)
        if asked >= len(failing) or len(ended.patches) < 2:
            return ended
        mended = {patch: len(failing) - len(failing_tests(self._with(patch))) for patch in ended.patches}
        ranked = sorted(ended.patches, key=lambda patch: -mended[patch])
        best = ranked[0]
        rivals = [patch for patch in ranked if patch.group != best.group and mended[patch] == mended[best]]
        if rivals or mended[best] <= asked:
            return replace(ended, patches=tuple(ranked))
        reason = f"it mends {mended[best]} failing tests, more than any patch that behaves differently"
        return replace(ended, patches=tuple(ranked), agreement=Agreement.DECIDED, reason=reason)

    def _with(self, patch: FoundPatch) -> Verdict:
        """What the suite says with the patch, which is then taken away again."""
        before = self.ground.bench.files.read(patch.path)
        self.ground.write(patch.path, patch.applied(before))
        try:
            return self.ground.run_tests()
        finally:
            self.ground.write(patch.path, before)

    def _is_disputed(self, ended: RepairEnded) -> bool:
        request = self.ground.request
        return is_doubtful(ended) and not request.accept_first and (request.pick is None or self.picked)

    def _take(self, ended: RepairEnded, verdict: Verdict) -> Verdict | None:
        """The first patch after which the suite is better and nothing that passed fails."""
        for patch in self._chosen(ended):
            before = self.ground.bench.files.read(patch.path)
            self.ground.write(patch.path, patch.applied(before))
            after = self.ground.run_tests()
            if is_progress(after, verdict):
                repair = repair_of(patch, ended)
                self.repairs.append(repair)
                self.ground.listen(Mended(repair=repair, failing=len(failing_tests(after))))
                return after
            self.ground.write(patch.path, before)
        return None

    def _chosen(self, ended: RepairEnded) -> tuple[FoundPatch, ...]:
        """The patches to try; what the user picks is one of the first that are disputed."""
        pick = self.ground.request.pick
        if pick is None or not ended.patches or not is_doubtful(ended):
            return ended.patches
        chosen = picked(ended, pick)
        self.picked = True
        return (chosen,)

    def _judged(self, report: FixReport, first: Verdict, verdict: Verdict) -> FixReport:
        """The ladder decides about everything that was mended."""
        with self.bench() as clean, fresh(self.ground, clean):
            verdicts = self.ground.verify(self.ground.baseline(first))
        after = next((one for one in verdicts if one.step == "tests"), verdict)
        report = replace(report, verdicts=verdicts, after=after.counts, failing_after=shown(after))
        if not accepted(verdicts):
            broken = next(one for one in verdicts if one.standing is Standing.FAIL)
            reason = f"a patch was found, but {broken.step} says: {broken.reason}"
            return replace(report, outcome=Outcome.NOT_FIXED, reason=reason, after=verdict.counts)
        report = replace(report, repairs=tuple(self.repairs))
        if any(self.ground.aim.wants(finding) for finding in shown(after)):
            return replace(report, outcome=Outcome.PARTLY)
        return replace(report, outcome=Outcome.FIXED, reason=_not_asked(after), advice="")

    def changes(self) -> ChangeSet:
        """The edits, from what the files were when the bench was made, whatever the user has changed since."""
        blobs, tree = self.ground.shop.store.blobs, self.ground.shop.tree
        made = []
        for path, data in self.ground.edited.items():
            seen = tree.look(path)
            contents = (self.ground.originals[path], data)
            made.append(Change(path, *(Node.file(blobs.put(one), seen.mode if seen else 0o644) for one in contents)))
        return ChangeSet.of(made)


def _not_asked(verdict: Verdict) -> str:
    """What is left to say when everything that was asked for passes."""
    others = 0 if verdict.standing is Standing.PASS and not verdict.old else len(shown(verdict))
    return f"{amount(others, 'other test')} {'fails' if others == 1 else 'fail'}, not asked for" if others else ""
