"""The tests that are run where they are not all: which, why, and how much of the suite they are."""

from __future__ import annotations

import posixpath
from dataclasses import replace

from pawl.core.diagnostic import CheckResult, Status, TestCounts, TestOutcome
from pawl.core.lazy_dataclass import dataclass

_MINUTE = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TestChoice:
    """Files of tests, a part of the suite."""

    __test__ = False

    files: tuple[str, ...]
    changed: tuple[str, ...] = ()
    """The changed files, for runners that find the tests of a file themselves."""
    why: str = ""
    reaches: bool = True
    """Whether anything links one of them to the change."""
    tests: int = 0
    """Of the whole suite, as far as it is known or can be counted."""
    seconds: float = 0.0
    """Of the whole suite."""
    endless: bool = False
    """Whether it was cut off after these seconds."""

    def told(self, result: CheckResult) -> str:
        """How much of the suite ran, and how to run the rest."""
        ran = result.counts.total if result.counts is not None else 0
        of = f" of {self.tests:,}" if self.tests > ran else ""  # counted as text, they may be fewer than ran
        return f"{ran:,}{of} tests, {self.why}; {self.rest}"

    @property
    def rest(self) -> str:
        about = "more than" if self.endless else "about"
        time = f"{self.seconds / _MINUTE:.0f} min" if self.seconds >= 1.5 * _MINUTE else f"{self.seconds:.0f} s"
        return f"whole suite not run ({about} {time}): pawl verify --full"

    def inside(self, folder: str) -> TestChoice:
        """The part of a project in that folder, by its own paths."""
        files, changed = (
            tuple(path.removeprefix(f"{folder}/") for path in paths if path.startswith(f"{folder}/"))
            for paths in (self.files, self.changed)
        )
        return replace(self, files=files, changed=changed)

    def part_of(self, whole: CheckResult) -> CheckResult | None:
        """The result of these tests in a run of all; None where that does not tell them apart, and where the runner may
        find those of the changed files itself."""
        if not whole.ran or whole.incomplete or whole.part or not all(path.endswith(".py") for path in self.changed):
            return None
        ran = tuple(one for one in whole.ran if file_of(one.id) in self.files)
        findings, old = (
            tuple(one for one in several if not one.test or file_of(one.test) in self.files)
            for several in (whole.findings, whole.old)
        )
        outcomes = [one.outcome for one in ran]
        counts = TestCounts(
            passed=outcomes.count(TestOutcome.PASSED),
            failed=outcomes.count(TestOutcome.FAILED),
            skipped=outcomes.count(TestOutcome.SKIPPED),
            errors=len([one for one in findings if "::" not in one.test]),
        )
        standing = Status.FAIL if findings else Status.PASS
        part = replace(whole, standing=standing, findings=findings, old=old, ran=ran, counts=counts)
        return replace(part, part=self.told(part))


def file_of(test: str) -> str:
    """The file that a test's id names: `a/test_b.py::test_c` by itself, `a.test_b.Case.test_c` by its module."""
    path, colons, _ = test.partition("::")
    if colons or "/" in path or " > " in test:
        return path.partition(" > ")[0]
    names = path.split(".")
    stop = next((at for at, name in enumerate(names) if name[:1].isupper()), len(names) - 1)
    return f"{posixpath.join(*names[:stop])}.py" if stop > 0 else path
