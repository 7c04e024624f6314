"""Steps that run a command of the project and read its findings, as values: when a project has one, what it runs."""

from __future__ import annotations

import dataclasses
import functools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from pawl.checks.output import Origin, cleaned, printed
from pawl.checks.project_facts import (
    CheckKind,
    installer_of,
    installers,
    is_named,
    missing_modules,
    package_json,
    text,
)
from pawl.checks.signs import CheckSigns
from pawl.checks.steps import Subject, amount, failed, passed, skipped, stopped
from pawl.core.diagnostic import UNFINISHED, CheckResult, Diagnostic, Severity, Status
from pawl.core.errors import ConfigError
from pawl.core.execution import Completed, Ending
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line
from pawl.core.typed import data_table, read_json, written

EVERYTHING = "*"
_GROUPS = frozenset({"path", "line", "column", "severity", "code", "message"})
_READERS = frozenset({"lines", "eslint"})


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckCommand:
    words: tuple[str, ...]
    when: tuple[str, re.Pattern[str]] | None = None
    """Only where this file's text shows this."""

    def __post_init__(self) -> None:
        if not self.words:
            raise ValueError("a command needs at least one word")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCheck:
    name: str
    kind: CheckKind
    commands: tuple[CheckCommand, ...]
    """The first one whose program is there is run."""
    when: CheckSigns = field(default_factory=CheckSigns)
    inputs: tuple[str, ...] = (EVERYTHING,)
    """Names of the files that decide about the verdict; a change of others is none of its business."""
    judges: tuple[str, ...] = ()
    """Names of the files that it judges; without one of them there is nothing to do."""
    reader: str = "lines"
    findings: tuple[re.Pattern[str], ...] = ()
    seconds: float = 120.0
    fallback: bool = False
    """Only where the project has no other step of this kind."""
    instead_of: tuple[str, ...] = ()
    """Rungs that this one takes the place of."""
    package: str = ""
    """The package to install when the program is missing."""
    source: str = ""
    """The entry as it is written, which tells rungs apart: a pattern does not show itself whole."""

    def __post_init__(self) -> None:
        if self.reader not in _READERS:
            raise ValueError(f"there is no reader {self.reader!r}; known are {', '.join(sorted(_READERS))}")
        if not self.seconds > 0:
            raise ValueError(f"seconds must be above 0, not {self.seconds!r}")
        for pattern in self.findings:
            groups = set(pattern.groupindex)
            if "message" not in groups or groups - _GROUPS:
                known = ", ".join(sorted(_GROUPS))
                raise ValueError(f"the pattern {pattern.pattern!r} needs the group 'message' and may have {known}")

    def concerns(self, path: str) -> bool:
        return EVERYTHING in self.inputs or is_named(path, self.inputs)


@functools.cache
def built_in() -> tuple[CommandCheck, ...]:
    return load(data_table("pawl.checks", "rungs.toml"), "rungs.toml")


def load(data: Mapping[str, Any], source: str) -> tuple[CommandCheck, ...]:
    """Rungs from a table with `step`s; refused with the reason when one cannot be used."""
    steps = data.get("step", [])
    if not isinstance(steps, list):
        raise ConfigError(f"{source}: step must be an array of tables", advice="write [[verify.step]]")
    rungs = []
    for entry in steps:
        try:
            rung = written(CommandCheck, _spelled_out(entry, data.get("inputs", {})))
            rungs.append(dataclasses.replace(rung, source=repr(entry)))
        except ValueError as error:
            name = str(entry.get("name", "without a name")) if isinstance(entry, Mapping) else repr(entry)
            raise ConfigError(
                f"{source}: the step {name!r} cannot be used: {error}",
                advice="a step has name, kind and command; see docs/verification.md",
            ) from error
    return tuple(rungs)


def _spelled_out(entry: Any, shared: Mapping[str, list[str]]) -> object:
    """The entry without its short forms: `command` and `finding` for one, bare words for a command, `@name` inputs."""
    if not isinstance(entry, Mapping):
        return entry
    whole = dict(entry)
    for one, several in (("command", "commands"), ("finding", "findings")):
        if one in whole:
            whole.setdefault(several, [whole[one]])
            del whole[one]
    if isinstance(whole.get("commands"), list):
        whole["commands"] = [one if isinstance(one, Mapping) else {"words": one} for one in whole["commands"]]
    if isinstance(whole.get("inputs"), list):
        names = (shared.get(str(name)[1:], [name]) if str(name).startswith("@") else [name] for name in whole["inputs"])
        whole["inputs"] = [name for group in names for name in group]
    return whole


