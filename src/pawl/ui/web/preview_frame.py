"""The dev server as the page frames it: at a port, and so an origin, of its own. A script before each document tells
the page of errors in the console; all else is passed on as it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import suppress

from pawl.core.lazy_dataclass import dataclass

LOOPBACK = "127.0.0.1"
LARGEST_HEAD = 64 << 10
CHUNK = 64 << 10
# One address shows several versions of a file, so that a browser that kept one would show the wrong one.
DROPPED = (b"connection", b"accept-encoding", b"keep-alive", b"cache-control", b"if-modified-since", b"if-none-match")
# After a document type of its own, so that what follows is read as the project means it.
REPORTER = """<!doctype html><script>(() => {
const known = %s, above = location.ancestorOrigins?.[0], page = known.includes(above) ? above : known[0];
const tell = (text) => parent.postMessage({ pawlConsole: String(text).slice(0, 2000) }, page);
addEventListener("error", (event) => tell(event.message || `${event.target?.tagName} could not be loaded`), true);
addEventListener("unhandledrejection", (event) => tell(`not handled: ${event.reason}`));
const said = console.error;
console.error = (...words) => { said(...words); tell(words.map(String).join(" ")); };
})();</script>"""


class PreviewFrame:
    """Belongs to the event loop of the server."""

    def __init__(self, page_port: int) -> None:
        origins = [f"http://{name}:{page_port}" for name in (LOOPBACK, "localhost")]
        self._reporter = (REPORTER % json.dumps(origins)).encode()
        self._server: asyncio.Server | None = None
        self._port = self._target = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def address(self, port: int) -> str:
        """Where the dev server of that port is framed."""
        self._target = port
        if self._server is None:
            self._server = await asyncio.start_server(self._answer, LOOPBACK, 0, limit=LARGEST_HEAD)
            self._port = int(self._server.sockets[0].getsockname()[1])
        return f"http://{LOOPBACK}:{self._port}/"

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        for task in self._tasks:
            task.cancel()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a connection; the next one makes a new one."""
        if task := asyncio.current_task():
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError, asyncio.CancelledError):
                await self._pass_on(reader, writer)
        finally:
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = _Head.read(await reader.readuntil(b"\r\n\r\n"))
        if head.value(b"host") not in (f"{LOOPBACK}:{self._port}".encode(), f"localhost:{self._port}".encode()):
            writer.write(b"HTTP/1.1 421 Misdirected Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        far, sink = await asyncio.open_connection(LOOPBACK, self._target, limit=LARGEST_HEAD)
        try:
            if head.value(b"upgrade"):
                sink.write(head.written())
                await asyncio.gather(_carry(reader, sink), _carry(far, writer))
                return
            sink.write(head.written(DROPPED, (b"Connection: close", b"Accept-Encoding: identity")))
            sending = asyncio.ensure_future(_carry(reader, sink))
            try:
                frames = head.value(b"sec-fetch-dest") in (b"iframe", b"document")
                await self._reply(far, writer, is_document=frames)
            finally:
                sending.cancel()
        finally:
            sink.close()

    async def _reply(self, far: asyncio.StreamReader, writer: asyncio.StreamWriter, *, is_document: bool) -> None:
        head = _Head.read(await far.readuntil(b"\r\n\r\n"))
        before = b""
        plain = head.value(b"content-encoding") in (b"", b"identity")
        if is_document and plain and head.value(b"content-type").startswith(b"text/html"):
            before = self._reporter
        added, dropped = [b"Connection: close", b"Cache-Control: no-store"], list(DROPPED)
        if before and head.value(b"transfer-encoding").lower() == b"chunked":
            before = f"{len(before):x}\r\n".encode() + before + b"\r\n"
        elif before and (length := head.value(b"content-length")).isdigit():
            dropped.append(b"content-length")
            added.append(f"Content-Length: {int(length) + len(before)}".encode())
        writer.write(head.written(dropped, added) + before)
        await _carry(far, writer)


@dataclass(frozen=True, slots=True)
class _Head:
    first: bytes
    lines: tuple[bytes, ...]

    @classmethod
    def read(cls, data: bytes) -> _Head:
        first, *lines = data[:-4].split(b"\r\n")
        return cls(first, tuple(lines))

    def value(self, name: bytes) -> bytes:
        """That of the first header of that name; empty without one."""
        for line in self.lines:
            found, _, value = line.partition(b":")
            if found.strip().lower() == name:
                return value.strip()
        return b""

    def written(self, dropped: Sequence[bytes] = (), added: Sequence[bytes] = ()) -> bytes:
        kept = [line for line in self.lines if line.partition(b":")[0].strip().lower() not in dropped]
        return b"\r\n".join([self.first, *kept, *added, b"", b""])


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
