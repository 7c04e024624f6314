"""Reads the failures that test frameworks print for people, by a table of how each of them does it."""

from __future__ import annotations

import functools
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pawl.checks.output import ANYWHERE, CUT, Origin, cleaned, node_frames, shortened
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.core.diagnostic import Diagnostic, Location, TestCounts, TestOutcome, TestRun
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import data_table, written

_AMOUNT = re.compile(r"(?<!\d)(\d+) (passed|failed|skipped|todo|pending)")
_FIELDS = {"passed": "passed", "failed": "failed", "skipped": "skipped", "todo": "skipped", "pending": "skipped"}
_ERROR = re.compile(r"^(?:Uncaught )?(\w*(?:Error|Exception))(?: \[(\w+)\])?(?::|$)")
_STACK_LINE = re.compile(r"^\s*(?:at\s|❯ )")
_CODE_FRAME = re.compile(r"^\s*(?:>\s*)?(?:\d+\s*)?\|")
_NAMED_PLACE = re.compile(r"(?:^\s*File: |: )(/[^\s:]+):(?:(\d+):(\d+)| .*\((\d+):(\d+)\))")
_IN_BRACKETS = re.compile(r"\((/[^\s()]+\.[cm]?[jt]sx?)\)$")
_DIFFERENCE = re.compile(r"^\s*\+ expected - actual$")
_LONGEST_LINE = 1000
_RUBY_FRAME = re.compile(r"^\s*# (\S+?):(\d+)(?::in .+)?$")
_RUBY_ERROR = re.compile(r"^\s*(?!Diff:)([A-Z]\w*(?:::[A-Z]\w*)*):$")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportStyle:
    """How one framework prints its failures; `text_reports.toml` says what each part is."""

    body: str
    opens: re.Pattern[str]
    region: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    file: re.Pattern[str] | None = None
    more: re.Pattern[str] | None = None
    separator: str = ""
    whole: re.Pattern[str] | None = None
    unsaid: str = ""
    closes: re.Pattern[str] | None = None
    strict: bool = False
    drops: re.Pattern[str] | None = None
    summary: re.Pattern[str] | None = None
    errors: re.Pattern[str] | None = None
    none: re.Pattern[str] | None = None
    outside: re.Pattern[str] | None = None
    ends: re.Pattern[str] | None = None
    usage: re.Pattern[str] | None = None
    ran: re.Pattern[str] | None = None
    suite: re.Pattern[str] | None = None


@functools.cache
def styles() -> Mapping[str, ReportStyle]:
    data = data_table("pawl.checks", "text_reports.toml")
    return {name: written(ReportStyle, entry) for name, entry in data.items()}


@dataclass(slots=True)
class _Block:
    """One failure as it is printed, or several that share what is said of them."""

    file: str = ""
    names: list[tuple[str, str]] = field(default_factory=list)
    """Each with the file that it begins with, where it does."""
    lines: list[str] = field(default_factory=list)

    def add(self, opened: re.Match[str]) -> None:
        found = opened.groupdict()
        self.names.append((found["name"] or "", found.get("file") or ""))


def read_text(tool: str, output: str, origin: Origin = ANYWHERE) -> TestReport:
    """The report that a framework printed for people, whole or cut."""
    style, text = styles()[tool], cleaned(output)
    tests = list(failures(tool, text.lines, origin))
    findings = [*tests, *_outside(tool, style, text.lines, origin)]
    for match in style.usage.finditer(text.text) if style.usage else ():
        findings.append(failure(tool, match["said"], code="usage"))
    counted = _counts(style, text.text, tests)
    none = style.none is not None and style.none.search(text.text) is not None
    counts = counted or TestCounts(failed=len({one.test for one in tests if one.test}))
    notes = ["no tests were found"] if none else []
    ended = counted is not None or none
    failed = [TestRun(id=one.test, outcome=TestOutcome.FAILED) for one in tests if one.test]
    ran = [*_listed(style, text.lines), *failed] if style.ran else ()
    return report(counts, findings, ended=ended, cut=text.cut, notes=notes).naming(ran)


