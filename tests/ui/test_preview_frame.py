"""The port of its own at which the page frames a dev server: what is put before a document, and what is passed on."""

from __future__ import annotations

import asyncio
import http.client
import io

import pytest

from pawl.ui.web.preview_frame import PreviewFrame

pytestmark = pytest.mark.spec("F7")

DOCUMENT = b"<!doctype html><title>Shop</title>"


def answered(reply: bytes, *, host: str = "", document: bool = True, upgrade: bool = False) -> bytes:
    """What comes of one request to the frame of a server that replies so."""

    async def play() -> bytes:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            if upgrade:
                writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n" + await reader.readexactly(4))
            else:
                assert b"Accept-Encoding: identity" in head
                writer.write(reply)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        frame = PreviewFrame(4000)
        try:
            address = await frame.address(server.sockets[0].getsockname()[1])
            own = address.removeprefix("http://").rstrip("/")
            reader, writer = await asyncio.open_connection("127.0.0.1", int(own.rpartition(":")[2]))
            lines = ["GET / HTTP/1.1", f"Host: {host or own}", "Accept-Encoding: gzip"]
            lines += ["Sec-Fetch-Dest: iframe"] if document else []
            lines += ["Upgrade: websocket"] if upgrade else []
            writer.write("\r\n".join([*lines, "", ""]).encode() + (b"ping" if upgrade else b""))
            said = await reader.read()
            writer.close()
            return said
        finally:
            frame.close()
            server.close()

    return asyncio.run(play())


def body(said: bytes) -> bytes:
    class Socket:
        def makefile(self, *_: object) -> io.BytesIO:
            return io.BytesIO(said)

    reply = http.client.HTTPResponse(Socket())  # type: ignore[arg-type]
    reply.begin()
    return reply.read()


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %d\r\n\r\n%s" % (len(DOCUMENT), DOCUMENT),
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html;x=y\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
        % (len(DOCUMENT), DOCUMENT),
        b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n" + DOCUMENT,
    ],
    ids=["with a length", "in chunks", "until the end"],
)
def test_a_document_is_told_of_and_comes_whole(reply: bytes):
    said = body(answered(reply))
    assert said.startswith(b"<!doctype html><script>") and said.endswith(DOCUMENT)
    assert b'"http://127.0.0.1:4000"' in said


def test_what_is_no_document_comes_as_it_is():
    script = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nab"
    assert body(answered(script, document=False)) == b"ab"
    coded = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab"
    assert body(answered(coded)) == b"ab"
    assert answered(b"", upgrade=True).endswith(b"ping")


@pytest.mark.attack("A55")
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1:1", "localhost"])
def test_another_name_is_not_answered(host: str):
    assert answered(b"", host=host).startswith(b"HTTP/1.1 421")


def test_errors_are_told_to_the_page_under_either_name_of_loopback():
    said = answered(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + DOCUMENT)
    assert b'["http://127.0.0.1:4000", "http://localhost:4000"]' in said
