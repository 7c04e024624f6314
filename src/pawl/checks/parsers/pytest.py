"""Reads what pytest prints, in every verbosity and traceback style, with or without workers, whole or cut.

The width of pytest's own rulers tells them from imitations that a test printed.
"""

from __future__ import annotations

import dataclasses
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pawl.checks.output import CUT, Origin, cleaned, shortened
from pawl.checks.report import TestReport, failure, report, unindented
from pawl.checks.tracebacks import python_traces
from pawl.core.diagnostic import Diagnostic, Location, TestCounts

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
    """What the last exception of the chain says; captured output does not count."""
    lines = _last_of_chain(_before_captured(block.lines))
    if _NATIVE in lines:
        native = _native(lines, origin)
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
    kept = []
    for line in lines:
        if _CAPTURED.match(line):
            break
        kept.append(line)
    return kept


def _last_of_chain(lines: list[str]) -> list[str]:
    start = max((index + 1 for index, line in enumerate(lines) if _CHAINED.match(line)), default=0)
    return lines[start:]


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
    head = f"{trace.kind}: {trace.message}" if trace.message else trace.kind
    start = max((index for index, line in enumerate(lines) if line.startswith(head)), default=None)
    message = unindented(lines[start:]) if start is not None else head
    return Details(message, trace.kind.rsplit(".", 1)[-1], trace.frames)


_TOOL = "pytest"
_RULER = re.compile(r"^([=_!])\1* (.+?) \1+$")
_START = re.compile(r"^=+ test session starts =+$")
_SECTION = re.compile(r"^=+ (?:ERRORS|FAILURES|warnings summary|short test summary info) =+$")
_AMOUNTS = re.compile(r"(\d+) (failed|passed|skipped|xfailed|xpassed|errors?|warnings?|deselected|subtests passed)")
_ENDING = re.compile(r"^(?:\d+ [a-z ]+(?:, \d+ [a-z ]+)*|no tests ran) in [\d.]+s(?: \([\d:]+\))?$")
_SUMMARY = re.compile(r"^(FAILED|ERROR) (.+)$")
_SUBTEST = re.compile(r"^SUBFAIL(?:ED)?\s?((?:\[.*?\])? ?(?:\(.*?\))?) (\S+?\.py.*)$")
_RAN = re.compile(r"^(\S.*?::.*?) (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \(.*\))?\s+\[\s*\d+%\]$")
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


def parse(output: str, origin: Origin | None = None) -> TestReport:
    where = origin or Origin()
    text = cleaned(output)
    read = _read(text.lines)
    findings = [*_findings(read, where), *_outside(read.before, where)]
    warned = re.search(r"(\d+) warnings?", read.ending)
    notes = [warned[0]] if warned else []
    progress, finished = _progress(read.before)
    # Only the quietest mode ends without a closing line, and it has no opening one either.
    finished = finished and not text.cut and not any(_START.match(line) for line in text.lines)
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
    """What the progress shows when there is no closing line, and whether it reached the end."""
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
            yield failure(_TOOL, shown, test=test, code=code, at=at or _of_test(test, origin))
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
        _TOOL,
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
    """What kept pytest from running the tests: a wrong call, a broken conftest, a dead interpreter, its own error."""
    internal = [line.removeprefix("INTERNALERROR> ") for line in lines if line.startswith("INTERNALERROR> ")]
    if internal:
        said = details(FailureBlock("", tuple(internal)), origin)
        yield failure(_TOOL, said.message, code="INTERNALERROR", frames=said.frames)
    for index, line in enumerate(lines):
        usage, conftest, fatal = _USAGE.match(line), _CONFTEST.match(line), _FATAL.match(line)
        if usage:
            yield failure(_TOOL, usage[1], code="usage")
        elif conftest:
            said = details(FailureBlock("", tuple(lines[index + 1 :])), origin)
            at = None if said.frames else origin.place(conftest[1])
            yield failure(_TOOL, said.message or line, code=said.code, frames=said.frames, at=at)
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
    return failure(_TOOL, message, code="Fatal Python error", test=test, frames=shortened(reversed(frames)))
