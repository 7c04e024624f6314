"""`check`: the project's own build, lint and type check, with what they find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pawl.core.finding import Check, Finding, Standing, Verdict
from pawl.core.ports import Checker
from pawl.tools.limits import ToolLimits
from pawl.tools.page import Page
from pawl.tools.tool import Effect, Tool

_MESSAGE_LINES = 8
_MESSAGE_CHARACTERS = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOf:
    what: Check = Check.ALL


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    verdicts: tuple[Verdict, ...]
    findings: int
    """The most to show of each check."""
    none: str = "[the project has no such check]"

    @property
    def passed(self) -> bool:
        """Nothing failed, and something passed."""
        standings = {verdict.standing for verdict in self.verdicts}
        return Standing.FAIL not in standings and Standing.PASS in standings

    @property
    def text(self) -> str:
        lines = [line for verdict in self.verdicts for line in _verdict(verdict, self.findings)]
        return "\n".join(lines) or self.none


def check(checker: Checker, limits: ToolLimits, page: Page) -> Tool[CheckOf]:
    def run(given: CheckOf) -> Checked:
        verdicts = checker.check(given.what, seconds=limits.check_seconds)
        return Checked(verdicts=tuple(verdicts), findings=limits.findings)

    return Tool(name="check", page=page, input=CheckOf, handler=run, effect=Effect.RUNS)


def _verdict(verdict: Verdict, most: int) -> Iterator[str]:
    took = f" ({verdict.seconds:.1f} s)" if verdict.standing is not Standing.SKIPPED else ""
    yield f"{verdict.step}: {verdict.standing}{took}" + (f": {verdict.reason}" if verdict.reason else "")
    for finding in verdict.findings[:most]:
        yield _finding(finding)
    if len(verdict.findings) > most:
        yield f"  [{len(verdict.findings) - most} more findings; mend these first]"
    if verdict.old:
        yield f"  [{len(verdict.old)} findings of before the change left out]"


def _finding(finding: Finding) -> str:
    place = ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part)
    head = " ".join(part for part in (f"{place}:" if place else "", finding.severity, finding.label) if part)
    first, *rest = _useful(finding.message)
    return "\n".join([f"  {head}: {first}", *(f"    {line}" for line in rest)])


def _useful(message: str) -> list[str]:
    """The start of a long message, by lines and by characters."""
    lines = [line.rstrip() for line in message[:_MESSAGE_CHARACTERS].splitlines()] or [""]
    if len(lines) > _MESSAGE_LINES or len(message) > _MESSAGE_CHARACTERS:
        return [*lines[:_MESSAGE_LINES], "[…]"]
    return lines
