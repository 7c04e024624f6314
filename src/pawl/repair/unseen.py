"""Repairs of what no test sees: sources that do not compile, and names and imports that the type checker misses."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field

from pawl.checks.project import CheckKind
from pawl.checks.verifier import separated
from pawl.core.diagnostic import Diagnostic, Status
from pawl.repair.model import Mended, Repair
from pawl.repair.reaching import is_test
from pawl.repair.recoveries.edit import RecoveryCandidate
from pawl.repair.recoveries.symbols import symbols_of
from pawl.repair.recovering import MOST_ROUNDS, Recovering
from pawl.repair.session import RepairSession

Found = Mapping[CheckKind, tuple[Diagnostic, ...]]


@dataclass(slots=True)
class UnseenRepair:
    """Takes an edit only where it is the one that makes the finding go away, since no test speaks for it."""

    ground: RepairSession
    repairs: list[Repair] = field(default_factory=list)
    mended: list[Diagnostic] = field(default_factory=list)
    unmended: list[Diagnostic] = field(default_factory=list)
    """The errors of sources that do not compile."""
    map: Recovering = field(init=False)

    def __post_init__(self) -> None:
        self.map = Recovering(self.ground)

    def run(self) -> None:
        found = self._read()
        for _ in range(MOST_ROUNDS):
            better = self._round(found)
            if better is None:
                break
            found = better
        self.unmended = [one for one in found[CheckKind.SYNTAX] if self._is_editable(one.path)]

    def _read(self) -> Found:
        """What reading the sources finds, first whether they compile."""
        verifier, bench = self.ground.verifier, self.ground.bench
        return {
            kind: tuple(one for result in verifier.check_bench((kind,), bench.files, bench) for one in result.findings)
            for kind in (CheckKind.SYNTAX, CheckKind.TYPES)
        }

    def _round(self, found: Found) -> Found | None:
        """Mends one finding; None when none can be."""
        sources = self.ground.sources()
        for kind, findings in found.items():
            for finding in findings:
                if finding.key in self.map.given_up or self.ground.left <= 0 or not self._is_editable(finding.path):
                    continue
                self.map.given_up.add(finding.key)
                better = self._mend(kind, finding, sources, found)
                if better is not None:
                    return better
        return None

    def _mend(self, kind: CheckKind, finding: Diagnostic, sources: Mapping[str, str], found: Found) -> Found | None:
        symbols = symbols_of(sources)
        candidates = self.map.candidates(finding, sources, symbols, without_test=kind is not CheckKind.SYNTAX)
        good: dict[str, tuple[RecoveryCandidate, Found]] = {}
        for candidate in candidates:
            after = self._tried(candidate, kind, finding, found)
            if after is not None:
                good.setdefault(_meaning(candidate.applied(sources)), (candidate, after))
        if len(good) != 1:
            if good:
                ways = "; ".join(candidate.why for candidate, _ in good.values())
                place = f"{finding.path}:{finding.line}"
                self.ground.notes.append(f"{place} could be mended in {len(good)} ways, and no test decides: {ways}")
            return None
        ((candidate, after),) = good.values()
        self._write(candidate.applied(sources))
        repair = Repair(path=finding.path, line=finding.line, what=candidate.recovery, why=candidate.why)
        self.repairs.append(repair)
        self.mended.append(finding)
        self.ground.listen(Mended(repair=repair, failing=0))
        return after

    def _is_editable(self, path: str) -> bool:
        """Tests are never edited, and only what the user points at, if they do."""
        named = self.ground.aim.sources
        return path.endswith((".py", ".pyi")) and not is_test(path) and (not named or path in named)

    def _tried(self, candidate: RecoveryCandidate, kind: CheckKind, finding: Diagnostic, before: Found) -> Found | None:
        """What is found with it, if that is better; it is taken away again."""
        sources = self.ground.sources()
        changed = candidate.applied(sources)
        self._write(changed)
        try:
            after = self._read()
            # What a file that does not compile hides could not be seen before.
            hidden = changed if kind is CheckKind.SYNTAX else ()
            every = [one for findings in after.values() for one in findings]
            new, _ = separated(every, [one for findings in before.values() for one in findings])
            if any(one.path not in hidden for one in new) or len(after[kind]) >= len(before[kind]):
                return None
            if any(one.key == finding.key for one in new) or self.ground.run_tests().standing is not Status.PASS:
                return None
            return after
        finally:
            self._write({path: sources[path] for path in changed})

    def _write(self, texts: Mapping[str, str]) -> None:
        for path, text in texts.items():
            self.ground.write(path, text.encode("utf-8"))


def _meaning(texts: Mapping[str, str]) -> str:
    """The same for files that differ in layout only."""
    return "\n".join(f"{path} {ast.dump(ast.parse(text))}" for path, text in sorted(texts.items()))
