"""Reads what mocha prints with its spec, dot, min and JSON reporters, whole or cut."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pawl.checks.output import CUT, Origin, cleaned
from pawl.checks.parsers.javascript import failed, objects_with
from pawl.checks.report import TestReport, failure, report
from pawl.core.diagnostic import Diagnostic, TestCounts

_TOOL = "mocha"
_PASSING = re.compile(r"^  (\d+) passing \([\d.]+m?s?[^)]*\)$")
_OTHERS = re.compile(r"^  (\d+) (pending|failing)$")
_NUMBERED = re.compile(r"^  (\d+)\) (.+)$")
_INNER_TITLE = re.compile(r"^ {7,}(\S.*)$")
_DIFFERENCE = re.compile(r"^\s*\+ expected - actual$")
_EXCEPTION = re.compile(r"^ ?(?:Exception during run: )(.+)$")
_NONE = re.compile(r"^Error: (No test files found.*)$")


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    machine = _parse_json(text.text, where)
    if machine:
        return machine
    lines = text.lines
    end = max((index for index, line in enumerate(lines) if _PASSING.match(line)), default=None)
    if end is not None:
        counts = _counts(lines, end)
        return report(counts, _findings(lines[end:], where), ended=True, cut=text.cut)
    start = max((index + 1 for index, line in enumerate(lines) if line == CUT), default=None)
    findings = list(_findings(lines[start:], where)) if start is not None else []
    return report(TestCounts(failed=len(findings)), [*findings, *_never_ran(lines, where)], ended=False, cut=text.cut)


def _counts(lines: Sequence[str], end: int) -> TestCounts:
    amounts = {"pending": 0, "failing": 0}
    for line in lines[end + 1 : end + 3]:
        match = _OTHERS.match(line)
        if match:
            amounts[match[2]] = int(match[1])
    passing = _PASSING.match(lines[end])
    return TestCounts(passed=int(passing[1]) if passing else 0, failed=amounts["failing"], skipped=amounts["pending"])


def _findings(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    """The numbered failures; they count up, which tells them from what looks like one inside a message."""
    starts: list[int] = []
    for index, line in enumerate(lines):
        match = _NUMBERED.match(line)
        if match and (not starts or int(match[1]) == _number(lines[starts[-1]]) + 1):
            starts.append(index)
    for start, stop in itertools.pairwise([*starts, len(lines)]):
        titles, body = _titles(lines[start:stop])
        if titles:
            yield failed(_TOOL, " ".join(titles), _without_difference(body), origin)


def _number(line: str) -> int:
    match = _NUMBERED.match(line)
    return int(match[1]) if match else 0


def _titles(lines: Sequence[str]) -> tuple[list[str], Sequence[str]]:
    """The names of the suites and of the test, each deeper than the one before, up to a colon."""
    titles: list[str] = []
    for index, line in enumerate(lines):
        match = _NUMBERED.match(line) if index == 0 else _INNER_TITLE.match(line)
        if not match:
            return [], ()
        title = match[match.re.groups]
        if title.endswith(":"):
            return [*titles, title[:-1]], lines[index + 1 :]
        titles.append(title)
    return [], ()


def _without_difference(lines: Sequence[str]) -> list[str]:
    """The message and the stack; the difference between them repeats the message."""
    kept: list[str] = []
    skipping = False
    for line in lines:
        skipping = bool(_DIFFERENCE.match(line)) or (skipping and not line.lstrip().startswith("at "))
        if not skipping:
            kept.append(line)
    return kept


def _never_ran(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    for index, line in enumerate(lines):
        exception, none = _EXCEPTION.match(line), _NONE.match(line)
        if exception:
            yield failed(_TOOL, "", [exception[1], *lines[index + 1 :]], origin)
        elif none:
            yield failure(_TOOL, none[1], code="usage")


def _parse_json(text: str, origin: Origin) -> TestReport | None:
    results: list[dict[str, Any]] = [result for result in objects_with(text, "stats") if "failures" in result]
    if not results:
        return None
    stats = results[-1]["stats"]
    findings = []
    for test in results[-1]["failures"]:
        error = test.get("err", {})
        lines = str(error.get("stack") or error.get("message", "")).split("\n")
        findings.append(failed(_TOOL, str(test.get("fullTitle", "")), lines, origin, test_file=str(test.get("file"))))
    counts = TestCounts(
        passed=int(stats.get("passes", 0)), failed=int(stats.get("failures", 0)), skipped=int(stats.get("pending", 0))
    )
    return report(counts, findings, ended=True)
