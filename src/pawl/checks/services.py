"""Services that tests need: starting those that the settings name, and telling tests that lack one from failed ones."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib import resources
from typing import Annotated

from pawl.core.diagnostic import CheckResult, Diagnostic, Status, TestOutcome
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Above, data_table, written

NOT_SERVED = 97
"""The exit code of a command whose service did not become ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TestService:
    """A service of the user's settings; its commands are those of a shell, in the network of the tests."""

    __test__ = False

    name: str
    start: str
    """Runs as long as the service does, or leaves it running."""
    ready: str = "true"
    """Succeeds when it serves."""
    stop: str = "true"
    seconds: Annotated[float, Above(0)] = 30.0
    """How long it may take to become ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _NeededService:
    name: str
    signs: tuple[re.Pattern[str], ...]


def served(services: Sequence[TestService], argv: Sequence[str]) -> tuple[str, ...]:
    """The same command with these services around it."""
    if not services:
        return tuple(argv)
    script = (resources.files("pawl.checks") / "inside" / "services.sh").read_text(encoding="utf-8")
    seconds = str(max(1, int(max(one.seconds for one in services))))
    words = [word for one in services for word in (one.start, one.ready, one.stop)]
    return ("/bin/sh", "-c", script, "services", seconds, str(len(services)), *words, *argv)


def not_served(services: Sequence[TestService], output: str) -> str:
    """Says that a command was not run, and the last words of the service that did not become ready."""
    words = next((line.partition(_SAID)[2].strip() for line in output.splitlines() if line.startswith(_SAID)), "")
    names = ", ".join(one.name for one in services)
    return f"not run: needs {names}, which did not become ready" + (f": {words}" if words else "")


_SAID = "pawl: no service:"


@functools.cache
def _needed() -> tuple[_NeededService, ...]:
    data = data_table("pawl.checks", "services.toml")
    return tuple(written(_NeededService, entry) for entry in data["service"])


def needs(finding: Diagnostic) -> str:
    """The service that a failed test lacked; empty where it failed otherwise."""
    found = (one.name for one in _needed() for sign in one.signs if sign.search(finding.message))
    return next(found, "") if finding.test else ""


def without_services(result: CheckResult) -> CheckResult:
    """The result with tests that lack a service told as not run."""
    lacking = {finding.test: name for finding in result.findings if (name := needs(finding))}
    if not lacking or result.counts is None:
        return result
    counts = replace(
        result.counts,
        failed=max(0, result.counts.failed - len(lacking)),
        skipped=result.counts.skipped + len(lacking),
    )
    ran = tuple(replace(one, outcome=TestOutcome.SKIPPED) if one.id in lacking else one for one in result.ran)
    findings = tuple(one for one in result.findings if one.test not in lacking)
    said = f"{len(lacking)} not run: needs {', '.join(_each(lacking.values()))}"
    standing = result.standing
    if not findings and not result.incomplete:
        standing = Status.PASS if counts.passed else Status.SKIPPED
    incomplete = result.incomplete or (said if standing is Status.SKIPPED else "")
    reason = f"{counts.passed} passed; {said}" if not findings else f"{result.reason}; {said}"
    return replace(
        result, standing=standing, reason=reason, findings=findings, counts=counts, ran=ran, incomplete=incomplete
    )


def _each(names: Iterable[str]) -> list[str]:
    return sorted(set(names))
