"""Reads the JSON that jest (`--json`) and vitest (`--reporter=json`) print alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pawl.core.finding import Finding, TestCounts
from pawl.verify.parsers.javascript import failed, objects_with, without_advice
from pawl.verify.places import Origin
from pawl.verify.report import TestReport, report


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


def _findings(tool: str, result: dict[str, Any], origin: Origin) -> Iterator[Finding]:
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
