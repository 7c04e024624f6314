"""Types: what the checker that the workspace configures finds, or ty where it configures none."""

from __future__ import annotations

import functools
import json
import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.core.execution import Completed
from pawl.core.finding import Finding, Severity, Verdict
from pawl.verify.places import Origin
from pawl.verify.project import dependencies, text
from pawl.verify.steps.step import Subject, amount, failed, passed, skipped, stopped

_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "warn": Severity.WARNING}
_FINDINGS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checker:
    name: str
    files: tuple[str, ...]
    sections: tuple[tuple[str, re.Pattern[str]], ...]
    arguments: tuple[str, ...]
    targets: re.Pattern[str] | None
    """Says in the configuration which files to look at; without it all are."""
    finding: re.Pattern[str] | None
    interpreter: str
    """The option that names the interpreter whose packages are imported."""
    default: bool

    def configured_in(self, subject: Subject) -> str:
        """The file that configures it; empty when none does."""
        for path in self.files:
            if subject.files.exists(path):
                return path
        return next((path for path, line in self.sections if line.search(text(subject.files, path))), "")


@functools.cache
def checkers() -> tuple[Checker, ...]:
    data = tomllib.loads((resources.files("pawl.verify.steps") / "checkers.toml").read_text(encoding="utf-8"))
    return tuple(
        Checker(
            name=entry["name"],
            files=tuple(entry["files"]),
            sections=tuple((path, re.compile(line, re.MULTILINE)) for path, line in entry["sections"]),
            arguments=tuple(entry["arguments"]),
            targets=re.compile(entry["targets"], re.MULTILINE) if "targets" in entry else None,
            finding=re.compile(entry["finding"], re.MULTILINE) if "finding" in entry else None,
            interpreter=entry.get("interpreter", ""),
            default=entry.get("default", False),
        )
        for entry in data["checker"]
    )


def chosen(subject: Subject) -> tuple[Checker, str]:
    """The checker and the file that configures it; a configuration for pyright serves basedpyright too."""
    for checker in checkers():
        configured = checker.configured_in(subject)
        if configured:
            if checker.name == "pyright" and "basedpyright" in dependencies(subject.files):
                checker = next(other for other in checkers() if other.name == "basedpyright")
            return checker, configured
    return next(checker for checker in checkers() if checker.default), ""


@dataclass(frozen=True, slots=True)
class Types:
    name: str = "types"

    def run(self, subject: Subject) -> Verdict:
        if not subject.python_files():
            return skipped(self.name, "no Python file to look at")
        checker, configured = chosen(subject)
        arguments = (*checker.arguments, *_targets(checker, subject, configured))
        completed = subject.run_first(
            (*program, *arguments, *_environment(checker, subject, program))
            for program in subject.programs(checker.name)
        )
        if completed is None:
            why = f"{configured} configures" if configured else "the project configures no checker; the usual one is"
            return skipped(self.name, f"{why} {checker.name}, which is not installed for this project")
        by = f"{checker.name} ({f'configured in {configured}' if configured else 'the project configures none'})"
        return _verdict(self.name, checker, completed, subject.origin, by)


def _targets(checker: Checker, subject: Subject, configured: str) -> tuple[str, ...]:
    """The whole workspace, unless the configuration names its files: a change shows in the files that use it too."""
    if checker.targets is None:
        return ()
    return () if configured and checker.targets.search(text(subject.files, configured)) else (".",)


def _environment(checker: Checker, subject: Subject, program: tuple[str, ...]) -> tuple[str, ...]:
    """Pawl's own checker is told the workspace's interpreter, which decides about imports; any other knows its own."""
    if program != (subject.spare.get(checker.name),) or not checker.interpreter:
        return ()
    found = subject.interpreter()
    return (checker.interpreter, found) if found else ()


def _verdict(step: str, checker: Checker, completed: Completed, origin: Origin, by: str) -> Verdict:
    if completed.code not in (0, _FINDINGS):
        reason = stopped(completed) or (completed.stderr.text or completed.stdout.text).strip()[-300:]
        return failed(step, f"{checker.name} gave up: {reason}")
    try:
        findings = list(_lines(checker, completed, origin) if checker.finding else _pyright(checker, completed, origin))
    except ValueError as error:
        return failed(step, f"what {checker.name} printed cannot be read: {error}")
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if completed.code == 0 and not errors:
        return passed(step, f"no errors by {by}")
    return failed(step, f"{amount(errors, 'error')} by {by}", findings)


def _lines(checker: Checker, completed: Completed, origin: Origin) -> Iterator[Finding]:
    pattern = checker.finding
    for match in pattern.finditer(completed.stdout.text) if pattern else ():
        yield Finding(
            tool=checker.name,
            message=match["message"],
            path=origin.path(match["path"]) or match["path"],
            line=int(match["line"]),
            column=int(match["column"] or 0),
            severity=_SEVERITIES[match["severity"].lower()],
            code=match["code"] or "",
        )


def _pyright(checker: Checker, completed: Completed, origin: Origin) -> Iterator[Finding]:
    said: dict[str, Any] = json.loads(completed.stdout.text)
    for entry in said.get("generalDiagnostics", []):
        severity = _SEVERITIES.get(entry.get("severity", ""))
        start = entry.get("range", {}).get("start", {})
        if severity:
            yield Finding(
                tool=checker.name,
                message=str(entry["message"]),
                path=origin.path(str(entry["file"])) or str(entry["file"]),
                line=int(start.get("line", -1)) + 1,
                column=int(start.get("character", -1)) + 1,
                severity=severity,
                code=str(entry.get("rule", "")),
            )
