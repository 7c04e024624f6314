"""Real agents from npm as clients of `pawl mcp serve`, each with a scripted model behind it: all tools are called."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from models.wire_scripts import Said, anthropic, openai, sse
from npm.large_packages import install_or_skip
from ui.cli.conftest import project
from ui.cli.console import PAWL, Pawl
from ui.cli.projects import RIGHT, SETTINGS, WRONG, Project
from ui.cli.test_cli_mcp_claims import Says, says

__all__ = ["project", "says"]

pytestmark = [pytest.mark.npm, pytest.mark.timeout(400), pytest.mark.spec("F6")]
TEST = "from app import after\n\n\ndef test_after():\n    assert after(2) == 3\n    assert after(5) == 6\n"
FILES = {**SETTINGS, "app.py": WRONG, "test_app.py": TEST}
CALLS: Mapping[str, Mapping[str, object]] = {
    "locate": {"text": "after in app.py adds the wrong number"},
    "run": {"command": ["sh", "-c", "echo hello; cat app.py"]},
    "verify": {"only": "tests"},
    "fix": {"seconds": 60},
    "diff": {},
    "do": {"request": "write a text into notes.txt"},
    "approve": {"run": "{run}"},
    "promote": {"entry": 1},
    "undo": {"entry": 1},
    "history": {},
}
"""In this order; where nobody can be asked nothing of it changes the workspace."""
REFUSED = {"approve", "promote", "undo"}


def responses(said: Said) -> list[bytes]:
    """The answer as the third wire format has it, which Codex speaks; a tool of a server has a namespace."""
    items = [
        {
            "type": "function_call",
            "call_id": at,
            "namespace": name.rpartition("__")[0],
            "name": name.rpartition("__")[2],
        }
        | {"id": at, "arguments": given, "status": "completed"}
        for at, name, given in said.calls
    ] or [
        {"type": "message", "id": "m1", "role": "assistant", "content": [{"type": "output_text", "text": said.text[0]}]}
    ]
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    done = [{"type": "response.output_item.done", "output_index": 0, "item": one} for one in items]
    every = [{"type": "response.created", "response": {"id": "r1"}}, *done]
    every.append({"type": "response.completed", "response": {"id": "r1", "output": items, "usage": usage}})
    return [sse(one, str(one["type"])) for one in every]


def told(body: Mapping[str, Any]) -> list[str]:
    """The results that a request of any of the three formats carries, in their order."""
    found = []
    for one in body.get("input") or body["messages"]:
        parts = one.get("content") if isinstance(one.get("content"), list) else []
        if one.get("type") == "function_call_output":
            found.append(one["output"])
        elif one.get("role") == "tool":
            found.append(one["content"])
        else:
            found += [part["content"] for part in parts if part.get("type") == "tool_result"]
    return [one if isinstance(one, str) else "\n".join(part.get("text", "") for part in one) for one in found]


class Client:
    """One agent: how it is installed, what it calls a tool of Pawl's, and how it is asked."""

    package: ClassVar[str]
    tool: ClassVar[str]
    speaks: ClassVar[Any]
    refused: ClassVar[str] = "Tell the user to run it: pawl "
    """With nobody at it."""

    def words(self, program: Path, port: int, home: Path, serves: Sequence[str]) -> list[str]:
        raise NotImplementedError

    environment: ClassVar[dict[str, str]] = {}


class ClaudeCode(Client):
    package, tool, speaks = "@anthropic-ai/claude-code@2.1.327", "mcp__pawl__{}", staticmethod(anthropic)
    environment: ClassVar = {
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "ENABLE_TOOL_SEARCH": "false",
        "ANTHROPIC_API_KEY": "x",
        "ANTHROPIC_BASE_URL": "http://127.0.0.1:{port}",
    }

    def words(self, program: Path, port: int, home: Path, serves: Sequence[str]) -> list[str]:
        (home / "mcp.json").write_text(
            json.dumps({"mcpServers": {"pawl": {"command": serves[0], "args": list(serves[1:])}}})
        )
        more = ["--allowedTools", "mcp__pawl", "--mcp-config", str(home / "mcp.json"), "--strict-mcp-config"]
        return [str(program / "claude"), "-p", "--model", "m", *more, "--"]


