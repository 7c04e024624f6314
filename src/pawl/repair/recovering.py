"""Repairs that need no search: a finding, the recovery map's candidates, and a run that shows whether it is gone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pawl.checks.lsp.verdicts import Host
from pawl.checks.project import dependencies
from pawl.core.diagnostic import CheckResult, Diagnostic, Status
from pawl.repair.model import (
    BaselineTaken,
    LinesSuspected,
    Mended,
    Repair,
    RepairEnded,
    RepairEvent,
    RepairStatus,
    StageBegun,
    SuspiciousLine,
)
from pawl.repair.quick_fixes import FixQuery, advised, imports_of
from pawl.repair.reaching import is_test
from pawl.repair.recoveries.edit import RecoveryCandidate
from pawl.repair.recoveries.symbols import Symbols, symbols_of
from pawl.repair.recovery_map import recover, undefined_name
from pawl.repair.session import GRACE_SECONDS, HANGS, RepairSession, is_uncollected
from pawl.workspace.environments import own_python

MOST_ROUNDS = 12
MOST_CANDIDATES = 6
MOST_QUESTIONS = 4
"""How often a language server is asked; each time it is started anew."""


@dataclass(slots=True)
class Recovering:
    """Goes on as long as a candidate makes the finding it is for disappear and breaks nothing."""

    ground: RepairSession
    repairs: list[Repair] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    """What a person has to do."""
    given_up: set[tuple[str, ...]] = field(default_factory=set)
    questions: int = 0

    def run(self, verdict: CheckResult) -> CheckResult:
        """The suite's verdict after everything that the map could mend."""
        for _ in range(MOST_ROUNDS):
            better = self._round(verdict)
            if better is None:
                return verdict
            verdict = better
            if verdict.standing is Status.PASS:
                return verdict
        return verdict

    def _round(self, verdict: CheckResult) -> CheckResult | None:
        """Mends one finding; None when none can be."""
        sources = self.ground.sources()
        symbols = symbols_of(sources)
        for finding in verdict.findings:
            if finding.key in self.given_up or self.ground.left <= 0 or not self.ground.aim.wants(finding):
                continue
            for place in _places(finding):
                for candidate in self.candidates(place, sources, symbols):
                    better = self._tried(candidate, sources, finding, verdict)
                    if better is not None:
                        self._note(candidate, place, better)
                        return better
            self.given_up.add(finding.key)
        return None

    def candidates(
        self, place: Diagnostic, sources: Mapping[str, str], symbols: Symbols, *, without_test: bool = False
    ) -> Sequence[RecoveryCandidate]:
        """What the map and a language server propose; `without_test` leaves out what only a test can decide."""
        entries = [entry for entry in self.ground.recoveries if entry.without_test or not without_test]
        found = recover(place, sources, symbols, entries, declared=dependencies(self.ground.bench.files))
        for one in found:
            if not one.edits and one.why not in self.advice:
                self.advice.append(one.why)
        candidates = [one for one in found if self._is_allowed(one)]
        name = undefined_name(place)
        if candidates or name:
            self.ground.listen(StageBegun(name="recover"))
        # One import that is known is tried at once; where there is none or a choice, a language server knows more.
        if name and place.path in sources and len(imports_of(candidates)) != 1:
            query = FixQuery(
                path=place.path, line=place.line, name=name, sources=sources, symbols=symbols, known=candidates
            )
            candidates = self._advised(query)
        return candidates[:MOST_CANDIDATES]

    def _advised(self, query: FixQuery) -> list[RecoveryCandidate]:
        if self.questions >= MOST_QUESTIONS:
            return list(query.known)
        self.questions += 1
        python, (_, package) = own_python()
        answer = advised(self.ground.subject, Host(python=python, package=package), query)
        if answer.skipped:
            self.questions = MOST_QUESTIONS
            self.ground.notes.append(f"imports were looked up without a language server: {answer.skipped}")
        return list(answer.candidates)

    def _is_allowed(self, candidate: RecoveryCandidate) -> bool:
        """Tests are never edited, and only what the user points at, if they do; without edits it is advice."""
        sources = self.ground.aim.sources
        return bool(candidate.edits) and not any(
            is_test(edit.path) or (sources and edit.path not in sources) for edit in candidate.edits
        )

    def _tried(
        self, candidate: RecoveryCandidate, sources: Mapping[str, str], finding: Diagnostic, verdict: CheckResult
    ) -> CheckResult | None:
        changed = candidate.applied(sources)
        before = {path: self.ground.bench.files.read(path) for path in changed}
        for path, text in changed.items():
            self.ground.write(path, text.encode("utf-8"))
        after = self.ground.run_tests()
        if _is_better(after, finding, verdict):
            return after
        for path, data in before.items():
            self.ground.write(path, data)
        return None

    def _note(self, candidate: RecoveryCandidate, finding: Diagnostic, verdict: CheckResult) -> None:
        path = candidate.edits[0].path
        line = finding.line if finding.path == path else 0
        repair = Repair(path=path, line=line, what=candidate.recovery, why=candidate.why)
        self.repairs.append(repair)
        self.ground.listen(Mended(repair=repair, failing=len(verdict.findings)))


