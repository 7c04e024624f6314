"""The way of every repair, whatever the language: recover, search, let the ladder decide, say what came of it."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Generic, TypeVar

from pawl.checks.evidence import data_of_tests, hollow_answers
from pawl.checks.steps import skipped
from pawl.checks.verdict import TESTS, Evidence, Requirements, Verification, decide, failing, proves
from pawl.core.change import Change, ChangeSet, EntryKind, Node
from pawl.core.diagnostic import CheckResult, Diagnostic, Status, Verdict
from pawl.core.errors import CannotFix, UsageError
from pawl.core.lazy_dataclass import dataclass
from pawl.repair.ground import RepairGround
from pawl.repair.model import (
    Agreement,
    Alternative,
    FixOutcome,
    FixReport,
    FoundPatch,
    Mended,
    Repair,
    RepairEnded,
    RepairStatus,
    SuspiciousLine,
)
from pawl.workspace.bench import Bench
from pawl.workspace.project import Project

LATE = "time ran out before a patch was found"
WHY_NOT = {
    RepairStatus.NO_PATCH: "no patch of the search space makes the tests pass",
    RepairStatus.REPAIRED: "a patch was found for these tests alone, but with it the whole suite does not get better",
    RepairStatus.OUT_OF_TIME: LATE,
    RepairStatus.NO_SOURCES: "the failing tests reach no source that may be edited",
    RepairStatus.NOTHING_TO_EDIT: "the failing tests reach no source that may be edited",
    RepairStatus.SUITE_DIED: "the suite ended the interpreter it ran in",
    RepairStatus.NOT_COLLECTED: "the tests could not be collected",
    RepairStatus.NO_TESTS: "the framework found no tests",
    RepairStatus.FLAKY_ONLY: "the failing tests fail only sometimes, so no patch could be judged",
    RepairStatus.NOTHING_FAILS: "the failing tests pass when they are run again, so no patch could be judged",
}


def why_not(ended: RepairEnded) -> str:
    said = WHY_NOT.get(ended.status, f"the engine failed: {ended.error or ended.status}")
    return f"{said} ({ended.reason})" if ended.status is RepairStatus.OUT_OF_TIME and ended.reason else said


def why_disputed(ended: RepairEnded) -> str:
    patches = f"{len(ended.patches)} patches"
    behaviours = len({patch.group for patch in ended.patches})
    if ended.agreement is Agreement.DISPUTED and behaviours < 2:
        return f"{patches} pass the tests; {ended.reason}"
    if ended.agreement is Agreement.DISPUTED:
        return f"{patches} pass the tests, with {behaviours} behaviours, and nothing decides between them"
    return ended.doubt


def suite_of(verdicts: Sequence[CheckResult]) -> CheckResult:
    """The result of the workspace's suite."""
    return next((one for one in verdicts if one.step == TESTS), skipped(TESTS, "there is none"))


G = TypeVar("G", bound=RepairGround)
Told = tuple[str, str]
"""Why something is left, and what to do about it."""


