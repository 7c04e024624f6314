"""Repairs that need no search: a finding, the recovery map's candidates, and a run that shows whether it is gone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from pawl.app.fixing.ground import Ground, is_test
from pawl.app.fixing.report import Repair
from pawl.core.finding import Finding, Standing, Verdict
from pawl.repair.model import StageBegun
from pawl.verify.recover import recover
from pawl.verify.recoveries.edit import Candidate

MOST_ROUNDS = 12
MOST_CANDIDATES = 6


@dataclass(slots=True)
class Recovering:
    """Goes on as long as a candidate makes the finding it is for disappear and breaks nothing."""

    ground: Ground
    repairs: list[Repair] = field(default_factory=list)
    advice: list[str] = field(default_factory=list)
    """What a person has to do, such as installing a package."""
    given_up: set[tuple[str, ...]] = field(default_factory=set)

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
        for finding in verdict.findings:
            if finding.key in self.given_up or self.ground.left <= 0:
                continue
            for place in _places(finding):
                candidates = [one for one in recover(place, sources) if self._is_allowed(one)]
                if not candidates:
                    continue
                self.ground.listen(StageBegun(name="recover"))
                for candidate in candidates[:MOST_CANDIDATES]:
                    better = self._tried(candidate, sources, finding, verdict)
                    if better is not None:
                        self._note(candidate, place)
                        return better
            self.given_up.add(finding.key)
        return None

    def _is_allowed(self, candidate: Candidate) -> bool:
        """Tests are never edited; a candidate without edits is advice to a person."""
        if not candidate.edits:
            if candidate.why not in self.advice:
                self.advice.append(candidate.why)
            return False
        return not any(is_test(edit.path) for edit in candidate.edits)

    def _tried(
        self, candidate: Candidate, sources: dict[str, str], finding: Finding, verdict: Verdict
    ) -> Verdict | None:
        files = self.ground.bench.files
        changed = candidate.applied(sources)
        before = {path: files.read(path) for path in changed}
        for path, text in changed.items():
            files.write(path, text.encode("utf-8"))
        after = self.ground.run_tests()
        if _is_better(after, finding, verdict):
            return after
        for path, data in before.items():
            files.write(path, data)
        return None

    def _note(self, candidate: Candidate, finding: Finding) -> None:
        path = candidate.edits[0].path
        line = finding.line if finding.path == path else 0
        self.repairs.append(Repair(path=path, line=line, what=candidate.recovery, why=candidate.why))


def _places(finding: Finding) -> Iterator[Finding]:
    """The finding itself, then where its traceback leads in files that may be edited, innermost first."""
    if not is_test(finding.path):
        yield finding
    for frame in reversed(finding.frames):
        if not is_test(frame.path) and (frame.path, frame.line) != (finding.path, finding.line):
            yield Finding(
                tool=finding.tool,
                message=finding.message,
                path=frame.path,
                line=frame.line,
                column=frame.column,
                code=finding.code,
                test=finding.test,
                frames=finding.frames,
            )


def _is_better(after: Verdict, finding: Finding, before: Verdict) -> bool:
    """The finding is gone and nothing new appeared, except in files whose tests could not be seen before."""
    if after.standing is Standing.SKIPPED or any(one.key == finding.key for one in after.findings):
        return False
    hidden = {_file(one) for one in before.findings if not one.test or one.test == _file(one)}
    known = {(one.test or one.key) for one in before.findings}
    return all((one.test or one.key) in known or _file(one) in hidden or not one.test for one in after.findings)


def _file(finding: Finding) -> str:
    return finding.test.split("::")[0] if finding.test else finding.path
