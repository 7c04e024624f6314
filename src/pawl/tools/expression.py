"""A regular expression that cannot hang the program: it is tried by a process of its own, under a deadline."""

from __future__ import annotations

import json
import re
import selectors
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import IO

from pawl.core.errors import BadArguments, Cancelled, TimedOut, ToolError
from pawl.core.ports import Cancel

LONGEST_PATTERN = 1_000
_MATCHER = Path(__file__).with_name("matcher.py")


class Expression:
    """Use it as a context manager; its process ends with it."""

    def __init__(self, pattern: str, *, ignore_case: bool, seconds: float, cancel: Cancel | None = None) -> None:
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
