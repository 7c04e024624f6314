"""Reads what Node's own test runner prints with its TAP and spec reporters, whole or cut."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pawl.checks.output import CUT, Origin, cleaned
from pawl.checks.parsers.javascript import code_of, failed
from pawl.checks.report import TestReport, failure, report
from pawl.checks.tracebacks import node_frames
from pawl.core.diagnostic import Diagnostic, TestCounts

_TOOL = "node"
_POINT = re.compile(r"^(?P<indent> *)(?P<not>not )?ok \d+ - (?P<name>.*?)(?: # (?P<directive>SKIP|TODO)\b.*)?$")
_SUBTEST = re.compile(r"^(?P<indent> *)# Subtest: (?P<name>.*)$")
_COUNT = re.compile(r"^(?:#|ℹ) (tests|pass|fail|cancelled|skipped|todo) (\d+)$")
_VALUE = re.compile(r"^(?P<key>\w+): (?P<value>.*)$")
_FAILING = "✖ failing tests:"
_AT = re.compile(r"^test at (.+):(\d+):(\d+)$")
_MARKED = re.compile(r"^✖ (.*?) \([\d.]+ms\)")
_PATH = re.compile(r"[\w./@-]+\.[cm]?[jt]sx?")
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


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    amounts = {match[1]: int(match[2]) for line in text.lines if (match := _COUNT.match(line.strip()))}
    points = list(_points(text.lines))
    tests = [point for point in points if not point.is_suite]
    findings = [_finding(point, where) for point in tests] or list(_spec(text.lines, where))
    ended = "fail" in amounts
    failing = amounts.get("fail", 0) + amounts.get("cancelled", 0)
    # A suite that failed because of its tests is counted by some versions and not by others.
    counted = len(tests) if tests and len(points) == failing and not text.cut else failing
    counts = TestCounts(
        passed=amounts.get("pass", 0),
        failed=counted,
        skipped=amounts.get("skipped", 0) + amounts.get("todo", 0),
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


def _finding(point: _Point, origin: Origin) -> Diagnostic:
    location = point.values.get("location", "")
    path, _, place = location.partition(":") if not location.startswith("file://") else _split_url(location)
    at = origin.place(path, *(int(part) for part in place.split(":") if part.isdigit())) if path else None
    titles = list(point.titles)
    whole_file = bool(_PATH.fullmatch(titles[-1])) and "exitCode" in point.values
    frames = node_frames([f"    at {line}" for line in point.stack], origin)
    file = at.path if at else ""
    name = point.values.get("name", "")
    said = point.values.get("error", "").strip() or "failed"
    message = f"{name}: {said}" if name and not said.startswith(name) else said
    if whole_file:
        file = origin.path(titles[-1]) or titles[-1]
        return failure(_TOOL, "the file could not be run", test=file, code=point.values.get("code", ""), at=at)
    test = " > ".join(filter(None, (file, *titles)))
    return failure(_TOOL, message, test=test, code=name or code_of(message), frames=frames, at=None if frames else at)


def _split_url(location: str) -> tuple[str, str, str]:
    match = re.match(r"file://(/.*?):(\d+(?::\d+)?)$", location)
    return (match[1], ":", match[2]) if match else (location, "", "")


def _spec(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    """The list of failing tests at the end of what the spec reporter prints."""
    start = max((index for index, line in enumerate(lines) if line.strip() == _FAILING), default=None)
    if start is None:
        return
    place: re.Match[str] | None = None
    title, body = "", list[str]()
    for line in lines[start + 1 :]:
        at = _AT.match(line)
        if line == CUT:
            place, title, body = None, "", []
        elif at:
            if place is not None and title:
                yield _listed(place, title, body, origin)
            place, title, body = at, "", []
        elif not title and (marked := _MARKED.match(line)):
            title = marked[1]
        elif title:
            body.append(line.removeprefix("  "))
    if place is not None and title:
        yield _listed(place, title, body, origin)


def _listed(place: re.Match[str], title: str, body: list[str], origin: Origin) -> Diagnostic:
    file = origin.path(place[1]) or place[1]
    if _PATH.fullmatch(title) and (origin.path(title) or title) == file:
        return failure(_TOOL, "the file could not be run", test=file, at=origin.place(place[1]))
    return failed(_TOOL, f"{file} > {title}", body, origin, test_file=place[1])