@dataclass(slots=True)
class RepairStrategy(Generic[G]):
    ground: G
    bench: Callable[[], Bench]
    repairs: list[Repair] = field(default_factory=list)
    dispute: Dispute | None = None
    """The first one that was met; the others would have other numbers."""
    picked: bool = False
    first: CheckResult = field(init=False)
    """The suite's verdict before anything was changed."""
    verdict: CheckResult = field(init=False)
    """Its verdict now."""
    tried: int = 0
    cpu_seconds: float = 0.0

    def work(self) -> FixReport:
        nothing = self.begin()
        if nothing is not None:
            ran = self.first.standing is Status.PASS or (self.first.counts is not None and not self.first.findings)
            if ran and not proves(self.first):
                raise CannotFix(f"no test passed: {self.first.reason}", advice="let the tests run that are skipped")
            return nothing
        failing = self.found()
        reason, advice = self.mend()
        report = FixReport(
            outcome=FixOutcome.NOT_FIXED,
            reason=reason,
            advice=advice,
            before=self.first.counts,
            failing_before=failing,
            suspicious=self.suspicious(),
            notes=tuple(self.ground.notes),
            tried=self.tried,
            cpu_seconds=self.cpu_seconds,
        )
        if self.dispute is not None and self._is_open(self.dispute):
            reason, rivals = why_disputed(self.dispute.ended), rivals_of(self.ground, self.dispute)
            report = replace(report, outcome=FixOutcome.DISPUTED, reason=reason, rivals=rivals)
        if not self.repairs:
            return replace(report, after=self.verdict.counts, failing_after=self.found())
        return self._judged(report)

    @abstractmethod
    def begin(self) -> FixReport | None:
        """Runs the suite for the first time; a report where nothing fails."""

    @abstractmethod
    def found(self) -> tuple[Diagnostic, ...]:
        """The findings as things stand."""

    @abstractmethod
    def mend(self) -> Told:
        """Mends what can be mended."""

    @abstractmethod
    def mendable(self) -> list[Diagnostic]:
        """The failing tests that a patch could mend and that the user asks about."""

    @abstractmethod
    def search_part(self, failing: list[Diagnostic]) -> tuple[RepairEnded, CheckResult | None]:
        """One search, and what the suite says with what it found; None where that is no progress."""

    @abstractmethod
    def verify(self) -> tuple[CheckResult, ...]:
        """Run every check."""

    @abstractmethod
    def left(self, verdicts: Sequence[CheckResult]) -> tuple[Diagnostic, ...]:
        """The findings that are left after everything was mended."""

    def asked_for(self, finding: Diagnostic) -> bool:
        return True

    def suspicious(self) -> tuple[SuspiciousLine, ...]:
        return ()

    def near(self, failing: list[Diagnostic]) -> list[Diagnostic]:
        """Those of the failing tests that reach what may be edited."""
        return failing

    def not_asked(self, after: CheckResult) -> str:
        """A word about the rest when everything that was asked for passes."""
        return ""

    def searched(self) -> RepairEnded | None:
        """Searches as long as time and failures are left. What is disputed is set aside, and the first dispute told.

        The last search that mended nothing says why something is left.
        """
        unmended: RepairEnded | None = None
        aside: set[str] = set()
        while self.ground.left > 1 and self.verdict.standing is not Status.PASS:
            failing = [finding for finding in self.mendable() if finding.test not in aside]
            near = self.near(failing)
            aside.update(finding.test for finding in failing if finding not in near)
            if not near:
                break
            ended, better = self.search_part(near)
            if better is not None:
                self.verdict = better
                continue
            unmended = ended
            if self.is_disputed(ended):
                self.dispute = self.dispute or Dispute.on(self.ground, ended)
            if not ended.tests:
                break
            aside.update(ended.tests)
        return unmended

    def counted(self, ended: RepairEnded) -> RepairEnded:
        """Counts what a search tried, and leaves out patches that come to the same text."""
        self.tried += ended.tried
        self.cpu_seconds += ended.cpu
        ended = distinct(ended, self.ground.bench.files.read)
        patch = ended.chosen
        if patch is None:
            return ended
        return replace(ended, doubt=doubt_about(ended, self.ground.bench.files.read(patch.path), self.patched(patch)))

    def is_disputed(self, ended: RepairEnded) -> bool:
        request = self.ground.request
        return is_doubtful(ended) and not request.accept_first and (request.pick is None or self.picked)

    def take(self, ended: RepairEnded) -> CheckResult | None:
        """The first patch after which the suite is better and nothing that passed fails; None for what is disputed."""
        if self.is_disputed(ended):
            return None
        for patch in self._chosen(ended):
            with self.ground.trial(patched := {patch.path: self.patched(patch)}):
                after = self.ground.run_tests()
            if is_progress(after, self.verdict):
                self.ground.write_all(patched)
                repair = repair_of(patch, ended)
                self.repairs.append(repair)
                failing = sum(bool(finding.test) for finding in after.findings)
                self.ground.listen(Mended(repair=repair, failing=failing))
                return after
        return None

    def patched(self, patch: FoundPatch) -> bytes:
        return patch.applied(self.ground.bench.files.read(patch.path))

    def _chosen(self, ended: RepairEnded) -> tuple[FoundPatch, ...]:
        """The patches to try; what the user picks is one of the first that are disputed."""
        pick = self.ground.request.pick
        if pick is None or not ended.patches or not is_doubtful(ended):
            return ended.patches
        chosen = picked(ended, pick)
        self.picked = True
        return (chosen,)

    def _is_open(self, dispute: Dispute) -> bool:
        """Whether something that is disputed still fails; what a compiler finds is told apart from tests."""
        disputed = dispute.ended.tests
        return not disputed or not {one.test for one in self.verdict.findings}.isdisjoint(disputed)

    def _judged(self, report: FixReport) -> FixReport:
        """The ladder decides about everything that was mended, on a bench that holds nothing but the edits."""
        verdicts = self._on_clean_bench()
        if self.ground.tidy(verdicts):
            verdicts = self._on_clean_bench()
        after, left = suite_of(verdicts), self.left(verdicts)
        found = self._evidence(verdicts)
        report = replace(report, verdicts=verdicts, evidence=found, after=after.counts, failing_after=left)
        broken = next((one for one in verdicts if one.standing is Status.FAIL), None)
        if found.verdict is Verdict.FAILED:
            findings = broken.findings[:MOST_FINDINGS] if broken is not None else ()
            named = "".join(f"; {one.path}:{one.line} {one.message.strip()}" for one in findings)
            says = found.reasons[0] if broken is None else f"{broken.step} says: {broken.reason}{named}"
            reason = f"a patch was found, but {says}"
            return replace(report, outcome=FixOutcome.NOT_FIXED, reason=reason, after=self.verdict.counts)
        if found.verdict is Verdict.UNVERIFIED:
            reason = f"a patch was found, but nothing proves it: {found.reasons[0]}"
            return replace(report, outcome=FixOutcome.UNVERIFIED, reason=reason)
        report = replace(report, repairs=tuple(self.repairs))
        if any(self.asked_for(finding) for finding in left):
            return replace(report, outcome=FixOutcome.PARTLY)
        return replace(report, outcome=FixOutcome.FIXED, reason=self.not_asked(after), advice="")

    def _on_clean_bench(self) -> tuple[CheckResult, ...]:
        with self.bench() as clean, self.ground.fresh(clean):
            return self.verify()

    def _evidence(self, verdicts: tuple[CheckResult, ...]) -> Evidence:
        """The word on the patch. Where no test ran, what a compiler found before and does not now speaks for it."""
        tested = suite_of(verdicts).counts is not None
        passing = tuple(one.step for one in verdicts if one.standing is Status.PASS)
        changes, blobs, files = self.changes(), self.ground.shop.store.blobs, self.ground.bench.files
        mended = set(failing(self.first.findings)) - set(failing(suite_of(verdicts).findings))
        owned = (f"{path} belongs to the tests, and was changed" for path in data_of_tests(changes, blobs, files))
        checked = Verification(
            digest=changes.digest,
            before=self.first if tested else replace(self.first, findings=()),
            verdicts=verdicts,
            paths=tuple(sorted(self.ground.edited)),
            reaching=(*hollow_answers(changes, blobs, mended, files), *owned),
            asked=() if tested else passing,
        )
        return Evidence.of(checked, decide(checked, Requirements(fixes=True)))

    def changes(self) -> ChangeSet:
        """The edits, from what the files were when the bench was made, whatever the user has changed since."""
        ground = self.ground
        return ChangeSet.of(
            change_of(ground.shop, path, ground.originals[path], data) for path, data in ground.edited.items()
        )


