"""The one decision on a change: verified, failed, unverified or nothing to prove, from what ran before and with it.

The checks count, the words of a model do not. Tests that were edited prove nothing, nor do tests that did not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pawl.core.diagnostic import CheckResult, Diagnostic, Status, TestCounts, Verdict

MOST_TOLD = 20
MOST_CHARACTERS = 6_000
"""Of what a model is told about a failed verification."""
_MESSAGE_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The results of the checks with and without a change, and what became of the tests themselves."""

    digest: str
    """Of the change set that was verified."""
    before: CheckResult
    """Of the tests, without the change."""
    verdicts: tuple[CheckResult, ...]
    weakened: tuple[str, ...] = ()
    shadowing: tuple[str, ...] = ()
    """Changes that take the place of what runs the tests: whatever these then say, it proves nothing."""
    out_of_scope: tuple[str, ...] = ()
    """Changes of files that the request does not let change."""
    text_only: bool = False
    """Only text that no check reads was changed."""

    @property
    def suites(self) -> tuple[CheckResult, ...]:
        """The results of every check that runs tests."""
        return tuple(one for one in self.verdicts if runs_tests(one.step))

    @property
    def tests(self) -> CheckResult | None:
        return next((one for one in self.verdicts if one.step == TESTS), None)


TESTS = "tests"
"""The name of the check that runs the workspace's own suite; others begin with it (`tests in web`)."""


