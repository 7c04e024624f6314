"""`file_search`: where a text, an expression or a file name occurs."""

from __future__ import annotations

import json
import re
import selectors
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Annotated

from pawl.agent.tools.registry import Effect, Tool, ToolLimits, ToolPage
from pawl.core.errors import BadArguments, Cancelled, NoMatches, NotAFile, NotFound, PawlError, TimedOut, ToolError
from pawl.core.guardrails import Guardrails
from pawl.core.text import Text
from pawl.core.typed import AtLeast
from pawl.sandbox.cancel import CancelToken
from pawl.workspace.bench_files import Files

LONGEST_PATTERN = 1_000
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
                if self._cancel is not None and self._cancel.requested:
                    raise Cancelled("the search was stopped by the user")
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
            f"query: the expression has {len(pattern)} characters; {LONGEST_PATTERN} is the most", advice="shorten it"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            raise BadArguments(
                f"query: {pattern!r} is not a regular expression: {error}", advice="mend it, or set regex to false"
            ) from error


def _ended(pattern: str) -> ToolError:
    return ToolError(f"the search for {pattern!r} ended early", advice="search for plain text instead")


def _open(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe


SHOWN_CHARACTERS = 300
_NAMES_AT_ONCE = 1000
_LATE = "/"
"""Stands for a path where the time was up: no path of a workspace is this."""

Matcher = Callable[[str], Iterable[int]]
"""From a text with line feeds to the numbers of its lines that match."""


class Where(StrEnum):
    CONTENT = "content"
    NAMES = "names"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSearch:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    files: Files
    guardrails: Guardrails
    limits: ToolLimits
    cancel: CancelToken | None

    def run(self, given: FileSearch) -> Matches:
        if not given.query:
            raise BadArguments("query: is empty", advice="say what to look for")
        until = time.monotonic() + self.limits.tool_seconds
        with ExitStack() as stack:
            matcher = self._matcher(given, stack)
            paths = self._in_time(self._paths(given), until)
            if given.where is Where.NAMES:
                found = self._in_names(given, paths, matcher)
            else:
                found = self._in_contents(given, paths, matcher)
        if not found.matches:
            left_out = f" ({found.skipped} left out)" if found.skipped else ""
            raise NoMatches(
                f"no match for {given.query!r} in {found.files} files{left_out}",
                advice="try fewer words, ignore_case, another path or other extensions",
            )
        return found

    def _paths(self, given: FileSearch) -> Iterator[str]:
        """What is to be searched; empty texts in between, so that who waits can look at the clock."""
        under = given.path.removeprefix("./").strip("/") if given.path not in (".", "./") else ""
        endings = tuple(f".{extension.removeprefix('*').removeprefix('.')}" for extension in given.extensions)
        for path in self._below(under, given.path):
            wanted = not endings or path.endswith(endings)
            if wanted and not self.guardrails.is_secret(path) and not self.guardrails.never(path):
                yield path
            else:
                yield ""

    def _below(self, under: str, path: str) -> Iterator[str]:
        found = False
        try:
            for each in self.files.walk(under):
                found = True
                yield each
        except (NotADirectoryError, NotAFile):
            pass
        if not found and under:
            if not self.files.exists(under):
                raise NotFound(f"there is nothing at {path!r}", advice="search without a path, or in its parent")
            yield under

    def _in_time(self, paths: Iterator[str], until: float) -> Iterator[str]:
        """The paths until the time is up, which `_LATE` says."""
        for path in paths:
            if self.cancel is not None and self.cancel.requested:
                raise Cancelled("the search was stopped by the user")
            if time.monotonic() > until:
                yield _LATE
                return
            if path:
                yield path

    def _matcher(self, given: FileSearch, stack: ExitStack) -> Matcher:
        if given.regex:
            expression = Expression(
                given.query, ignore_case=given.ignore_case, seconds=self.limits.file_seconds, cancel=self.cancel
            )
            return stack.enter_context(expression).matching_lines
        return lambda text: _lines_with(text, given.query, ignore_case=given.ignore_case)

    def _in_names(self, given: FileSearch, paths: Iterator[str], matcher: Matcher) -> Matches:
        most = min(given.limit, self.limits.matches)
        matches: list[SearchMatch] = []
        searched, late = 0, False
        while not late and len(matches) <= most and (part := list(islice(paths, _NAMES_AT_ONCE))):
            late = part[-1] == _LATE
            names = part[:-1] if late else part
            searched += len(names)
            numbers = matcher("\n".join(path.replace("\n", " ") for path in names)) if names else ()
            matches += [SearchMatch(path=names[number - 1], line=0, text="") for number in numbers]
        if late and not matches:
            raise self._too_late(searched)
        complete = not late and len(matches) <= most
        return Matches(matches=tuple(matches[:most]), files=searched, skipped=0, complete=complete)

    def _too_late(self, searched: int) -> TimedOut:
        return TimedOut(
            f"searched {searched} files in {self.limits.tool_seconds:g} s without a match, and there are more",
            advice="give a path or extensions to search fewer files",
        )

    def _in_contents(self, given: FileSearch, paths: Iterator[str], matcher: Matcher) -> Matches:
        most = min(given.limit, self.limits.matches)
        matches: list[SearchMatch] = []
        searched = skipped = 0
        complete = True
        for path in paths:
            if path == _LATE and not matches:
                raise self._too_late(searched)
            if path == _LATE or len(matches) > most:
                complete = False
                break
            text = self._text(path)
            if text is None:
                skipped += 1
                continue
            searched += 1
            for number in matcher(text.plain):
                matches.append(SearchMatch(path=path, line=number, text=text.lines[number - 1][:SHOWN_CHARACTERS]))
        complete = complete and len(matches) <= most
        return Matches(matches=tuple(matches[:most]), files=searched, skipped=skipped, complete=complete)

    def _text(self, path: str) -> Text | None:
        try:
            data = self.files.read(path)
            return Text.decode(data, path) if len(data) <= self.guardrails.file_bytes else None
        except TimedOut:
            raise
        except (PawlError, OSError):
            return None


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


def file_search(
    files: Files, guardrails: Guardrails, limits: ToolLimits, page: ToolPage, *, cancel: CancelToken | None = None
) -> Tool[FileSearch]:
    search = _Search(files=files, guardrails=guardrails, limits=limits, cancel=cancel)
    return Tool(name="file_search", page=page, input=FileSearch, handler=search.run, effect=Effect.READS)
