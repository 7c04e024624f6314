"""Lint: what ruff finds by the workspace's own rules, or by those for plain errors where it has none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pawl.core.finding import Finding, Severity, Verdict
from pawl.verify.places import Origin
from pawl.verify.project import toml
from pawl.verify.steps.step import Subject, amount, failed, passed, skipped, stopped

_ARGUMENTS = ("check", "--output-format", "json", "--no-fix", "--no-cache", "--force-exclude")
_ERRORS_ONLY = ("--select", "E9,F63,F7,F82")
_FOUND = 1


@dataclass(frozen=True, slots=True)
class Ruff:
    name: str = "lint"

    def run(self, subject: Subject) -> Verdict:
        paths = subject.python_files()
        if not paths:
            return skipped(self.name, "no Python file to look at")
        configured = is_configured(subject)
        # By its own rules ruff decides itself what belongs to the project.
        arguments = (*_ARGUMENTS, *(() if configured else _ERRORS_ONLY), *((subject.changed and paths) or (".",)))
        completed = subject.run_first((*program, *arguments) for program in subject.programs("ruff"))
        if completed is None:
            return skipped(self.name, "ruff is not installed for this project")
        if completed.code not in (0, _FOUND):
            return failed(self.name, stopped(completed) or f"ruff gave up: {completed.stderr.text.strip()[-300:]}")
        try:
            findings = list(_read(completed.stdout.text, subject.origin))
        except ValueError as error:
            return failed(self.name, f"what ruff printed cannot be read: {error}")
        rules = "the project's rules" if configured else "the rules for plain errors; the project configures none"
        if findings:
            return failed(self.name, f"{amount(len(findings), 'finding')} by {rules}", findings)
        return passed(self.name, f"nothing found by {rules}")


def is_configured(subject: Subject) -> bool:
    tools = toml(subject.files, "pyproject.toml").get("tool", {})
    return "ruff" in tools or any(subject.files.exists(name) for name in ("ruff.toml", ".ruff.toml"))


def _read(output: str, origin: Origin) -> Iterator[Finding]:
    said: list[dict[str, Any]] = json.loads(output or "[]")
    for entry in said:
        location = entry.get("location") or {}
        yield Finding(
            tool="ruff",
            message=str(entry["message"]),
            path=origin.path(str(entry["filename"])) or str(entry["filename"]),
            line=int(location.get("row", 0)),
            column=int(location.get("column", 0)),
            severity=Severity.ERROR,
            code=str(entry.get("code") or "syntax"),
        )