def _places(finding: Diagnostic) -> Iterator[Diagnostic]:
    """The finding itself, then where its traceback leads in files that may be edited, innermost first."""
    if not is_test(finding.path):
        yield finding
    for frame in reversed(finding.frames):
        if not is_test(frame.path) and (frame.path, frame.line) != (finding.path, finding.line):
            yield dataclasses.replace(finding, path=frame.path, line=frame.line, column=frame.column)


def _is_better(after: CheckResult, finding: Diagnostic, before: CheckResult) -> bool:
    """The finding is gone and nothing new appeared, except in files whose tests could not be seen before."""
    if after.standing is Status.SKIPPED or any(one.key == finding.key for one in after.findings):
        return False
    strays = {one.code for one in after.findings if not one.test} - {one.code for one in before.findings}
    if HANGS in strays or (strays and not any(map(is_uncollected, after.findings))):
        return False
    hidden = {_file(one) for one in before.findings if not one.test or one.test == _file(one)}
    known = {(one.test or one.key) for one in before.findings}
    return all((one.test or one.key) in known or _file(one) in hidden or not one.test for one in after.findings)


def _file(finding: Diagnostic) -> str:
    return finding.test.split("::")[0] if finding.test else finding.path


@dataclass(slots=True)
class ReflexSearch:
    ground: RepairSession
    tried: int = 0
    cpu_seconds: float = 0.0
    suspicious: dict[tuple[str, int], SuspiciousLine] = field(default_factory=dict)
    unsteady: dict[str, str] = field(default_factory=dict)
    """Tests that pass or fail by chance or by their order, and which of the two."""

    def run(self, failing: Sequence[Diagnostic], seconds: float) -> RepairEnded:
        """One search for a patch that makes these tests pass."""
        ended: list[RepairEnded] = []

        def take(event: RepairEvent) -> None:
            self._notice(event)
            if isinstance(event, RepairEnded):
                ended.append(event)
            else:
                self.ground.listen(event)

        request = self.ground.request_for([finding.test for finding in failing], max(1.0, seconds))
        done = self.ground.engine.run(request, self.ground.limits(seconds + GRACE_SECONDS), take)
        if not ended:
            said = done.stderr.text.strip().splitlines()[-1:] or [f"it ended with code {done.code}"]
            return RepairEnded(status=RepairStatus.ENGINE_FAILED, seconds=done.seconds, error=said[0])
        if ended[0].status is RepairStatus.NOTHING_FAILS:
            # They failed a moment ago.
            tests = [finding.test for finding in failing]
            self.unsteady.update(dict.fromkeys(tests, "flaky"))
            self.ground.note_tests("flaky", tests)
        self.tried += ended[0].tried
        self.cpu_seconds += ended[0].cpu
        return ended[0]

    def _notice(self, event: RepairEvent) -> None:
        if isinstance(event, LinesSuspected):
            self.suspicious.update({(line.path, line.line): line for line in event.lines})
        if isinstance(event, BaselineTaken):
            for word, tests in (("flaky", event.flaky), ("order-dependent", event.ordered)):
                self.unsteady.update(dict.fromkeys(tests, word))
            for word, tests in (("flaky", event.flaky), ("order-dependent", event.ordered), ("hanging", event.hanging)):
                self.ground.note_tests(word, tests)
