"""Reads what pytest and unittest print, in every verbosity and of every version, whole or cut."""

from __future__ import annotations

import dataclasses
import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from pawl.checks.output import ANYWHERE, CUT, Origin, cleaned, python_traces, shortened
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.core.diagnostic import Diagnostic, Location, TestCounts, TestOutcome, TestRun
from pawl.core.lazy_dataclass import dataclass

_CHAINED = re.compile(
    r"^(?:The above exception was the direct cause of the following exception"
    r"|During handling of the above exception, another exception occurred):$"
)
_EXPLANATION = re.compile(r"^E(?:\s(.*))?$")
_LOCATION = re.compile(r"^([^\s>:][^:]*\.\w+):(\d+): ?(in .+|[\w.]*)$")
_FIXTURE_LOCATION = re.compile(r"^file (.+), line (\d+)$")
_QUOTED_FILE = re.compile(r'^\s*File "(.+?)", line (\d+)')
_CODE = re.compile(r"^((?:[a-z_]\w*\.)*[A-Z]\w*)(?::|$)")
_WORKER = re.compile(r"^\[gw\d+\] \w+ -- Python ")
_CAPTURED = re.compile(r"^-+ Captured .+ -+$")
_NATIVE = "Traceback (most recent call last):"


@dataclass(frozen=True, slots=True)
class FailureBlock:
    """A titled part of the FAILURES or ERRORS section."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Details:
    message: str
    code: str
    frames: tuple[Location, ...]


def details(block: FailureBlock, origin: Origin) -> Details:
    """The message of the last exception of the chain; captured output does not count."""
    lines = _before_captured(block.lines)
    lines = lines[max((index + 1 for index, line in enumerate(lines) if _CHAINED.match(line)), default=0) :]
    native = _native(lines, origin) if _NATIVE in lines else None
    if native:
        return native
    explained = [match[1] or "" for line in lines if (match := _EXPLANATION.match(line))]
    frames, code = _locations(lines, origin)
    if explained:
        quoted = [match for line in explained if (match := _QUOTED_FILE.match(line))]
        frames += [origin.place(match[1], int(match[2])) for match in quoted]
        # A syntax error shows the file and the source first; what is wrong comes last.
        message = explained[-1].strip() if quoted else unindented(explained)
    else:
        message = unindented(line for line in lines if not _WORKER.match(line) and not _LOCATION.match(line))
    return Details(message, code or exception_of(message), shortened(frames))


def all_frames(block: FailureBlock, origin: Origin) -> tuple[Location, ...]:
    """The places of every exception of the chain, in the order in which they are shown."""
    lines = _before_captured(block.lines)
    native = [frame for trace in python_traces(lines, origin) for frame in trace.frames]
    return shortened([*_locations(lines, origin)[0], *native])


def exception_of(message: str) -> str:
    """The exception's name that a message starts with or ends in, or an assertion's."""
    for line in (message.split("\n", 1)[0], message.rsplit("\n", 1)[-1]):
        match = _CODE.match(line)
        if match:
            return match[1]
    return "AssertionError" if message.startswith("assert ") else ""


def _before_captured(lines: Sequence[str]) -> list[str]:
    return list(itertools.takewhile(lambda line: not _CAPTURED.match(line), lines))


def _locations(lines: Sequence[str], origin: Origin) -> tuple[list[Location | None], str]:
    frames: list[Location | None] = []
    code = ""
    for line in lines:
        location = _LOCATION.match(line)
        fixture = _FIXTURE_LOCATION.match(line)
        if location:
            frames.append(origin.place(location[1], int(location[2])))
            code = "" if location[3].startswith("in ") else location[3]
        elif fixture:
            frames.append(origin.place(fixture[1], int(fixture[2])))
    return frames, code


def _native(lines: Sequence[str], origin: Origin) -> Details | None:
    traces = python_traces(lines, origin)
    if not traces:
        return None
    trace = traces[-1]
    start = max((index for index, line in enumerate(lines) if line.startswith(trace.said)), default=None)
    message = unindented(lines[start:]) if start is not None else trace.said
    return Details(message, trace.code, trace.frames)


_RULER = re.compile(r"^([=_!])\1* (.+?) \1+$")
_START = re.compile(r"^=+ test session starts =+$")
_SECTION = re.compile(r"^=+ (?:ERRORS|FAILURES|warnings summary|short test summary info) =+$")
_AMOUNTS = re.compile(
    r"(?<!\d)(\d+) (failed|passed|skipped|xfailed|xpassed|errors?|warnings?|deselected|subtests passed)"
)
_ENDING = re.compile(r"^(?:\d+ [a-z ]+(?:, \d+ [a-z ]+)*|no tests ran) in [\d.]+s(?: \([\d:]+\))?$")
_SUMMARY = re.compile(r"^(FAILED|ERROR) (.+)$")
_SUBTEST = re.compile(r"^SUBFAIL(?:ED)?\s?((?:\[.*?\])? ?(?:\(.*?\))?) (\S+?\.py.*)$")
_RAN = re.compile(r"^(\S(?>.*?::).*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \(.*\))?\s+\[\s*\d+%\]$")
_WORKER_RAN = re.compile(r"^\[gw\d+\] \[\s*\d+%\] (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) (\S.*?)\s*$")
_LETTERS = re.compile(r"^(?:\S+\.py )?([.FEsxX]+)\s*(?:\[\s*(\d+)%\])?$")
_SUBTEST_TITLE = re.compile(r" ((?:\[.*\] )?\(\w+=.*\)|\[.*\])$")
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.py$")
_TITLE = re.compile(r"^ERROR (?:at \w+ of |collecting )(.+)$")
_LINE_STYLE = re.compile(r"^([^\s>:][^:]*\.py):(\d+): (.+)$")
_USAGE = re.compile(r"^(?:ERROR: (?!usage:)|.+: error: )(.+)$")
_CONFTEST = re.compile(r"^ImportError while loading conftest '(.+)'\.$")
_FATAL = re.compile(r"^.*?(Fatal Python error: .+)$")
_FATAL_FRAME = re.compile(r'^\s+File "(.+?)", line (\d+) in (.+)$')
_KINDS = {".": "passed", "F": "failed", "E": "errors", "s": "skipped", "x": "skipped", "X": "passed"}
_WORDS = {"PASSED": ".", "FAILED": "F", "ERROR": "E", "SKIPPED": "s", "XFAIL": "x", "XPASS": "X"}
_FIELDS = {"passed": "passed", "failed": "failed", "skipped": "skipped", "xfailed": "skipped", "xpassed": "passed"}


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line of the short summary: the test's id, what follows it, and which subtest."""

    rest: str
    subtest: str = ""


