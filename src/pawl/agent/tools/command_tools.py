"""Tools that run something on the bench: a command, with its exit code and bounded output, checks, two kinds of server.

A command that runs out of time is stopped and reported, and never repeated by itself: it may have done half of what it
does, and what waited for an answer once waits again. The model decides, with the output so far.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar

from pawl.agent.tools.tool_registry import Ports, ToolLimits, bounded
from pawl.core.diagnostic import Check, CheckResult, Diagnostic, Status
from pawl.core.errors import BadArguments, CommandNotFound, PathRefused, TimedOut
from pawl.core.execution import Captured, Completed, Ending, Execution, Limits
from pawl.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from pawl.checks.bench_server import Served

_NOT_FOUND_CODE = 127
# A shell says "Permission denied" instead when it may not look into a folder of its PATH.
_NOT_FOUND = re.compile(r"(?:^|: )(?P<name>[^:\s]+): (?:(?:command )?not found|Permission denied)\s*$", re.MULTILINE)
_SILENT = {6: ("curl",), 7: ("curl",), 4: ("wget",)}
"""Exit codes of programs that reach no host."""
_UNREACHED = re.compile(
    r"(?i)name resolution|could ?n[o']t resolve|unable to resolve|network is unreachable|getaddrinfo|enotfound"
    r"|eai_again|dns error|dial tcp|no matching distribution found"
)
_SHOWN_IN_FAILURE = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCommand:
    UNSAID: ClassVar = frozenset({"argv"})

    command: str | None = None
    argv: tuple[str, ...] | None = None
    directory: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandReport:
    exit_code: int | None
    """None when it did not exit by itself."""
    ending: Ending
    stdout: str
    stderr: str
    seconds: float
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        how = f"exit code {self.exit_code}" if self.ending is Ending.EXITED else f"stopped: {self.ending}"
        parts = [f"[{how}, {self.seconds:.1f} s]", *(f"[{notice}]" for notice in self.notices)]
        if self.stdout:
            parts.append(self.stdout.rstrip("\n"))
        if self.stderr:
            parts += ["[stderr]", self.stderr.rstrip("\n")]
        return "\n".join(parts)


def run_command(ports: Ports, given: RunCommand) -> CommandReport:
    execution = _execution(given, ports.limits)
    completed = ports.runner.run(execution)
    report = CommandReport(
        exit_code=completed.code,
        ending=completed.ending,
        stdout=_bounded(completed.stdout, ports.limits.output_characters),
        stderr=_bounded(completed.stderr, ports.limits.output_characters),
        seconds=completed.seconds,
        notices=(*completed.notices, *_offline(completed, given)),
    )
    _raise_if_failed(given, execution, completed, report)
    return report


def _offline(completed: Completed, given: RunCommand) -> tuple[str, ...]:
    """Says that there is no network to a command that failed for want of one, also where it is silent about it."""
    words = given.command or " ".join(given.argv or ())
    silent = any(re.search(rf"\b{name}\b", words) for name in _SILENT.get(completed.code or 0, ()))
    said = f"{completed.stdout.text}\n{completed.stderr.text}"
    wanted = silent or (completed.code and _UNREACHED.search(said))
    told = "commands have no network: nothing can be installed or fetched; the user can: pawl verify --install"
    return (told,) if wanted else ()


def _execution(given: RunCommand, limits: ToolLimits) -> Execution:
    mistakes = []
    if bool(given.command and given.command.strip()) == bool(given.argv):
        mistakes.append("command, argv: give one of the two")
    seconds = limits.tool_seconds if given.seconds is None else given.seconds
    if not 0 < seconds <= limits.most_command_seconds:
        mistakes.append(f"seconds: must be above 0 and at most {limits.most_command_seconds:g}, not {seconds:g}")
    if any("\0" in word for word in (given.command or "", given.directory, *(given.argv or ()))):
        mistakes.append("command, argv, directory: hold a NUL character")
    if mistakes:
        raise BadArguments("; ".join(mistakes), advice="correct the arguments as the tool describes them")
    directory = "" if given.directory in (".", "./") else given.directory.removeprefix("./").rstrip("/")
    if given.directory.startswith(("/", "~")) or ".." in directory.split("/"):
        raise PathRefused(
            f"{given.directory!r} is not a folder of the workspace", advice="give a path relative to the workspace"
        )
    argv = given.argv or ("/bin/sh", "-c", given.command or "")
    return Execution(argv=argv, directory=directory, limits=Limits(seconds=seconds))


def _raise_if_failed(given: RunCommand, execution: Execution, completed: Completed, report: CommandReport) -> None:
    if completed.ending is Ending.TIMED_OUT:
        output = f"{report.stdout}\n{report.stderr}".strip()[-_SHOWN_IN_FAILURE:]
        raise TimedOut(
            f"the command was stopped after {execution.limits.seconds:g} s"
            + (f"; its last output:\n{output}" if output else ""),
            advice="run a narrower command, give it more seconds, or see that it does not wait for input; "
            "look at what it has already done before you run it again",
        )
    if completed.code != _NOT_FOUND_CODE:
        return
    named = _NOT_FOUND.search(report.stderr)
    if named is not None or given.argv is not None:
        name = named["name"] if named else execution.argv[0]
        raise CommandNotFound(
            f"there is no command {name!r}\n{report.stderr.strip()[-_SHOWN_IN_FAILURE:]}".rstrip(),
            advice="check the spelling, use the project's own way to run it, or do it with another tool",
        )


def _bounded(captured: Captured, most: int) -> str:
    """The start and the end of what was captured."""
    text = captured.text
    if len(text) <= most:
        return text
    half = most // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


_MESSAGE_LINES = 8
_MESSAGE_CHARACTERS = 600
_OLD_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOf:
    what: Check = Check.ALL
    tests: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutput:
    verdicts: tuple[CheckResult, ...]
    findings: int
    """The most to show of each check."""
    none: str = "[the project has no such check]"

    @property
    def passed(self) -> bool:
        """Nothing failed, and something passed."""
        standings = {verdict.standing for verdict in self.verdicts}
        return Status.FAIL not in standings and Status.PASS in standings

    @property
    def text(self) -> str:
        lines = [line for verdict in self.verdicts for line in _verdict(verdict, self.findings)]
        return "\n".join(lines) or self.none


def check(ports: Ports, given: CheckOf) -> CheckOutput:
    assert ports.checker is not None
    checker, limits, verdicts = ports.checker(), ports.limits, list[CheckResult]()
    if given.what is not Check.TESTS and not given.tests:
        verdicts += checker.check(given.what, seconds=limits.check_seconds)
    if given.tests or given.what in (Check.TESTS, Check.ALL):
        verdicts += checker.check(Check.TESTS, seconds=limits.most_command_seconds, tests=given.tests)
    return CheckOutput(verdicts=_shown(ports, verdicts), findings=ports.limits.findings)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosticsOf:
    paths: tuple[str, ...]


def lsp_diagnostics(ports: Ports, given: DiagnosticsOf) -> CheckOutput:
    assert ports.checker is not None
    for path in given.paths:
        # What a model may not read is not told to it by a server either.
        ports.files.read(path)
    verdicts = ports.checker().diagnose(given.paths, seconds=ports.limits.lsp_seconds)
    none = "[no language server knows these files]"
    return CheckOutput(verdicts=_shown(ports, verdicts), findings=ports.limits.findings, none=none)


class ServerAction(StrEnum):
    START = "start"
    STATUS = "status"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class DevServerOf:
    action: ServerAction
    path: str = "/"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOutput:
    name: str
    served: Served | None = None
    """None when it was stopped, or there was none."""

    @property
    def text(self) -> str:
        if self.served is None:
            return f"[{self.name} is stopped]" if self.name else "[no dev server runs]"
        served = self.served
        parts = [f"[{self.name} is ready on port {served.port}; {served.path} answers {served.status}]"]
        if not served.is_current:
            parts.append("[it serves the files as they were when it was started; start it again for your later edits]")
        parts.append(bounded(served.body, _SHOWN_IN_FAILURE, "ask for another path"))
        return "\n".join((*parts, "[log]", served.log)) if served.log else "\n".join(parts)


def dev_server(ports: Ports, given: DevServerOf) -> ServerOutput:
    assert ports.server is not None
    server = ports.server()
    if given.action is ServerAction.STOP:
        return ServerOutput(name=server.stop())
    path = "/" + given.path.removeprefix("/")
    served = server.start(path) if given.action is ServerAction.START else server.status(path)
    return ServerOutput(name=served.name, served=served)


def _shown(ports: Ports, verdicts: Iterable[CheckResult]) -> tuple[CheckResult, ...]:
    """The results without what is found in files that a model may not read, which are counted."""
    made = []
    for verdict in verdicts:
        told = tuple(one for one in verdict.findings if not one.path or ports.shows(one.path))
        left = len(verdict.findings) - len(told)
        more = f"; {left} of the findings are in files that may not be read" if left else ""
        made.append(replace(verdict, findings=told, reason=verdict.reason + more))
    return tuple(made)


def _verdict(verdict: CheckResult, most: int) -> Iterator[str]:
    took = f" ({verdict.seconds:.1f} s)" if verdict.standing is not Status.SKIPPED else ""
    yield f"{verdict.step}: {verdict.standing}{took}" + (f": {verdict.reason}" if verdict.reason else "")
    for finding in verdict.findings[:most]:
        yield _finding(finding)
    if len(verdict.findings) > most:
        yield f"  [{len(verdict.findings) - most} more findings; fix these first]"
    tests = [one for one in verdict.old if one.test]
    for one in tests[:_OLD_NAMED]:
        yield f"  [as before: {one.test}: {one.first_line[: _MESSAGE_CHARACTERS // 5]}]"
    if len(tests) > _OLD_NAMED:
        yield f"  [as before: {len(tests) - _OLD_NAMED} more]"
    if verdict.old and not tests:
        yield f"  [{len(verdict.old)} older findings left out]"


def _finding(finding: Diagnostic) -> str:
    place = finding.test or ":".join(str(part) for part in (finding.path, finding.line, finding.column) if part)
    head = " ".join(part for part in (f"{place}:" if place else "", finding.severity, finding.label) if part)
    first, *rest = _useful(finding.message)
    return "\n".join([f"  {head}: {first}", *(f"    {line}" for line in (*rest, *finding.raised))])


def _useful(message: str) -> list[str]:
    """The start of a long message, by lines and by characters."""
    lines = [line.rstrip() for line in message[:_MESSAGE_CHARACTERS].splitlines()] or [""]
    if len(lines) > _MESSAGE_LINES or len(message) > _MESSAGE_CHARACTERS:
        return [*lines[:_MESSAGE_LINES], "[…]"]
    return lines
