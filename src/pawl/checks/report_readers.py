"""The readers of test reports by name, and how one is read when nobody can say which reader fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from pawl.checks.compiled_reports import read_cargo, read_go
from pawl.checks.machine_reports import read_json_or_text, read_junit, read_node
from pawl.checks.output import ANYWHERE, FADING_IN_TEXT, Origin, cleaned, node_frames, python_traces, suspicions
from pawl.checks.python_reports import read_pytest, read_unittest
from pawl.checks.report import TestReport, failure, report
from pawl.code.code_model import Suspicion
from pawl.core.diagnostic import Diagnostic, TestCounts
from pawl.workspace.project import Project

Parser = Callable[[str, Origin], TestReport]

PARSERS: Mapping[str, Parser] = {
    "pytest": read_pytest,
    "unittest": read_unittest,
    "vitest": partial(read_json_or_text, "vitest"),
    "jest": partial(read_json_or_text, "jest"),
    "mocha": partial(read_json_or_text, "mocha"),
    "node": read_node,
    "rspec": partial(read_json_or_text, "rspec"),
    "cargo": read_cargo,
    "go": read_go,
    "junit": read_junit,
}


def parse(name: str, output: str, origin: Origin = ANYWHERE) -> TestReport:
    """The report of that parser; where it finds no summary and no failure, a traceback in the output is one."""
    found = PARSERS[name](output, origin)
    if found.findings or found.complete:
        return found
    fallback = by_traceback(name, output, origin)
    return fallback if fallback.findings else found


def suspected(shop: Project, text: str) -> tuple[Suspicion, ...]:
    """The places of failing tests, where the text holds what a test framework printed of them."""
    origin = Origin(workspace=shop.workspace)
    reports = (parser(text, origin).findings for parser in PARSERS.values())
    told: list[list[Diagnostic]] = [[finding for finding in findings if finding.test] for findings in reports]
    most = max(told, key=len)
    return suspicions(most, fading=FADING_IN_TEXT)


def by_traceback(tool: str, output: str, origin: Origin = ANYWHERE) -> TestReport:
    """Findings of a run that died before its framework could report: the last traceback or stack."""
    text = cleaned(output)
    traces = python_traces(text.lines, origin)
    if traces:
        found = [failure(tool, traces[-1].said, code=traces[-1].code, frames=traces[-1].frames)]
    else:
        frames = node_frames(text.lines, origin)
        said = next((line for line in text.lines if "Error" in line), "the run failed")
        found = [failure(tool, said.strip(), frames=frames)] if frames else []
    return report(TestCounts(errors=len(found)), found, ended=False, cut=text.cut)
