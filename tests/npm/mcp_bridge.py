"""Streamable HTTP in front of an MCP server on standard streams, because the conformance set speaks HTTP alone.

`python mcp_bridge.py PORT COMMAND…`: one process of the server for each session.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

SESSION = "mcp-session-id"


class Served:
    """One process of the server; its messages go to the request that they belong to."""

    def __init__(self, command: list[str]) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._turn = threading.Lock()
        self._waiting: dict[object, queue.SimpleQueue] = {}
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, message: dict) -> queue.SimpleQueue:
        """Everything that comes until the answer, and the answer."""
        found: queue.SimpleQueue = queue.SimpleQueue()
        with self._turn:
            if "method" in message and "id" in message:
                self._waiting[message["id"]] = found
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        return found

    def _read(self) -> None:
        for line in self._process.stdout:
            message = json.loads(line)
            with self._turn:
                given = self._waiting.pop(message.get("id"), None) if "method" not in message else None
                for one in [given] if given is not None else list(self._waiting.values()):
                    one.put(message)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions: ClassVar[dict[str, Served]] = {}

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        session = self.headers.get(SESSION) or uuid.uuid4().hex
        served = self.sessions.get(session)
        if served is None:
            served = self.sessions[session] = Served(sys.argv[2:])
        found = served.send(message)
        if "id" not in message or "method" not in message:
            self._begin(202, session, "content-length", "0")
            return
        self._begin(200, session, "content-type", "text/event-stream")
        while True:
            said = found.get(timeout=60)
            self.wfile.write(f"event: message\ndata: {json.dumps(said)}\n\n".encode())
            self.wfile.flush()
            if "method" not in said:
                break
        self.close_connection = True

    def do_GET(self) -> None:
        self._begin(405, "", "content-length", "0")

    def do_DELETE(self) -> None:
        self.do_GET()

    def _begin(self, status: int, session: str, name: str, value: str) -> None:
        self.send_response(status)
        if session:
            self.send_header(SESSION, session)
        self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


if __name__ == "__main__":
    with ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler) as serving:
        serving.daemon_threads = True
        print(serving.server_port, flush=True)
        serving.serve_forever()