def _listed(style: ReportStyle, lines: Sequence[str]) -> Iterator[TestRun]:
    """The tests that did not fail in the list of all; below suites where these are lines of their own."""
    suites: dict[int, str] = {}
    end = max((index for index, line in enumerate(lines) if _fits(style.region, line)), default=len(lines))
    for line in lines[:end]:
        test = style.ran.match(line) if style.ran else None
        suite = style.suite.match(line) if style.suite and not test else None
        if suite:
            depth = len(suite["indent"])
            suites = {one: name for one, name in suites.items() if one < depth} | {depth: suite["name"]}
        if test:
            found = test.groupdict()
            above = [name for depth, name in suites.items() if depth < len(found.get("indent") or "")]
            yield TestRun(
                id=" ".join([*above, found["name"]]) if style.suite else found["name"],
                outcome=TestOutcome.PASSED if found["passed"] else TestOutcome.SKIPPED,
                seconds=float(found["ms"] or 0) / 1000,
            )


def failures(tool: str, lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    style = styles()[tool]
    for block in _blocks(style, _region(style, lines)):
        for name, within in block.names:
            test, file = _test(style, name, within or block.file, origin)
            body = block.lines
            if test and test == file:
                body = [style.unsaid] if style.unsaid else list(without_advice(block.lines))
            yield _READERS[style.body](tool, test, body, origin, file)


def _fits(pattern: re.Pattern[str] | None, line: str) -> bool:
    return pattern is not None and pattern.match(line) is not None


def _region(style: ReportStyle, lines: Sequence[str]) -> Sequence[str]:
    """The lines that may hold failures."""
    if style.region is None:
        return lines
    starts = [index for index, line in enumerate(lines) if _fits(style.region, line)]
    cuts = [index for index, line in enumerate(lines) if line == CUT]
    start = next(reversed(starts or cuts), len(lines))
    if not starts and any(_fits(style.unless, line) for line in lines[start:]):
        return ()
    return lines[start + 1 :]


def _blocks(style: ReportStyle, lines: Sequence[str]) -> Iterator[_Block]:
    """The failures. Numbered ones count up, which tells them from what looks like one inside a message."""
    block, number = _Block(), 0
    for line in (*lines, CUT):
        place, opened = style.file.match(line) if style.file else None, style.opens.match(line)
        follows = opened is not None and number in (0, int(opened.groupdict().get("number") or 1) - 1)
        if not (place or follows or line == CUT or _fits(style.closes, line) or _fits(style.drops, line)):
            if block.names and (block.lines or line.strip()):
                block.lines.append(line)
            continue
        if opened and follows and style.strict and block.names and not block.lines:
            block.add(opened)
            continue
        closed = _fits(style.closes, line) and not opened
        if closed or not style.strict:
            yield from _whole(style, block)
        file = (place["file"] or "") if place else "" if line == CUT else block.file
        block = _Block(file)
        if opened and follows:
            block.add(opened)
            number = int(opened.groupdict().get("number") or 0)
        elif line == CUT:
            number = 0


def _whole(style: ReportStyle, block: _Block) -> Iterator[_Block]:
    """The block, where it is a failure; a name that goes on over several lines is put together."""
    if style.more is None:
        is_told = style.region is not None or any(line.strip() for line in block.lines)
        if block.names and is_told and (style.file is None or block.file):
            yield block
        return
    titles = [name for name, _ in block.names]
    for index, line in enumerate((*block.lines, "")):
        if titles and titles[-1].endswith(":"):
            yield _Block(block.file, [(" ".join(titles).removesuffix(":"), "")], block.lines[index:])
            return
        following = style.more.match(line)
        if not following:
            return
        titles = [*titles, following[1]]


def _test(style: ReportStyle, name: str, file: str, origin: Origin) -> tuple[str, str]:
    """The test's id, and its file where that is told; they are the same for a file that could not be run."""
    path = origin.path(file) or file
    whole = style.whole.fullmatch(name) if style.whole else None
    if whole:
        named = whole.groupdict().get("file") or path
        named = origin.path(named) or named
        if named == path:
            return named, named
    if not file or name.startswith(file):
        return name, path
    return " > ".join([path, *(name.split(style.separator) if style.separator else [name])]), path


def _outside(tool: str, style: ReportStyle, lines: Sequence[str], origin: Origin) -> Iterator[Diagnostic]:
    """Files that could not be loaded, and hooks around the whole suite that failed."""
    for index, line in enumerate(lines):
        match = style.outside.match(line) if style.outside else None
        if match:
            rest = itertools.takewhile(
                lambda said: said != CUT and not _fits(style.ends, said) and not _fits(style.outside, said),
                lines[index + 1 :],
            )
            found = match.groupdict()
            yield _READERS[style.body](tool, "", [found.get("said") or "", *rest], origin, found.get("file") or "")


def _counts(style: ReportStyle, text: str, tests: Sequence[Diagnostic]) -> TestCounts | None:
    """The closing amounts. A file that failed without a failing test could not be run."""
    last = None
    for match in style.summary.finditer(text) if style.summary else ():
        last = match.groupdict()
    if last is None:
        return None
    amounts: defaultdict[str, int] = defaultdict(int)
    for name in ("passed", "failed", "skipped", "errors"):
        amounts[name] = int(last.get(name) or 0)
    for number, word in _AMOUNT.findall(last.get("amounts") or ""):
        amounts[_FIELDS[word]] += int(number)
    if "total" in last:
        amounts["passed"] = int(last["total"]) - amounts["failed"] - amounts["skipped"]
    if "suites" in last:
        files = {one.test.split(" > ")[0] for one in tests if " > " in one.test}
        amounts["errors"] = max(int(last["suites"] or 0) - len(files), 0)
    for match in style.errors.finditer(text) if style.errors else ():
        amounts["errors"] += int(match[1] or match[2])
    return TestCounts(**amounts)


def without_advice(lines: Sequence[str]) -> Sequence[str]:
    """The lines that say why a file could not be run; jest puts a title and a page of general advice above them."""
    start = 0
    for index, line in enumerate(lines):
        if line.strip() in ("Details:", "● Test suite failed to run"):
            start = index + 1
    return lines[start:]


def script_failure(tool: str, test: str, lines: Sequence[str], origin: Origin, file: str = "") -> Diagnostic:
    """A failing test from the lines that explain it: the message, then code frames and the stack."""
    said = itertools.takewhile(
        lambda line: not _STACK_LINE.match(line) and not _CODE_FRAME.match(line), _without_difference(lines)
    )
    message = unindented(said).lstrip()
    if message.startswith("Error: expect("):
        message = message.removeprefix("Error: ")
    frames = node_frames(lines, origin)
    at = None if frames else _named_place(lines, origin) or (origin.place(file) if file else None)
    return failure(tool, message, test=test, code=error_class(message), frames=frames, at=at)


def error_class(message: str) -> str:
    """The error's class; a failed expectation without one is an assertion."""
    match = _ERROR.match(message)
    if match:
        return match[1]
    return "AssertionError" if message.startswith("expect(") else ""


def _without_difference(lines: Iterable[str]) -> Iterator[str]:
    """The message and the stack; the difference that mocha prints between them repeats the message."""
    skipping = False
    for line in lines:
        skipping = bool(_DIFFERENCE.match(line)) or (skipping and not line.lstrip().startswith("at "))
        if not skipping:
            yield line


def _named_place(lines: Sequence[str], origin: Origin) -> Location | None:
    """A place that the message itself names, for errors whose stack lies in a library."""
    for line in (line for line in lines if len(line) < _LONGEST_LINE):
        match = _NAMED_PLACE.search(line)
        if match:
            return origin.place(match[1], int(match[2] or match[4]), int(match[3] or match[5]))
        bracketed = _IN_BRACKETS.search(line)
        if bracketed:
            return origin.place(bracketed[1])
    return None


def _ruby_failure(tool: str, test: str, lines: Sequence[str], origin: Origin, file: str = "") -> Diagnostic:
    start = 0 if test else next((at for at, line in enumerate(lines) if line.startswith("Failure/Error")), 0)
    said = lines[start:]
    places = [match for line in said if (match := _RUBY_FRAME.match(line))]
    frames = shortened(origin.place(match[1], int(match[2])) for match in reversed(places))
    message = unindented(line for line in said if not _RUBY_FRAME.match(line))
    code = next((match[1] for line in said if (match := _RUBY_ERROR.match(line))), "")
    at = origin.place(file) if file and not frames else None
    return failure(tool, message, test=test, code=code, frames=frames, at=at)


_READERS: Mapping[str, Callable[[str, str, Sequence[str], Origin, str], Diagnostic]] = {
    "script": script_failure,
    "ruby": _ruby_failure,
}
