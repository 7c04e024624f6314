"""Reads what `go test` prints, plain, verbose or as JSON, package by package, whole or cut.

JSON events carry the same lines as the verbose output, so they are put together again by package and read as text.
"""

from __future__ import annotations

import itertools
import os.path
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pawl.checks.output import CUT, Origin, cleaned, shortened
from pawl.checks.report import UNLISTED, TestReport, failure, report, unindented
from pawl.core.diagnostic import Diagnostic, Location, TestCounts
from pawl.core.formats import read_json

_TOOL = "go"
_PACKAGE = re.compile(r"^(ok  |FAIL|\?   )\t(\S+)(?:\t|\s|$)(.*)$")
_STARTED = re.compile(r"^=== (RUN|CONT|NAME|PAUSE)\s+(\S+)$")
_RESULT = re.compile(r"^\s*--- (FAIL|PASS|SKIP): (\S+) \([\d.]+s\)$")
_OUTSIDE = re.compile(r"^(?:PASS|FAIL|exit status \d+|coverage: .*|testing: warning: .*)$")
_LOCATED = re.compile(r"^\s*([\w./-]+\.go):(\d+): (.*)$")
_STACK = re.compile(r"^\t((?!_testmain)\S+\.go):(\d+)(?: \+0x[0-9a-f]+)?$")
_PANIC = re.compile(r"^panic: (.+?)(?: \[recovered\])?$")
_HANGING = re.compile(r"^\t(Test\S+) \([\dhms.]+\)$|^\S+\.(Test\w+)\(")
_BUILD_HEADING = re.compile(r"^# (\S+)(?: \[.+\])?$")
_BUILD_ERROR = re.compile(r"^(?:vet: )?([\w./-]+\.go):(\d+):(\d+): (.+)$")


@dataclass(slots=True)
class _Package:
    name: str = ""
    word: str = ""
    rest: str = ""
    lines: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Tests:
    results: dict[str, str] = field(default_factory=dict)
    said: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def leaves(self) -> list[str]:
        """Tests that are not only the frame around their subtests."""
        return [test for test in self.results if not any(other.startswith(f"{test}/") for other in self.results)]


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    lines = _from_events(text.lines)
    packages = _packages(lines)
    names = [package.name for package in packages if package.name]
    verbose = any(_STARTED.match(line) for line in lines)
    amounts: defaultdict[str, int] = defaultdict(int)
    findings: list[Diagnostic] = list(_build_errors(lines, where))
    amounts["errors"] = len(findings)
    for package in packages:
        tests = _tests(package.lines)
        for test in tests.leaves():
            amounts[tests.results[test]] += 1
        folder = _folder(package.name, names, where)
        shown = list(_failures(package, tests, folder, where))
        # A test that took its whole process down has no result of its own.
        amounts["FAIL"] += not any(word == "FAIL" for word in tests.results.values()) and bool(shown)
        findings += shown
    counts = TestCounts(
        passed=amounts["PASS"], failed=amounts["FAIL"], skipped=amounts["SKIP"], errors=amounts["errors"]
    )
    listed = verbose or not any(package.word == "ok" for package in packages)
    notes = [] if listed else [f"{UNLISTED} without -v or -json"]
    ended = bool(names) and not packages[-1].lines and not any(CUT in package.lines for package in packages)
    return report(counts, findings, ended=ended, cut=text.cut, notes=notes)


def _from_events(lines: Sequence[str]) -> list[str]:
    """The lines inside the events, grouped by package; other lines stay, at the end."""
    by_package: defaultdict[str, list[str]] = defaultdict(list)
    other: list[str] = []
    for line in lines:
        event = _event(line)
        if event is None:
            other.append(line)
        else:
            by_package[str(event.get("Package") or event.get("ImportPath", ""))].append(str(event.get("Output", "")))
    if not by_package:
        return other
    return [line for parts in by_package.values() for line in "".join(parts).splitlines()] + other


