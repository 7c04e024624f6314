"""Syntax of JavaScript: every file must be readable by the Node that will run it."""

from __future__ import annotations

import functools
import json
import posixpath
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

from pawl.checks.output import Origin
from pawl.checks.project import Folder, dependencies, text, toml
from pawl.checks.steps import Subject, amount, failed, passed, skipped, stopped
from pawl.core.diagnostic import CheckResult, Diagnostic, Severity
from pawl.core.errors import PawlError
from pawl.core.execution import Completed
from pawl.core.formats import Unreadable, read_json, read_python, read_toml

ENDINGS = (".js", ".mjs", ".cjs")
_NOT_OURS = frozenset({"node_modules", "dist", "build", "vendor", ".next", "coverage"})
_TRANSFORMED = frozenset({"react", "react-scripts", "next", "preact", "@babel/core", "flow-bin", "solid-js"})
"""With one of these a .js file may hold what only a build can read."""
_SCRIPTS_AT_ONCE = 300


@functools.cache
def _script() -> str:
    return (resources.files("pawl.checks") / "node_syntax.cjs").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class NodeSyntax:
    name: str = "syntax (node)"

    def run(self, subject: Subject) -> CheckResult:
        paths = [path for path in subject.changed or subject.files.walk() if _is_ours(path)]
        paths = [path for path in paths if subject.files.exists(path)]
        if not paths:
            return skipped(self.name, "no JavaScript file to look at")
        loose = "loose" if _TRANSFORMED & dependencies(subject.files) else "strict"
        findings: list[Diagnostic] = []
        unread = 0
        for start in range(0, len(paths), _SCRIPTS_AT_ONCE):
            words = ("node", "--no-warnings", "--experimental-vm-modules", "-e", _script(), "--", loose)
            completed = subject.run((*words, *paths[start : start + _SCRIPTS_AT_ONCE]))
            if completed is None:
                return skipped(self.name, "node is not installed")
            if not completed.ok:
                reason = stopped(completed) or completed.stderr.text.strip()[-300:]
                return failed(self.name, f"node gave up: {reason}")
            for path, line, column, message in _read_node(completed.stdout.text):
                if message:
                    findings.append(
                        Diagnostic(
                            tool="node", message=message, path=path, line=line, column=column, code="SyntaxError"
                        )
                    )
                else:
                    unread += 1
        note = f"; {amount(unread, 'file')} left to the build, which transforms them" if unread else ""
        if findings:
            return failed(self.name, f"{amount(len(findings), 'file')} cannot be read{note}", findings)
        if unread == len(paths):
            return skipped(self.name, "every file is transformed by the build")
        return passed(self.name, f"{amount(len(paths) - unread, 'file')} read{note}")


def _is_ours(path: str) -> bool:
    return path.endswith(ENDINGS) and _NOT_OURS.isdisjoint(path.split("/"))


def _read_node(output: str) -> Iterator[tuple[str, int, int, str]]:
    for line in output.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            yield said["path"], int(said["line"]), int(said["column"]), str(said["message"])


NAMES = ("package.json", "pyproject.toml")


def unreadable(files: Folder, folders: Iterable[str] = ("",)) -> tuple[Diagnostic, ...]:
    """What is wrong with the project files of these folders."""
    return tuple(_wrong(files, [posixpath.join(folder, name) for folder in folders for name in NAMES]))


def _wrong(files: Folder, paths: Iterable[str]) -> Iterator[Diagnostic]:
    for path in paths:
        try:
            text = files.read(path).decode("utf-8-sig") if files.exists(path) else "{}"
        except (PawlError, UnicodeDecodeError) as error:
            yield Diagnostic(tool="syntax", message=f"it cannot be read: {error}", path=path)
            continue
        try:
            _read_project_file(path, text)
        except Unreadable as error:
            yield Diagnostic(tool="syntax", message=str(error), path=path, line=error.line, column=error.column)


def _read_project_file(path: str, text: str) -> None:
    if path.endswith(".json"):
        read_json(text)
    elif text != "{}":
        read_toml(text)


@dataclass(frozen=True, slots=True)
class ReadableFiles:
    folders: tuple[str, ...]
    name: str = "syntax (project files)"

    def run(self, subject: Subject) -> CheckResult:
        found = unreadable(subject.files, self.folders)
        if not found:
            return passed(self.name, "they can be read")
        return failed(self.name, f"{amount(len(found), 'file')} that cannot be read", found)


_ARGUMENTS = ("check", "--output-format", "json", "--no-fix", "--no-cache", "--force-exclude")
_ERRORS_ONLY = ("--select", "E9,F63,F7,F82")
_FOUND = 1


