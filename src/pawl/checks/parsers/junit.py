"""Reads JUnit XML, as pytest (`--junitxml`) and many other runners write it, wherever it stands in the output."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from xml.etree import ElementTree

from pawl.checks.output import Origin, cleaned
from pawl.checks.parsers.pytest import FailureBlock, details
from pawl.checks.report import TestReport, failure, report
from pawl.core.diagnostic import Diagnostic, TestCounts

_DOCUMENT = re.compile(r"<(testsuites|testsuite)\b.*</\1>", re.DOTALL)


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    root = _root(text.text)
    if root is None:
        return report(TestCounts(), (), ended=False, cut=text.cut, notes=["the output holds no JUnit report"])
    amounts: defaultdict[str, int] = defaultdict(int)
    findings: list[Diagnostic] = []
    for case in root.iter("testcase"):
        kinds = {child.tag for child in case}
        for tag, name in (("failure", "failed"), ("error", "errors"), ("skipped", "skipped")):
            amounts[name] += tag in kinds
        amounts["passed"] += kinds.isdisjoint({"failure", "error", "skipped"})
        findings += _findings(case, where)
    return report(TestCounts(**amounts), findings, ended=True)


def _root(text: str) -> ElementTree.Element | None:
    match = _DOCUMENT.search(text)
    if not match or "<!ENTITY" in match[0]:
        return None
    try:
        return ElementTree.fromstring(match[0])
    except (ElementTree.ParseError, ValueError, RecursionError, MemoryError):
        return None


def _findings(case: ElementTree.Element, origin: Origin) -> Iterator[Diagnostic]:
    for child in case:
        if child.tag in ("failure", "error"):
            said = details(FailureBlock("", tuple((child.text or "").split("\n"))), origin)
            message = child.get("message") or said.message
            test = _test_id(case, origin)
            at = None if said.frames else origin.place(case.get("file", ""), int(case.get("line") or 0))
            yield failure("junit", message, test=test, code=said.code, frames=said.frames, at=at)


def _test_id(case: ElementTree.Element, origin: Origin) -> str:
    """pytest's own id where the class name leads to a file that is known; else both names."""
    module, name = case.get("classname", ""), case.get("name", "")
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length]) + ".py"
        if path in origin.files:
            return "::".join([path, *parts[length:], name])
    return f"{module}.{name}" if module else name
