"""The output of commands, made readable, and the places in the workspace that it names."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from pawl.code.code_model import Suspicion
from pawl.code.languages import is_test
from pawl.core.diagnostic import Diagnostic, Location
from pawl.core.execution import Completed
from pawl.core.lazy_dataclass import dataclass

CUT = "\x00"
"""A line that stands where the middle was left out; no output can hold it, because cleaning removes it."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_LEFT_OUT = re.compile(r"^\[… \d+ bytes left out …\]$")


@dataclass(frozen=True, slots=True)
class CleanOutput:
    lines: tuple[str, ...]

    @property
    def cut(self) -> bool:
        return CUT in self.lines

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def cleaned(output: str) -> CleanOutput:
    """Without colours, with one kind of line break and a mark where the middle was left out.

    A long stream is cut between two bytes; the two half lines beside the cut say nothing reliable and go.
    """
    plain = _ESCAPES.sub("", output).replace("\x00", "").replace("\r\n", "\n").replace("\r", "\n")
    lines: list[str] = []
    after_cut = False
    for line in plain.split("\n"):
        if _LEFT_OUT.match(line):
            if lines and lines[-1] != CUT:
                lines.pop()
            lines.append(CUT)
            after_cut = True
        elif after_cut:
            after_cut = False
        else:
            lines.append(line)
    return CleanOutput(tuple(lines))


def printed(completed: Completed) -> str:
    """A command's output: standard output, then standard error."""
    streams = [stream.text for stream in (completed.stdout, completed.stderr)]
    return "\n".join(text.removesuffix("\n") for text in streams if text) + "\n"


_FOREIGN_FOLDERS = frozenset(
    {"site-packages", "dist-packages", "node_modules", ".venv", "venv", ".tox", ".nox", "rustlib", "rubygems"}
)
_FOREIGN = re.compile(r"^(?:<|node:|native |/rustc/)|/lib/python\d|/gems/")
_MOST_FRAMES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a command ran, so that the paths it printed can be told."""

    workspace: str = ""
    """Its absolute path as the command saw it; empty leaves absolute paths as they are."""
    files: frozenset[str] = frozenset()
    """The workspace's files, for reports that name a file without its folder."""

    def path(self, printed: str) -> str | None:
        """The path relative to the workspace, or None for a library's file or one outside."""
        text = printed.removeprefix("file://").replace("\\", "/")
        if not text or _FOREIGN.search(text):
            return None
        if not text.startswith("/"):
            text = posixpath.normpath(text)
        elif self.workspace:
            root = self.workspace.rstrip("/") + "/"
            if not text.startswith(root):
                return None
            text = posixpath.normpath(text.removeprefix(root))
        if text.startswith("../") or not _FOREIGN_FOLDERS.isdisjoint(text.split("/")):
            return None
        return text

    def place(self, printed: str, line: int = 0, column: int = 0) -> Location | None:
        path = self.path(printed)
        return None if path is None else Location(path=path, line=line, column=column)


ANYWHERE = Origin()
"""Of a text whose command is not known."""


def shortened(frames: Iterable[Location | None]) -> tuple[Location, ...]:
    """The frames inside the workspace without repetitions; of a very deep stack its two ends."""
    kept: list[Location] = []
    for frame in frames:
        if frame is not None and (not kept or kept[-1] != frame):
            kept.append(frame)
    if len(kept) > _MOST_FRAMES:
        kept = kept[: _MOST_FRAMES // 2] + kept[-_MOST_FRAMES // 2 :]
    return tuple(kept)


_GROUP_BARS = re.compile(r"^\s*[|+][-+| ]*(?=\s|$)|^\s*\| ")
_HEADER = re.compile(r"^(\s*)(?:Exception Group )?Traceback \(most recent call last\):\s*$")
_FRAME = re.compile(r'^(\s*)File "(.+?)", line (\d+)(?:,? in (.+))?$')
_RAISED = re.compile(r"^([A-Za-z_][\w.]*)(?:: (.*))?$")
_PYTEST_FRAME = re.compile(r"^(?:E\s+)?(?P<path>[^\s:][^:\n]*\.py):(?P<line>\d+): ?(?:in .+|[\w.]*)$")
_NODE_FRAME = re.compile(r"^\s*(?:at|❯)\s+(.+):(\d+):(\d+)\)?$")
_RUBY_FRAME = re.compile(r"^\s*(?:#\s*)?(?P<path>(?:\./|/)[^\s:]+\.rb):(?P<line>\d+)(?::in .+)?$")
_TSC = re.compile(r"^(?P<path>[^\s(][^(\n]*?)\((?P<line>\d+),(?P<column>\d+)\): (?P<rest>(?:error|warning) TS\d+: .*)$")
_TSC_PRETTY = re.compile(
    r"^(?P<path>[^\s:][^:\n]*?):(?P<line>\d+):(?P<column>\d+) - (?P<rest>(?:error|warning) TS\d+: .*)$"
)
_GO_OR_RUST_FRAME = re.compile(
    r"^\s+(?:at )?(?P<path>\.?/?[^\s:]+\.(?:go|rs)):(?P<line>\d+)(?::(?P<column>\d+))?(?: \+0x[0-9a-f]+)?$"
)

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

    @property
    def said(self) -> str:
        return f"{self.kind}: {self.message}" if self.message else self.kind

    @property
    def code(self) -> str:
        """The exception's name without its module."""
        return self.kind.rsplit(".", 1)[-1]


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
        elif open_trace and line.strip() and len(line) - len(line.lstrip()) <= open_trace.indentation:
            raised = _RAISED.match(line.strip())
            if raised and open_trace.frames:
                found.append(Trace(raised[1], raised[2] or "", shortened(open_trace.frames)))
            open_trace = None
    return found


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


def _by(pattern: re.Pattern[str]) -> Callable[[str], Hit | None]:
    def find(line: str) -> Hit | None:
        match = pattern.match(line)
        found = match.groupdict() if match else None
        return (found["path"], int(found["line"]), int(found.get("column") or 0)) if found else None

    return find


def _python(line: str) -> Hit | None:
    match = _FRAME.match(re.sub(r"^E ", "  ", _GROUP_BARS.sub(lambda bars: " " * len(bars[0]), line)))
    return (match[2], int(match[3]), 0) if match else None


_FINDERS = (
    _python,
    _by(_PYTEST_FRAME),
    _by(_TSC),
    _by(_TSC_PRETTY),
    _node,
    _by(_RUBY_FRAME),
    _by(_GO_OR_RUST_FRAME),
)


def places(text: str, origin: Origin = ANYWHERE) -> tuple[Location, ...]:
    """Every place in the workspace that the text speaks of, in the order of first mention, without repetitions."""
    found: dict[Location, None] = {}
    for line in cleaned(text).lines:
        for finder in _FINDERS if len(line) < _LONGEST_LINE else ():
            hit = finder(line)
            if hit:
                place = origin.place(*hit)
                if place is not None:
                    found[place] = None
                break
    return tuple(found)


_FADING = 0.7
"""The weight of the next frame outwards."""
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
        # A report in one line for each test tells the innermost place alone.
        alone = (Location(path=finding.path, line=finding.line),) if finding.path else ()
        for place in reversed(finding.frames or alone):
            if not is_test(place.path):
                weights[place.path, place.line] += weight / len(failed)
                weight *= fading
    order = sorted(weights, key=lambda place: (-weights[place], place))[:_MOST_SUSPICIONS]
    return tuple(Suspicion(path=path, line=line, weight=min(1.0, weights[path, line])) for path, line in order)
