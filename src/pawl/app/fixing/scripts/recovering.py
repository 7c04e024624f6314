"""Repairs of scripts that need no search: the compiler's own code fixes, then the recovery map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pawl.app.fixing.report import Mended, Repair
from pawl.app.fixing.scripts.ground import ScriptGround, findings_of, is_script_test
from pawl.core.finding import Finding, Verdict
from pawl.repair.model import StageBegun
from pawl.verify.baseline import separated
from pawl.verify.code_fixes import code_fixes
from pawl.verify.recover import recover
from pawl.verify.recoveries.edit import Candidate
from pawl.verify.recoveries.symbols import symbols_of
from pawl.verify.recovery_map import Entry

MOST_ROUNDS = 12
MOST_CANDIDATES = 6
Said = tuple[tuple[Verdict, ...], Verdict]
"""What the compilers say, and what the suite says."""


@dataclass(slots=True)
class ScriptRecovering:
    """Goes on as long as the finding that an edit is for is gone and nothing new has come."""

    ground: ScriptGround
    entries: tuple[Entry, ...]
    repairs: list[Repair] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    given_up: set[tuple[str, ...]] = field(default_factory=set)

    def run(self, read: tuple[Verdict, ...], tests: Verdict) -> Said:
        before = len(self.repairs)
        read = self._by_compiler(read)
        if len(self.repairs) > before:
            tests = self.ground.run_tests()
        for _ in range(MOST_ROUNDS):
            better = self._round(read, tests)
            if better is None:
                break
            read, tests = better
        return read, tests

    def _by_compiler(self, read: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
        if not any(finding.code.startswith("TS") for finding in findings_of(read)):
            return read
        self.ground.listen(StageBegun(name="recover"))
        sources = self.ground.sources()
        answer = code_fixes(self.ground.subject, self.entries, self.ground.editable(list(sources)))
        if answer.skipped:
            self.ground.notes.append(f"the compiler's code fixes were not asked for: {answer.skipped}")
        if not answer.changed:
            return read
        before = {path: sources[path] for path in answer.changed}
        for path, text in answer.changed.items():
            self.ground.write_text(path, text)
        after = self.ground.read()
        new, _ = separated(findings_of(after), findings_of(read))
        if new or len(findings_of(after)) >= len(findings_of(read)):
            for path, text in before.items():
                self.ground.write_text(path, text)
            return read
        for fix in answer.fixes:
            repair = Repair(
                path=fix.path, line=fix.line, what=f"TS{fix.code}: {fix.fix}", why=fix.why, rivals=fix.rivals
            )
            self.repairs.append(repair)
            self.ground.listen(Mended(repair=repair, failing=len(findings_of(after))))
        return after

    def _round(self, read: tuple[Verdict, ...], tests: Verdict) -> Said | None:
        """Mends one finding; None when none can be."""
        sources = self.ground.sources()
        symbols = symbols_of({})
        for finding in findings_of((*read, tests)):
            if finding.key in self.given_up or self.ground.left <= 0:
                continue
            self.given_up.add(finding.key)
            for place in _places(finding):
                found = recover(place, sources, symbols, self.entries)
                self._advise(found)
                for candidate in self._allowed(found, list(sources)):
                    better = self._tried(candidate, sources, finding, (read, tests))
                    if better is not None:
                        self._note(candidate, place, better)
                        return better
        return None

    def _advise(self, found: Sequence[Candidate]) -> None:
        self.advice += [one.why for one in found if not one.edits and one.why not in self.advice]

    def _allowed(self, found: Sequence[Candidate], sources: list[str]) -> list[Candidate]:
        editable = set(self.ground.editable(sources))
        edits = [one for one in found if one.edits and all(edit.path in editable for edit in one.edits)]
        if edits:
            self.ground.listen(StageBegun(name="recover"))
        return edits[:MOST_CANDIDATES]

    def _tried(
        self,
        candidate: Candidate,
        sources: dict[str, str],
        finding: Finding,
        before: Said,
    ) -> Said | None:
        changed = candidate.applied(sources)
        for path, text in changed.items():
            self.ground.write_text(path, text)
        read, tests = before
        after = self.ground.read()
        new, _ = separated(findings_of(after), findings_of(read))
        gone = finding.test or len(findings_of(after)) < len(findings_of(read))
        if not new and gone:
            ran = self.ground.run_tests()
            if self._is_better(ran, tests, finding):
                return after, ran
        for path in changed:
            self.ground.write_text(path, sources[path])
        return None

    def _is_better(self, after: Verdict, before: Verdict, finding: Finding) -> bool:
        """No test fails anew, but for those of files that could not be run; what was aimed at is gone."""
        now = {one.test for one in after.findings if one.test}
        then = {one.test for one in before.findings if one.test}
        hidden = {test for test in then if " > " not in test}
        new = {test for test in now - then if test.split(" > ")[0] not in hidden}
        same = {one.test for one in after.findings if one.key == finding.key}
        return not new and (not finding.test or finding.test not in now or finding.test not in same)

    def _note(self, candidate: Candidate, finding: Finding, after: Said) -> None:
        path = candidate.edits[0].path
        line = finding.line if finding.path == path else 0
        repair = Repair(path=path, line=line, what=candidate.recovery, why=candidate.why)
        self.repairs.append(repair)
        self.ground.listen(Mended(repair=repair, failing=len(findings_of((*after[0], after[1])))))


def _places(finding: Finding) -> list[Finding]:
    """The finding itself, then where its stack leads in files that may be edited, innermost first."""
    places = [] if is_script_test(finding.path) else [finding]
    for frame in reversed(finding.frames):
        if not is_script_test(frame.path) and (frame.path, frame.line) != (finding.path, finding.line):
            places.append(replace(finding, path=frame.path, line=frame.line, column=frame.column))
    return places
