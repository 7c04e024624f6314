"""The readers of test reports by name: those that runners write for machines, and which one fits."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from typing import Any
from xml.etree import ElementTree

from pawl.checks.compiled_reports import read_cargo, read_go
from pawl.checks.output import (
    ANYWHERE,
    CUT,
    FADING_IN_TEXT,
    Origin,
    cleaned,
    node_frames,
    python_traces,
    shortened,
    suspicions,
)
from pawl.checks.python_reports import FailureBlock, details, read_pytest, read_unittest
from pawl.checks.report import TestReport, failure, report
from pawl.checks.text_reports import error_class, failures, read_text, script_failure, without_advice
from pawl.code.code_model import Suspicion
from pawl.core.diagnostic import Diagnostic, TestCounts, TestOutcome, TestRun
from pawl.core.lazy_dataclass import dataclass
from pawl.workspace.project import Project

_RUBY_FRAME = re.compile(r"^(\S+?):(\d+)(?::in .+)?$")


def read_json_or_text(tool: str, output: str, origin: Origin = ANYWHERE) -> TestReport:
    """The last result object in the output, or else what is printed for people."""
    for found in reversed(list(_objects(cleaned(output).text))):
        for keys, read in _JSON.items():
            if keys <= found.keys():
                # A test may print what only looks like a result.
                with suppress(TypeError, ValueError, KeyError, AttributeError):
                    return read(tool, found, origin)
    return read_text(tool, output, origin)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text; a reporter's output may stand between other lines."""
    decoder = json.JSONDecoder()
    position = 0
    for match in re.finditer(r"^\{", text, re.MULTILINE):
        if match.start() < position:
            continue
        try:
            value, position = decoder.raw_decode(text, match.start())
        except ValueError:
            continue
        except RecursionError:  # no reporter nests so deep, and each line of it would be tried to the same end
            return
        yield value


def _of_jest(tool: str, result: Mapping[str, Any], origin: Origin) -> TestReport:
    """Of jest and vitest, which write the same."""
    findings = []
    ran: list[TestRun] = []
    for file in result["testResults"]:
        path = origin.path(str(file.get("name", ""))) or str(file.get("name", ""))
        tests = file.get("assertionResults", [])
        failing = [test for test in tests if test.get("status") == "failed"]
        ran += [_test_run(_jest_id(path, test), str(test.get("status")), test.get("duration")) for test in tests]
        for test in failing:
            lines = "\n".join(test.get("failureMessages", [])).split("\n")
            findings.append(script_failure(tool, _jest_id(path, test), lines, origin, path))
        if file.get("status") == "failed" and not failing and file.get("message"):
            said = without_advice(str(file["message"]).split("\n"))
            findings.append(script_failure(tool, path, said, origin, path))
    counts = TestCounts(
        passed=int(result.get("numPassedTests", 0)),
        failed=int(result.get("numFailedTests", 0)),
        errors=max(
            sum(" > " not in finding.test for finding in findings), int(result.get("numRuntimeErrorTestSuites", 0))
        ),
        skipped=int(result.get("numPendingTests", 0)) + int(result.get("numTodoTests", 0)),
    )
    return report(counts, findings, ended=True).naming(ran)


def _jest_id(path: str, test: Mapping[str, Any]) -> str:
    # As in the text report, where a title that holds the separator cannot be told from two.
    titles = [title.replace(" › ", " > ") for title in [*test.get("ancestorTitles", []), test.get("title", "")]]
    return " > ".join([path, *titles])


def _test_run(test: str, status: str, milliseconds: object = None) -> TestRun:
    seconds = float(milliseconds) / 1000 if isinstance(milliseconds, int | float) else 0.0
    return TestRun(id=test, outcome=_OUTCOMES.get(status, TestOutcome.SKIPPED), seconds=seconds)


_OUTCOMES = {"passed": TestOutcome.PASSED, "failed": TestOutcome.FAILED}


