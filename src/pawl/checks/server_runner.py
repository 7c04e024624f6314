"""Runs one dev server on a bench: starts it, reads from its output where it listens, asks it over HTTP, ends its tree.

Runs as a process of its own in the sandbox. What is asked comes as one word; lines that start with the mark go to Pawl,
everything else is what the server prints.
"""

from __future__ import annotations

import ctypes
import http.client
import itertools
import json
import os
import re
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

MARK = "@pawl-serving "
_GO = b"g"
_FAMILIES = {b"4": socket.AF_INET, b"6": socket.AF_INET6}
_PR_SET_DUMPABLE = 4
_LONGEST_LINE = 1 << 16
_TRIES = 5
_PROBE_SECONDS = 5.0
_END_SECONDS = 3.0
_BETWEEN_SECONDS = 0.1
_LOOK_SECONDS = 0.3
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_PORT_DIGITS = 5
_LAST_LINES = 15
_LARGEST_ANSWER = 1 << 20
_BROKEN = 500


def main() -> None:
    question = json.loads(sys.argv[1])
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, _ended)
    # What it starts must not write into its memory or open its files.
    ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    joint = _Joint(question["joint"])
    try:
        outcome = _served(question) if joint.is_up() else {"failed": "the services it needs cannot be reached"}
    except SystemExit:
        outcome = {"ended": "stopped"}
    _tell(outcome)


class _Joint:
    """Hands sockets of this network to Pawl, which alone connects and listens with them."""

    def __init__(self, file: int) -> None:
        os.set_inheritable(file, False)
        self._control = socket.socket(fileno=file)
        self._settled = threading.Event()
        self._up = False
        threading.Thread(target=self._hand_out, daemon=True).start()

    def is_up(self) -> bool:
        """Whether Pawl has brought in all that it was asked to; waits until that is known."""
        self._settled.wait()
        return self._up

    def _hand_out(self) -> None:
        while asked := self._control.recv(1):
            if asked == _GO:
                self._up = True
                self._settled.set()
                continue
            try:
                with socket.socket(_FAMILIES[asked]) as fresh:
                    socket.send_fds(self._control, [b"."], [fresh.fileno()])
            except OSError:
                self._control.send(b"!")
        self._settled.set()


def _ended(number: int, _: object) -> None:
    raise SystemExit(128 + number)


def _tell(body: Mapping[str, Any]) -> None:
    sys.stdout.write(f"{MARK}{json.dumps(body)}\n")
    sys.stdout.flush()


def _served(question: Mapping[str, Any]) -> dict[str, Any]:
    """Tries the wanted port, and others that are free while the server says that one is taken."""
    outcome: dict[str, Any] = {}
    wanted = int(question["port"])
    for port in _ports(wanted):
        outcome = _Server(question, port).run()
        if not outcome.get("busy"):
            break
    return outcome if port == wanted else {"taken": wanted, **outcome}


def _ports(wanted: int) -> Iterator[int]:
    if _is_free(wanted):
        yield wanted
    for _ in range(_TRIES):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = int(found.getsockname()[1])
        yield port


def _is_free(port: int) -> bool:
    with socket.socket() as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class _Server:
    def __init__(self, question: Mapping[str, Any], port: int) -> None:
        self._question = question
        self._port = port
        self._ready = [re.compile(pattern) for pattern in question["ready"]]
        self._busy = [re.compile(pattern) for pattern in question["busy"]]
        self._lines: list[str] = []

    def run(self) -> dict[str, Any]:
        words = [word.replace("{port}", str(self._port)) for word in self._question["words"]]
        wanted: Mapping[str, str] = self._question["environment"]
        added = [f"{name}={value.replace('{port}', str(self._port))}" for name, value in wanted.items()]
        try:
            process = subprocess.Popen(
                ["/usr/bin/env", *added, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except OSError as error:
            return {"failed": f"{words[0]!r} cannot be started: {error.strerror}", "missing": True}
        try:
            return self._watched(process)
        finally:
            _end(process)

    def _watched(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        deadline = time.monotonic() + float(self._question["seconds"])
        port = self._listening(process, deadline)
        if port is None:
            said = "\n".join(self._lines[-_LAST_LINES:])
            if any(pattern.search(said) for pattern in self._busy):
                return {"busy": True, "failed": f"port {self._port} is taken", "output": said}
            if process.poll() is None:
                why = f"it did not print its address within {self._question['seconds']:g} s"
                return {"failed": why, "output": said, "late": True}
            why = f"it ended with code {process.returncode}"
            return {"failed": why, "output": said, "missing": process.returncode == 127}
        status = _probed(port, max(deadline, time.monotonic() + _PROBE_SECONDS), process)
        if status is None:
            return {"failed": f"it does not answer on port {port}", "output": "\n".join(self._lines[-_LAST_LINES:])}
        if not self._question["stay"]:
            if status < _BROKEN:
                return {"ready": port, "status": status}
            return {"failed": f"it answers with status {status}", "output": "\n".join(self._lines[-_LAST_LINES:])}
        _tell({"ready": port, "status": status})
        for _ in self._output(process, None):
            continue
        return {"ended": f"it ended with code {process.wait()}", "output": "\n".join(self._lines[-_LAST_LINES:])}

    def _listening(self, process: subprocess.Popen[bytes], deadline: float) -> int | None:
        for line in self._output(process, deadline):
            for pattern in self._ready:
                match = pattern.search(line)
                if match and len(match["port"]) <= _PORT_DIGITS:
                    return int(match["port"])
        return None

    def _output(self, process: subprocess.Popen[bytes], deadline: float | None) -> Iterator[str]:
        """Lines as they come, passed on and remembered; ends with the server or at the deadline."""
        assert process.stdout is not None
        descriptor = process.stdout.fileno()
        rest = b""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while deadline is None or time.monotonic() < deadline:
                if not selector.select(_LOOK_SECONDS):
                    # What the server started may hold its output open after its end.
                    if process.poll() is not None:
                        return
                    continue
                data = os.read(descriptor, 1 << 16)
                if not data:
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_END_SECONDS)
                    if rest:
                        yield self._passed_on(rest)
                    return
                *lines, rest = (rest + data).split(b"\n")
                if len(rest) > _LONGEST_LINE:
                    lines, rest = [*lines, rest], b""
                yield from map(self._passed_on, lines)

    def _passed_on(self, line: bytes) -> str:
        """Prints and remembers a line of the server's; one that starts with the mark is Pawl's alone to write."""
        sys.stdout.buffer.write((b" " if line.startswith(MARK.encode()) else b"") + line + b"\n")
        sys.stdout.buffer.flush()
        plain = _ESCAPES.sub("", line.decode("utf-8", "replace")).rstrip()
        self._lines = [*self._lines[-200:], plain] if plain else self._lines
        return plain


def _probed(port: int, deadline: float, process: subprocess.Popen[bytes]) -> int | None:
    """The status of an answer over HTTP; None when there is none in time."""
    selector = selectors.DefaultSelector()
    hosts = itertools.cycle(("127.0.0.1", "::1"))
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection(next(hosts), port, timeout=max(1.0, deadline - time.monotonic()))
        try:
            connection.request("GET", "/", headers={"Accept": "text/html,*/*"})
            answer = connection.getresponse()
            # A server that is cut off in the middle of its answer complains about it.
            answer.read(_LARGEST_ANSWER)
            return answer.status
        except (OSError, http.client.HTTPException):
            selector.select(_BETWEEN_SECONDS)
        finally:
            connection.close()
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole tree: asked first, then without asking."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_SECONDS)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


if __name__ == "__main__":
    main()