def runs_tests(step: str) -> bool:
    return step.partition(" ")[0] == TESTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What the request wants of the checks, beyond that nothing gets worse."""

    all_tests: bool = False
    """Every test is to pass, also those that failed before."""
    tests: tuple[str, ...] = ()
    """Tests that are to pass, by name or id as the request has them: each means that test, not its file."""
    files: tuple[str, ...] = ()
    """Files of tests whose tests are all to pass."""
    left_out: tuple[str, ...] = ()
    """Tests that the request lets fail."""
    named: str = ""
    """The words of the request: a failing test whose title they hold is to pass."""
    fixes: bool = False
    """Something is to be fixed: what tests expect is right, and is not to be changed."""
    tests_may_change: bool = False
    tests_must_run: bool = False
    """The user named the command that runs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeVerdict:
    verdict: Verdict
    refused: tuple[str, ...] = ()
    """Why it failed."""
    unproved: tuple[str, ...] = ()
    """Why nothing proves it."""
    notes: tuple[str, ...] = ()
    """What the user should know all the same."""
    findings: tuple[Diagnostic, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        """It may be promoted without a person's word."""
        return self.verdict in (Verdict.VERIFIED, Verdict.NOTHING_TO_PROVE)


def decide(checked: Verification, wanted: Requirements) -> ChangeVerdict:
    """The verdict on the change."""
    refused: list[str] = [*checked.out_of_scope, *checked.shadowing]
    unproved: list[str] = []
    notes: list[str] = []
    findings: list[Diagnostic] = []
    for result in checked.verdicts:
        if result.standing is Status.FAIL:
            refused.append(f"{result.step}: {result.reason}")
            findings += result.findings
    for tests in checked.suites:
        left = to_pass(tests.old, wanted)
        if left and tests.standing is not Status.FAIL:
            refused.append(
                f"{tests.step}: {_amount(len(left), 'test')} that failed before {'fail' if left[1:] else 'fails'} still"
            )
            findings += left
        elif tests.old:
            notes.append(
                f"{_amount(len(tests.old), 'test')} failed before and {'fail' if tests.old[1:] else 'fails'} still"
            )
    fewer = [*_fewer(checked.before.counts, checked.tests.counts if checked.tests else None), *checked.weakened]
    (notes if wanted.tests_may_change else refused).extend(fewer)
    if not any(result.counts is not None and result.counts.passed for result in checked.suites):
        unproved.append(f"no test was run: {_why_none(checked.suites)}")
    return _decided(refused, unproved, notes, findings, checked)


def _decided(
    refused: Sequence[str],
    unproved: Sequence[str],
    notes: Sequence[str],
    findings: Sequence[Diagnostic],
    checked: Verification,
) -> ChangeVerdict:
    if refused:
        verdict = Verdict.FAILED
    elif checked.text_only:
        verdict = Verdict.NOTHING_TO_PROVE
    else:
        verdict = Verdict.UNVERIFIED if unproved else Verdict.VERIFIED
    return ChangeVerdict(
        verdict=verdict,
        refused=tuple(refused),
        unproved=tuple(unproved) if verdict is Verdict.UNVERIFIED else (),
        notes=tuple(notes),
        findings=tuple(findings),
    )


def _why_none(suites: Sequence[CheckResult]) -> str:
    return "; ".join(dict.fromkeys(one.reason for one in suites if one.reason)) or "there is none"


def told(judgement: ChangeVerdict) -> str:
    """What a model is told, so that it mends it: the reasons, then the findings, bounded and in whole lines."""
    lines = ["The checks refuse this work:", *(f"- {reason}" for reason in judgement.refused), ""]
    for finding in judgement.findings[:MOST_TOLD]:
        lines += _finding(finding)
    if len(judgement.findings) > MOST_TOLD:
        lines.append(f"[{len(judgement.findings) - MOST_TOLD} more findings]")
    kept: list[str] = []
    room = MOST_CHARACTERS
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            kept.append("[the rest is left out]")
            break
        kept.append(line)
    return "\n".join((*kept, "", "Mend the cause. Do not remove, skip or weaken tests."))


def failing(findings: Iterable[Diagnostic]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(finding.test for finding in findings if finding.test))


def to_pass(findings: Iterable[Diagnostic], wanted: Requirements) -> Sequence[Diagnostic]:
    """Those of failing tests that the request is about."""
    failed = [one for one in findings if one.test and not any(_is_meant(one.test, name) for name in wanted.left_out)]
    if wanted.all_tests:
        return failed
    return [one for one in failed if _is_named(one.test, wanted)]


_SEPARATORS = re.compile(r"::|\.py\b|[./#]|\s[>›]\s")
_TITLE = re.compile(r"\s[>›]\s|::")


def _is_named(test: str, wanted: Requirements) -> bool:
    """Whether a test is meant by its id, its name, its file or its title."""
    path = test.partition("::")[0].partition(" > ")[0]
    if any(_is_meant(test, name) for name in wanted.tests):
        return True
    if any(path == file or path.endswith(f"/{file}") for file in wanted.files):
        return True
    title = re.escape(_TITLE.split(test)[-1])
    # A title of one word is also a word of prose: it counts in quotes, or beside the word test.
    one_word = rf"[\"']{title}[\"']|\btests?\s+{title}\b|\b{title}\s+tests?\b"
    return re.search(rf"(?<!\w){title}(?!\w)" if " " in title else one_word, wanted.named) is not None


def _is_meant(test: str, name: str) -> bool:
    """`test_a`, `TestX::test_a` and `tests/test_x.py::test_a` are each a name of the test with the longest id."""
    whole = test if "[" in name else test.partition("[")[0]
    parts, said = ([part for part in _SEPARATORS.split(one) if part] for one in (whole, name))
    rest = iter(parts)
    in_order = bool(said) and all(part in rest for part in said)
    return in_order and (said[-1] == parts[-1] or said[-1][:1].isupper())


def _fewer(before: TestCounts | None, after: TestCounts | None) -> list[str]:
    if before is None or not before.total:
        return []
    if after is None or not after.total:
        return [f"tests: {before.total} before, none is run now"]
    found = []
    # Where a file cannot be loaded its tests are one error, and a test whose clean-up fails counts twice: the rest is
    # what certainly stood there. New errors are told as such.
    sure = before.total - before.errors
    if after.total < sure and after.errors <= before.errors:
        found.append(f"tests: {before.total} before, {after.total} now; {sure - after.total} are gone")
    if after.skipped > before.skipped:
        found.append(f"tests: {after.skipped} skipped, {before.skipped} before")
    return found


def _finding(finding: Diagnostic) -> list[str]:
    place = f"({finding.place})" if finding.test and finding.place else finding.place
    head = " ".join(part for part in (finding.test, place, finding.label) if part)
    lines = finding.message.strip().splitlines()[:_MESSAGE_LINES]
    return [f"{finding.tool}: {head}", *(f"    {line}" for line in lines)]


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
