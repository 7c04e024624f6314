"""The steps of the languages that need no configuration: syntax, types and lint of Python, syntax of JavaScript."""

from __future__ import annotations

import functools
import io
import itertools
import json
import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import resources
from typing import Any

from pawl.checks.command_step import SEVERITIES, line_findings
from pawl.checks.output import Origin
from pawl.checks.project_facts import Folder, dependencies, text, toml
from pawl.checks.steps import Subject, amount, failed, passed, skipped, stopped
from pawl.core.diagnostic import CheckResult, Diagnostic, Severity
from pawl.core.errors import PawlError, TooLarge
from pawl.core.execution import Completed
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import Unreadable, data_table, read_json, read_python, read_toml, written

ENDINGS = (".js", ".mjs", ".cjs")
_NOT_OURS = frozenset({"node_modules", "dist", "build", "vendor", ".next", "coverage"})
_TRANSFORMED = frozenset({"react", "react-scripts", "next", "preact", "@babel/core", "flow-bin", "solid-js"})
"""With one of these a .js file may hold what only a build can read."""
_AT_ONCE = 300
_FOUND = 1
"""The exit code of a tool that has found something."""


@functools.cache
def _node_script() -> str:
    return (resources.files("pawl.checks") / "node_syntax.cjs").read_text(encoding="utf-8")


def _each_file(subject: Subject, words: Sequence[str], paths: Sequence[str]) -> list[dict[str, Any]] | str | None:
    """The lines of JSON that a command printed about the files; why it gave up; None when its program is not there."""
    said = []
    for start in range(0, len(paths), _AT_ONCE):
        completed = subject.run((*words, *paths[start : start + _AT_ONCE]))
        if completed is None:
            return None
        if not completed.ok:
            return _gave_up(completed)
        said += [json.loads(line) for line in completed.stdout.text.splitlines() if line.startswith("{")]
    return said


def _gave_up(completed: Completed) -> str:
    return stopped(completed) or (completed.stderr.text or completed.stdout.text).strip()[-300:]


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    """Every file of JavaScript must be readable by the Node that will run it."""

    name: str = "syntax (node)"

    def run(self, subject: Subject) -> CheckResult:
        ours = (path for path in subject.changed or subject.files.walk() if _is_ours(path))
        paths = [path for path in ours if subject.files.exists(path)]
        if not paths:
            return skipped(self.name, "no JavaScript file to check")
        loose = "loose" if _TRANSFORMED & dependencies(subject.files) else "strict"
        words = ("node", "--no-warnings", "--experimental-vm-modules", "-e", _node_script(), "--", loose)
        said = _each_file(subject, words, paths)
        if said is None:
            return skipped(self.name, "node is not installed")
        if isinstance(said, str):
            return failed(self.name, f"node gave up: {said}")
        findings = [Diagnostic(tool="node", code="SyntaxError", **one) for one in said if one["message"]]
        unread = len(said) - len(findings)
        note = f"; {amount(unread, 'file')} left to the build, which transforms them" if unread else ""
        if findings:
            return failed(self.name, f"{amount(len(findings), 'file')} cannot be read{note}", findings)
        if unread == len(paths):
            return skipped(self.name, "every file is transformed by the build")
        return passed(self.name, f"{amount(len(paths) - unread, 'file')} read{note}")


def _is_ours(path: str) -> bool:
    return path.endswith(ENDINGS) and _NOT_OURS.isdisjoint(path.split("/"))


NAMES = ("package.json", "pyproject.toml")


def unreadable(files: Folder, folders: Iterable[str] = ("",)) -> tuple[Diagnostic, ...]:
    """Mistakes in the project files of these folders."""
    return tuple(_wrong(files, [posixpath.join(folder, name) for folder in folders for name in NAMES]))


def _wrong(files: Folder, paths: Iterable[str]) -> Iterator[Diagnostic]:
    for path in paths:
        try:
            if not files.exists(path):
                continue
            text = files.read(path).decode("utf-8-sig")
        except (PawlError, UnicodeDecodeError) as error:
            yield Diagnostic(tool="syntax", message=f"it cannot be read: {error}", path=path)
            continue
        try:
            reader = read_json if path.endswith(".json") else read_toml
            reader(text)
        except Unreadable as error:
            yield Diagnostic(tool="syntax", message=str(error), path=path, line=error.line, column=error.column)


@dataclass(frozen=True, slots=True)
class ReadableFiles:
    folders: tuple[str, ...]
    name: str = "syntax (project files)"

    def run(self, subject: Subject) -> CheckResult:
        found = unreadable(subject.files, self.folders)
        if not found:
            return passed(self.name, "no mistake found")
        return failed(self.name, f"{amount(len(found), 'file')} that cannot be parsed", found)


_ARGUMENTS = ("check", "--output-format", "json", "--no-fix", "--no-cache", "--force-exclude")
_CONFIGURATIONS = frozenset({"pyproject.toml", "ruff.toml", ".ruff.toml"})
_ERRORS_ONLY = ("--select", "E9,F63,F7,F82")


