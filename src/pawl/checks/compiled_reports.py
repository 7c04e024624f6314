"""Reads what the test commands of Go and Rust print, whole or cut."""

from __future__ import annotations

import itertools
import os.path
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from pawl.checks.output import ANYWHERE, CUT, Origin, cleaned, shortened
from pawl.checks.report import UNLISTED, TestReport, failure, report, unindented
from pawl.core.diagnostic import Diagnostic, TestCounts, TestOutcome, TestRun
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_json

_PACKAGE = re.compile(r"^(ok  |FAIL|\?   )\t(\S+)(?:\t|\s|$)(.*)$")
_STARTED = re.compile(r"^=== (RUN|CONT|NAME|PAUSE)\s+(\S+)$")
_RESULT = re.compile(r"^\s*--- (FAIL|PASS|SKIP): (\S+) \(([\d.]+)s\)$")
_OUTSIDE = re.compile(r"^(?:PASS|FAIL|exit status \d+|coverage: .*|testing: warning: .*)$")
_LOCATED = re.compile(r"^\s*([\w./-]+\.go):(\d+): (.*)$")
_STACK = re.compile(r"^\t((?!_testmain)\S+\.go):(\d+)(?: \+0x[0-9a-f]+)?$")
_PANIC = re.compile(r"^panic: (.+?)(?: \[recovered\])?$")
_HANGING = re.compile(r"^\t(Test\S+) \([\dhms.]+\)$|^\S+\.(Test\w+)\(")
_OUTCOMES = {
    "PASS": TestOutcome.PASSED,
    "FAIL": TestOutcome.FAILED,
    "SKIP": TestOutcome.SKIPPED,
    "ok": TestOutcome.PASSED,
    "FAILED": TestOutcome.FAILED,
    "ignored": TestOutcome.SKIPPED,
}
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
    seconds: dict[str, float] = field(default_factory=dict)
    started: set[str] = field(default_factory=set)
    said: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def take(self, events: Sequence[Mapping[str, object]]) -> None:
        """Hold what was printed against the events: a test ended that began, and of several ends the worst counts.

        One that took its process down has an event of its end and no line.
        """
        self.started = {str(one["Test"]) for one in events if one["Action"] == "run"}
        told: dict[str, str] = {}
        for event in events:
            test, word = str(event["Test"]), str(event["Action"]).upper()
            if test in self.started and word in _OUTCOMES and told.get(test) != "FAIL":
                told[test] = word
        self.results = {
            test: told[test] if word != "FAIL" else word for test, word in self.results.items() if test in told
        }

    def leaves(self) -> list[str]:
        """Tests that are not only the frame around their subtests."""
        return [test for test in self.results if not any(other.startswith(f"{test}/") for other in self.results)]


def read_go(output: str, origin: Origin = ANYWHERE) -> TestReport:
    """Plain, verbose or JSON, whose events carry the lines of the verbose output, by package.

    Of events those that say how a test ended count, not the lines: a test may print what looks like one.
    """
    text = cleaned(output)
    lines, events = _from_events(text.lines)
    packages = _packages(lines)
    names = [package.name for package in packages if package.name]
    verbose = bool(events) or any(_STARTED.match(line) for line in lines)
    ran: list[TestRun] = []
    left: list[str] = []
    amounts: defaultdict[str, int] = defaultdict(int)
    findings: list[Diagnostic] = list(_build_errors(lines, origin))
    amounts["errors"] = len(findings)
    for package in packages:
        folder = _folder(package.name, names, origin)
        tests = _tests(package.lines)
        if events:
            tests.take(events.get(package.name, ()))
        for test in tests.leaves():
            amounts[tests.results[test]] += 1
            outcome = _OUTCOMES[tests.results[test]]
            ran.append(TestRun(id=_id(folder, test, origin), outcome=outcome, seconds=tests.seconds[test]))
        # A process that ends in the middle of a test and says that all is well.
        left += sorted(tests.started - tests.results.keys()) if package.word == "ok" else []
        shown = list(_failures(package, tests, folder, origin))
        # A test that took its whole process down has no result of its own.
        amounts["FAIL"] += not any(word == "FAIL" for word in tests.results.values()) and bool(shown)
        findings += shown
    counts = TestCounts(
        passed=amounts["PASS"], failed=amounts["FAIL"], skipped=amounts["SKIP"], errors=amounts["errors"]
    )
    listed = verbose or not any(package.word == "ok" for package in packages)
    notes = [] if listed else [f"{UNLISTED} without -v or -json"]
    ended = bool(names) and not packages[-1].lines and not any(CUT in package.lines for package in packages)
    stops = [f"{test} began and did not end" for test in left]
    found = report(counts, findings, ended=ended and not left, cut=text.cut, notes=notes, stops=stops)
    return found.naming(ran if listed else ())


