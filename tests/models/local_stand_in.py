"""A stand-in for the library xllamacpp: a real server on loopback that answers with what it was asked.

A test puts a copy of it where the child finds it as `xllamacpp`. How the loading goes stands in a file next to the
model's; the last words of the user say how an answer goes.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace


class CommonParams:
    def __init__(self):
        self.model = SimpleNamespace(path="")
        self.cpuparams = SimpleNamespace(n_threads=0)
        self.cpuparams_batch = SimpleNamespace(n_threads=0)


def get_device_info():
    return [{"name": "CPU"}]


class Server:
    def __init__(self, params):
        path = Path(params.model.path)
        plan = path.with_suffix(".loading")
        print("the library talks", flush=True)
        match plan.read_text() if plan.exists() else "":
            case "refuse":
                for number in range(20_000):
                    print(f"complaint {number}", file=sys.stderr)
                raise RuntimeError("Failed to init server")
            case "crash":
                os.write(2, b"about to crash\n")
                os.kill(os.getpid(), signal.SIGTERM)
            case "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            case "hang":
                path.with_suffix(".fifo").write_text(str(os.getpid()))
                # Called like this it keeps the interpreter's lock, as the real library does while it loads.
                ctypes.PyDLL(None).pause()
        self._http = _Http(("127.0.0.1", params.port), _Handler)
        self._http.params = params
        self._http.count = 0
        threading.Thread(target=self._http.serve_forever, daemon=True).start()
        self.listening_address = f"http://127.0.0.1:{self._http.server_port}"


class _Http(ThreadingHTTPServer):
    daemon_threads = True


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        params = self.server.params
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] not in [f"Bearer {key}" for key in params.api_keys]:
            self._json(401, {"error": {"message": "Invalid API Key", "type": "authentication_error", "code": 401}})
            return
        said = body["messages"][-1]["content"]
        if len(said) > params.n_ctx:
            message = f"request ({len(said)} tokens) exceeds the available context size ({params.n_ctx} tokens)"
            self._json(400, {"error": {"code": 400, "message": message, "type": "exceed_context_size_error"}})
            return
        self.server.count += 1
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self._answer(said, Path(params.model.path))

    def _answer(self, said, path):
        match said.split():
            case ["die"]:
                self._say("I am")
                os.write(2, b"my last words\n")
                os._exit(7)
            case ["die", "once"] if not path.with_suffix(".died").exists():
                path.with_suffix(".died").touch()
                self._say("I am")
                os._exit(7)
            case ["wait"]:
                self._say("still")
                # Until the client is gone.
                self.rfile.read(1)
                path.with_suffix(".fifo").write_text("gone")
                return
            case ["settings"]:
                self._say(json.dumps(vars(self.server.params), default=lambda one: getattr(one, "__dict__", str(one))))
            case words:
                for word in words:
                    self._say(f"{word} ")
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}}
        self._send({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        self._send({"choices": [], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def _say(self, text):
        self._send({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]})

    def _send(self, payload):
        stamp = {"id": f"{os.getpid()}-{self.server.count}", "created": 1, "model": "stand-in"}
        self.wfile.write(b"data: " + json.dumps({**stamp, **payload}).encode() + b"\n\n")

    def _json(self, status, payload):
        body = json.dumps(payload).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
