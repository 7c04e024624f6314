"""What a verification of a workspace found, and which of its findings are old."""

from __future__ import annotations

from enum import StrEnum

from pawl.checks.steps import skipped
from pawl.checks.verdict import TESTS, ChangeVerdict, Requirements, Verification, decide
from pawl.core.diagnostic import CheckResult
from pawl.core.lazy_dataclass import dataclass


class BaselinePolicy(StrEnum):
    """Which findings are old."""

    MEASURED = "measured"
    """Those that the workspace has without the change; looked for where a check fails."""
    STORED = "stored"
    """Those that the user has set as the baseline."""
    SET = "set"
    """All of them: they become the baseline."""
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyReport:
    digest: str
    """Of the change set; that of the empty one for the workspace as it stands."""
    verdicts: tuple[CheckResult, ...]
    """A result for each check, skipped ones with the reason."""
    seconds: float
    kept: tuple[str, ...] = ()
    """Checks whose result came from the cache."""
    has_baseline: bool = False
    shadowing: tuple[str, ...] = ()
    """Changes that take the place of what runs the tests: whatever these then say, it proves nothing."""
    data: frozenset[str] = frozenset()
    """Changed files of data that belong to the tests."""
    answers: tuple[str, ...] = ()
    """Answers that the change writes down for inputs of the tests."""
    notes: tuple[str, ...] = ()
    """Notes on packages that the workspace lacks, and on files hidden from the checks."""
    asked: tuple[str, ...] = ()
    """Checks that run a command of the user's own."""

    @property
    def judgement(self) -> ChangeVerdict:
        """The word on the workspace as it stands."""
        before = skipped(TESTS, "there is no earlier run to compare with")
        return decide(
            Verification(
                digest=self.digest,
                before=before,
                verdicts=self.verdicts,
                shadowing=self.shadowing,
                asked=self.asked,
            ),
            Requirements(),
        )
