"""A provider on loopback that plays scripts to the byte: cut anywhere, reset, silent, or dripping."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

PATIENCE = 30.0


@dataclass(frozen=True)
class Seen:
    """One request as it arrived."""

    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict:
        return json.loads(self.body)


class Ended(Exception):
    """The connection is over."""


@dataclass
class Connection:
    """What a step of a script acts on."""

    socket: socket.socket
    provider: ProviderSocket
    buffer: bytearray = field(default_factory=bytearray)

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            self.provider.gone.set()
            raise Ended from None

    def read(self) -> bytes:
        try:
            return self.socket.recv(65536)
        except OSError:
            return b""

    def request(self) -> Seen:
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        self.buffer = bytearray(rest)
        size = int(headers.get("content-length", "0"))
        while len(self.buffer) < size:
            self._more()
        body = bytes(self.buffer[:size])
        del self.buffer[:size]
        return Seen(first.split(" ")[1], headers, body)

    def _more(self) -> None:
        data = self.read()
        if not data:
            raise Ended
        self.buffer += data


Step = bytes | Callable[[Connection], None]


class ProviderSocket:
    """Plays one script for each request, in order. What comes after the last one gets a status 500."""

    def __init__(self, scripts: Sequence[Sequence[Step]], port: int = 0) -> None:
        self._scripts = list(scripts)
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[Seen] = []
        self.connections = 0
        self.gone = threading.Event()
        """The client closed a connection while a script was holding it."""
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._sockets: list[socket.socket] = []
        self._threads[0].start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                accepted, _ = self._listener.accept()
            except OSError:
                return
            accepted.settimeout(PATIENCE)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            self._sockets.append(accepted)
            threading.Thread(target=self._serve, args=(accepted,), daemon=True).start()

    def _serve(self, accepted: socket.socket) -> None:
        connection = Connection(accepted, self)
        with accepted:
            try:
                while True:
                    seen = connection.request()
                    with self._lock:
                        self.requests.append(seen)
                        script = self._scripts.pop(0) if self._scripts else [whole(b"no script", status="500 None")]
                    for step in script:
                        connection.send(step) if isinstance(step, bytes) else step(connection)
            except Ended:
                return


@contextmanager
def provider(*scripts: Sequence[Step], port: int = 0) -> Iterator[ProviderSocket]:
    playing = ProviderSocket(scripts, port)
    try:
        yield playing
    finally:
        playing.close()


def hang_up(connection: Connection) -> None:
    """Closes the connection as one does."""
    connection.socket.shutdown(socket.SHUT_RDWR)
    raise Ended


def reset(connection: Connection) -> None:
    """Breaks the connection with a reset."""
    connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.socket.close()
    raise Ended


def hold(connection: Connection) -> None:
    """Says nothing until the client closes the connection."""
    while connection.read():
        pass
    connection.provider.gone.set()
    raise Ended


def do(action: Callable[[], None]) -> Step:
    return lambda _: action()


def until(event: threading.Event) -> Step:
    def waiting(_: Connection) -> None:
        assert event.wait(PATIENCE)

    return waiting


def drip(data: bytes, *, every: float = 0.02) -> Step:
    """The data byte by byte, for ever if it is short enough, until the client has had enough."""

    def dripping(connection: Connection) -> None:
        while not connection.provider.gone.wait(every):
            connection.send(data)

    return dripping


def whole(
    body: bytes, *, status: str = "200 OK", content_type: str = "application/json", headers: Sequence[str] = ()
) -> bytes:
    """A response with its length."""
    lines = [f"HTTP/1.1 {status}", f"content-type: {content_type}", f"content-length: {len(body)}", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def refusal(status: str, error: object, *headers: str) -> list[Step]:
    return [whole(json.dumps(error).encode(), status=status, headers=headers)]


def head(*headers: str, content_type: str = "text/event-stream") -> bytes:
    """The start of a response that comes in chunks."""
    lines = ["HTTP/1.1 200 OK", f"content-type: {content_type}", "transfer-encoding: chunked", *headers]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


END = b"0\r\n\r\n"


def streamed(*pieces: bytes) -> list[Step]:
    """A stream that ends cleanly."""
    return [head(), *(chunk(piece) for piece in pieces), END]
