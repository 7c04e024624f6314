"""A model on loopback for measuring: it answers with the tool calls that it was given, then with words."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from pathlib import Path


class Server:
    """Keeps, for every request, when it was whole, when its answer was out, and how long it was."""

    def __init__(self, calls: list[dict], seconds: float = 0.0) -> None:
        self.calls = calls
        self.seconds = seconds
        self.arrivals: list[float] = []
        self.answers: list[float] = []
        self.sizes: list[int] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            connection, _ = self.listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        buffer = b""
        while True:
            while b"\r\n\r\n" not in buffer:
                part = connection.recv(1 << 16)
                if not part:
                    return
                buffer += part
            head, _, buffer = buffer.partition(b"\r\n\r\n")
            size = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            while len(buffer) < size:
                buffer += connection.recv(1 << 20)
            buffer = buffer[size:]
            self.arrivals.append(time.monotonic())
            self.sizes.append(size)
            threading.Event().wait(self.seconds)
            number = len(self.arrivals)
            body = self._answer(number)
            connection.sendall(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body) + body
            )
            self.answers.append(time.monotonic())

    def _answer(self, number: int) -> bytes:
        if number > len(self.calls):
            written = dict.fromkeys(
                str(call["arguments"]["path"]) for call in self.calls if "path" in call["arguments"]
            )
            # Pawl asks why files that no import links change together.
            delta: dict = {"content": f"Done. The fix needs {', '.join(written)}." if len(written) > 1 else "Done."}
        else:
            call = self.calls[number - 1]
            made = {"name": call["name"], "arguments": json.dumps(call["arguments"])}
            delta = {"tool_calls": [{"index": 0, "id": f"t{number}", "function": made}]}
        reason = "stop" if number > len(self.calls) else "tool_calls"
        parts = (
            {"id": f"c{number}", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]},
            {"id": f"c{number}", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5}},
        )
        return "".join(f"data: {part}\n\n" for part in (*map(json.dumps, parts), "[DONE]")).encode()


def main() -> None:
    """Serves until stdin closes, then tells what was seen. Words: a file of the calls, seconds an answer."""
    server = Server(json.loads(Path(sys.argv[1]).read_text()), *map(float, sys.argv[2:]))
    print(server.port, flush=True)
    sys.stdin.read()
    print(json.dumps({"arrivals": server.arrivals, "answers": server.answers, "sizes": server.sizes}), flush=True)


if __name__ == "__main__":
    main()
