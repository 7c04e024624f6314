"""The evidence for a change and whether it is enough: the checks count, the words of a model do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from pawl.agent.weakening import weakened
from pawl.checks.verifier import TESTS, Verifier
from pawl.core.change import EMPTY, BlobReader, Change, ChangeSet, Node, NodeKind
from pawl.core.diagnostic import CheckResult, Diagnostic, Status, TestCounts
from pawl.core.tiers import EscalationEnd

MOST_TOLD = 20
MOST_CHARACTERS = 6_000
"""Of what a model is told about a failed verification."""
_MESSAGE_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """One verification: the ladder's verdicts with and without the change, and what became of the tests themselves."""

    digest: str
    """Of the change set that was verified."""
    before: CheckResult
    """Of the tests, without the change."""
    verdicts: tuple[CheckResult, ...]
    weakened: tuple[str, ...] = ()
    shadowing: tuple[str, ...] = ()
    """Changes that take the place of what runs the tests: whatever these then say, it proves nothing."""

    @property
    def tests(self) -> CheckResult | None:
        return next((verdict for verdict in self.verdicts if verdict.step == TESTS), None)


def evidence_for(changes: ChangeSet, verifier: Verifier, before: CheckResult) -> Verification:
    """Verifies the change; `before` are the tests without it."""
    report, blobs = verifier.verify(changes, (before,)), verifier.shop.store.blobs
    return Verification(
        digest=report.digest,
        before=before,
        verdicts=report.verdicts,
        weakened=tuple(line for change in changes for line in _weakened(change, blobs)),
        shadowing=report.shadowing,
    )


def _weakened(change: Change, blobs: BlobReader) -> tuple[str, ...]:
    def text(node: Node | None) -> str | None:
        return None if node is None or node.blob is None else blobs.get(node.blob).decode("utf-8", "replace")

    if any(node is not None and node.kind is NodeKind.DIRECTORY for node in (change.before, change.after)):
        return ()
    return weakened(change.path, text(change.before), text(change.after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What the request wants of the checks, beyond that nothing gets worse."""

    all_tests: bool = False
    """Every test is to pass, also those that failed before."""
    named: str = ""
    """The request: a failing test that it names is to pass."""
    tests_may_change: bool = False
    tests_must_run: bool = False
    """The user named the command that runs them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeVerdict:
    refused: tuple[str, ...]
    """Why it is not accepted; empty when it is."""
    notes: tuple[str, ...] = ()
    """What the user should know all the same."""
    findings: tuple[Diagnostic, ...] = field(default=())

    @property
    def accepted(self) -> bool:
        return not self.refused


def judged(checked: Verification, wanted: Requirements) -> ChangeVerdict:
    """Whether the change may be delivered."""
    refused: list[str] = list(checked.shadowing)
    notes: list[str] = []
    findings: list[Diagnostic] = []
    for verdict in checked.verdicts:
        if verdict.standing is Status.FAIL:
            refused.append(f"{verdict.step}: {verdict.reason}")
            findings += verdict.findings
    tests = checked.tests
    if tests is not None:
        left = to_pass(tests.old, wanted)
        if left and tests.standing is not Status.FAIL:
            refused.append(
                f"tests: {_amount(len(left), 'test')} that failed before {'fail' if left[1:] else 'fails'} still"
            )
            findings += left
        elif tests.old:
            notes.append(
                f"{_amount(len(tests.old), 'test')} failed before and {'fail' if tests.old[1:] else 'fails'} still"
            )
    fewer = [*_fewer(checked.before.counts, tests.counts if tests else None), *checked.weakened]
    (notes if wanted.tests_may_change else refused).extend(fewer)
    if tests is None or tests.standing is Status.SKIPPED:
        unrun = f"no test was run: {tests.reason if tests else 'there is none'}"
        (refused if wanted.tests_must_run else notes).append(unrun)
    return ChangeVerdict(refused=tuple(refused), notes=tuple(notes), findings=tuple(findings))


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
    failed = [finding for finding in findings if finding.test]
    if wanted.all_tests:
        return failed
    return [finding for finding in failed if _is_named(finding, wanted.named)]


def _is_named(finding: Diagnostic, request: str) -> bool:
    """A test is meant by its id, its name, or its file."""
    path, _, name = finding.test.partition("::")
    short = name.rpartition("::")[2].partition("[")[0]
    words = [finding.test, short, path if "/" in path or "." in path else "", path.rpartition("/")[2]]
    return any(len(word) > 3 and word in request for word in words)


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
    place = ":".join(str(part) for part in (finding.path, finding.line) if part)
    head = " ".join(
        part
        for part in (finding.test, place if not finding.test else f"({place})" if place else "", finding.label)
        if part
    )
    lines = finding.message.strip().splitlines()[:_MESSAGE_LINES]
    return [f"{finding.tool}: {head}", *(f"    {line}" for line in lines)]


def _amount(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Climbed:
    """The end of a climb through the tiers."""

    why: EscalationEnd | None
    """None when there was nothing to climb for."""
    reason: str
    changes: ChangeSet = EMPTY
    """What the checks accepted; else the best that stands, which may be nothing."""
    checked: Verification | None = None
    """The verification of what was accepted."""
    notes: tuple[str, ...] = ()
    answer: str = ""

    @property
    def accepted(self) -> bool:
        return self.why is EscalationEnd.VERIFIED
