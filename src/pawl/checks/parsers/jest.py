"""Reads what jest prints, plain, verbose or as JSON, whole or cut."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence

from pawl.checks.output import CUT, Origin, cleaned
from pawl.checks.parsers.javascript import failed, parse_json, without_advice
from pawl.checks.report import TestReport, report
from pawl.core.diagnostic import Diagnostic, TestCounts

_TOOL = "jest"
_FILE = re.compile(r"^ ?(FAIL|PASS) +(?:\S+ )?(\S+\.[cm]?[jt]sx?)(?: \([\d.]+ m?s\))?$")
_TITLE = re.compile(r"^  ● (.+)$")
_SUITES = re.compile(r"^Test Suites: (?:(\d+) failed)?")
_TESTS = re.compile(r"^Tests: +(.+) total$")
_AMOUNT = re.compile(r"(\d+) (passed|failed|skipped|todo|pending)")
_NONE = re.compile(r"^No tests found")
_SUITE_FAILED = "Test suite failed to run"
_NOT_A_TEST = ("Console", "Cannot log after tests are done")


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    machine = parse_json(_TOOL, text.text, where)
    if machine:
        return machine
    findings = list(_findings(text.lines, where))
    none = any(_NONE.match(line) for line in text.lines)
    files = {finding.test.split(" > ")[0] for finding in findings if " > " in finding.test}
    counted = _counts(text.lines, len(files))
    counts = counted or TestCounts(failed=len(set(findings)))
    notes = ["no tests were found"] if none else []
    return report(counts, findings, ended=counted is not None or none, cut=text.cut, notes=notes)


def _findings(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    path = title = ""
    body: list[str] = []
    for line in (*lines, CUT):
        file, heading = _FILE.match(line), _TITLE.match(line)
        if file or heading or line == CUT or _SUITES.match(line):
            if path and title and any(said.strip() for said in body):
                yield _finding(path, title, body, origin)
            body = []
            title = heading[1] if heading and not heading[1].startswith(_NOT_A_TEST) else ""
            if file:
                path = file[2] if file[1] == "FAIL" else ""
            elif line == CUT:
                path = ""
        elif title:
            body.append(line)


def _finding(path: str, title: str, body: list[str], origin: Origin) -> Diagnostic:
    where = origin.path(path) or path
    if title != _SUITE_FAILED:
        return failed(_TOOL, " > ".join([where, *title.split(" › ")]), body, origin, test_file=path)
    return failed(_TOOL, where, without_advice(body), origin, test_file=path)


def _counts(lines: Sequence[str], files_with_failures: int) -> TestCounts | None:
    """The closing amounts. A file that failed without a failing test could not be run."""
    found = None
    errors = 0
    for before, line in itertools.pairwise(lines):
        tests, suites = _TESTS.match(line), _SUITES.match(before)
        if tests and suites:
            found = {word: int(number) for number, word in _AMOUNT.findall(tests[1])}
            errors = max(int(suites[1] or 0) - files_with_failures, 0)
    if found is None:
        return None
    return TestCounts(
        passed=found.get("passed", 0),
        failed=found.get("failed", 0),
        errors=errors,
        skipped=sum(found.get(word, 0) for word in ("skipped", "todo", "pending")),
    )
