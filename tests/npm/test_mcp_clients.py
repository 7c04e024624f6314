"""A real agent from npm as a client of `pawl mcp serve`, with a scripted model behind it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from models.wire_scripts import Said, openai
from npm.large_packages import install_or_skip
from ui.cli.conftest import project
from ui.cli.console import PAWL
from ui.cli.projects import SETTINGS, Project

__all__ = ["project"]

pytestmark = [pytest.mark.npm, pytest.mark.timeout(400), pytest.mark.spec("F6")]
PACKAGE = "opencode-ai@1.18.33"
QUIET = ("OPENCODE_DISABLE_AUTOUPDATE", "OPENCODE_DISABLE_MODELS_FETCH", "OPENCODE_DISABLE_LSP_DOWNLOAD")


@pytest.fixture(scope="module")
def opencode(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("opencode")
    install_or_skip(root, PACKAGE)
    return root / "node_modules/.bin/opencode"


@contextmanager
def endpoint(tool: str, arguments: dict) -> Iterator[tuple[int, list[dict]]]:
    """A model that calls the tool where it is offered, then answers."""
    heard: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            heard.append(body)
            offered = {one["function"]["name"] for one in body.get("tools") or ()}
            answered = any(one["role"] == "tool" for one in body["messages"])
            said = Said(text=("It is found.",))
            if tool in offered and not answered:
                said = Said(calls=(("t1", tool, json.dumps(arguments)),), stop="calls")
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"".join(openai(said)))

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving.server_port, heard
        serving.shutdown()
        thread.join()


def test_opencode_calls_a_tool_of_pawl_and_its_model_gets_the_typed_result(
    opencode: Path, project: Project, tmp_path: Path
):
    pawl = project({**SETTINGS, "app.py": "def rounded_price(price):\n    return round(price, 1)\n"})
    with endpoint("pawl_locate", {"text": "rounded_price has the wrong digit"}) as (port, heard):
        options = {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "x"}
        models = {"m": {"name": "m", "tool_call": True}}
        settings = {
            "provider": {"here": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}},
            "mcp": {"pawl": {"type": "local", "command": [*PAWL, "-C", str(pawl.workspace), "mcp", "serve"]}},
        }
        (pawl.workspace / "opencode.json").write_text(json.dumps(settings))
        home = {name: str(tmp_path / "home") for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
        environment = {**os.environ, **home, **dict.fromkeys(QUIET, "1"), "PWD": str(pawl.workspace)}  # noqa: TID251
        words = [opencode, "run", "--model", "here/m", "where is the price rounded?"]
        done = subprocess.run(
            words, cwd=pawl.workspace, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
    results = [one["content"] for body in heard for one in body["messages"] if one["role"] == "tool"]
    assert results and "app.py" in str(results[0]), (done, heard)
    assert "It is found." in done.stdout
