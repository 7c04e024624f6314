"""A dev server that does what it is told over HTTP, in a workspace of root's or of an ordinary user's."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from nursery import PATIENCE
from users import User

_CALL = "import sys\nfrom pawl.__main__ import main\nsys.argv[0] = 'pawl'\nsys.exit(main())"
_SETTINGS = """
[verify]
skip = ["types", "diagnostics (ty)"]
dev_services = %s

[[verify.dev_server]]
name = "toy"
when = { files = ["serve.py"] }
words = ["python3", "-u", "serve.py", "{port}"]
port = %d
ready = ['serving on port (?P<port>\\d+)']
"""
SERVE = '''
import base64, hashlib, http.server, json, os, socket, stat, sys

words = json.load(open("mode.json"))
port = int(sys.argv[1]) + words.get("moved", 0)
sent = 0

def tcp(host, port):
    socket.create_connection((host, port), timeout=5).close()

def udp(host, port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.sendto(b"hello", (host, port))

def unix(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(5)
        one.connect(path.replace("@", chr(0)))

def said(host, port):
    with socket.create_connection((host, port), timeout=5) as one:
        one.sendall(b"hello service")
        one.shutdown(socket.SHUT_WR)
        return one.makefile().read()

def parent(name, flags):
    os.close(os.open(f"/proc/{os.getppid()}/{name}", flags))

def own_sockets():
    found = 0
    for file in range(3, 64):
        try:
            found += stat.S_ISSOCK(os.fstat(file).st_mode)
        except OSError:
            pass
    return found

def interfaces():
    return [name for _, name in socket.if_nameindex()]

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path == "/large":
            return self.large()
        if self.path == "/anew":
            self.answer(b"soon")
            self.wfile.flush()
            os.execv(sys.executable, [sys.executable, "-u", *sys.argv])
        if self.path == "/socket":
            return self.echo()
        if self.path == "/break":
            self.wfile.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 100\\r\\n\\r\\nhalf")
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))
            os.close(self.connection.detach())
            self.close_connection = True
            return None
        self.answer(json.dumps({"pid": os.getpid(), "sent": sent, "began": began}).encode())

    def large(self):
        global sent
        self.send_response(200)
        self.send_header("Content-Length", str(words["large"]))
        self.end_headers()
        for _ in range(words["large"] // 65536):
            self.wfile.write(bytes(65536))
            sent += 65536

    def echo(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.wfile.write(
            b"HTTP/1.1 101 Switching Protocols\\r\\nUpgrade: websocket\\r\\nConnection: Upgrade\\r\\n"
            + f"Sec-WebSocket-Accept: {accept}\\r\\n\\r\\n".encode()
        )
        while head := self.rfile.read(2):
            size = head[1] & 127
            mask = self.rfile.read(4)
            text = bytes(byte ^ mask[at % 4] for at, byte in enumerate(self.rfile.read(size)))
            self.wfile.write(bytes([head[0], size]) + text)
        self.close_connection = True

    def do_POST(self):
        left = int(self.headers["Content-Length"])
        found = hashlib.sha256()
        while left and (data := self.rfile.read(min(left, 65536))):
            found.update(data)
            left -= len(data)
        self.answer(found.hexdigest().encode())

    def do_RAW(self):
        """Answers after the other side has ended its part."""
        self.wfile.write(f"{len(self.rfile.read())} bytes".encode())
        self.close_connection = True

    def do_PROBE(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        told = []
        for name, *arguments in asked:
            try:
                answer = globals()[name](*arguments)
                told.append("allowed" if answer is None else answer)
            except OSError as error:
                told.append(f"denied {error.strerror or error}")
        self.answer(json.dumps(told).encode())

class Server(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if ":" in words.get("host", "127.0.0.1") else socket.AF_INET
    request_queue_size = 128

began = words.get("began", "")
if "needs" in words:
    began = said(*words["needs"])
if words.get("lies"):
    print('@pawl-serving {"ready": 22, "status": 200}')
    print('@pawl-serving not JSON')
    print("serving on port " + "9" * 5000)
server = Server((words.get("host", "127.0.0.1"), port), Handler)
print(f"serving on port {port}", flush=True)
server.serve_forever()
'''


@dataclass(frozen=True, slots=True)
class DevSite:
    user: User
    root: Path

    @property
    def workspace(self) -> Path:
        return self.root / "project"

    def pawl(self, *words: str, before: Sequence[str] = ()) -> tuple[int, str, str]:
        """Calls Pawl as this user; `before` are words in front of its interpreter's."""
        places = {"PAWL_CONFIG": str(self.root / "config.toml"), "PAWL_STATE": str(self.root / "state")}
        done = subprocess.run(
            self.user.words([*before, self.user.python, "-B", "-c", _CALL, "-C", str(self.workspace), *words]),
            env=self.user.environment(self.root, places),
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr

    def told(self, *words: str, code: int = 0) -> dict:
        ended, out, err = self.pawl(*words, "--json")
        assert ended == code, (ended, out, err)
        return json.loads(out)

    @contextmanager
    def serving(
        self, mode: Mapping[str, object] | None = None, *, services: Sequence[str] = (), port: int = 0, code: int = 0
    ) -> Iterator[dict]:
        """The server while it runs, as `pawl dev start` tells of it."""
        self.set_up(mode, services=services, port=port)
        try:
            yield self.told("dev", "start", code=code)
        finally:
            self.pawl("dev", "stop")

    def set_up(self, mode: Mapping[str, object] | None = None, *, services: Sequence[str] = (), port: int = 0) -> None:
        self.workspace.mkdir(exist_ok=True)
        (self.workspace / "serve.py").write_text(SERVE)
        (self.workspace / "mode.json").write_text(json.dumps(mode or {}))
        (self.root / "config.toml").write_text(_SETTINGS % (json.dumps(list(services)), port or free_port()))
        self.user.own(self.root)


def free_port(host: str = "127.0.0.1") -> int:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as found:
        found.bind((host, 0))
        return found.getsockname()[1]


def asked(port: int, method: str = "GET", path: str = "/", body: bytes | None = None) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body)
        return connection.getresponse().read()
    finally:
        connection.close()


def probed(port: int, *attempts: tuple) -> list:
    """What the server finds when it tries things from where it runs."""
    return json.loads(asked(port, "PROBE", "/", json.dumps(attempts).encode()))


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
