"""The ways to an MCP server: standard streams of a process in the sandbox or on this machine, and streamable HTTP.

A channel sends messages and puts what comes back into an inbox; whoever waits there has a deadline and can be stopped.
"""

from __future__ import annotations

import base64
import json
import os
import select
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from pawl.core.errors import PawlError, ServerUnavailable
from pawl.core.execution import Execution, Stream
from pawl.core.typed import Unreadable, read_json
from pawl.sandbox.cancel import CancelToken, raise_if_stopped

if TYPE_CHECKING:
    from pawl.workspace.bench import Bench

LARGEST_MESSAGE = 16 << 20
MOST_WAITING = 4 * LARGEST_MESSAGE
"""Bytes of messages that nobody has taken yet."""
_LEAST_SIZE = 2_000
"""The size of even the shortest message."""
MOST_WORDS = 2_000
"""Kept of what a server says on its standard error."""
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_GRACE_SECONDS, _END_SECONDS, _FAREWELL_SECONDS = 0.5, 10.0, 1.0

Message = dict[str, Any]
Feed = Callable[[Stream, bytes], None]


class Channel(Protocol):
    inbox: MessageBox

    def send(self, message: Mapping[str, Any], seconds: float) -> None: ...

    def close(self) -> None: ...


class MessageBox:
    """Messages in the order in which they came, put there by one thread and taken by another."""

    def __init__(self) -> None:
        self._messages: deque[tuple[Message, int]] = deque()
        self._waiting = 0
        self._news = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.ended = ""
        """Why nothing comes any more."""
        self.odd = ""
        """The last line that was no message."""

    def put(self, message: object, size: int = 0) -> list[Message]:
        every = [one for one in (message if isinstance(message, list) else [message]) if isinstance(one, dict)]
        for one in every:
            if self._waiting > MOST_WAITING:
                self.end("it sends more than can be read")
                return every
            cost = max(size // len(every), _LEAST_SIZE)
            self._waiting += cost
            self._messages.append((one, cost))
        os.eventfd_write(self._news, 1)
        return every

    def end(self, why: str) -> None:
        self.ended = self.ended or why
        os.eventfd_write(self._news, 1)

    def take(self, deadline: float, cancel: CancelToken | None) -> Message | None:
        """The next message; None when the time is up. `ServerUnavailable` when none will come."""
        poll = select.poll()
        poll.register(self._news, select.POLLIN)
        if cancel is not None:
            poll.register(cancel.fileno(), select.POLLIN)
        while True:
            raise_if_stopped(cancel)
            if self._messages:
                message, cost = self._messages.popleft()
                self._waiting -= cost
                return message
            if self.ended:
                raise ServerUnavailable(self.ended, advice="it is started again at the next call")
            left = deadline - time.monotonic()
            if left <= 0:
                return None
            poll.poll(left * 1000)
            with suppress(BlockingIOError):
                os.eventfd_read(self._news)

    def close(self) -> None:
        os.close(self._news)


class StreamChannel:
    """A process on its standard streams, one message to a line, run by a thread until it ends or is ended."""

    def __init__(self, run: Callable[[int, Feed, CancelToken], str]) -> None:
        """`run` runs the process with this pipe as its standard input, and says how it ended."""
        self.inbox = MessageBox()
        self._stop, self._line = CancelToken(), bytearray()
        self._said = deque[str](maxlen=20)
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        self._thread = threading.Thread(target=self._run, args=(run,), name="pawl-mcp", daemon=True)
        self._thread.start()

    def send(self, message: Mapping[str, Any], seconds: float) -> None:
        """Writes as the server reads; one that does not read within the time is ended."""
        data = memoryview(json.dumps(message).encode() + b"\n")
        poll = select.poll()
        poll.register(self._write, select.POLLOUT)
        deadline = time.monotonic() + seconds
        while data and not self.inbox.ended:
            if not poll.poll(max(0.0, min(0.1, deadline - time.monotonic())) * 1000):
                if time.monotonic() >= deadline:
                    raise ServerUnavailable("it does not read what it is sent", advice="it is started again")
                continue
            try:
                data = data[os.write(self._write, data[:65_536]) :]
            except BlockingIOError:
                continue
            except BrokenPipeError:
                return  # Its end is told by the inbox.

    def close(self) -> None:
        """The end of its input tells a server to end; one that goes on is ended with all that it started."""
        os.close(self._write)
        self._thread.join(_GRACE_SECONDS)
        self._stop.request()
        self._thread.join(_END_SECONDS)
        if not self._thread.is_alive():
            self.inbox.close()

    def _run(self, run: Callable[[int, Feed, CancelToken], str]) -> None:
        try:
            why = run(self._read, self._feed, self._stop)
        except (PawlError, OSError) as error:
            why = f"it cannot be started: {error.message if isinstance(error, PawlError) else error}"
        finally:
            os.close(self._read)
        said = "\n".join(self._said)[-MOST_WORDS:].strip()
        self.inbox.end(f"{why}{f'; it said: {said}' if said else ''}")

    def _feed(self, stream: Stream, data: bytes) -> None:
        if stream is Stream.STDERR:
            self._said += data.decode("utf-8", "replace").splitlines()[-20:]
            return
        first, *rest = data.split(b"\n")
        self._line += first
        for part in rest:
            self._take(bytes(self._line))
            self._line = bytearray(part)
        if len(self._line) > LARGEST_MESSAGE:
            self._line.clear()
            self.inbox.end(f"it sent a message of more than {LARGEST_MESSAGE >> 20} MB")
            self._stop.request()

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            self.inbox.put(read_json(line), len(line))
        except (Unreadable, UnicodeDecodeError):
            self.inbox.odd = line[:200].decode("utf-8", "replace")


def in_sandbox(
    bench: Bench, execution: Execution, hides: Callable[[str], bool] | None
) -> Callable[[int, Feed, CancelToken], str]:
    """Runs a server on a bench of its own, of which nothing is captured."""

    def run(pipe: int, feed: Feed, stop: CancelToken) -> str:
        done = bench.run(replace(execution, pipe=pipe), on_output=feed, cancel=stop, hides=hides)
        how = f"code {done.code}" if done.code is not None else f"{done.ending} {done.signal or ''}".strip()
        return f"it ended with {how}{''.join(f'; {one}' for one in done.notices)}"

    return run


def on_host(argv: Sequence[str], environment: Mapping[str, str]) -> Callable[[int, Feed, CancelToken], str]:
    """Runs a server of the user's own settings on this machine."""

    def run(pipe: int, feed: Feed, stop: CancelToken) -> str:
        from pawl.workspace.hook_runner import end_tree, started_on_host

        process, mark = started_on_host(argv, pipe, environment)
        with process:
            try:
                for stream, data in _followed(process, stop):
                    feed(stream, data)
            finally:
                end_tree(process.pid, mark)
        return f"it ended with code {process.returncode}"

    return run


def _followed(process: subprocess.Popen[bytes], stop: CancelToken) -> Iterator[tuple[Stream, bytes]]:
    assert process.stdout is not None and process.stderr is not None
    open_files = {process.stdout.fileno(): Stream.STDOUT, process.stderr.fileno(): Stream.STDERR}
    while Stream.STDOUT in open_files.values() and not stop.requested:
        for file in select.select([*open_files, stop.fileno()], [], [])[0]:
            if file == stop.fileno():
                continue
            data = os.read(file, 65_536)
            if data:
                yield open_files[file], data
            else:
                del open_files[file]


class HttpChannel:
    """Streamable HTTP: each message is a request of its own, whose answer is JSON or a stream of events."""

    def __init__(self, url: str, headers: Mapping[str, str], seconds: float) -> None:
        import httpx2

        self.inbox = MessageBox()
        self.version = ""
        """Of the protocol, once it is agreed on."""
        self._session, self._url, self._own = "", url, headers
        self._client = httpx2.Client(follow_redirects=False, timeout=httpx2.Timeout(seconds))
        self._failures = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError)

    def send(self, message: Mapping[str, Any], seconds: float) -> None:
        if "id" not in message:
            # What needs no answer arrives before what comes after it.
            self._post(message)
            return
        # Whoever waits can be stopped, and a server that does not answer holds up nobody.
        threading.Thread(target=self._post, args=(message,), name="pawl-mcp", daemon=True).start()

    def close(self) -> None:
        """A session is told that it has ended; whether the server hears it or not."""
        if self._session:
            with suppress(*self._failures, UnicodeError):
                self._client.delete(self._url, headers=self._headers({}), timeout=_FAREWELL_SECONDS)
        self._client.close()

    def _post(self, message: Mapping[str, Any]) -> None:
        number = message.get("id")
        try:
            with self._client.stream("POST", self._url, json=message, headers=self._headers(message)) as answer:
                self._session = answer.headers.get("mcp-session-id", self._session)
                parts, kind = answer.iter_bytes(), answer.headers.get("content-type", "")
                if answer.status_code >= 400 or answer.is_redirect:
                    self._told_error(number, answer.status_code, _first(parts, 4_000))
                    return
                whole = [_first(parts, LARGEST_MESSAGE)] if number is not None and "event-stream" not in kind else []
                for data in whole or _events(parts):
                    every = self.inbox.put(read_json(data), len(data))
                    if any("method" not in one and one.get("id") == number for one in every):
                        return
                if number is not None:
                    self._fail(number, "it ended without an answer to this request")
        except (*self._failures, Unreadable, UnicodeError, RuntimeError) as error:
            self._fail(number, f"{type(error).__name__}: {error}")

    def _told_error(self, number: object, status: int, told: bytes) -> None:
        """A body in the form of the protocol says more than the status. A session that is gone is begun anew."""
        if self._session and (status == 404 or (status == 400 and b"ession" in told)):
            self.inbox.end(f"its session is gone (status {status})")
        with suppress(Unreadable):
            body = read_json(told)
            if isinstance(body, dict) and "error" in body:
                self.inbox.put({**body, "id": number})
                return
        self._fail(number, f"status {status}: {told[:300].decode('utf-8', 'replace')}")

    def _fail(self, number: object, why: str) -> None:
        self.inbox.put({"id": number, "error": {"code": -32000, "message": why}})

    def _headers(self, message: Mapping[str, Any]) -> dict[str, str]:
        params = message.get("params") or {}
        meta = params.get("_meta") or {}
        made = {"accept": "application/json, text/event-stream", **self._own}
        version = meta.get("io.modelcontextprotocol/protocolVersion") or self.version
        if version:
            made["mcp-protocol-version"] = version
        if self._session:
            made["mcp-session-id"] = self._session
        elif "method" in message:
            made["mcp-method"] = message["method"]
            name = params.get(_NAMED.get(message["method"], ""))
            if isinstance(name, str):
                encoded = f"=?base64?{base64.b64encode(name.encode()).decode()}?="
                made["mcp-name"] = name if name.isascii() and name.isprintable() else encoded
        return made


def _first(parts: Iterator[bytes], most: int) -> bytes:
    found = bytearray()
    for part in parts:
        found += part
        if len(found) > most:
            raise Unreadable(f"it is larger than {most} bytes")
    return bytes(found)


def _events(parts: Iterator[bytes]) -> Iterator[bytes]:
    """The data of each event of a stream."""
    line, data, size = bytearray(), list[bytes](), 0
    for part in parts:
        first, *rest = part.split(b"\n")
        line += first
        for following in rest:
            text, line = bytes(line).rstrip(b"\r"), bytearray(following)
            if text.startswith(b"data:"):
                data.append(text[5:].removeprefix(b" "))
                size += len(text)
            elif not text and data:
                yield b"\n".join(data)
                data, size = [], 0
        if size + len(line) > LARGEST_MESSAGE:
            raise Unreadable(f"an event is larger than {LARGEST_MESSAGE >> 20} MB")