def _from_events(lines: Sequence[str]) -> tuple[list[str], dict[str, list[dict[str, object]]]]:
    """The lines inside the events, grouped by package, other lines at the end; and the events of tests by package."""
    by_package: defaultdict[str, list[str]] = defaultdict(list)
    of_tests: dict[str, list[dict[str, object]]] = {}
    other: list[str] = []
    for line in lines:
        event = _event(line)
        if event is None:
            other.append(line)
            continue
        package = str(event.get("Package") or event.get("ImportPath", ""))
        by_package[package].append(str(event.get("Output", "")))
        told = of_tests.setdefault(package, [])
        if event.get("Test"):
            told.append(event)
    return [line for parts in by_package.values() for line in "".join(parts).splitlines()] + other, of_tests


def _id(folder: str, test: str, origin: Origin) -> str:
    """Two packages may have tests of one name; where the files are not known, what is cut off decides the folder."""
    return f"{folder}::{test}" if origin.files and folder and test else test


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
    current = ""
    for line in lines:
        start, result = _STARTED.match(line), _RESULT.match(line)
        if start:
            tests.started.add(start[2])
            current = "" if start[1] == "PAUSE" else start[2]
        elif result and (not tests.started or result[2] in tests.started):
            tests.results[result[2]], tests.seconds[result[2]] = result[1], float(result[3])
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
        yield failure("go", f"{package.name}: setup failed", code="setup")


def _finding(test: str, lines: Sequence[str], folder: str, origin: Origin) -> Diagnostic:
    for index, line in enumerate(lines):
        panic = _PANIC.match(line)
        if panic:
            stack = (_STACK.match(said) for said in lines[index:])
            frames = shortened(reversed([origin.place(match[1], int(match[2])) for match in stack if match]))
            return failure("go", panic[1], test=_id(folder, test, origin), code="panic", frames=frames)
    located = [match for line in lines if (match := _LOCATED.match(line))]
    if not located:
        return failure("go", unindented(lines), test=_id(folder, test, origin))
    message = unindented(_LOCATED.sub(r"\3", line) for line in lines).strip()
    places = ((one[1] if "/" in one[1] else os.path.join(folder, one[1]), int(one[2])) for one in reversed(located))
    frames = shortened(origin.place(*one) for one in places)
    return failure("go", message, test=_id(folder, test, origin), frames=frames[-1:])


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
                    yield failure("go", error[4], code="build", at=at)


_RUNNING = re.compile(r"^running (\d+) tests?$")
_TARGET_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored; ")
_RAN = re.compile(r"^(?:test (.+?)(?: - should panic)? \.\.\.|(.+) ---) (ok|FAILED|ignored)\b")
_BLOCK = re.compile(r"^---- (.+) stdout ----$")
_LISTED = re.compile(r"^    (\S.*)$")
_THREAD_PANIC = re.compile(r"^thread '.*'(?: \(\d+\))? panicked at (.+?):(\d+):(\d+):$")
_OLD_PANIC = re.compile(r"^thread '.*' panicked at '(.*)', (.+?):(\d+):(\d+)$")
_DID_NOT_PANIC = re.compile(r"^note: (test did not panic as expected)(?: at (.+?):(\d+):(\d+))?$")
_RUST_FRAME = re.compile(r"^\s+at (\S+?):(\d+)(?::(\d+))?$")
_AFTER_MESSAGE = re.compile(r"^(?:note: run with|stack backtrace:|note: Some details are omitted)")
_COMPILER = re.compile(r"^error(?:\[(E\d+)\])?: (.+)$")
_ARROW = re.compile(r"^ +--> (.+?):(\d+):(\d+)$")
_NOT_COMPILED = re.compile(r"^error: could not compile .+?(?:due to (\d+) previous errors?.*)?$")


@dataclass(slots=True)
class _Target:
    """One binary's tests: from `running` to its result."""

    expected: int = 0
    lines: list[str] = field(default_factory=list)
    counts: tuple[int, int, int] | None = None


