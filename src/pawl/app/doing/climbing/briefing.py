"""What a fresh context is told: prior attempts first, the objective, what fails, and the files that matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pawl.core.finding import Finding, Verdict
from pawl.core.tiers import Climb
from pawl.workflow.climbing.summaries import bounded, first_lines, prior_attempts

MOST_FINDINGS = 8
MOST_MESSAGE_LINES = 14
MOST_CHARACTERS = 6_000


def brief(climb: Climb, objective: str, before: Verdict, *, target: str = "", pack: str = "") -> str:
    """The words with which a role begins an attempt."""
    parts = [
        prior_attempts(climb),
        objective.strip(),
        f"The change belongs in {target}." if target else "",
        failing_text(findings_of(before)),
        pack,
        "The machine-run checks decide; words do not count. Do not remove, skip or weaken tests.",
    ]
    return "\n\n".join(part for part in parts if part)


def failing_text(findings: Sequence[Finding]) -> str:
    """The failing tests with what they said, as far as there is room."""
    if not findings:
        return ""
    lines = ["Failing now:"]
    for finding in findings[:MOST_FINDINGS]:
        place = ":".join(str(part) for part in (finding.path, finding.line) if part)
        lines.append(" ".join(part for part in (f"- {finding.test or place}", finding.label) if part))
        lines += [f"    {line}" for line in finding.message.strip().splitlines()[:MOST_MESSAGE_LINES]]
    if len(findings) > MOST_FINDINGS:
        lines.append(f"- and {len(findings) - MOST_FINDINGS} more")
    return bounded(lines, MOST_CHARACTERS)


def findings_of(verdict: Verdict | None) -> tuple[Finding, ...]:
    """What fails, whether it failed before or not."""
    return () if verdict is None else (*verdict.findings, *verdict.old)


def messages_of(findings: Iterable[Finding], most: int = 20) -> tuple[str, ...]:
    """One line for each finding."""
    lines = []
    for finding in findings:
        place = ":".join(str(part) for part in (finding.path, finding.line) if part)
        said = next((line.strip() for line in finding.message.splitlines() if line.strip()), "")
        head = " ".join(part for part in (finding.test or place, finding.label) if part)
        lines.append(f"{head}: {said}" if said else head)
    return first_lines(lines, most)
