"""The server of the page in a process of its own, asked as a browser asks it."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nursery import PATIENCE
from ui.cli.console import PAWL

PAGE = '<!doctype html><meta name="csp-nonce" content="__NONCE__"><title>Pawl</title>'


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Page:
    """One tab."""

    port: int
    token: str
    process: subprocess.Popen
    killed: bool = False

    @property
    def address(self) -> str:
        """As it is printed, for a browser."""
        return f"http://127.0.0.1:{self.port}/#token={self.token}"

    def kill(self) -> None:
        self.killed = True
        self.process.kill()
        self.process.wait()

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            given = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
            given |= {name.replace("_", "-"): value for name, value in headers.items()}
            data = None if body is None else json.dumps(body).encode() if not isinstance(body, bytes) else body
            connection.request(method, path, data, given)
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        answer = self.ask("GET", path)
        assert answer.status == 200, answer.body
        return answer.json

    def post(self, path: str, body: object, method: str = "POST") -> Any:
        answer = self.ask(method, path, body)
        assert answer.status == 200, answer.body
        return answer.json

    def command(self, *words: str) -> Any:
        return self.post("/api/command", {"words": list(words)})

    @contextmanager
    def events(self, after: int = 0, api: str = "/api", *, every: bool = False) -> Iterator[Iterator[dict[str, Any]]]:
        """The stream of events, as it comes; `every` with the word that the state has changed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request("GET", f"{api}/events?after={after}", headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            assert answer.status == 200
            # From here on nothing is missed.
            assert answer.readline() == b": welcome\n"
            yield _events(answer, every=every)
        finally:
            connection.close()

    def until(self, kind: str, after: int = 0) -> list[dict[str, Any]]:
        """The events up to the first of that type."""
        seen = []
        with self.events(after) as events:
            for event in events:
                seen.append(event)
                if event["type"] == kind:
                    return seen
        raise AssertionError(f"no {kind} in {seen}")


def _events(answer: http.client.HTTPResponse, *, every: bool) -> Iterator[dict[str, Any]]:
    while line := answer.readline():
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            if every or event["id"] is not None:
                yield event


@contextmanager
def page(workspace: Path, *words: str, built: bool = False, opens: bool = False) -> Iterator[Page]:
    """A server under way, with a page of one line or the built one; ended as a person ends it. `opens` the browser."""
    folder = workspace.parent / "page"
    if not folder.exists():
        folder.mkdir()
        (folder / "index.html").write_text(PAGE)
        (folder / "main.js").write_text("1")
    own = () if built else ("--page", str(folder))
    process = subprocess.Popen(
        [*PAWL, "web", *(() if opens else ("--no-open",)), "--json", *own, *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=workspace,
    )
    try:
        line = process.stdout.readline()
        assert line, process.stderr.read()
        address, _, token = json.loads(line)["url"].partition("/#token=")
        tab = Page(int(address.rpartition(":")[2]), token, process)
        yield tab
        if tab.killed:
            return
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (0, b"", b""), err.decode()
    finally:
        process.kill()
        process.communicate()