def read_cargo(output: str, origin: Origin = ANYWHERE) -> TestReport:
    """Unit, integration and documentation tests, panics, and code that does not compile."""
    text = cleaned(output)
    targets = _targets(text.lines)
    findings = [finding for target in targets for finding in _of_target(target, origin)]
    compiler = list(dict.fromkeys(_of_compiler(text.lines, origin)))
    passed, failed, ignored = (sum(target.counts[i] for target in targets if target.counts) for i in range(3))
    if any(target.counts is None for target in targets):
        failed = max(failed, len(findings))
    gave_up = [match for line in text.lines if (match := _NOT_COMPILED.match(line))]
    # Where the middle is gone, whole targets may be.
    ended = bool(gave_up) or (bool(targets) and not text.cut and all(target.counts for target in targets))
    errors = max(len(compiler), *(int(match[1] or 0) for match in gave_up), 0)
    counts = TestCounts(passed=passed, failed=failed, errors=errors, skipped=ignored)
    ran = [
        TestRun(id=match[1] or match[2], outcome=_OUTCOMES[match[3]])
        for target in targets
        for line in itertools.takewhile(lambda line: line != "failures:", target.lines)
        if (match := _RAN.match(line))
    ]
    return report(counts, [*compiler, *findings], ended=ended, cut=text.cut).naming(ran)


def _targets(lines: Sequence[str]) -> list[_Target]:
    """The targets; the last result line of each is the real one, for a test may print another."""
    targets: list[_Target] = []
    for line in lines:
        running = _RUNNING.match(line)
        if running:
            targets.append(_Target(int(running[1])))
        elif line == CUT:
            targets.append(_Target(-1))
        elif targets:
            targets[-1].lines.append(line)
            result = _TARGET_RESULT.match(line)
            if result:
                numbers = (int(result[1]), int(result[2]), int(result[3]))
                if targets[-1].expected in (-1, sum(numbers)):
                    targets[-1].counts = numbers
    return targets


def _of_target(target: _Target, origin: Origin) -> Iterator[Diagnostic]:
    blocks_start = next((i for i, line in enumerate(target.lines) if line == "failures:"), len(target.lines))
    failing = _listed(target.lines)
    if not failing:
        ran = (_RAN.match(line) for line in target.lines[:blocks_start])
        failing = [match[1] or match[2] for match in ran if match and match[3] == "FAILED"]
    blocks = _blocks(target.lines[blocks_start:], frozenset(failing))
    for name in failing:
        if name in blocks:
            yield _panic_finding(name, blocks[name], origin)
        else:
            yield failure("cargo", "failed; what it printed is not in the output", test=name)


def _listed(lines: Sequence[str]) -> list[str]:
    """The names in the closing list of failures."""
    start = max((i for i, line in enumerate(lines) if line == "failures:"), default=None)
    if start is None:
        return []
    listed = itertools.takewhile(lambda line: _LISTED.match(line), lines[start + 1 :])
    return [line.strip() for line in listed]


def _blocks(lines: Sequence[str], names: frozenset[str]) -> dict[str, list[str]]:
    blocks: dict[str, list[str]] = {}
    current: list[str] | None = None
    for line in lines:
        match = _BLOCK.match(line)
        if match and match[1] in names:
            current = blocks.setdefault(match[1], [])
        elif line == "failures:":
            current = None
        elif current is not None:
            current.append(line)
    return blocks


def _panic_finding(name: str, lines: Sequence[str], origin: Origin) -> Diagnostic:
    frames = shortened(
        origin.place(match[1], int(match[2]), int(match[3] or 0))
        for line in reversed(lines)
        if (match := _RUST_FRAME.match(line))
    )
    for index, line in enumerate(lines):
        panic, old, quiet = _THREAD_PANIC.match(line), _OLD_PANIC.match(line), _DID_NOT_PANIC.match(line)
        if panic:
            said = itertools.takewhile(lambda said: said and not _AFTER_MESSAGE.match(said), lines[index + 1 :])
            at = origin.place(panic[1], int(panic[2]), int(panic[3]))
            unexpected = [said for said in lines if said.startswith("note: panic did not contain expected string")]
            message = unindented([*said, *unexpected])
            return failure("cargo", message, test=name, code="panic", frames=frames, at=at)
        if old:
            at = origin.place(old[2], int(old[3]), int(old[4]))
            return failure("cargo", old[1], test=name, code="panic", frames=frames, at=at)
        if quiet:
            place = origin.place(quiet[2], int(quiet[3]), int(quiet[4])) if quiet[2] else None
            return failure("cargo", quiet[1], test=name, code="no panic", at=place)
    message = unindented(line for line in lines if line.strip())
    return failure("cargo", message, test=name, code="Error" if message.startswith("Error") else "", frames=frames)


def _of_compiler(lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    for line, following in itertools.pairwise(lines):
        error, arrow = _COMPILER.match(line), _ARROW.match(following)
        if error and arrow:
            at = origin.place(arrow[1], int(arrow[2]), int(arrow[3]))
            yield failure("cargo", error[2], code=error[1] or "error", at=at)
