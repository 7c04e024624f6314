"""From a red TypeScript or JavaScript project to a verified change set, or to a clear word about why not."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from importlib import resources

from pawl.checks.climb import separated
from pawl.checks.steps import Subject, stopped
from pawl.code.languages import is_test
from pawl.core.diagnostic import CheckResult, Diagnostic
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_json, typed
from pawl.repair.model import (
    Agreement,
    FixOutcome,
    FixReport,
    FoundPatch,
    Repair,
    RepairEnded,
    RepairStatus,
    StageBegun,
    TextEdit,
)
from pawl.repair.recovery import (
    MOST_CANDIDATES,
    Recoverer,
    RecoveryEntry,
    as_long_as_better,
    places_of,
    recover,
    recoveries_for,
    repair_by,
)
from pawl.repair.script_ground import ScriptGround, findings_of, search
from pawl.repair.sources import RecoveryCandidate, symbols_of
from pawl.repair.strategy import Dispute, RepairStrategy, Told, picked, why_not

UNDECIDED = "they mean different things, and nothing tells which is meant"
Said = tuple[tuple[CheckResult, ...], CheckResult]
"""The compilers' verdicts, and the suite's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptRepair:
    """One way to mend a finding: the files with it."""

    repair: Repair
    texts: Mapping[str, str]
    is_choice: bool = False


