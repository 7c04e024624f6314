"""Repairs that need no search: a finding, the recovery map's candidates, and a run that shows whether it is gone."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pawl.app.environments import own_python
from pawl.app.fixing.ground import HANGS, Ground, is_uncollected
from pawl.app.fixing.report import Mended, Repair
from pawl.app.fixing.targets import is_test
from pawl.core.finding import Finding, Standing, Verdict
from pawl.repair.model import StageBegun
from pawl.verify.lsp.asking import Query, advised, imports_of
from pawl.verify.lsp.host import Host
from pawl.verify.project import dependencies
from pawl.verify.recover import recover, undefined_name
from pawl.verify.recoveries.edit import Candidate
from pawl.verify.recoveries.symbols import Symbols, symbols_of

MOST_ROUNDS = 12
MOST_CANDIDATES = 6
MOST_QUESTIONS = 4
"""How often a language server is asked; each time it is started anew."""


@dataclass(slots=True)
class Recovering:
    """Goes on as long as a candidate makes the finding it is for disappear and breaks nothing."""

    ground: Ground
    repairs: list[Repair] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    """What a person has to do."""
    given_up: set[tuple[str, ...]] = field(default_factory=set)
    questions: int = 0

    def run(self, verdict: Verdict) -> Verdict:
        """The suite's verdict after everything that the map could mend."""
        for _ in range(MOST_ROUNDS):
            better = self._round(verdict)
            if better is None:
                return verdict
            verdict = better
            if verdict.standing is Standing.PASS:
                return verdict
        return verdict

    def _round(self, verdict: Verdict) -> Verdict | None:
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
        self, place: Finding, sources: Mapping[str, str], symbols: Symbols, *, without_test: bool = False
    ) -> Sequence[Candidate]:
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
            query = Query(
                path=place.path, line=place.line, name=name, sources=sources, symbols=symbols, known=candidates
            )
            candidates = self._advised(query)
        return candidates[:MOST_CANDIDATES]

    def _advised(self, query: Query) -> list[Candidate]:
        if self.questions >= MOST_QUESTIONS:
            return list(query.known)
        self.questions += 1
        python, (_, package) = own_python()
        answer = advised(self.ground.subject, Host(python=python, package=package), query)
        if answer.skipped:
            self.questions = MOST_QUESTIONS
            self.ground.notes.append(f"imports were looked up without a language server: {answer.skipped}")
        return list(answer.candidates)

    def _is_allowed(self, candidate: Candidate) -> bool:
        """Tests are never edited, and only what the user points at, if they do; without edits it is advice."""
        sources = self.ground.aim.sources
        return bool(candidate.edits) and not any(
            is_test(edit.path) or (sources and edit.path not in sources) for edit in candidate.edits
        )

    def _tried(
        self, candidate: Candidate, sources: Mapping[str, str], finding: Finding, verdict: Verdict
    ) -> Verdict | None:
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

    def _note(self, candidate: Candidate, finding: Finding, verdict: Verdict) -> None:
        path = candidate.edits[0].path
        line = finding.line if finding.path == path else 0
        repair = Repair(path=path, line=line, what=candidate.recovery, why=candidate.why)
        self.repairs.append(repair)
        self.ground.listen(Mended(repair=repair, failing=len(verdict.findings)))


def _places(finding: Finding) -> Iterator[Finding]:
    """The finding itself, then where its traceback leads in files that may be edited, innermost first."""
    if not is_test(finding.path):
        yield finding
    for frame in reversed(finding.frames):
        if not is_test(frame.path) and (frame.path, frame.line) != (finding.path, finding.line):
            yield dataclasses.replace(finding, path=frame.path, line=frame.line, column=frame.column)


def _is_better(after: Verdict, finding: Finding, before: Verdict) -> bool:
    """The finding is gone and nothing new appeared, except in files whose tests could not be seen before."""
    if after.standing is Standing.SKIPPED or any(one.key == finding.key for one in after.findings):
        return False
    strays = {one.code for one in after.findings if not one.test} - {one.code for one in before.findings}
    if HANGS in strays or (strays and not any(map(is_uncollected, after.findings))):
        return False
    hidden = {_file(one) for one in before.findings if not one.test or one.test == _file(one)}
    known = {(one.test or one.key) for one in before.findings}
    return all((one.test or one.key) in known or _file(one) in hidden or not one.test for one in after.findings)


def _file(finding: Finding) -> str:
    return finding.test.split("::")[0] if finding.test else finding.path