LAST_LINES = 40
"""Of what a command printed, where no finding can be read from it."""
_BIN = re.compile(r"\{bin:([\w./@-]+)\}")
_SCRIPT = "{script}"
SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "warn": Severity.WARNING}
_ERROR = 2
_NOISE = re.compile(r"^\s*(?:npm (?:ERR!|error|warn|notice)|error Command failed|> |at .*\(?node:internal)")


@dataclass(frozen=True, slots=True)
class CommandStep:
    rung: CommandCheck
    why: str = ""
    """The sign that the project has the check."""

    @property
    def name(self) -> str:
        return self.rung.name

    def run(self, subject: Subject) -> CheckResult:
        if subject.changed and not any(self.rung.concerns(path) for path in subject.changed):
            return skipped(self.name, "nothing that it checks was changed")
        if self.rung.judges and not any(is_named(path, self.rung.judges) for path in subject.files.walk()):
            return skipped(self.name, f"no file {' or '.join(self.rung.judges)} to check")
        limits = dataclasses.replace(subject.limits, seconds=min(subject.limits.seconds, self.rung.seconds))
        timed = dataclasses.replace(subject, limits=limits)
        completed = timed.run_first(words for words in _candidates(self.rung, subject))
        if completed is None:
            return skipped(self.name, missing_modules(subject.files) or f"{self._program(subject)} is not installed")
        return _verdict(self.rung, completed, subject.origin, self.why)

    def _program(self, subject: Subject) -> str:
        words = next(_candidates(self.rung, subject), self.rung.commands[-1].words)
        script = _script_of(self.rung, subject) if self.rung.commands[-1].words[0] == _SCRIPT else ("", "")
        told = (
            f"{words[0]} or a program of the script {script[0]!r} ({one_line(script[1], 60)})"
            if script[0]
            else words[0]
        )
        return self.rung.package or told


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


def _script_of(rung: CommandCheck, subject: Subject) -> tuple[str, str]:
    """The name of the script and what it runs; empty where there is none."""
    scripts = package_json(subject.files).get("scripts")
    known = scripts if isinstance(scripts, dict) else {}
    return next(((one, known[one]) for one in rung.when.scripts if isinstance(known.get(one), str)), ("", ""))


def _script(rung: CommandCheck, subject: Subject) -> Iterator[tuple[str, ...]]:
    name, _ = _script_of(rung, subject)
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
        eslint = rung.reader == "eslint"
        found = _eslint(completed, origin) if eslint else line_findings(rung.name, rung.findings, output, origin)
        findings = list(found)
    except ValueError:
        findings = []
    errors = [finding for finding in findings if finding.severity is Severity.ERROR]
    if not errors:
        # A command that fails without a word that can be read has failed all the same.
        findings = [*findings, _tail(rung, completed)]
    reason = amount(len(errors), "error") if errors else f"exit code {completed.code}"
    return failed(rung.name, f"{reason}; {why}" if why else reason, findings)


def line_findings(tool: str, patterns: Iterable[re.Pattern[str]], output: str, origin: Origin) -> Iterator[Diagnostic]:
    """The findings in an output by patterns with the groups of `_GROUPS`, each once."""
    seen: set[tuple[object, ...]] = set()
    for pattern in patterns:
        for match in pattern.finditer(output):
            found = match.groupdict()
            printed_path = (found.get("path") or "").strip()
            path = origin.path(printed_path) or printed_path
            finding = Diagnostic(
                tool=tool,
                message=(found.get("message") or "").strip(),
                path=path,
                line=int(found.get("line") or 0),
                column=int(found.get("column") or 0),
                severity=SEVERITIES.get((found.get("severity") or "error").lower(), Severity.ERROR),
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


def run_asked(command: str, subject: Subject) -> CheckResult:
    """A command that the request names, which must succeed."""
    completed = subject.run(tuple(shlex.split(command)))
    if completed is None:
        return CheckResult(step=command, standing=Status.FAIL, reason="there is no such command")
    if completed.ok:
        return passed(command)
    tail = "\n".join(printed(completed).splitlines()[-LAST_LINES:])
    finding = Diagnostic(tool=command, message=tail or "it failed without output")
    return failed(command, f"exit code {completed.code}", [finding])


def _tail(rung: CommandCheck, completed: Completed) -> Diagnostic:
    said = useful(cleaned(printed(completed)).text)
    if completed.ending is not Ending.EXITED:
        return Diagnostic(tool=rung.name, message=said or "it printed nothing", code=completed.ending.value)
    return Diagnostic(tool=rung.name, message=said or "it failed without output", code=f"exit {completed.code}")


def useful(output: str) -> str:
    """The last lines of an output without what package installers and the runtime add to a failure."""
    lines: Sequence[str] = [line.rstrip() for line in output.splitlines() if line.strip() and not _NOISE.match(line)]
    return "\n".join(lines[-LAST_LINES:])
