"""Reads what vitest prints with its default, verbose, dot and JSON reporters, whole or cut.

Every failure ends in a numbered rule, which tells it from an imitation that a test printed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pawl.checks.output import CUT, Origin, cleaned
from pawl.checks.parsers.javascript import failed, parse_json
from pawl.checks.report import TestReport, report
from pawl.core.diagnostic import Diagnostic, TestCounts

_TOOL = "vitest"
_HEADING = re.compile(r"^⎯+ ?(Failed Suites|Failed Tests|Unhandled Errors?|Unhandled \w+) ?(\d*) ?⎯+$")
_RULE = re.compile(r"^⎯+(?:\[\d+/\d+\])?⎯+$")
_FAIL = re.compile(r"^ FAIL  (?:\|[^|]+\| )?(.+)$")
_WHOLE_FILE = re.compile(r"^(.+?) \[ .+ \]$")
_FILES = re.compile(r"^ *Test Files  ")
_TESTS = re.compile(r"^ *Tests  (?:(.+) \(\d+\)|no tests)$")
_ERRORS = re.compile(r"^ *Errors  (\d+) errors?$")
_AMOUNT = re.compile(r"(\d+) (passed|failed|skipped|todo)")
_NONE = re.compile(r"^No test (?:files|suite) found")


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    machine = parse_json(_TOOL, text.text, where)
    if machine:
        return machine
    lines = text.lines
    findings = list(_findings(lines, where))
    none = any(_NONE.match(line) for line in lines)
    counted = _counts(lines)
    counts = counted or TestCounts(failed=sum(" > " in finding.test for finding in findings))
    notes = ["no test files were found"] if none else []
    return report(counts, findings, ended=counted is not None or none, cut=text.cut, notes=notes)


def _findings(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    names: list[str] = []
    body: list[str] = []
    in_region = False
    for line in lines:
        fail, heading = _FAIL.match(line), _HEADING.match(line)
        if heading or line == CUT:
            in_region = bool(heading)
            names, body = ["unhandled"] if heading and heading[1].startswith("Unhandled") else [], []
        elif fail:
            names = [fail[1]] if body else [*names, fail[1]]
            body = []
        elif _RULE.match(line) and names:
            yield from _of_block(names, body, origin)
            names, body = [], []
        elif names and (body or line.strip()):
            body.append(line)
    if in_region and body:
        yield from _of_block(names, body, origin)


def _of_block(names: list[str], body: list[str], origin: Origin) -> Iterator[Diagnostic]:
    for name in names:
        whole = _WHOLE_FILE.match(name)
        test = whole[1] if whole else "" if name == "unhandled" else name
        if any(line.strip() for line in body):
            yield failed(_TOOL, test, body, origin, test_file=test.split(" > ", 1)[0])


def _counts(lines: Sequence[str]) -> TestCounts | None:
    """The closing amounts; only those right below the files' amounts are vitest's own."""
    found = None
    suites = 0
    for index, line in enumerate(lines):
        heading = _HEADING.match(line)
        errors = _ERRORS.match(line)
        if heading and heading[1] == "Failed Suites":
            suites += int(heading[2] or 0)
        elif errors:
            suites += int(errors[1])
        elif index and _FILES.match(lines[index - 1]) and (tests := _TESTS.match(line)):
            found = {word: int(number) for number, word in _AMOUNT.findall(tests[1] or "")}
    if found is None:
        return None
    return TestCounts(
        passed=found.get("passed", 0),
        failed=found.get("failed", 0),
        errors=suites,
        skipped=found.get("skipped", 0) + found.get("todo", 0),
    )