def _of_mocha(tool: str, result: Mapping[str, Any], origin: Origin) -> TestReport:
    findings = []
    for test in result["failures"]:
        error = test.get("err", {})
        lines = str(error.get("stack") or error.get("message", "")).split("\n")
        findings.append(script_failure(tool, str(test.get("fullTitle", "")), lines, origin, str(test.get("file"))))
    passed, failed, skipped = (int(result["stats"].get(word, 0)) for word in ("passes", "failures", "pending"))
    ran = [
        _test_run(str(test.get("fullTitle", "")), status, test.get("duration"))
        for key, status in (("passes", "passed"), ("failures", "failed"), ("pending", "skipped"))
        for test in result.get(key, ())
    ]
    return report(TestCounts(passed=passed, failed=failed, skipped=skipped), findings, ended=True).naming(ran)


def _of_rspec(tool: str, result: Mapping[str, Any], origin: Origin) -> TestReport:
    findings = []
    for example in result["examples"]:
        error = example.get("exception")
        if example.get("status") == "failed" and error:
            frames = [match for line in error.get("backtrace") or [] if (match := _RUBY_FRAME.match(line))]
            findings.append(
                failure(
                    tool,
                    str(error.get("message", "")).strip("\n"),
                    test=str(example.get("full_description", "")),
                    code=str(error.get("class", "")),
                    frames=shortened(origin.place(match[1], int(match[2])) for match in reversed(frames)),
                    at=None if frames else origin.place(example["file_path"], int(example["line_number"])),
                )
            )
    summary = result["summary"]
    total, failed, pending = (int(summary.get(f"{word}_count", 0)) for word in ("example", "failure", "pending"))
    errors = int(summary.get("errors_outside_of_examples_count", 0))
    counts = TestCounts(passed=total - failed - pending, failed=failed, skipped=pending, errors=errors)
    return report(counts, findings, ended=True)


_JSON: Mapping[frozenset[str], Callable[[str, Mapping[str, Any], Origin], TestReport]] = {
    frozenset({"testResults"}): _of_jest,
    frozenset({"stats", "failures"}): _of_mocha,
    frozenset({"examples", "summary"}): _of_rspec,
}
"""The readers by keys that only their reports have."""

_DOCUMENT = re.compile(r"<(testsuites?)\b")


def read_junit(output: str, origin: Origin = ANYWHERE) -> TestReport:
    """The report of pytest (`--junitxml`) and of many other runners."""
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
        findings += _junit_findings(case, origin)
    return report(TestCounts(**amounts), findings, ended=True)


def _root(text: str) -> ElementTree.Element | None:
    starts = {match[1]: match.start() for match in reversed(list(_DOCUMENT.finditer(text)))}
    whole = [(start, name) for name, start in starts.items() if text.rfind(f"</{name}>") > start]
    if not whole:
        return None
    start, name = min(whole)
    document = text[start : text.rfind(f"</{name}>") + len(name) + 3]
    if "<!ENTITY" in document:
        return None
    try:
        return ElementTree.fromstring(document)
    except (ElementTree.ParseError, ValueError, RecursionError, MemoryError):
        return None


def _junit_findings(case: ElementTree.Element, origin: Origin) -> Iterator[Diagnostic]:
    for child in case:
        if child.tag in ("failure", "error"):
            said = details(FailureBlock("", tuple((child.text or "").split("\n"))), origin)
            message = child.get("message") or said.message
            test = _junit_id(case, origin)
            at = None if said.frames else origin.place(case.get("file", ""), _number(case.get("line")))
            yield failure("junit", message, test=test, code=said.code, frames=said.frames, at=at)


def _number(text: str | None) -> int:
    return int(text) if text and text.isdecimal() and len(text) < 10 else 0


def _junit_id(case: ElementTree.Element, origin: Origin) -> str:
    """pytest's own id where the class name leads to a file that is known; else both names."""
    module, name = case.get("classname", ""), case.get("name", "")
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        path = "/".join(parts[:length]) + ".py"
        if path in origin.files:
            return "::".join([path, *parts[length:], name])
    return f"{module}.{name}" if module else name


_POINT = re.compile(r"^(?P<indent> *)(?P<not>not )?ok \d+ - (?P<name>.*?)(?: # (?P<directive>SKIP|TODO)\b.*)?$")
_SUBTEST = re.compile(r"^(?P<indent> *)# Subtest: (?P<name>.*)$")
_COUNT = re.compile(r"^(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d+)$")
_VALUE = re.compile(r"^(?P<key>\w+): (?P<value>.*)$")
_LOCATION = re.compile(r"^(?:file://)?(?P<path>[^:]*):(?P<place>\d+(?::\d+)?)$")
_PATH = re.compile(r"(?<![\w./@-])[\w./@-]+\.[cm]?[jt]sx?")
_INDENT = 4


