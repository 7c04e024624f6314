"""A step that runs a command of the project and reads its findings; what it is comes from the rungs' file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pawl.checks.installers import installer_of, installers, missing_modules
from pawl.checks.output import Origin, cleaned, printed
from pawl.checks.project import CheckKind, package_json, text
from pawl.checks.rungs import CommandCheck, is_named
from pawl.checks.steps import Subject, amount, failed, passed, skipped, stopped
from pawl.core.diagnostic import UNFINISHED, CheckResult, Diagnostic, Severity
from pawl.core.execution import Completed, Ending
from pawl.core.formats import read_json

LAST_LINES = 40
"""Of what a command printed, where no finding can be read from it."""
_BIN = re.compile(r"\{bin:([\w./@-]+)\}")
_SCRIPT = "{script}"
_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING}
_ERROR = 2
_NOISE = re.compile(r"^\s*(?:npm (?:ERR!|error|warn|notice)|error Command failed|> |at .*\(?node:internal)")


@dataclass(frozen=True, slots=True)
class CommandStep:
    rung: CommandCheck
    why: str = ""
    """What shows that the project has the step."""

    @property
    def name(self) -> str:
        return self.rung.name

    def run(self, subject: Subject) -> CheckResult:
        if subject.changed and not any(self.rung.concerns(path) for path in subject.changed):
            return skipped(self.name, "nothing that it looks at was changed")
        if self.rung.judges and not any(is_named(path, self.rung.judges) for path in subject.files.walk()):
            return skipped(self.name, f"no file {' or '.join(self.rung.judges)} to look at")
        limits = dataclasses.replace(subject.limits, seconds=min(subject.limits.seconds, self.rung.seconds))
        timed = dataclasses.replace(subject, limits=limits)
        completed = timed.run_first(words for words in _candidates(self.rung, subject))
        if completed is None:
            return skipped(self.name, missing_modules(subject.files) or f"{self._program()} is not installed")
        return _verdict(self.rung, completed, subject.origin, self.why)

    def _program(self) -> str:
        return self.rung.package or self.rung.commands[-1].words[0]


def _candidates(rung: CommandCheck, subject: Subject) -> Iterator[tuple[str, ...]]:
    for command in rung.commands:
        if command.when is not None and not command.when[1].search(text(subject.files, command.when[0])):
            continue
        first, *rest = command.words
        found = _BIN.fullmatch(first)
        if found:
            for program in subject.node_programs(found[1]):
                yield (program, *rest)
        elif first == _SCRIPT:
            yield from ((*words, *rest) for words in _script(rung, subject))
        else:
            yield command.words


def _script(rung: CommandCheck, subject: Subject) -> Iterator[tuple[str, ...]]:
    scripts = package_json(subject.files).get("scripts")
    known = scripts if isinstance(scripts, dict) else {}
    name = next((one for one in rung.signs.scripts if isinstance(known.get(one), str)), "")
    if name:
        # Any of them runs a script; where the project's own is not there, the usual one is.
        for installer in dict.fromkeys((installer_of(subject.files), installers()[-1])):
            yield (*installer.run, name)


def _verdict(rung: CommandCheck, completed: Completed, origin: Origin, why: str) -> CheckResult:
    if completed.ok:
        return passed(rung.name, why)
    if completed.ending is not Ending.EXITED:
        tail = _tail(rung, completed)
        builds = rung.kind is CheckKind.BUILD
        return failed(rung.name, stopped(completed), [dataclasses.replace(tail, code=UNFINISHED) if builds else tail])
    output = cleaned(printed(completed)).text
    try:
        findings = list(_eslint(completed, origin)) if rung.reader == "eslint" else list(_lines(rung, output, origin))
    except ValueError:
        findings = []
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        # A command that fails without a word that can be read has failed all the same.
        findings = [*findings, _tail(rung, completed)]
    reason = amount(len(errors), "error") if errors else f"exit code {completed.code}"
    return failed(rung.name, f"{reason}; {why}" if why else reason, findings)


def _lines(rung: CommandCheck, output: str, origin: Origin) -> Iterator[Diagnostic]:
    seen: set[tuple[object, ...]] = set()
    for pattern in rung.findings:
        for match in pattern.finditer(output):
            found = match.groupdict()
            printed_path = (found.get("path") or "").strip()
            path = origin.path(printed_path) or printed_path
            finding = Diagnostic(
                tool=rung.name,
                message=(found.get("message") or "").strip(),
                path=path,
                line=int(found.get("line") or 0),
                column=int(found.get("column") or 0),
                severity=_SEVERITIES.get((found.get("severity") or "error").lower(), Severity.ERROR),
                code=found.get("code") or "",
            )
            place = (finding.path, finding.line, finding.column, finding.message)
            if finding.message and place not in seen:
                seen.add(place)
                yield finding


def _eslint(completed: Completed, origin: Origin) -> Iterator[Diagnostic]:
    said: list[dict[str, Any]] = read_json(completed.stdout.text)
    for entry in said:
        for message in entry["messages"]:
            yield Diagnostic(
                tool="eslint",
                message=str(message["message"]),
                path=origin.path(str(entry["filePath"])) or str(entry["filePath"]),
                line=int(message.get("line") or 0),
                column=int(message.get("column") or 0),
                severity=Severity.ERROR if message.get("severity") == _ERROR else Severity.WARNING,
                code=str(message.get("ruleId") or "parse"),
            )


def _tail(rung: CommandCheck, completed: Completed) -> Diagnostic:
    said = useful(cleaned(printed(completed)).text)
    if completed.ending is not Ending.EXITED:
        return Diagnostic(tool=rung.name, message=said or "it printed nothing", code=completed.ending.value)
    return Diagnostic(tool=rung.name, message=said or "it failed without a word", code=f"exit {completed.code}")


def useful(output: str) -> str:
    """The last lines of an output without what package installers and the runtime add to a failure."""
    lines: Sequence[str] = [line.rstrip() for line in output.splitlines() if line.strip() and not _NOISE.match(line)]
    return "\n".join(lines[-LAST_LINES:])
