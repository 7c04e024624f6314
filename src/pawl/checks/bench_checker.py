"""The checks that a role asks for while it works, on its own bench."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from pawl.checks.lsp.verdicts import diagnosed, host, servers_for
from pawl.checks.project_facts import CHEAP, CheckKind, Folder
from pawl.checks.verifier import Verifier
from pawl.core.diagnostic import Check, CheckResult
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.git import CommandRunner

CHECKS: Mapping[Check, tuple[CheckKind, ...]] = {
    Check.BUILD: (CheckKind.SYNTAX, CheckKind.BUILD),
    Check.LINT: (CheckKind.LINT,),
    Check.TYPECHECK: (CheckKind.TYPES, CheckKind.DIAGNOSTICS),
    Check.ALL: CHEAP,
}
"""The kinds of checks that a word stands for."""


@dataclass(frozen=True, slots=True)
class BenchChecker:
    """The `check` tool, on the bench that a role works on."""

    verifier: Verifier
    files: Folder
    runner: CommandRunner
    changed: Callable[[], Iterable[str]]

    def check(self, what: Check, *, seconds: float) -> Sequence[CheckResult]:
        return self.verifier.check_bench(CHECKS[what], self.files, self.runner, self.changed(), seconds)

    def diagnose(self, paths: Sequence[str], *, seconds: float) -> Sequence[CheckResult]:
        subject = self.verifier.subject(self.files, self.runner, seconds)
        asked = [one for one in servers_for(self.files) if any(one.language(path) for path in paths)]
        return [diagnosed(subject, host(), one, paths, seconds) for one in asked]
