"""Who is at the other end of a command that serves: an editor on its streams, a browser at its address."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from hostile.patience import LONGEST, PATIENCE, Clock, tell_where

Message = Mapping[str, object]


class Other:
    """The other end of a command under way."""

    def __init__(self, pid: int, stdin: int, out: Path, patience: float = PATIENCE) -> None:
        self.pid, self.stdin, self.out, self.patience = pid, stdin, out, patience
        self.problems: list[str] = []
        self.longest = 0.0
        """Seconds of the command's own that an answer took."""

    def write(self, message: Message) -> None:
        with suppress(BrokenPipeError):
            os.write(self.stdin, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def said(self, key: str, value: object = None) -> dict[str, object]:
        """What it wrote that has the key, with that value where one is given; empty where it ended without."""
        with self.answering(f"{key} {value or ''}".strip()) as (clock, process):
            ended: Sequence[int] = ()
            while clock.patient(self.patience) and not ended:
                ended = select.select([process], [], [], 0.05)[0]
                for line in self.out.read_bytes().splitlines():
                    with suppress(ValueError):
                        if key in (found := json.loads(line)) and value in (None, found[key]):
                            return found
        return {}

    def end(self) -> None:
        """As a person does."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGINT)

    @contextmanager
    def answering(self, what: str) -> Iterator[tuple[Clock, int]]:
        """A clock of the time until an answer, and the process as a descriptor; too long a time is a problem."""
        clock, process = Clock(self.pid), os.pidfd_open(self.pid)
        try:
            yield clock, process
        finally:
            os.close(process)
            self.longest = max(self.longest, clock.look())
        if not clock.patient(self.patience):
            self.problems.append(f"hung for {clock.had:.0f} s before it answered {what!r}")
            tell_where(self.pid)


Partner = Callable[[Other], None]
"""Talks to a command."""


def editor(messages: Sequence[tuple[str, Mapping[str, object]]]) -> Partner:
    """Asks one thing after the other; the answer to the second request names the session of those that follow."""

    def talk(other: Other) -> None:
        session: Mapping[str, object] = {}
        for number, (method, words) in enumerate(messages, 1):
            other.write({"id": number, "method": method, "params": {**words, **session}})
            result = other.said("id", number).get("result")
            if other.problems:
                return
            if isinstance(result, dict) and "sessionId" in result:
                session = {"sessionId": result["sessionId"]}

    return talk


def browser(*asked: tuple[str, str, object]) -> Partner:
    """Asks for the pages, and ends the server as a person does."""

    def talk(other: Other) -> None:
        address, _, token = str(other.said("url").get("url", "")).partition("/#token=")
        for method, path, body in asked if address else ():
            if not other.problems:
                _asked(other, address.removeprefix("http://"), token, (method, path, body))
        other.end()

    return talk


def _asked(other: Other, address: str, token: str, request: tuple[str, str, object]) -> None:
    method, path, body = request
    line = http.client.HTTPConnection(address, timeout=LONGEST)
    try:
        data = None if body is None else json.dumps(body)
        head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with other.answering(f"{method} {path}") as (clock, process):
            line.request(method, quote(path, safe="/?=&%", errors="surrogateescape"), data, head)
            if not clock.until(line.sock.fileno(), process, patience=other.patience):
                return
            answer = line.getresponse()
            said = answer.read()
        if answer.status >= 500:
            other.problems.append(f"{method} {path} -> {answer.status} {said[:300]!r}")
    except OSError as error:
        other.problems.append(f"{method} {path}: {error!r}")
    finally:
        line.close()


def interrupter(other: Other) -> None:
    """Looks on for a moment and leaves."""
    select.select([], [], [], 0.5)
    other.end()
