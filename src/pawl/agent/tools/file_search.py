"""`file_search`: where a text, an expression or a file name occurs."""

from __future__ import annotations

import json
import re
import selectors
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Annotated, ClassVar

from pawl.agent.tools.tool_registry import Ports
from pawl.core.errors import BadArguments, NoMatches, NotAFile, NotFound, PawlError, TimedOut, ToolError
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import Text
from pawl.core.typed import AtLeast
from pawl.sandbox.cancel import CancelToken, raise_if_stopped
from pawl.workspace.bench_files import Files

LONGEST_PATTERN = 1_000
WIDER_SECONDS = 2.0
WIDER_SHOWN = 3
"""Of what a search that found nothing would find if it asked otherwise."""
_MATCHER = Path(__file__).with_name("matcher.py")


class Expression:
    """Use it as a context manager; its process ends with it."""

    def __init__(self, pattern: str, *, ignore_case: bool, seconds: float, cancel: CancelToken | None = None) -> None:
        _check(pattern)
        self._cancel = cancel
        self._order = {"pattern": pattern, "ignore_case": ignore_case}
        self._pattern = pattern
        self._seconds = seconds

    def __enter__(self) -> Expression:
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-X", "utf8", str(_MATCHER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            bufsize=0,
        )
        self._send(self._order)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            _open(pipe).close()

    def matching_lines(self, text: str) -> list[int]:
        """The numbers (from 1) of the lines that match."""
        self._send(text)
        answer = b""
        stdout = _open(self._process.stdout)
        until = time.monotonic() + self._seconds
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if self._cancel is not None:
                selector.register(self._cancel, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                if not selector.select(max(0.0, until - time.monotonic())):
                    raise TimedOut(
                        f"the expression {self._pattern!r} took longer than {self._seconds:g} s on one file",
                        advice="use an expression without nested repetition, or search for plain text",
                    )
                raise_if_stopped(self._cancel)
                part = stdout.read(1 << 16)
                if not part:
                    raise _ended(self._pattern)
                answer += part
        numbers: list[int] = json.loads(answer)
        return numbers

    def _send(self, value: object) -> None:
        stdin = _open(self._process.stdin)
        rest = memoryview(json.dumps(value).encode() + b"\n")
        try:
            while rest:
                rest = rest[stdin.write(rest) or 0 :]
        except BrokenPipeError as error:
            raise _ended(self._pattern) from error


def _check(pattern: str) -> None:
    if len(pattern) > LONGEST_PATTERN:
        raise BadArguments(
            f"query: the expression has {len(pattern)} characters; the limit is {LONGEST_PATTERN}", advice="shorten it"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadArguments(
                f"query: {pattern!r} is not a regular expression: {error}", advice="correct it, or set regex to false"
            ) from error


def _ended(pattern: str) -> ToolError:
    return ToolError(f"the search for {pattern!r} ended early", advice="search for plain text instead")


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


SHOWN_CHARACTERS = 300
_LATE = "/"
"""Stands for a path where the time was up: no path of a workspace is this."""

Matcher = Callable[[str], Iterable[int]]
"""From a text with line feeds to the numbers of its lines that match."""


class Where(StrEnum):
    CONTENT = "content"
    NAMES = "names"


_AT_ONCE = {Where.CONTENT: 1, Where.NAMES: 1000}
"""How many paths are looked at as one text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
    UNSAID: ClassVar = frozenset({"ignore_case", "limit"})

    query: str
    path: str = ""
    extensions: tuple[str, ...] = ()
    regex: bool = False
    ignore_case: bool = False
    where: Where = Where.CONTENT
    limit: Annotated[int, AtLeast(1)] = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchMatch:
    path: str
    line: int
    """From 1; 0 for a match in a name."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    matches: tuple[SearchMatch, ...]
    files: int
    """How many were searched."""
    skipped: int
    """Binary, too large or unreadable."""
    complete: bool
    """False when there may be more."""

    @property
    def text(self) -> str:
        lines = [f"{match.path}:{match.line}: {match.text}" if match.line else match.path for match in self.matches]
        if not self.complete:
            lines.append("[there may be more; narrow the search]")
        if self.skipped:
            lines.append(f"[{self.skipped} binary, large or unreadable files left out]")
        return "\n".join(lines)


def file_search(ports: Ports, given: FileSearch) -> Matches:
    if not given.query:
        raise BadArguments("query: is empty", advice="say what to look for")
    with ExitStack() as stack:
        matcher = _matcher(ports, given, stack)
        paths = _paths(ports, given, time.monotonic() + ports.limits.tool_seconds)
        found = _found(ports, given, paths, matcher)
    if not found.matches:
        left_out = f" ({found.skipped} left out)" if found.skipped else ""
        place = "the names of " if given.where is Where.NAMES else ""
        raise NoMatches(
            f"no match for {given.query!r} in {place}{found.files} files{left_out}",
            advice=_elsewhere(ports, given) or "try fewer words, another expression or another path",
        )
    return found


def _elsewhere(ports: Ports, given: FileSearch) -> str:
    """Where a wider search finds it, so that the next call can; empty where none does soon."""
    content = given.where is Where.CONTENT
    wider = {
        'with where="content"': replace(given, where=Where.CONTENT),
        "with ignore_case": replace(given, ignore_case=True),
        "without extensions": replace(given, extensions=()),
        "without path": replace(given, path=""),
        'with where="names"': replace(given, where=Where.NAMES) if content else given,
        'everywhere, with where="content" and ignore_case': FileSearch(query=given.query, ignore_case=True),
    }
    until = time.monotonic() + WIDER_SECONDS
    for how, other in wider.items():
        if other == given or (given.regex and how.startswith("everywhere")):
            continue
        with ExitStack() as stack, suppress(ToolError):
            shown = replace(other, limit=WIDER_SHOWN)
            found = _found(ports, shown, _paths(ports, shown, until), _matcher(ports, shown, stack))
            if found.matches:
                return f"{how} it is found:\n{found.text}"
    return ""


def _matcher(ports: Ports, given: FileSearch, stack: ExitStack) -> Matcher:
    if given.regex:
        expression = Expression(
            given.query, ignore_case=given.ignore_case, seconds=ports.limits.file_seconds, cancel=ports.cancel
        )
        return stack.enter_context(expression).matching_lines
    return lambda text: _lines_with(text, given.query, ignore_case=given.ignore_case)


def _paths(ports: Ports, given: FileSearch, until: float) -> Iterator[str]:
    """The paths to be searched until the time is up, which `_LATE` says."""
    under = given.path.removeprefix("./").strip("/") if given.path not in (".", "./") else ""
    endings = tuple(f".{extension.removeprefix('*').removeprefix('.')}" for extension in given.extensions)
    for path in _below(ports.files, under, given.path):
        raise_if_stopped(ports.cancel)
        if time.monotonic() > until:
            yield _LATE
            return
        wanted = not endings or path.endswith(endings)
        if wanted and not ports.guardrails.is_secret(path) and not ports.guardrails.never(path):
            yield path


def _below(files: Files, under: str, path: str) -> Iterator[str]:
    found = False
    try:
        for each in files.walk(under):
            found = True
            yield each
    except (NotADirectoryError, NotAFile):
        pass
    if not found and under:
        if not files.exists(under):
            raise NotFound(f"there is nothing at {path!r}", advice="search without a path, or in its parent")
        yield under


def _found(ports: Ports, given: FileSearch, paths: Iterator[str], matcher: Matcher) -> Matches:
    most = min(given.limit, ports.limits.matches)
    matches: list[SearchMatch] = []
    searched = skipped = 0
    late = False
    while not late and len(matches) <= most and (part := list(islice(paths, _AT_ONCE[given.where]))):
        late = part[-1] == _LATE
        names = part[:-1] if late else part
        if not names:
            break
        found = _in_names(names, matcher) if given.where is Where.NAMES else _in_content(ports, names[0], matcher)
        if found is None:
            skipped += 1
        else:
            searched += len(names)
            matches += found
    if late and not matches:
        raise TimedOut(
            f"searched {searched} files in {ports.limits.tool_seconds:g} s without a match, and there are more",
            advice="give a path or extensions to search fewer files",
        )
    complete = not late and len(matches) <= most
    return Matches(matches=tuple(matches[:most]), files=searched, skipped=skipped, complete=complete)


def _in_names(names: Sequence[str], matcher: Matcher) -> list[SearchMatch]:
    numbers = matcher("\n".join(name.replace("\n", " ") for name in names))
    return [SearchMatch(path=names[number - 1], line=0, text="") for number in numbers]


def _in_content(ports: Ports, path: str, matcher: Matcher) -> list[SearchMatch] | None:
    """None for a file that is binary, too large or unreadable."""
    try:
        data = ports.files.read(path)
        if len(data) > ports.guardrails.file_bytes:
            return None
        text = Text.decode(data, path)
    except TimedOut:
        raise
    except (PawlError, OSError):
        return None
    return [
        SearchMatch(path=path, line=number, text=text.lines[number - 1][:SHOWN_CHARACTERS])
        for number in matcher(text.plain)
    ]


def _lines_with(text: str, query: str, *, ignore_case: bool) -> Iterator[int]:
    if ignore_case:
        text, query = text.casefold(), query.casefold()
    place = text.find(query)
    line, counted = 1, 0
    while place >= 0:
        line, counted = line + text.count("\n", counted, place), place
        yield line
        # One match of a line is enough.
        end = text.find("\n", place)
        place = text.find(query, end + 1) if end >= 0 else -1