@dataclass(slots=True)
class ScriptRecoverer(Recoverer[ScriptGround]):
    """Goes on as long as the finding that an edit is for is gone and nothing new has come."""

    entries: tuple[RecoveryEntry, ...] = ()
    dispute: Dispute | None = None
    """The first one that was met; the others would have other numbers."""
    picked: bool = False

    def run(self, read: tuple[CheckResult, ...], tests: CheckResult) -> Said:
        return as_long_as_better(as_long_as_better((read, tests), self._by_compiler), self._round)

    def _by_compiler(self, said: Said) -> Said | None:
        """The compiler's code fixes, where it is clear or decided which of them is meant."""
        if self.dispute is not None or not any(one.code.startswith("TS") for one in findings_of(said[0])):
            return None
        self.ground.listen(StageBegun(name="recover"))
        sources = self.ground.sources()
        answer = code_fixes(self.ground.subject, self.entries, self.ground.editable(list(sources)))
        if answer.skipped:
            self.ground.notes.append(f"the compiler's code fixes were not asked for: {answer.skipped}")
        mended = self._taken(answer, said[0])
        fixed = None if mended is said[0] else (mended, self.ground.run_tests())
        ways = [
            ScriptRepair(repair=_repair(one), texts=one.texts, is_choice=True)
            for one in answer.rivals
            if len(one.texts) == 1
        ]
        return self._best(ways, None, fixed or said) or fixed

    def _taken(self, answer: CodeFixes, read: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
        """The compilers' verdicts once the fixes stand; those of before where that is no better."""
        if not answer.changed:
            return read
        with self.ground.trial(answer.changed):
            after = self.ground.read()
        new, _ = separated(findings_of(after), findings_of(read))
        if new or len(findings_of(after)) >= len(findings_of(read)):
            return read
        self.ground.write_all(answer.changed)
        for fix in answer.repairs:
            self.note(_repair(fix), len(findings_of(after)))
        return after

    def _round(self, said: Said) -> Said | None:
        """Mends one finding; None when none can be."""
        if self.dispute is not None:
            return None
        read, tests = said
        sources = self.ground.sources()
        symbols = symbols_of({})
        for finding in self.waiting(findings_of((*read, tests))):
            self.given_up.add(finding.key)
            for place in places_of(finding):
                found = recover(place, sources, symbols, self.entries)
                self.advise(found)
                ways = [
                    ScriptRepair(repair=repair_by(one, place), texts=one.applied(sources), is_choice=one.is_choice)
                    for one in self._allowed(found, list(sources))
                ]
                better = self._best(ways, finding, said)
                if better is not None or self.dispute is not None:
                    return better
        return None

    def _best(self, ways: Sequence[ScriptRepair], finding: Diagnostic | None, before: Said) -> Said | None:
        """The first way that mends the finding stands; where others may be meant too, the one that the tests speak for.

        Where nothing decides between them and the user has not chosen, none does, and they are a dispute.
        """
        good: list[tuple[ScriptRepair, Said]] = []
        for way in ways:
            if good and not (way.is_choice and good[0][0].is_choice):
                continue
            better = self._tried(way, finding, before)
            if better is not None:
                good.append((way, better))
        if not good:
            return None
        fewest = min(len(said[1].findings) for _, said in good)
        best = [(way, said) for way, said in good if len(said[1].findings) == fewest]
        chosen = self._chosen([way for way, _ in best])
        if chosen is None:
            return None
        way, said = best[chosen]
        self.ground.write_all(way.texts)
        self.note(replace(way.repair, rivals=len(best) - 1), len(findings_of((*said[0], said[1]))))
        return said

    def _chosen(self, ways: list[ScriptRepair]) -> int | None:
        """Which of the ways to take; None where only the user can say."""
        request = self.ground.request
        if len(ways) == 1 or request.accept_first:
            return 0
        ended = _rivals(ways, self.ground.bench.files.read)
        if request.pick is None or self.picked:
            self.dispute = Dispute.on(self.ground, ended)
            return None
        self.picked = True
        return ended.patches.index(picked(ended, request.pick))

    def _allowed(self, found: Sequence[RecoveryCandidate], sources: list[str]) -> list[RecoveryCandidate]:
        editable = set(self.ground.editable(sources))
        edits = [one for one in found if one.edits and all(edit.path in editable for edit in one.edits)]
        if edits:
            self.ground.listen(StageBegun(name="recover"))
        return edits[:MOST_CANDIDATES]

    def _tried(self, way: ScriptRepair, finding: Diagnostic | None, before: Said) -> Said | None:
        """The verdicts with it, if they are better; it is taken away again."""
        read, tests = before
        with self.ground.trial(way.texts):
            after = self.ground.read()
            new, _ = separated(findings_of(after), findings_of(read))
            gone = (finding is not None and finding.test) or len(findings_of(after)) < len(findings_of(read))
            if new or not gone:
                return None
            ran = self.ground.run_tests()
            return (after, ran) if self._is_better(ran, tests, finding) else None

    def _is_better(self, after: CheckResult, before: CheckResult, finding: Diagnostic | None) -> bool:
        """No test fails anew, but for those of files that could not be run; what was aimed at is gone."""
        now = {one.test for one in after.findings if one.test}
        then = {one.test for one in before.findings if one.test}
        hidden = {test for test in then if " > " not in test}
        new = {test for test in now - then if test.split(" > ")[0] not in hidden}
        if finding is None or not finding.test:
            return not new
        same = {one.test for one in after.findings if one.key == finding.key}
        return not new and (finding.test not in now or finding.test not in same)


def _repair(fix: CodeFix) -> Repair:
    return Repair(path=fix.path, line=fix.line, what=f"TS{fix.code}: {fix.fix}", why=fix.why)


def _rivals(ways: Sequence[ScriptRepair], read: Callable[[str], bytes]) -> RepairEnded:
    """The ways as patches to choose from; each changes one file."""
    patches = []
    for number, way in enumerate(ways):
        ((path, text),) = way.texts.items()
        patches.append(
            FoundPatch(
                path=path,
                edits=(TextEdit(0, len(read(path)), text),),
                template=f"{way.repair.what}: {way.repair.why}",
                function="",
                line=way.repair.line,
                cost=0.0,
                group=number,
            )
        )
    return RepairEnded(
        status=RepairStatus.REPAIRED,
        seconds=0.0,
        patches=tuple(patches),
        agreement=Agreement.DISPUTED,
        reason=UNDECIDED,
    )


@dataclass(slots=True)
class ScriptFixer(RepairStrategy[ScriptGround]):
    first_read: tuple[CheckResult, ...] = ()
    """The compilers' verdicts before anything was changed."""
    read: tuple[CheckResult, ...] = ()

    def begin(self) -> FixReport | None:
        self.first_read, self.first = self.ground.first_runs()
        self.read, self.verdict = self.first_read, self.first
        if self.found():
            return None
        return FixReport(outcome=FixOutcome.NOTHING_FAILS, before=self.first.counts, after=self.first.counts)

    def found(self) -> tuple[Diagnostic, ...]:
        return tuple(findings_of((*self.read, self.verdict)))

    def mend(self) -> Told:
        recovering = ScriptRecoverer(self.ground, entries=recoveries_for(self.ground, "javascript"))
        self.read, self.verdict = recovering.run(self.first_read, self.first)
        self.repairs += recovering.repairs
        self.dispute, self.picked = recovering.dispute, recovering.picked
        ended = self.searched() if self.dispute is None else None
        if not findings_of((*self.read, self.verdict)):
            return "", "; ".join(recovering.advice)
        why = why_not(ended) if ended is not None else "no known recovery fixes what is left"
        return why, "; ".join(recovering.advice) or "a model can work on it: pawl do 'fix it'"

    def mendable(self) -> list[Diagnostic]:
        """All failing tests, or those of the test files that are named."""
        asked = tuple(one for one in self.ground.request.targets if is_test(one))
        failing = [finding for finding in self.verdict.findings if finding.test]
        return [one for one in failing if not asked or one.test.split(" > ")[0].startswith(asked)]

    def search_part(self, failing: list[Diagnostic]) -> tuple[RepairEnded, CheckResult | None]:
        ended = self.counted(search(self.ground, failing))
        return ended, self.take(ended)

    def verify(self) -> tuple[CheckResult, ...]:
        return self.ground.verify(self.bench, (*self.first_read, self.first))

    def left(self, verdicts: Sequence[CheckResult]) -> tuple[Diagnostic, ...]:
        return tuple(one for verdict in verdicts for one in (*verdict.findings, *verdict.old))


SECONDS = 60.0
MOST = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFix:
    path: str
    line: int
    code: int
    fix: str
    why: str
    texts: Mapping[str, str] = field(default_factory=dict)
    """Of a rival: the files with it, by path."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFixes:
    """Mended in memory: the new texts by path, and why; or why nothing could be asked."""

    repairs: tuple[CodeFix, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    rivals: tuple[CodeFix, ...] = ()
    """Ways to mend one more diagnostic that mean different things; each stands on what was changed."""
    skipped: str = ""


@functools.cache
def _script() -> str:
    return (resources.files("pawl.repair") / "code_fixes.cjs").read_text(encoding="utf-8")


def code_fixes(subject: Subject, entries: Iterable[RecoveryEntry], editable: Sequence[str]) -> CodeFixes:
    """Each fix makes its diagnostic go away and brings nothing new, in the files that it touches."""
    rules = [
        # Named groups are written otherwise there.
        {"patterns": [one.pattern.replace("(?P<", "(?<").replace("(?i)", "") for one in entry.patterns]}
        | {"fixes": entry.fixes}
        for entry in entries
        if entry.fixes
    ]
    question = {"rules": rules, "editable": list(editable), "seconds": SECONDS, "most": MOST}
    limits = dataclasses.replace(subject.limits, seconds=SECONDS * 2)
    completed = dataclasses.replace(subject, limits=limits).run(("node", "-e", _script(), "--", json.dumps(question)))
    if completed is None:
        return CodeFixes(skipped="node is not installed")
    try:
        answer = read_json(completed.stdout.text.strip().splitlines()[-1])
    except (ValueError, IndexError):
        said = completed.stderr.text.strip().splitlines()[-1:] or ["it printed nothing"]
        return CodeFixes(skipped=stopped(completed) or said[0])
    return typed(CodeFixes, answer)