@dataclass(frozen=True, slots=True)
class Ruff:
    name: str = "lint"

    def run(self, subject: Subject) -> CheckResult:
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
            findings = list(_read_ruff(completed.stdout.text, subject.origin))
        except ValueError as error:
            return failed(self.name, f"what ruff printed cannot be read: {error}")
        rules = "the project's rules" if configured else "the rules for plain errors; the project configures none"
        if findings:
            return failed(self.name, f"{amount(len(findings), 'finding')} by {rules}", findings)
        return passed(self.name, f"nothing found by {rules}")


def is_configured(subject: Subject) -> bool:
    tools = toml(subject.files, "pyproject.toml").get("tool", {})
    return "ruff" in tools or any(subject.files.exists(name) for name in ("ruff.toml", ".ruff.toml"))


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


_TOOL = "python"
_SOURCES_AT_ONCE = 400
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
            "message": getattr(error, "msg", None) or str(error) or "it is nested too deeply",
        }))
"""
_OLDEST = (3, 7)


@dataclass(frozen=True, slots=True)
class Syntax:
    name: str = "syntax"

    def run(self, subject: Subject) -> CheckResult:
        paths = subject.python_files()
        if not paths:
            return skipped(self.name, "no Python file to look at")
        findings: list[Diagnostic] = []
        for batch in _batches(paths):
            completed = subject.run((subject.python, "-I", "-W", "ignore", "-c", _COMPILE, *batch))
            if completed is None:
                return _without_interpreter(self.name, subject, paths)
            if not completed.ok:
                reason = stopped(completed) or completed.stderr.text.strip()[-300:]
                return failed(self.name, f"the interpreter could not look at the files: {reason}")
            findings += _read_python(completed.stdout.text)
        return _syntax_result(self.name, findings, len(paths), "")


def _batches(paths: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(paths), _SOURCES_AT_ONCE):
        yield paths[start : start + _SOURCES_AT_ONCE]


def _read_python(output: str) -> Iterator[Diagnostic]:
    for line in output.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            yield Diagnostic(
                tool=_TOOL,
                message=f"{said['code']}: {said['message']}",
                path=said["path"],
                line=said["line"],
                column=said["column"],
                code=said["code"],
            )


def _without_interpreter(step: str, subject: Subject, paths: tuple[str, ...]) -> CheckResult:
    """Where the workspace's interpreter cannot be run, the grammar of the oldest version that it supports decides."""
    version = _oldest_supported(subject)
    findings = []
    for path in paths:
        try:
            read_python(subject.files.read(path), version=version)
        except Unreadable as error:
            code = str(error).partition(":")[0] if isinstance(error.__cause__, SyntaxError) else "SyntaxError"
            message, line, column = str(error), error.line, error.column
            findings.append(Diagnostic(tool=_TOOL, message=message, path=path, line=line, column=column, code=code))
    note = f" by the grammar of Python {version[0]}.{version[1]}; the project's interpreter was not found"
    return _syntax_result(step, findings, len(paths), note)


def _oldest_supported(subject: Subject) -> tuple[int, int]:
    wanted = toml(subject.files, "pyproject.toml").get("project", {}).get("requires-python", "")
    match = re.search(r">=\s*3\.(\d+)", str(wanted))
    return max(_OLDEST, (3, int(match[1]))) if match else _OLDEST


def _syntax_result(step: str, findings: list[Diagnostic], files: int, note: str) -> CheckResult:
    looked = f"{amount(files, 'file')} compiled{note}"
    if findings:
        return failed(step, f"{amount(len(findings), 'file')} cannot be compiled{note}", findings)
    return passed(step, looked)


_SEVERITIES = {"error": Severity.ERROR, "warning": Severity.WARNING, "warn": Severity.WARNING}
_FINDINGS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeChecker:
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
def checkers() -> tuple[TypeChecker, ...]:
    data = tomllib.loads((resources.files("pawl.checks") / "checkers.toml").read_text(encoding="utf-8"))
    return tuple(
        TypeChecker(
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
        return _types_result(self.name, checker, completed, subject.origin, by)


def _targets(checker: TypeChecker, subject: Subject, configured: str) -> tuple[str, ...]:
    """The whole workspace, unless the configuration names its files: a change shows in the files that use it too."""
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


def _lines(checker: TypeChecker, completed: Completed, origin: Origin) -> Iterator[Diagnostic]:
    pattern = checker.finding
    for match in pattern.finditer(completed.stdout.text) if pattern else ():
        yield Diagnostic(
            tool=checker.name,
            message=match["message"],
            path=origin.path(match["path"]) or match["path"],
            line=int(match["line"]),
            column=int(match["column"] or 0),
            severity=_SEVERITIES[match["severity"].lower()],
            code=match["code"] or "",
        )


def _pyright(checker: TypeChecker, completed: Completed, origin: Origin) -> Iterator[Diagnostic]:
    said: dict[str, Any] = read_json(completed.stdout.text)
    for entry in said.get("generalDiagnostics", []):
        severity = _SEVERITIES.get(entry.get("severity", ""))
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
