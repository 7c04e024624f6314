"""Finds files and lines in any text that holds tracebacks, stacks or compiler diagnostics, whoever wrote the text."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pawl.checks.output import CUT, Origin, cleaned, shortened
from pawl.code.languages import is_test
from pawl.core.code import Suspicion
from pawl.core.diagnostic import Diagnostic, Location

_GROUP_BARS = re.compile(r"^\s*[|+][-+| ]*(?=\s|$)|^\s*\| ")
_HEADER = re.compile(r"^(\s*)(?:Exception Group )?Traceback \(most recent call last\):\s*$")
_FRAME = re.compile(r'^(\s*)File "(.+?)", line (\d+)(?:,? in (.+))?$')
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$")
_PYTEST_FRAME = re.compile(r"^(?:E\s+)?([^\s:][^:\n]*\.py):(\d+): ?(?:in .+|[\w.]*)$")
_NODE_FRAME = re.compile(r"^\s*(?:at|❯)\s+(.+):(\d+):(\d+)\)?$")
_RUBY_FRAME = re.compile(r"^\s*#?\s*((?:\./|/)[^\s:]+\.rb):(\d+)(?::in .+)?$")
_TSC = re.compile(r"^(?P<path>[^\s(][^(\n]*?)\((?P<line>\d+),(?P<column>\d+)\): (?P<rest>(?:error|warning) TS\d+: .*)$")
_TSC_PRETTY = re.compile(
    r"^(?P<path>[^\s:][^:\n]*?):(?P<line>\d+):(?P<column>\d+) - (?P<rest>(?:error|warning) TS\d+: .*)$"
)
_DIAGNOSTIC = re.compile(r"^(?:error|warning) (TS\d+): (.*)$")
_GO_OR_RUST_FRAME = re.compile(r"^\s+(?:at )?(\.?/?[^\s:]+\.(?:go|rs)):(\d+)(?::(\d+))?(?: \+0x[0-9a-f]+)?$")

_LONGEST_LINE = 1000
"""No frame is longer; lines without end come from programs that print data."""

Hit = tuple[str, int, int]
"""Path, line, column; 0 for a column that is not said."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One Python traceback: what was raised, and where, outermost first."""

    kind: str
    message: str
    frames: tuple[Location, ...]


@dataclass(slots=True)
class _Open:
    indentation: int
    frames: list[Location | None]


def python_traces(lines: Sequence[str], origin: Origin) -> list[Trace]:
    """Every Python traceback in order; of a chain, what was raised last comes last."""
    found: list[Trace] = []
    open_trace: _Open | None = None
    for raw in lines:
        line = _GROUP_BARS.sub(lambda bars: " " * len(bars[0]), raw)
        header, frame = _HEADER.match(line), _FRAME.match(line)
        if header:
            open_trace = _Open(len(header[1]), [])
        elif frame:
            open_trace = open_trace or _Open(max(len(frame[1]) - 2, 0), [])
            open_trace.frames.append(origin.place(frame[2], int(frame[3])))
        elif line == CUT:
            open_trace = None
        elif open_trace and line.strip() and _indentation(line) <= open_trace.indentation:
            raised = _RAISED.match(line.strip())
            if raised and open_trace.frames:
                found.append(Trace(raised[1], raised[2] or "", shortened(open_trace.frames)))
            open_trace = None
    return found


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def node_frames(lines: Iterable[str], origin: Origin) -> tuple[Location, ...]:
    """The frames of a JavaScript stack inside the workspace, outermost first."""
    found = [hit for line in lines if (hit := _node(line))]
    return shortened(origin.place(*hit) for hit in reversed(found))


def _node(line: str) -> Hit | None:
    """A stack's line: the path stands in brackets behind a name, or is the last word."""
    match = _NODE_FRAME.match(line) if len(line) < _LONGEST_LINE else None
    if not match:
        return None
    named, bracket, path = match[1].partition(" (")
    return path if bracket else named.rpartition(" ")[2], int(match[2]), int(match[3])


def tsc_findings(text: str, origin: Origin | None = None) -> tuple[Diagnostic, ...]:
    """The diagnostics that the TypeScript compiler printed, plain or pretty."""
    where = origin or Origin()
    found = []
    for line in cleaned(text).lines:
        if len(line) > _LONGEST_LINE:
            continue
        match = _TSC.match(line) or _TSC_PRETTY.match(line)
        said = _DIAGNOSTIC.match(match["rest"]) if match else None
        path = where.path(match["path"]) if match else None
        if match and said and path is not None:
            found.append(
                Diagnostic(
                    tool="tsc",
                    message=said[2],
                    path=path,
                    line=int(match["line"]),
                    column=int(match["column"]),
                    code=said[1],
                )
            )
    return tuple(dict.fromkeys(found))


def _simple(pattern: re.Pattern[str]) -> Callable[[str], Hit | None]:
    def find(line: str) -> Hit | None:
        match = pattern.match(line)
        if not match:
            return None
        column = match[3] if pattern.groups >= 3 else None
        return match[1], int(match[2]), int(column or 0)

    return find


def _named(pattern: re.Pattern[str]) -> Callable[[str], Hit | None]:
    def find(line: str) -> Hit | None:
        match = pattern.match(line)
        return (match["path"], int(match["line"]), int(match["column"])) if match else None

    return find


def _python(line: str) -> Hit | None:
    match = _FRAME.match(re.sub(r"^E ", "  ", _GROUP_BARS.sub(lambda bars: " " * len(bars[0]), line)))
    return (match[2], int(match[3]), 0) if match else None


_FINDERS = (
    _python,
    _simple(_PYTEST_FRAME),
    _named(_TSC),
    _named(_TSC_PRETTY),
    _node,
    _simple(_RUBY_FRAME),
    _simple(_GO_OR_RUST_FRAME),
)


def places(text: str, origin: Origin | None = None) -> tuple[Location, ...]:
    """Every place in the workspace that the text speaks of, in the order of first mention, without repetitions."""
    where = origin or Origin()
    found: dict[Location, None] = {}
    for line in cleaned(text).lines:
        for finder in _FINDERS if len(line) < _LONGEST_LINE else ():
            hit = finder(line)
            if hit:
                place = where.place(*hit)
                if place is not None:
                    found[place] = None
                break
    return tuple(found)


_FADING = 0.7
"""What the next frame outwards counts."""
FADING_IN_TEXT = 0.3
"""The same, where a text is the only witness: it quotes the lines of every caller, and their words speak for these."""
_MOST_FINDINGS = 50
_MOST_SUSPICIONS = 40


def suspicions(findings: Iterable[Diagnostic], *, fading: float = _FADING) -> tuple[Suspicion, ...]:
    """One for each place, the most suspicious first. A place that many failing tests run through is more so than one
    that few do; the tests themselves are not suspected."""
    weights: dict[tuple[str, int], float] = defaultdict(float)
    failed = [finding for finding in findings if finding.test][:_MOST_FINDINGS]
    for finding in failed:
        weight = 1.0
        for place in reversed(finding.frames or _alone(finding)):
            if not is_test(place.path):
                weights[place.path, place.line] += weight / len(failed)
                weight *= fading
    order = sorted(weights, key=lambda place: (-weights[place], place))[:_MOST_SUSPICIONS]
    return tuple(Suspicion(path=path, line=line, weight=min(1.0, weights[path, line])) for path, line in order)


def _alone(finding: Diagnostic) -> tuple[Location, ...]:
    """A report in one line for each test tells the innermost place alone."""
    return (Location(path=finding.path, line=finding.line),) if finding.path else ()
