"""Who is at the other end of a command that serves: an editor on its streams, a browser at its address."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

SECONDS = 60.0
"""How long an answer may take on a busy machine."""
Message = Mapping[str, object]


class Other:
    """The other end of a command under way."""

    def __init__(self, pid: int, stdin: int, out: Path) -> None:
        self.pid, self.stdin, self.out = pid, stdin, out

    def write(self, message: Message) -> None:
        with suppress(BrokenPipeError):
            os.write(self.stdin, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def said(self, key: str, value: object = None) -> dict[str, object]:
        """What it wrote that has the key, with that value where one is given; empty where it ended or was silent."""
        watched, until = os.pidfd_open(self.pid), time.monotonic() + SECONDS
        try:
            while time.monotonic() < until:
                ended = select.select([watched], [], [], 0.05)[0]
                for line in self.out.read_bytes().splitlines():
                    with suppress(ValueError):
                        if key in (found := json.loads(line)) and value in (None, found[key]):
                            return found
                if ended:
                    break
        finally:
            os.close(watched)
        return {}


Partner = Callable[[Other], Iterator[str]]
"""Talks to a command and tells what must not be."""


def editor(messages: Sequence[tuple[str, Mapping[str, object]]]) -> Partner:
    """Asks one thing after the other; the answer to the second request names the session of those that follow."""

    def talk(other: Other) -> Iterator[str]:
        session: Mapping[str, object] = {}
        for number, (method, words) in enumerate(messages, 1):
            other.write({"id": number, "method": method, "params": {**words, **session}})
            result = other.said("id", number).get("result")
            if isinstance(result, dict) and "sessionId" in result:
                session = {"sessionId": result["sessionId"]}
        yield from ()

    return talk


def browser(*asked: tuple[str, str, object]) -> Partner:
    """Asks for the pages, and ends the server as a person does."""

    def talk(other: Other) -> Iterator[str]:
        address, _, token = str(other.said("url").get("url", "")).partition("/#token=")
        for method, path, body in asked if address else ():
            line = http.client.HTTPConnection(address.removeprefix("http://"), timeout=SECONDS)
            try:
                data = None if body is None else json.dumps(body)
                head = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
                line.request(method, quote(path, safe="/?=&%", errors="surrogateescape"), data, head)
                if (answer := line.getresponse()).status >= 500:
                    yield f"{method} {path} -> {answer.status} {answer.read(300)!r}"
                answer.read()
            except OSError as error:
                yield f"{method} {path}: {error!r}"
            finally:
                line.close()
        with suppress(ProcessLookupError):
            os.kill(other.pid, signal.SIGINT)

    return talk


def interrupter(other: Other) -> Iterator[str]:
    """Looks on for a moment and leaves."""
    select.select([], [], [], 0.5)
    with suppress(ProcessLookupError):
        os.kill(other.pid, signal.SIGINT)
    yield from ()