MOST_FINDINGS = 5
DEAR = 4.0
FEW_TESTS = 3
_NUMBER = re.compile(rb"(?<![\w.])(?!(?<=\D [%*/] )2\b|(?<=(?:\*\*|//) )2\b)\d+(?:\.\d+)?")
"""Numbers, but for the two of a half, of a square, or of every other one."""
_USUAL = frozenset({b"0", b"1"})
"""Numbers that a mistake by one is mended with."""


@dataclass(frozen=True, slots=True)
class Dispute:
    """A search that ended in patches to choose from, and what the files held then: later edits move places."""

    ended: RepairEnded
    contents: dict[str, bytes]

    @classmethod
    def on(cls, ground: RepairGround, ended: RepairEnded) -> Dispute:
        return cls(ended, {patch.path: ground.bench.files.read(patch.path) for patch in ended.patches})


def distinct(ended: RepairEnded, read: Callable[[str], bytes]) -> RepairEnded:
    """Without patches that come to the same text as one before them."""
    found: dict[tuple[str, bytes], FoundPatch] = {}
    for patch in ended.patches:
        found.setdefault((patch.path, patch.applied(read(patch.path))), patch)
    patches = tuple(found.values())
    if ended.agreement is Agreement.DISPUTED and len(patches) == 1:
        return replace(ended, patches=patches, agreement=Agreement.SOLE, reason="no other patch passes the tests")
    return replace(ended, patches=patches)