@dataclass(slots=True)
class _Read:
    blocks: list[FailureBlock] = field(default_factory=list)
    entries: list[_Entry] = field(default_factory=list)
    loose: list[str] = field(default_factory=list)
    """Lines of FAILURES before any title, as `--tb=line` prints them."""
    before: list[str] = field(default_factory=list)
    """Lines outside of every section: progress, or an error that kept pytest from starting."""
    stops: list[str] = field(default_factory=list)
    ending: str = ""


_LONGEST_LINE = 4000
"""Nobody reads on, and the expressions here take longer than a long line is worth."""


def read_pytest(output: str, origin: Origin = ANYWHERE) -> TestReport:
    """The width of pytest's own rulers tells them from imitations that a test printed."""
    text = cleaned(output)
    lines = tuple(line[:_LONGEST_LINE] for line in text.lines)
    read = _read(lines)
    findings = [*_findings(read, origin), *_outside(read.before, origin)]
    warned = re.search(r"(\d+) warnings?", read.ending)
    notes = [warned[0]] if warned else []
    progress, finished = _progress(read.before)
    # Only the quietest mode ends without a closing line, and it has no opening one either.
    finished = finished and not text.cut and not any(map(_START.match, lines))
    if not read.ending and not finished:
        notes.append("counted from the progress shown")
    counts = _counts(read.ending) if read.ending else progress
    ended = bool(read.ending) or finished
    return report(counts, findings, ended=ended, cut=text.cut, notes=notes, stops=read.stops)


def _read(lines: tuple[str, ...]) -> _Read:
    read = _Read()
    width = _width(lines)
    section, title = "", ""
    block: list[str] = []

    def close() -> None:
        if title and section in ("ERRORS", "FAILURES"):
            read.blocks.append(FailureBlock(title, tuple(block)))
        block.clear()

    for line in lines:
        ruler = _ruler(line, width)
        if _ENDING.match(line) or (ruler and ruler[0] == "=" and _ENDING.match(ruler[1])):
            if section != "FAILURES" or ruler or not width:
                close()
                section, title, read.ending = "", "", ruler[1] if ruler else line
        elif ruler and ruler[0] == "!":
            close()
            title = ""
            read.stops.append(ruler[1])
        elif ruler and ruler[0] == "=":
            close()
            section, title = ruler[1], ""
        elif ruler or line == CUT:
            close()
            title = ruler[1] if ruler else ""
        elif section in ("ERRORS", "FAILURES"):
            (block if title else read.loose).append(line)
        else:
            _outside_blocks(read, section, line)
    close()
    return read