@dataclass(frozen=True, slots=True)
class Ruff:
    name: str = "lint"

    def run(self, subject: Subject) -> CheckResult:
        paths = subject.python_files()
        if not paths:
            return skipped(self.name, "no Python file to check")
        configured = is_configured(subject)
        # By its own rules ruff decides itself what belongs to the project.
        arguments = (*_ARGUMENTS, *(() if configured else _ERRORS_ONLY), *((subject.changed and paths) or (".",)))
        completed = subject.run_first((*program, *arguments) for program in subject.programs("ruff"))
        if completed is None:
            return skipped(self.name, "ruff is not installed for this project")
        if completed.code not in (0, _FOUND):
            said = _gave_up(completed)
            changed = _CONFIGURATIONS.intersection(map(posixpath.basename, subject.changed))
            if not changed and any(one in said for one in _CONFIGURATIONS):
                return skipped(self.name, f"ruff cannot read the project's configuration: {said}")
            return failed(self.name, f"ruff gave up: {said}")
        try:
            findings = list(_read_ruff(completed.stdout.text, subject.origin))
        except ValueError as error:
            return failed(self.name, f"the output of ruff cannot be parsed: {error}")
        rules = "the project's rules" if configured else "the rules for plain errors; the project configures none"
        if findings:
            return failed(self.name, f"{amount(len(findings), 'finding')} by {rules}", findings)
        return passed(self.name, f"nothing found by {rules}")


def is_configured(subject: Subject) -> bool:
    tools = toml(subject.files, "pyproject.toml").get("tool", {})
    return "ruff" in tools or any(map(subject.files.exists, _CONFIGURATIONS - {"pyproject.toml"}))


def _read_ruff(output: str, origin: Origin) -> Iterator[Diagnostic]:
    said: list[dict[str, Any]] = read_json(output or "[]")
    for entry in said:
        location = entry.get("location") or {}
        yield Diagnostic(
            tool="ruff",
            message=str(entry["message"]),
            path=origin.path(str(entry["filename"])) or str(entry["filename"]),
            line=int(location.get("row", 0)),
            column=int(location.get("column", 0)),
            severity=Severity.ERROR,
            code=str(entry.get("code") or "syntax"),
        )


def lint_fixed(subject: Subject, findings: Iterable[Diagnostic]) -> dict[str, str]:
    """The files as ruff's own safe fixes of these findings leave them; other findings stay as they are."""
    wanted = {(one.path, one.line, one.code) for one in findings if one.tool == "ruff"}
    paths = sorted({path for path, _, _ in wanted})
    completed = subject.run_first((*program, *_ARGUMENTS, *paths) for program in subject.programs("ruff") if paths)
    output = "" if completed is None else completed.stdout.text
    edits: dict[str, list[Mapping[str, Any]]] = {}
    with suppress(ValueError):
        for finding, entry in zip(_read_ruff(output, subject.origin), read_json(output or "[]"), strict=True):
            fix = entry.get("fix") or {}
            if (finding.path, finding.line, finding.code) in wanted and fix.get("applicability") == "safe":
                edits.setdefault(finding.path, []).extend(fix["edits"])
    return {path: _edited(subject.files.read(path).decode("utf-8"), several) for path, several in edits.items()}


def _edited(text: str, edits: Iterable[Mapping[str, Any]]) -> str:
    """With the edits, of which none lies inside of another, from the last to the first."""
    starts = list(itertools.accumulate(map(len, io.StringIO(text, newline="")), initial=0))

    def at(place: Mapping[str, int]) -> int:
        return starts[min(place["row"], len(starts)) - 1] + place["column"] - 1

    last = len(text)
    placed = {(at(one["location"]), at(one["end_location"]), str(one["content"])) for one in edits}
    for start, end, content in sorted(placed, reverse=True):
        if end <= last:
            text, last = text[:start] + content + text[end:], start
    return text


_COMPILE = """
import json, sys
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        print(json.dumps({
            "path": path,
            "line": getattr(error, "lineno", 0) or 0,
            "column": getattr(error, "offset", 0) or 0,
            "code": type(error).__name__,
            "message": f"{type(error).__name__}: "
            + (getattr(error, "msg", None) or str(error) or "it is nested too deeply"),
        }))
"""
_OLDEST = (3, 7)


@dataclass(frozen=True, slots=True)
class Syntax:
    """Every file of Python must compile."""

    name: str = "syntax"

    def run(self, subject: Subject) -> CheckResult:
        paths = subject.python_files()
        if not paths:
            return skipped(self.name, "no Python file to check")
        python = subject.interpreters.get(subject.python) or subject.python
        said = _each_file(subject, (python, "-I", "-W", "ignore", "-c", _COMPILE), paths)
        if said is None:
            return _without_interpreter(self.name, subject, paths)
        if isinstance(said, str):
            return failed(self.name, f"the interpreter could not check the files: {said}")
        return _syntax_result(self.name, [Diagnostic(tool="python", **one) for one in said], len(paths), "")


