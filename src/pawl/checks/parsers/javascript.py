"""What the JavaScript test frameworks' reports have in common."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pawl.checks.output import Origin
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.checks.tracebacks import node_frames
from pawl.core.diagnostic import Diagnostic, Location, TestCounts

_ERROR = re.compile(r"^(?:Uncaught )?(\w*(?:Error|Exception))(?: \[(\w+)\])?(?::|$)")
_STACK_LINE = re.compile(r"^\s*(?:at\s|❯ )")
_CODE_FRAME = re.compile(r"^\s*(?:>\s*)?(?:\d+\s*)?\|")
_NAMED_PLACE = re.compile(r"(?:^\s*File: |: )(/[^\s:]+):(?:(\d+):(\d+)| .*\((\d+):(\d+)\))")
_IN_BRACKETS = re.compile(r"\((/[^\s()]+\.[cm]?[jt]sx?)\)$")
_LONGEST_LINE = 1000


def objects_with(text: str, key: str) -> Iterator[dict[str, object]]:
    """The JSON objects in a text that have that key; a reporter's output may stand between other lines."""
    decoder = json.JSONDecoder()
    position = 0
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        if match.start() < position:
            continue
        try:
            value, position = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        if isinstance(value, dict) and key in value:
            yield value


def code_of(message: str) -> str:
    """The error's class; a failed expectation without one is an assertion."""
    match = _ERROR.match(message)
    if match:
        return match[1]
    return "AssertionError" if message.startswith("expect(") else ""


def without_advice(lines: Sequence[str]) -> Sequence[str]:
    """The lines that say why a file could not be run; jest puts a title and a page of general advice above them."""
    start = 0
    for index, line in enumerate(lines):
        if line.strip() in ("Details:", "● Test suite failed to run"):
            start = index + 1
    return lines[start:]


def failed(tool: str, test: str, lines: Sequence[str], origin: Origin, *, test_file: str = "") -> Diagnostic:
    """A failing test from the lines that explain it: the message, then code frames and the stack."""
    said: list[str] = []
    for line in lines:
        if _STACK_LINE.match(line) or _CODE_FRAME.match(line):
            break
        said.append(line)
    message = unindented(said).lstrip()
    if message.startswith("Error: expect("):
        message = message.removeprefix("Error: ")
    frames = node_frames(lines, origin)
    at = None if frames else _named(lines, origin) or (origin.place(test_file) if test_file else None)
    return failure(tool, message, test=test, code=code_of(message), frames=frames, at=at)


def _named(lines: Sequence[str], origin: Origin) -> Location | None:
    """A place that the message itself names, for errors whose stack lies in a library."""
    for line in (line for line in lines if len(line) < _LONGEST_LINE):
        match = _NAMED_PLACE.search(line)
        if match:
            return origin.place(match[1], int(match[2] or match[4]), int(match[3] or match[5]))
        bracketed = _IN_BRACKETS.search(line)
        if bracketed:
            return origin.place(bracketed[1])
    return None


def parse_json(tool: str, text: str, origin: Origin) -> TestReport | None:
    """The report of the last result object in the text; None when there is none."""
    results: list[dict[str, Any]] = list(objects_with(text, "testResults"))
    if not results:
        return None
    result = results[-1]
    findings = list(_findings(tool, result, origin))
    counts = TestCounts(
        passed=int(result.get("numPassedTests", 0)),
        failed=int(result.get("numFailedTests", 0)),
        errors=sum(" > " not in finding.test for finding in findings),
        skipped=int(result.get("numPendingTests", 0)) + int(result.get("numTodoTests", 0)),
    )
    return report(counts, findings, ended=True)


def _findings(tool: str, result: dict[str, Any], origin: Origin) -> Iterator[Diagnostic]:
    for file in result["testResults"]:
        path = origin.path(str(file.get("name", ""))) or str(file.get("name", ""))
        tests = file.get("assertionResults", [])
        failing = [test for test in tests if test.get("status") == "failed"]
        for test in failing:
            # As in the text report, where a title that holds the separator cannot be told from two.
            titles = [title.replace(" › ", " > ") for title in [*test.get("ancestorTitles", []), test.get("title", "")]]
            name = " > ".join([path, *titles])
            lines = "\n".join(test.get("failureMessages", [])).split("\n")
            yield failed(tool, name, lines, origin, test_file=path)
        if file.get("status") == "failed" and not failing and file.get("message"):
            yield failed(tool, path, without_advice(str(file["message"]).split("\n")), origin, test_file=path)
