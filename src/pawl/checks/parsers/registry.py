"""The parsers by name, and how a report is read when nobody can say which one fits."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pawl.checks.output import Origin, cleaned
from pawl.checks.parsers import cargo as cargo_text
from pawl.checks.parsers import go as go_text
from pawl.checks.parsers import jest as jest_text
from pawl.checks.parsers import junit
from pawl.checks.parsers import mocha as mocha_text
from pawl.checks.parsers import node as node_text
from pawl.checks.parsers import pytest as pytest_text
from pawl.checks.parsers import rspec as rspec_text
from pawl.checks.parsers import unittest as unittest_text
from pawl.checks.parsers import vitest as vitest_text
from pawl.checks.report import TestReport, failure, report
from pawl.checks.tracebacks import node_frames, python_traces
from pawl.core.diagnostic import Diagnostic, TestCounts

Parser = Callable[[str, Origin | None], TestReport]

PARSERS: Mapping[str, Parser] = {
    "pytest": pytest_text.parse,
    "unittest": unittest_text.parse,
    "vitest": vitest_text.parse,
    "jest": jest_text.parse,
    "mocha": mocha_text.parse,
    "node": node_text.parse,
    "rspec": rspec_text.parse,
    "cargo": cargo_text.parse,
    "go": go_text.parse,
    "junit": junit.parse,
}


def parse(name: str, output: str, origin: Origin | None = None) -> TestReport:
    """The report of that parser; where it finds no summary and no failure, a traceback in the output is one."""
    found = PARSERS[name](output, origin)
    if found.findings or found.complete:
        return found
    fallback = by_traceback(name, output, origin)
    return fallback if fallback.findings else found


def failing(output: str, origin: Origin | None = None) -> tuple[Diagnostic, ...]:
    """The failing tests that a text tells of, whichever framework printed it; none where it is no report."""
    reports = (parser(output, origin).findings for parser in PARSERS.values())
    told = [tuple(finding for finding in findings if finding.test) for findings in reports]
    return max(told, key=len)


def by_traceback(tool: str, output: str, origin: Origin | None = None) -> TestReport:
    """What can be said of a run that died before its framework could report: the last traceback or stack."""
    where = origin or Origin()
    text = cleaned(output)
    traces = python_traces(text.lines, where)
    if traces:
        trace = traces[-1]
        message = f"{trace.kind}: {trace.message}" if trace.message else trace.kind
        found = [failure(tool, message, code=trace.kind.rsplit(".", 1)[-1], frames=trace.frames)]
    else:
        frames = node_frames(text.lines, where)
        said = next((line for line in text.lines if "Error" in line), "the run failed")
        found = [failure(tool, said.strip(), frames=frames)] if frames else []
    return report(TestCounts(errors=len(found)), found, ended=False, cut=text.cut)