def is_doubtful(ended: RepairEnded) -> bool:
    """Whether patches disagree, or too little speaks for the one that there is."""
    return ended.agreement is Agreement.DISPUTED or bool(ended.doubt)


def doubt_about(ended: RepairEnded, before: bytes, after: bytes) -> str:
    """Why the chosen patch may fail on other inputs than those of the tests; empty where enough speaks for it."""
    patch, few = ended.chosen, len(ended.tests) < FEW_TESTS
    if patch is None:
        return ""
    if patch.support == 0:
        return f"the patch contradicts an example in the docstring of {patch.function}"
    if patch.support == 1:
        return f"only one example supports the patch of {patch.function}"
    if few and "grown" in patch.template and patch.cost >= DEAR:
        return "the patch was built to fit the few examples in the tests, and nothing else supports it"
    known, now = (set(_NUMBER.findall(text)) for text in (before, after))
    invented = sorted(now - known - _USUAL)
    if few and invented:
        return f"the patch brings in the number {invented[0].decode()}, which only the failing examples support"
    return ""


def picked(ended: RepairEnded, pick: int) -> FoundPatch:
    """The patch that the user picks, of those that are offered."""
    if not 1 <= pick <= len(ended.patches):
        raise UsageError(f"--pick {pick}: there are {len(ended.patches)} patches", advice="give one of their numbers")
    return ended.patches[pick - 1]


def repair_of(patch: FoundPatch, ended: RepairEnded) -> Repair:
    """The patch as it is reported, with what speaks for it."""
    why = f"{patch.function or patch.path}, line {patch.line}" + (f"; {ended.reason}" if ended.reason else "")
    return Repair(
        path=patch.path,
        line=patch.line,
        what=patch.template,
        why=why,
        rivals=len(ended.patches) - 1,
        agreement=ended.agreement,
    )


def is_progress(after: CheckResult, before: CheckResult) -> bool:
    """Fewer tests fail, and none that did not fail before."""
    if after.standing is Status.PASS:
        return True
    now = {finding.test or finding.key for finding in after.findings}
    then = {finding.test or finding.key for finding in before.findings}
    return now < then


def change_of(shop: Project, path: str, before: bytes, after: bytes) -> Change:
    """The edit of a file, whose mode stays."""
    seen = shop.tree.look(path)
    mode = seen.mode if seen else 0o644
    return Change(path, *(Node.file(shop.store.blobs.put(data), mode) for data in (before, after)))


def rivals_of(ground: RepairGround, dispute: Dispute) -> tuple[Alternative, ...]:
    """Every patch as a change set of its own, on top of what was mended before it, kept as an entry."""
    shop = ground.shop
    rivals = []
    patches = dispute.ended.patches
    for number, patch in enumerate(patches, 1):
        before = dispute.contents[patch.path]
        changes = ChangeSet.of([change_of(shop, patch.path, before, patch.applied(before))])
        entry = None
        if not ground.request.dry_run:
            entry = _kept_rival(shop, number, patch.template, changes)
        rivals.append(
            Alternative(
                number=number,
                entry=entry,
                path=patch.path,
                line=patch.line,
                what=patch.template,
                changes=changes,
                behaves_like_first=patch.group == patches[0].group,
            )
        )
    return tuple(rivals)


def kept_rivals(shop: Project, rivals: Sequence[Alternative], ground: ChangeSet) -> tuple[tuple[int, str], ...]:
    """Patches that disagree, kept over the ground that they were found on: each entry, and what it does where."""
    return tuple(
        (
            _kept_rival(shop, one.number, one.what, ground.then(one.changes)),
            f"{one.path}:{one.line}  {one.what}" + " (behaves like 1)" * (one.number > 1 and one.behaves_like_first),
        )
        for one in rivals
    )


def _kept_rival(shop: Project, number: int, what: str, changes: ChangeSet) -> int:
    return shop.keep(shop.new_entry(EntryKind.EDIT, f"fix, rival {number}: {what}"), changes)