@dataclass(slots=True)
class _Point:
    """One `not ok` line with the YAML block below it."""

    titles: tuple[str, ...]
    values: dict[str, str] = field(default_factory=dict)
    stack: list[str] = field(default_factory=list)

    @property
    def is_suite(self) -> bool:
        """Whether it failed only because of what is in it."""
        return self.values.get("failureType") == "subtestsFailed"


def read_node(output: str, origin: Origin = ANYWHERE) -> TestReport:
    """The report of Node's own test runner: TAP, or what its spec reporter prints."""
    text = cleaned(output)
    amounts = {match[1]: int(match[2]) for line in text.lines if (match := _COUNT.match(line.strip()))}
    points = list(_points(text.lines))
    tests = [point for point in points if not point.is_suite]
    findings = [_tap_finding(point, origin) for point in tests] or list(failures("node", text.lines, origin))
    ended = "fail" in amounts
    failing = amounts.get("fail", 0) + amounts.get("cancelled", 0)
    # A suite that failed because of its tests is counted by some versions and not by others.
    counted = len(tests) if tests and len(points) == failing and not text.cut else failing
    counts = TestCounts(
        passed=amounts.get("pass", 0), failed=counted, skipped=amounts.get("skipped", 0) + amounts.get("todo", 0)
    )
    return report(counts, findings, ended=ended, cut=text.cut)


def _points(lines: Sequence[str]) -> Iterator[_Point]:
    """The failing tests and suites of TAP output, as far as they stand there whole."""
    names: dict[int, str] = {}
    for index, line in enumerate(lines):
        if line == CUT:
            names = {}
        started = _SUBTEST.match(line)
        if started:
            depth = len(started["indent"]) // _INDENT
            names = {level: name for level, name in names.items() if level < depth} | {depth: started["name"]}
        match = _POINT.match(line)
        if not match or not match["not"] or match["directive"]:
            continue
        depth = len(match["indent"]) // _INDENT
        if any(level not in names for level in range(depth)):
            continue
        point = _Point((*(names[level] for level in range(depth)), match["name"]))
        if _fill(point, lines[index + 1 :], len(match["indent"]) + 2):
            yield point


def _fill(point: _Point, lines: Sequence[str], indent: int) -> bool:
    """Takes what the block below a line says; false when its end is missing."""
    if not lines or lines[0].strip() != "---":
        return False
    block = ""
    for line in lines[1:]:
        inner = line[indent:]
        if line == CUT:
            return False
        if line.strip() == "..." and len(line) - len(line.lstrip()) == indent:
            return True
        match = None if inner.startswith(" ") else _VALUE.match(inner)
        if match:
            block = match["key"] if match["value"] in ("|-", "|", ">-") else ""
            point.values[match["key"]] = "" if block else _unquoted(match["value"])
        elif block == "stack":
            point.stack.append(inner.strip())
        elif block:
            point.values[block] += f"{inner[2:]}\n"
    return False


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] == "'"
    return text[1:-1].replace("\\'", "'").replace("''", "'") if quoted else text


def _tap_finding(point: _Point, origin: Origin) -> Diagnostic:
    location = _LOCATION.match(point.values.get("location", ""))
    at = origin.place(location["path"], *map(int, location["place"].split(":"))) if location else None
    titles = list(point.titles)
    if _PATH.fullmatch(titles[-1]) and "exitCode" in point.values:
        file = origin.path(titles[-1]) or titles[-1]
        return failure("node", "the file could not be run", test=file, code=point.values.get("code", ""), at=at)
    frames = node_frames([f"    at {line}" for line in point.stack], origin)
    name = point.values.get("name", "")
    said = point.values.get("error", "").strip() or "failed"
    message = f"{name}: {said}" if name and not said.startswith(name) else said
    test = " > ".join([at.path, *titles] if at else titles)
    code = name or error_class(message)
    return failure("node", message, test=test, code=code, frames=frames, at=None if frames else at)


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