class Codex(Client):
    package, tool, speaks = "@openai/codex@0.169.0", "mcp__pawl__{}", staticmethod(responses)
    environment: ClassVar = {"CODEX_HOME": "{home}"}
    refused: ClassVar = "the person said no; nothing was done"

    def words(self, program: Path, port: int, home: Path, serves: Sequence[str]) -> list[str]:
        retries = "request_max_retries = 0\nstream_max_retries = 0\n"
        (home / "config.toml").write_text(
            'model = "m"\nmodel_provider = "here"\n[model_providers.here]\nname = "here"\nwire_api = "responses"\n'
            f'base_url = "http://127.0.0.1:{port}/v1"\n{retries}'
            '[mcp_servers.pawl]\ndefault_tools_approval_mode = "approve"\nenv_vars = ["PAWL_STATE", "PAWL_CONFIG"]\n'
            f"command = {json.dumps(serves[0])}\nargs = {json.dumps(serves[1:])}\n"
        )
        return [str(program / "codex"), "exec", "--skip-git-repo-check", "--"]


class OpenCode(Client):
    package, tool, speaks = "opencode-ai@1.18.33", "pawl_{}", staticmethod(openai)
    environment: ClassVar = {
        **{f"OPENCODE_DISABLE_{one}": "1" for one in ("AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD")},
        "OPENCODE_CONFIG": "{home}/opencode.json",
    }

    def words(self, program: Path, port: int, home: Path, serves: Sequence[str]) -> list[str]:
        options = {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": "x"}
        models = {"m": {"name": "m", "tool_call": True}}
        settings = {
            "provider": {"here": {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}},
            "mcp": {"pawl": {"type": "local", "command": list(serves), "timeout": 60_000}},
        }
        (home / "opencode.json").write_text(json.dumps(settings))
        return [str(program / "opencode"), "run", "--model", "here/m"]


@contextmanager
def scripted(client: Client) -> Iterator[tuple[int, list[str]]]:
    """A model that calls one tool after the other where they are offered, then answers."""
    heard: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            results = told(body)
            said = Said(text=("All of them were called.",))
            if "history" in json.dumps(body.get("tools", [])):
                heard[:] = max(heard, results, key=len)
                if len(results) < len(CALLS):
                    tool, given = list(CALLS.items())[len(results)]
                    if "run" in given and tool == "approve":
                        given = {"run": json.loads(results[-1][results[-1].index("{") :])["run"]}
                    said = Said(
                        calls=((f"t{len(results)}", client.tool.format(tool), json.dumps(given)),), stop="calls"
                    )
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            self.wfile.write(b"".join(client.speaks(said)))

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            yield serving.server_port, heard
        finally:
            serving.shutdown()
            thread.join()


def asked(client: Client, pawl: Pawl, home: Path) -> tuple[str, dict[str, str]]:
    """What the client says at its end, and the result of each tool as its model got it."""
    install_or_skip(home, client.package)
    serves = [*PAWL, "-C", str(pawl.workspace), "mcp", "serve"]
    folders = {name: str(home) for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")}
    with scripted(client) as (port, heard):
        words = client.words(home / "node_modules/.bin", port, home, serves)
        own = {name: text.format(port=port, home=home) for name, text in client.environment.items()}
        done = subprocess.run(
            [*words, "call every tool of pawl"],
            cwd=pawl.workspace,
            env={**os.environ, **folders, **own, "PWD": str(pawl.workspace)},  # noqa: TID251
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
    assert len(heard) == len(CALLS), (done, heard)
    return done.stdout, dict(zip(CALLS, heard, strict=True))


@pytest.mark.parametrize("client", [ClaudeCode(), Codex(), OpenCode()], ids=lambda one: type(one).__name__)
def test_every_tool_of_pawl_is_called_by_a_real_agent_and_nothing_is_written_without_a_person(
    client: Client, project: Project, says: Says, tmp_path: Path
):
    pawl = project(FILES)
    says({"notes.txt": "some notes\n"})
    home = tmp_path / "home"
    home.mkdir()
    said, results = asked(client, pawl, home)
    assert "All of them were called." in said
    typed = {
        name: json.loads(text[text.index("{") : text.rindex("}") + 1])
        for name, text in results.items()
        if name not in REFUSED
    }
    assert "app.py" in json.dumps(typed["locate"]["files"][0])
    assert typed["run"]["stdout"].startswith("hello\n")
    assert not typed["verify"]["accepted"] and typed["verify"]["verdict"] == "failed"
    assert typed["fix"]["verdict"] == "verified" and typed["fix"]["kept"] == 1
    assert "+    return number + 1" in typed["diff"]["patch"]
    assert typed["do"]["state"] == "waiting" and len(typed["history"]["entries"]) >= 1
    for name in REFUSED:
        assert client.refused in results[name], results[name]
    assert {name: (pawl.workspace / name).read_text() for name in FILES} == FILES
    assert not (pawl.workspace / "notes.txt").exists() and RIGHT not in FILES.values()
