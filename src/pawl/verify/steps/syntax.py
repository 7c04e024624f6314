"""Syntax: every Python file must compile by the rules of the interpreter that will run it."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pawl.core.finding import Finding, Verdict
from pawl.verify.project import toml
from pawl.verify.steps.step import Subject, amount, failed, passed, skipped, stopped

_TOOL = "python"
_AT_ONCE = 400
_COMPILE = """
import json, sys
for path in sys.argv[1:]:
    try:
        with open(path, "rb") as file:
            compile(file.read(), path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        print(json.dumps({
            "path": path,
            "line": getattr(error, "lineno", 0) or 0,
            "column": getattr(error, "offset", 0) or 0,
            "code": type(error).__name__,
            "message": getattr(error, "msg", None) or str(error),
        }))
"""
_OLDEST = (3, 7)


@dataclass(frozen=True, slots=True)
class Syntax:
    name: str = "syntax"

    def run(self, subject: Subject) -> Verdict:
        paths = subject.python_files()
        if not paths:
            return skipped(self.name, "no Python file to look at")
        findings: list[Finding] = []
        for batch in _batches(paths):
            completed = subject.run((subject.python, "-I", "-W", "ignore", "-c", _COMPILE, *batch))
            if completed is None:
                return _without_interpreter(self.name, subject, paths)
            if not completed.ok:
                reason = stopped(completed) or completed.stderr.text.strip()[-300:]
                return failed(self.name, f"the interpreter could not look at the files: {reason}")
            findings += _read(completed.stdout.text)
        return _verdict(self.name, findings, len(paths), "")


def _batches(paths: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for start in range(0, len(paths), _AT_ONCE):
        yield paths[start : start + _AT_ONCE]


def _read(output: str) -> Iterator[Finding]:
    for line in output.splitlines():
        if line.startswith("{"):
            said = json.loads(line)
            yield Finding(
                tool=_TOOL,
                message=f"{said['code']}: {said['message']}",
                path=said["path"],
                line=said["line"],
                column=said["column"],
                code=said["code"],
            )


def _without_interpreter(step: str, subject: Subject, paths: tuple[str, ...]) -> Verdict:
    """Where the workspace's interpreter cannot be run, the grammar of the oldest version that it supports decides."""
    version = _oldest_supported(subject)
    findings = []
    for path in paths:
        try:
            ast.parse(subject.files.read(path), path, feature_version=version)
        except (SyntaxError, ValueError) as error:
            code = type(error).__name__
            line, column = getattr(error, "lineno", 0) or 0, getattr(error, "offset", 0) or 0
            message = f"{code}: {getattr(error, 'msg', None) or error}"
            findings.append(Finding(tool=_TOOL, message=message, path=path, line=line, column=column, code=code))
    note = f" by the grammar of Python {version[0]}.{version[1]}; the project's interpreter was not found"
    return _verdict(step, findings, len(paths), note)


def _oldest_supported(subject: Subject) -> tuple[int, int]:
    wanted = toml(subject.files, "pyproject.toml").get("project", {}).get("requires-python", "")
    match = re.search(r">=\s*3\.(\d+)", str(wanted))
    return max(_OLDEST, (3, int(match[1]))) if match else _OLDEST


def _verdict(step: str, findings: list[Finding], files: int, note: str) -> Verdict:
    looked = f"{amount(files, 'file')} compiled{note}"
    if findings:
        return failed(step, f"{amount(len(findings), 'file')} cannot be compiled{note}", findings)
    return passed(step, looked)
