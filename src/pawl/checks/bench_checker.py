"""The checks that a role asks for while it works, on its own bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pawl.checks.lsp.verdicts import diagnosed, host, servers_for
from pawl.checks.project_facts import CHEAP, CheckKind, Folder
from pawl.checks.steps import Tests, for_tests, skipped
from pawl.checks.verdict import TESTS
from pawl.checks.verifier import Verifier
from pawl.core.change import ChangeSet
from pawl.core.diagnostic import INCOMPLETE, Check, CheckResult
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.git import CommandRunner

CHECKS: Mapping[Check, tuple[CheckKind, ...]] = {
    Check.BUILD: (CheckKind.SYNTAX, CheckKind.BUILD),
    Check.LINT: (CheckKind.LINT,),
    Check.TYPECHECK: (CheckKind.TYPES, CheckKind.DIAGNOSTICS),
    Check.TESTS: (CheckKind.TESTS,),
    Check.ALL: CHEAP,
}
"""The kinds of checks that a word stands for."""
EVERY = "."
"""In the place of a test: all that the project has."""
CUT_SHORT = ("none that ran failed", "none that ran failed; name those that matter in `tests`")


@dataclass(frozen=True, slots=True)
class BenchChecker:
    """The `check` tool, on the bench that a role works on."""

    verifier: Verifier
    files: Folder
    runner: CommandRunner
    work: Callable[[], ChangeSet]
    """The changes of the bench."""
    before: Callable[[], CheckResult | None]
    """The tests without them, as far as they are known."""

    def check(self, what: Check, *, seconds: float, tests: Sequence[str] = ()) -> Sequence[CheckResult]:
        """`tests` are those to run, `.` all; without any, those that the changes reach."""
        work = self.work()
        if what is not Check.TESTS and not tests:
            return self.verifier.check_bench(CHECKS[what], self.files, self.runner, sorted(work.paths), seconds)
        verifier = replace(self.verifier, choice=None) if tests else self.verifier.choosing(work)
        whole, named = verifier.subject(self.files, self.runner, seconds), [one for one in tests if one != EVERY]
        subject = for_tests(whole, named) if named else whole
        if subject is None:
            return (skipped(TESTS, "they cannot be run by name here; use run_command"),)
        result = Tests().run(subject)
        if tests and not result.incomplete and (counts := result.counts) and counts.total == counts.skipped:
            # A runner takes a name that fits nothing for a wish to skip the rest.
            return (skipped(TESTS, f"none of them ran ({counts}): name files, or ids as in a report"),)
        return (self._told(result, every=not named),)

    def _told(self, result: CheckResult, *, every: bool) -> CheckResult:
        """The result with what is older than the work apart: a test that fails as it did, with the same words."""
        before = self.before()
        known = {} if before is None else {one.test: one.first_line for one in (*before.findings, *before.old)}
        failed = [one for one in result.findings if one.test]
        old = tuple(one for one in failed if known.get(one.test) == one.first_line)
        count = sum(one.test in known for one in failed)
        unknown = 0 if before is not None and _is_whole(before) else len(failed) - count
        said = (
            result.reason,
            f"{count} of {len(failed)} failed before any change" if unknown < len(failed) else "",
            f"it is not known whether {unknown} of them failed before" if unknown else "",
            CUT_SHORT[every] if result.incomplete and not failed else "",
        )
        new = tuple(one for one in result.findings if one not in old and one.code != INCOMPLETE)
        return replace(result, findings=new, old=(*result.old, *old), reason="; ".join(filter(None, said)))

    def diagnose(self, paths: Sequence[str], *, seconds: float) -> Sequence[CheckResult]:
        subject = self.verifier.subject(self.files, self.runner, seconds)
        asked = [one for one in servers_for(self.files) if any(one.language(path) for path in paths)]
        return [diagnosed(subject, host(), one, paths, seconds) for one in asked]


def _is_whole(before: CheckResult) -> bool:
    """Whether every test that failed before any change is known."""
    counts, told = before.counts, len(before.findings) + len(before.old)
    return counts is not None and not (before.part or before.incomplete) and counts.failed + counts.errors <= told