def _outside_blocks(read: _Read, section: str, line: str) -> None:
    if section == "short test summary info":
        entry, subtest = _SUMMARY.match(line), _SUBTEST.match(line)
        if subtest:
            read.entries.append(_Entry(subtest[2], subtest[1].strip()))
        elif entry:
            read.entries.append(_Entry(entry[2]))
    elif section in ("", "test session starts"):
        read.before.append(line)


def _width(lines: tuple[str, ...]) -> int:
    """How wide pytest's rulers are in this output; 0 when there is none to measure."""
    for pattern in (_START, _SECTION):
        for line in lines:
            if pattern.match(line):
                return len(line)
    return 0


def _ruler(line: str, width: int) -> tuple[str, str] | None:
    match = _RULER.match(line)
    if not match or not match[2].strip("_ =!"):
        return None
    overlong = len(line) > width and line.startswith(f"{match[1]} ") and line.endswith(f" {match[1]}")
    return (match[1], match[2]) if len(line) == width or (overlong and width) else None


def _counts(ending: str) -> TestCounts:
    amounts: defaultdict[str, int] = defaultdict(int)
    for number, word in _AMOUNTS.findall(ending):
        name = "errors" if word.startswith("error") else _FIELDS.get(word)
        if name:
            amounts[name] += int(number)
    return TestCounts(**amounts)


def _progress(lines: Iterable[str]) -> tuple[TestCounts, bool]:
    """Counts from the progress when there is no closing line, and whether it reached the end."""
    shown: defaultdict[str, int] = defaultdict(int)
    finished = False
    for line in lines:
        letters, ran, worker = _LETTERS.match(line), _RAN.match(line), _WORKER_RAN.match(line)
        said = letters[1] if letters else _WORDS[ran[2]] if ran else _WORDS[worker[1]] if worker else ""
        for letter in said:
            shown[_KINDS[letter]] += 1
        finished = finished or bool(letters and letters[2] == "100")
    return TestCounts(**shown), finished


def _findings(read: _Read, origin: Origin) -> Iterator[Diagnostic]:
    waiting: defaultdict[str, list[FailureBlock]] = defaultdict(list)
    for block in read.blocks:
        titled = _TITLE.match(block.title)
        waiting[titled[1] if titled else block.title].append(block)
    at_lines = [match for line in read.loose if (match := _LINE_STYLE.match(line))]
    for entry in read.entries:
        test, message = _split(entry.rest, waiting)
        key = f"{_dotted(test)} {entry.subtest}".strip()
        explained = _take(waiting, key, test, origin) or _take(waiting, test.partition("::")[0], test, origin)
        if explained:
            yield _finding(explained, test, origin, entry.subtest)
        else:
            at = _at_line(at_lines, message, origin)
            code = exception_of(message)
            shown = _with_subtest(message, entry.subtest)
            yield failure("pytest", shown, test=test, code=code, at=at or _of_test(test, origin))
    ran = {_dotted(match[1]): match[1] for line in read.before if (match := _RAN.match(line))}
    ran |= {_dotted(match[2]): match[2] for line in read.before if (match := _WORKER_RAN.match(line))}
    for key, blocks in waiting.items():
        for left in blocks:
            yield _unnamed(left, key, ran, origin)


def _split(rest: str, known: defaultdict[str, list[FailureBlock]]) -> tuple[str, str]:
    """The test's id and the message; an id may hold ` - ` too."""
    cuts = [match.start() for match in re.finditer(" - ", rest)]
    for cut in cuts:
        if known.get(_dotted(rest[:cut])):
            return rest[:cut], rest[cut + 3 :]
    if known.get(_dotted(rest)):
        return rest, ""
    for cut in cuts:
        if rest.count("[", 0, cut) == rest.count("]", 0, cut):
            return rest[:cut], rest[cut + 3 :]
    return rest, ""


def _dotted(test: str) -> str:
    """An id as the titles show it: without its file, classes joined by dots; a file stays as it is."""
    name, bracket, parameters = test.partition("[")
    path, *parts = name.split("::")
    return ".".join(parts) + bracket + parameters if parts else path


def _take(waiting: defaultdict[str, list[FailureBlock]], key: str, test: str, origin: Origin) -> FailureBlock | None:
    """The block of that title, preferably one that speaks of the test's own file."""
    blocks = waiting.get(key)
    if not blocks:
        return None
    path = test.partition("::")[0]
    for index, block in enumerate(blocks):
        if any(frame.path.endswith(path) for frame in details(block, origin).frames):
            return blocks.pop(index)
    return blocks.pop(0)