def _without_interpreter(step: str, subject: Subject, paths: tuple[str, ...]) -> CheckResult:
    """Where the workspace's interpreter cannot be run, the grammar of the oldest version that it supports decides."""
    version = _oldest_supported(subject)
    findings = []
    for path in paths:
        try:
            read_python(subject.files.read(path), version=version)
        except TooLarge:
            continue
        except Unreadable as error:
            code = str(error).partition(":")[0] if isinstance(error.__cause__, SyntaxError) else "SyntaxError"
            said, line, column = str(error), error.line, error.column
            findings.append(Diagnostic(tool="python", message=said, path=path, line=line, column=column, code=code))
    note = f" by the grammar of Python {version[0]}.{version[1]}; the project's interpreter was not found"
    return _syntax_result(step, findings, len(paths), note)


def _oldest_supported(subject: Subject) -> tuple[int, int]:
    wanted = toml(subject.files, "pyproject.toml").get("project", {}).get("requires-python", "")
    match = re.search(r">=\s*3\.(\d+)", str(wanted))
    return max(_OLDEST, (3, int(match[1]))) if match else _OLDEST


def _syntax_result(step: str, findings: list[Diagnostic], files: int, note: str) -> CheckResult:
    if findings:
        return failed(step, f"{amount(len(findings), 'file')} cannot be compiled{note}", findings)
    return passed(step, f"{amount(files, 'file')} compiled{note}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChecker:
    name: str
    files: tuple[str, ...]
    sections: tuple[tuple[str, re.Pattern[str]], ...]
    arguments: tuple[str, ...]
    targets: re.Pattern[str] | None = None
    """Says in the configuration which files to look at; without it all are."""
    finding: re.Pattern[str] | None = None
    interpreter: str = ""
    """The option that names the interpreter whose packages are imported."""
    default: bool = False

    def configured_in(self, subject: Subject) -> str:
        """The file that configures it; empty when none does."""
        for path in self.files:
            if subject.files.exists(path):
                return path
        return next((path for path, line in self.sections if line.search(text(subject.files, path))), "")


@functools.cache
def checkers() -> tuple[TypeChecker, ...]:
    data = data_table("pawl.checks", "checkers.toml")
    return tuple(written(TypeChecker, entry) for entry in data["checker"])


def chosen(subject: Subject) -> tuple[TypeChecker, str]:
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

    def run(self, subject: Subject) -> CheckResult:
        if not subject.python_files():
            return skipped(self.name, "no Python file to check")
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
        found = _types_result(self.name, checker, completed, subject.origin, by)
        if not configured and found.findings and not any(one.severity is Severity.ERROR for one in found.findings):
            # What a checker only warns of, nobody asked it.
            return passed(self.name, f"{amount(len(found.findings), 'warning')}, no errors, by {by}")
        return replace(found, advisory=not configured)


def _targets(checker: TypeChecker, subject: Subject, configured: str) -> tuple[str, ...]:
    """The files to look at, or the whole workspace, unless the configuration names its files."""
    if subject.changed:
        return subject.python_files()
    if checker.targets is None:
        return ()
    return () if configured and checker.targets.search(text(subject.files, configured)) else (".",)


def _environment(checker: TypeChecker, subject: Subject, program: tuple[str, ...]) -> tuple[str, ...]:
    """Pawl's own checker is told the workspace's interpreter, which decides about imports; any other knows its own."""
    if program != (subject.spare.get(checker.name),) or not checker.interpreter:
        return ()
    found = subject.interpreter()
    return (checker.interpreter, found) if found else ()


def _types_result(step: str, checker: TypeChecker, completed: Completed, origin: Origin, by: str) -> CheckResult:
    if completed.code not in (0, _FOUND):
        return failed(step, f"{checker.name} gave up: {_gave_up(completed)}")
    try:
        output, pattern = completed.stdout.text, checker.finding
        findings = list(
            line_findings(checker.name, [pattern], output, origin) if pattern else _pyright(checker, output, origin)
        )
    except ValueError as error:
        return failed(step, f"the output of {checker.name} cannot be parsed: {error}")
    errors = sum(finding.severity is Severity.ERROR for finding in findings)
    if completed.code == 0 and not errors:
        return passed(step, f"no errors found by {by}")
    return failed(step, f"{amount(errors, 'error')} by {by}", findings)


def _pyright(checker: TypeChecker, output: str, origin: Origin) -> Iterator[Diagnostic]:
    said: dict[str, Any] = read_json(output)
    for entry in said.get("generalDiagnostics", []):
        severity = SEVERITIES.get(entry.get("severity", ""))
        start = entry.get("range", {}).get("start", {})
        if severity:
            yield Diagnostic(
                tool=checker.name,
                message=str(entry["message"]),
                path=origin.path(str(entry["file"])) or str(entry["file"]),
                line=int(start.get("line", -1)) + 1,
                column=int(start.get("character", -1)) + 1,
                severity=severity,
                code=str(entry.get("rule", "")),
            )
