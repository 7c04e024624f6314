"""Reads what unittest prints, plain or verbose, of any Python version, whole or cut."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pawl.checks.output import CUT, Origin, cleaned
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.checks.tracebacks import python_traces
from pawl.core.diagnostic import Diagnostic, TestCounts

_TOOL = "unittest"
_DOUBLE = "=" * 70
_SINGLE = "-" * 70
_TITLE = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (.+?) \((\S+)\)(?: (.+))?$")
_RAN = re.compile(r"^Ran (\d+) tests? in [\d.]+s$")
_RESULT = re.compile(r"^(OK|FAILED|NO TESTS RAN)(?: \((.+)\))?$")
_AMOUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)")
_SAID = r"(ok|FAIL|ERROR|skipped|expected failure|unexpected success)"
_VERBOSE = re.compile(rf"^([\w.]+) \(([\w.]+)\)(?: .*)? \.\.\. {_SAID}\b")
_VERBOSE_NAMED = re.compile(r"^([\w.]+) \(([\w.]+)\)$")
_VERBOSE_DESCRIBED = re.compile(rf" \.\.\. {_SAID}\b")
_LETTERS = re.compile(r"^[.FEsxu]+$")
_BUFFERED = re.compile(r"^Std(?:out|err):$")
_FIELDS = {
    "ok": "passed",
    "FAIL": "failed",
    "ERROR": "errors",
    "skipped": "skipped",
    "expected failure": "skipped",
    "unexpected success": "failed",
}
_LETTER_FIELDS = {".": "passed", "F": "failed", "E": "errors", "s": "skipped", "x": "skipped", "u": "failed"}
_OUTSIDE_TESTS = frozenset({"setUpClass", "tearDownClass", "setUpModule", "tearDownModule"})


@dataclass(frozen=True, slots=True)
class _Block:
    word: str
    name: str
    inside: str
    subtest: str
    lines: tuple[str, ...]

    @property
    def test(self) -> str:
        return _test_id(self.name, self.inside)


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    blocks = list(_blocks(text.lines))
    shown = _verbose(text.lines)
    findings = [_finding(block, where) for block in blocks]
    known = {finding.test for finding in findings}
    for test, said in shown:
        if test not in known and said in ("FAIL", "ERROR", "unexpected success"):
            message = said if said == "unexpected success" else f"{said}: its traceback is not in the output"
            findings.append(failure(_TOOL, message, test=test, code=said))
    ran, result = _ending(text.lines)
    if ran is None:
        counts = _progress(text.lines, shown)
    else:
        counts = _counts(ran, result, blocks)
    return report(counts, findings, ended=ran is not None, cut=text.cut)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    starts = [
        index
        for index, line in enumerate(lines[:-1])
        if line == _DOUBLE and _TITLE.match(lines[index + 1])
    ]  # fmt: skip
    for index in starts:
        title = _TITLE.match(lines[index + 1])
        if title:
            body = _body(lines, index + 2)
            yield _Block(title[1], title[2], title[3], title[4] or "", body)


def _body(lines: Sequence[str], start: int) -> tuple[str, ...]:
    """What follows the title: a description up to the single rule, then the traceback up to the next rule."""
    body: list[str] = []
    seen_rule = False
    for line in lines[start:]:
        if line == _SINGLE and not seen_rule:
            seen_rule = True
            body = []
        elif line in (_DOUBLE, _SINGLE, CUT):
            break
        else:
            body.append(line)
    return tuple(body) if seen_rule else ()


def _test_id(name: str, inside: str) -> str:
    if "unittest.loader._FailedTest" in inside or "unittest.loader.ModuleSkipped" in inside:
        return name
    if name in _OUTSIDE_TESTS or inside.endswith(f".{name}"):
        return inside
    return f"{inside}.{name}"


def _finding(block: _Block, origin: Origin) -> Diagnostic:
    if block.word == "UNEXPECTED SUCCESS":
        return failure(_TOOL, "unexpected success", test=block.test, code="unexpected success")
    buffered = next((index for index, line in enumerate(block.lines) if _BUFFERED.match(line)), len(block.lines))
    lines = block.lines[:buffered]
    traces = python_traces(lines, origin)
    if not traces:
        message = unindented(lines)
        return failure(_TOOL, message, test=block.test, code=message.partition(":")[0])
    trace = traces[-1]
    head = f"{trace.kind}: {trace.message}" if trace.message else trace.kind
    start = max((index for index, line in enumerate(lines) if line.startswith(head)), default=0)
    message = unindented(lines[start:])
    if block.subtest:
        message = f"{block.subtest}: {message}"
    return failure(_TOOL, message, test=block.test, code=trace.kind.rsplit(".", 1)[-1], frames=trace.frames)


def _verbose(lines: Sequence[str]) -> list[tuple[str, str]]:
    """Each test with what `-v` says of it; a test with a description takes two lines."""
    shown = []
    for index, line in enumerate(lines):
        match = _VERBOSE.match(line)
        if match:
            shown.append((_test_id(match[1], match[2]), match[3]))
        elif named := _VERBOSE_NAMED.match(line):
            described = _VERBOSE_DESCRIBED.search(lines[index + 1]) if index + 1 < len(lines) else None
            if described:
                shown.append((_test_id(named[1], named[2]), described[1]))
    return shown


def _ending(lines: Sequence[str]) -> tuple[int | None, str]:
    for index in range(len(lines) - 1, 0, -1):
        ran = _RAN.match(lines[index])
        if ran and lines[index - 1] == _SINGLE:
            result = next((match for line in lines[index + 1 :] if (match := _RESULT.match(line))), None)
            return (int(ran[1]), result[2] or "") if result else (None, "")
    return None, ""


def _counts(ran: int, result: str, blocks: list[_Block]) -> TestCounts:
    amounts = {name: int(number) for name, number in _AMOUNT.findall(result)}
    skipped = amounts.get("skipped", 0) + amounts.get("expected failures", 0)
    unexpected = amounts.get("unexpected successes", 0)
    failed = amounts.get("failures", 0) + unexpected
    errors = amounts.get("errors", 0)
    # Several subtests of one test fail as one test; a broken setUpClass fails without a test having run.
    outside = sum(block.name in _OUTSIDE_TESTS for block in blocks)
    repeated = len(blocks) - len({(block.test, block.word) for block in blocks})
    passed = ran - (failed + errors - outside - repeated) - skipped
    return TestCounts(passed=max(passed, 0), failed=failed, errors=errors, skipped=skipped)


def _progress(lines: Sequence[str], shown: list[tuple[str, str]]) -> TestCounts:
    amounts: defaultdict[str, int] = defaultdict(int)
    for _, said in shown:
        amounts[_FIELDS[said]] += 1
    if not shown:
        for line in lines:
            for letter in line if _LETTERS.match(line) else "":
                amounts[_LETTER_FIELDS[letter]] += 1
    return TestCounts(**amounts)