def _finding(block: FailureBlock, test: str, origin: Origin, subtest: str = "") -> Diagnostic:
    said = details(block, origin)
    return failure(
        "pytest",
        _with_subtest(said.message, subtest),
        test=test,
        code=said.code,
        frames=said.frames,
        at=None if said.frames else _of_test(test, origin),
    )


def _with_subtest(message: str, subtest: str) -> str:
    return f"{subtest}: {message}" if subtest else message


def _of_test(test: str, origin: Origin) -> Location | None:
    path = test.partition("::")[0]
    return origin.place(path) if path.endswith(".py") else None


def _unnamed(block: FailureBlock, key: str, ran: Mapping[str, str], origin: Origin) -> Diagnostic:
    """A failure that no summary names: its progress line does, or the first test file that its traceback speaks of."""
    if block.title.startswith("ERROR collecting "):
        return _finding(block, key, origin)
    subtest = _SUBTEST_TITLE.search(key)
    title = key[: subtest.start()] if subtest else key
    name, bracket, parameters = title.partition("[")
    files = (frame.path for frame in all_frames(block, origin) if _TEST_FILE.search(frame.path))
    path = next(files, "")
    test = ran.get(title) or (f"{path}::{name.replace('.', '::')}{bracket}{parameters}" if path else "")
    about = "" if test else f"{title}: "
    found = _finding(block, test, origin, subtest[1] if subtest else "")
    return dataclasses.replace(found, message=about + found.message)


def _at_line(lines: list[re.Match[str]], message: str, origin: Origin) -> Location | None:
    """Where `--tb=line` says that message was raised; the summary may have shortened it."""
    wanted = message.removesuffix("...")
    for index, match in enumerate(lines):
        if wanted and match[3].startswith(wanted.split("\n", 1)[0]):
            del lines[index]
            return origin.place(match[1], int(match[2]))
    return None


def _outside(lines: list[str], origin: Origin) -> Iterator[Diagnostic]:
    """The reason why pytest ran no test: a wrong call, a broken conftest, a dead interpreter, its own error."""
    internal = [line.removeprefix("INTERNALERROR> ") for line in lines if line.startswith("INTERNALERROR> ")]
    if internal:
        said = details(FailureBlock("", tuple(internal)), origin)
        yield failure("pytest", said.message, code="INTERNALERROR", frames=said.frames)
    for index, line in enumerate(lines):
        usage, conftest, fatal = _USAGE.match(line), _CONFTEST.match(line), _FATAL.match(line)
        if usage:
            yield failure("pytest", usage[1], code="usage")
        elif conftest:
            said = details(FailureBlock("", tuple(lines[index + 1 :])), origin)
            at = None if said.frames else origin.place(conftest[1])
            yield failure("pytest", said.message or line, code=said.code, frames=said.frames, at=at)
        elif fatal:
            yield _dead(fatal[1], lines[index + 1 :], origin)


def _dead(message: str, lines: list[str], origin: Origin) -> Diagnostic:
    """The interpreter died; its stack is innermost first, and the outermost function in the workspace is the test."""
    frames = []
    test = ""
    for line in lines:
        match = _FATAL_FRAME.match(line)
        place = origin.place(match[1], int(match[2])) if match else None
        if match and place:
            frames.append(place)
            test = f"{place.path}::{match[3]}" if match[3].startswith("test") else test
    return failure("pytest", message, code="Fatal Python error", test=test, frames=shortened(reversed(frames)))