def _event(line: str) -> dict[str, object] | None:
    if not line.startswith('{"'):
        return None
    try:
        event = read_json(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "Action" in event else None


def _packages(lines: Sequence[str]) -> list[_Package]:
    """The lines of each package, which its closing line ends; what follows the last is a package without one."""
    packages = [_Package()]
    building = False
    for line in lines:
        closing = _PACKAGE.match(line)
        building = bool(_BUILD_HEADING.match(line)) or (building and bool(_BUILD_ERROR.match(line) or line[:1] == "\t"))
        if closing:
            package = packages[-1]
            package.word, package.name, package.rest = closing[1].strip(), closing[2], closing[3]
            packages.append(_Package())
        elif line.strip() and not building and line != "FAIL":
            packages[-1].lines.append(line)
    return packages


def _tests(lines: Sequence[str]) -> _Tests:
    tests = _Tests()
    started: set[str] = set()
    current = ""
    for line in lines:
        start, result = _STARTED.match(line), _RESULT.match(line)
        if start:
            started.add(start[2])
            current = "" if start[1] == "PAUSE" else start[2]
        elif result and (not started or result[2] in started):
            tests.results[result[2]] = result[1]
            current = result[2]
        elif _OUTSIDE.match(line) or line == CUT:
            current = ""
        elif current:
            tests.said[current].append(line)
    return tests


def _failures(package: _Package, tests: _Tests, folder: str, origin: Origin) -> Iterator[Diagnostic]:
    shown = False
    for test in tests.leaves():
        if tests.results[test] == "FAIL":
            shown = True
            yield _finding(test, tests.said[test], folder, origin)
    panic = next((index for index, line in enumerate(package.lines) if _PANIC.match(line)), None)
    if not shown and panic is not None:
        hanging = next((match[1] or match[2] for line in package.lines if (match := _HANGING.match(line))), "")
        yield _finding(hanging, package.lines[panic:], folder, origin)
    elif not shown and package.word == "FAIL" and package.rest == "[setup failed]":
        yield failure(_TOOL, f"{package.name}: setup failed", code="setup")


def _finding(test: str, lines: Sequence[str], folder: str, origin: Origin) -> Diagnostic:
    for index, line in enumerate(lines):
        panic = _PANIC.match(line)
        if panic:
            stack = (_STACK.match(said) for said in lines[index:])
            frames = shortened(reversed([origin.place(match[1], int(match[2])) for match in stack if match]))
            return failure(_TOOL, panic[1], test=test, code="panic", frames=frames)
    located = [match for line in lines if (match := _LOCATED.match(line))]
    if not located:
        return failure(_TOOL, unindented(lines), test=test)
    message = unindented(_LOCATED.sub(r"\3", line) for line in lines).strip()
    frames = shortened(_in_folder(match, folder, origin) for match in reversed(located))
    return failure(_TOOL, message, test=test, frames=frames[-1:])


def _in_folder(match: re.Match[str], folder: str, origin: Origin) -> Location | None:
    path = match[1] if "/" in match[1] else os.path.join(folder, match[1])
    return origin.place(path, int(match[2]))


def _folder(package: str, packages: Sequence[str], origin: Origin) -> str:
    """A package's folder: the longest end of its name that the workspace has, or what the names do not share."""
    parts = package.split("/")
    if origin.files:
        folders = {os.path.dirname(path) for path in origin.files}
        for start in range(len(parts) + 1):
            if "/".join(parts[start:]) in folders:
                return "/".join(parts[start:])
        return ""
    shared = os.path.commonpath(packages).split("/") if len(set(packages)) > 1 and package else parts
    return "/".join(parts[len(shared) :])


def _build_errors(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    for index, line in enumerate(lines):
        if _BUILD_HEADING.match(line):
            for said in itertools.takewhile(_BUILD_ERROR.match, lines[index + 1 :]):
                error = _BUILD_ERROR.match(said)
                if error:
                    at = origin.place(error[1], int(error[2]), int(error[3]))
                    yield failure(_TOOL, error[4], code="build", at=at)