_DOUBLE = "=" * 70
_SINGLE = "-" * 70
_BLOCK_TITLE = re.compile(r"^(FAIL|ERROR|UNEXPECTED SUCCESS): (.+?) \((\S+)\)(?: (.+))?$")
_RAN_IN = re.compile(r"^Ran (\d+) tests? in [\d.]+s$")
_RESULT = re.compile(r"^(OK|FAILED|NO TESTS RAN)(?: \((.+)\))?$")
_BLOCK_AMOUNT = re.compile(r"(failures|errors|skipped|expected failures|unexpected successes)=(\d+)")
_SAID = r"(ok|FAIL|ERROR|skipped|expected failure|unexpected success)"
_VERBOSE = re.compile(rf"^([\w.]+) \(([\w.]+)\)(?: .*)? \.\.\. {_SAID}\b")
_VERBOSE_NAMED = re.compile(r"^([\w.]+) \(([\w.]+)\)$")
_VERBOSE_DESCRIBED = re.compile(rf" \.\.\. {_SAID}\b")
_ALL_LETTERS = re.compile(r"^[.FEsxu]+$")
_NO_MESSAGE = re.compile(r"^\[<object object at 0x[0-9a-f]+>\] ?")
"""A subtest without a message, as a parallel runner shows it."""
_BUFFERED = re.compile(r"^Std(?:out|err):$")
_SAID_FIELDS = {
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


def read_unittest(output: str, origin: Origin = ANYWHERE) -> TestReport:
    text = cleaned(output)
    blocks = list(_blocks(text.lines))
    shown = _verbose(text.lines)
    findings = [_block_finding(block, origin) for block in blocks]
    known = {finding.test for finding in findings}
    for test, said in shown:
        if test not in known and said in ("FAIL", "ERROR", "unexpected success"):
            message = said if said == "unexpected success" else f"{said}: its traceback is not in the output"
            findings.append(failure("unittest", message, test=test, code=said))
    ran, result = _ending(text.lines)
    if ran is None:
        counts = _shown_progress(text.lines, shown)
    else:
        counts = _block_counts(ran, result, blocks)
        # From Python 3.12.1 on, tests that are skipped with their class are none of those that ran.
        most = ran - counts.failed - counts.errors
        counts = dataclasses.replace(
            counts, passed=max(counts.passed, min(most, _shown_progress(text.lines, shown).passed))
        )
    seen = {test: TestOutcome(_SAID_FIELDS[said].replace("errors", "failed")) for test, said in shown}
    seen |= {block.test: TestOutcome.FAILED for block in blocks if block.name not in _OUTSIDE_TESTS}
    named = [TestRun(id=test, outcome=outcome) for test, outcome in seen.items()] if shown else []
    return report(counts, findings, ended=ran is not None, cut=text.cut).naming(named)


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    for index, (line, following) in enumerate(itertools.pairwise(lines)):
        title = _BLOCK_TITLE.match(following) if line == _DOUBLE else None
        if title:
            yield _Block(title[1], title[2], title[3], title[4] or "", _body(lines, index + 2))


def _body(lines: Sequence[str], start: int) -> tuple[str, ...]:
    """The part after the title: a description up to the single rule, then the traceback up to the next rule."""
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
    return inside if name in _OUTSIDE_TESTS or inside.endswith(f".{name}") else f"{inside}.{name}"


def _block_finding(block: _Block, origin: Origin) -> Diagnostic:
    if block.word == "UNEXPECTED SUCCESS":
        return failure("unittest", "unexpected success", test=block.test, code="unexpected success")
    lines = list(itertools.takewhile(lambda line: not _BUFFERED.match(line), block.lines))
    said = _native(lines, origin)
    if said is None:
        message = unindented(lines)
        return failure("unittest", message, test=block.test, code=message.partition(":")[0])
    message = _with_subtest(said.message, _NO_MESSAGE.sub("", block.subtest))
    return failure("unittest", message, test=block.test, code=said.code, frames=said.frames)


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
        ran = _RAN_IN.match(lines[index])
        if ran and lines[index - 1] == _SINGLE:
            result = next((match for line in lines[index + 1 :] if (match := _RESULT.match(line))), None)
            return (int(ran[1]), result[2] or "") if result else (None, "")
    return None, ""


def _block_counts(ran: int, result: str, blocks: list[_Block]) -> TestCounts:
    amounts = {name: int(number) for name, number in _BLOCK_AMOUNT.findall(result)}
    skipped = amounts.get("skipped", 0) + amounts.get("expected failures", 0)
    failures, errors = amounts.get("failures", 0), amounts.get("errors", 0)
    told = [block for block in blocks if block.word in ("FAIL", "ERROR")]
    # Several subtests of one test fail as one test; a broken setUpClass fails without a test having run.
    outside = sum(block.name in _OUTSIDE_TESTS for block in told)
    first = {block.test: index for index, block in reversed([*enumerate(told)])}
    again = [block.word for index, block in enumerate(told) if first[block.test] != index]
    unexpected = amounts.get("unexpected successes", 0)
    passed = ran - (failures + unexpected + errors - outside - len(again)) - skipped
    if failures + errors <= len(told):
        failures, errors = failures - again.count("FAIL"), errors - again.count("ERROR")
    return TestCounts(passed=max(passed, 0), failed=failures + unexpected, errors=errors, skipped=skipped)


def _shown_progress(lines: Sequence[str], shown: list[tuple[str, str]]) -> TestCounts:
    amounts: defaultdict[str, int] = defaultdict(int)
    for _, said in shown:
        amounts[_SAID_FIELDS[said]] += 1
    if not shown:
        for line in lines:
            for letter in line if _ALL_LETTERS.match(line) else "":
                amounts[_LETTER_FIELDS[letter]] += 1
    return TestCounts(**amounts)
