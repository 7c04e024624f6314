"""`pawl mcp serve`: Pawl's commands as tools of another agent, with a person's yes before anything is promoted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ui.cli.console import Pawl

from pawl.agent.mcp_server import command_tools

META = "io.modelcontextprotocol/"
TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


class Client:
    """Talks with the server as an agent does; `said` is what a person answers, None for a client that cannot ask."""

    def __init__(self, process: subprocess.Popen, said: str | None = None, *, modern: bool = False) -> None:
        self._process = process
        self._said, self._modern = said, modern
        self._number = 0
        self.asked: list[str] = []
        self.progress: list[dict] = []
        able = {} if said is None else {"elicitation": {}}
        self.capabilities = able
        if not modern:
            given = {"protocolVersion": "2025-06-18", "capabilities": able, "clientInfo": {"name": "t", "version": "1"}}
            assert self.ask("initialize", given)["result"]["protocolVersion"] == "2025-06-18"
            self.send({"method": "notifications/initialized"})

    def send(self, message: dict) -> None:
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()

    def read(self) -> dict:
        return json.loads(self._process.stdout.readline())

    def ask(self, method: str, params: dict) -> dict[str, Any]:
        self._number += 1
        if self._modern:
            stamp = {"protocolVersion": "2026-07-28", "clientCapabilities": self.capabilities}
            params = {**params, "_meta": {**params.get("_meta", {}), **{META + key: one for key, one in stamp.items()}}}
        self.send({"id": self._number, "method": method, "params": params})
        while True:
            message = self.read()
            if message.get("method") == "elicitation/create":
                self.send({"id": message["id"], "result": self._answer(message["params"])})
            elif message.get("method") == "notifications/progress":
                self.progress.append(message["params"])
            elif message.get("id") == self._number:
                return message

    def _answer(self, question: dict) -> dict:
        self.asked.append(question["message"])
        return {"action": self._said, "content": {"agree": True}}

    def call(self, tool: str, **arguments: object) -> dict:
        params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "p"}}
        result = self.ask("tools/call", params)["result"]
        if result.get("resultType") == "input_required":
            question = result["inputRequests"]["agree"]
            assert question["method"] == "elicitation/create"
            params["inputResponses"] = {"agree": self._answer(question["params"])}
            params["requestState"] = result["requestState"]
            result = self.ask("tools/call", params)["result"]
        return result


@contextmanager
def serving(
    pawl: Pawl, said: str | None = None, *, modern: bool = False, kind: type[Client] = Client
) -> Iterator[Client]:
    """In the workspace, where editors start servers."""
    words = [sys.executable, "-P", "-m", "pawl", "-C", str(pawl.workspace), "mcp", "serve"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=pawl.workspace) as process:
        yield kind(process, said, modern=modern)
        process.stdin.close()
        assert process.wait(30) == 0


def kept(client: Client) -> int:
    """The entry of a command that made a file."""
    ran = client.call("run", command=["sh", "-c", "echo done; echo hello > made.txt"])
    assert not ran.get("isError"), ran
    assert ran["structuredContent"]["stdout"] == "done\n"
    return ran["structuredContent"]["kept"]


@pytest.mark.hostile
@pytest.mark.attack("A01")
def test_no_module_of_the_workspace_runs_on_this_machine(pawl: Pawl, tmp_path: Path):
    marker = tmp_path / "marker"
    for name in (
        "pawl.py",
        "pawl/__init__.py",
        "pawl/__main__.py",
        "json.py",
        "runpy.py",
        "sitecustomize.py",
        "argparse.py",
    ):
        (pawl.workspace / name).parent.mkdir(exist_ok=True)
        (pawl.workspace / name).write_text(f"open({str(marker)!r}, 'a').write({name!r})\n")
    with serving(pawl) as client:
        assert not client.call("history").get("isError")
        assert not client.call("run", command=["true"]).get("isError")
    assert not marker.exists()


@pytest.mark.whole
@pytest.mark.spec("F6")
@pytest.mark.parametrize("modern", [False, True], ids=["older", "newer"])
def test_a_persons_yes_promotes_and_undoes_and_a_no_does_not(pawl: Pawl, modern: bool):
    made: Path = pawl.workspace / "made.txt"
    with serving(pawl, "decline", modern=modern) as client:
        entry = kept(client)
        refused = client.call("promote", entry=entry)
        assert refused["isError"] and "the person said no" in refused["content"][0]["text"]
        assert "+hello" in client.asked[0] and not made.exists()
    with serving(pawl, "accept", modern=modern) as client:
        promoted = client.call("promote", entry=entry)
        assert not promoted.get("isError"), promoted
        assert made.read_text() == "hello\n"
        undone = client.call("undo", entry=promoted["structuredContent"]["entry"])
        assert not undone.get("isError") and not made.exists()
        assert len(client.asked) == 2


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_question_without_an_answer_names_the_command_and_a_yes_counts_for_what_was_shown(pawl: Pawl):
    made: Path = pawl.workspace / "made.txt"
    with serving(pawl, "cancel") as client:
        entry = kept(client)
        refused = client.call("promote", entry=entry)
        assert refused["isError"] and f"pawl promote -- {entry}" in refused["content"][0]["text"]
    with serving(pawl, "accept", modern=True) as client:
        yes = {"agree": {"action": "accept", "content": {"agree": True}}}
        for state in ({}, {"requestState": "of another question"}):
            params = {"name": "promote", "arguments": {"entry": entry}, "inputResponses": yes, **state}
            assert client.ask("tools/call", params)["result"]["resultType"] == "input_required"
    assert not made.exists()


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_yes_after_the_call_was_cancelled_promotes_nothing(pawl: Pawl):
    class Late(Client):
        def _answer(self, question: dict) -> dict:
            self.send({"method": "notifications/cancelled", "params": {"requestId": self._number}})
            return super()._answer(question)

    with serving(pawl, "accept", kind=Late) as client:
        assert client.call("promote", entry=kept(client))["isError"]
    assert not (pawl.workspace / "made.txt").exists()


@pytest.mark.spec("F6")
def test_where_nobody_can_be_asked_the_entry_stays_unless_the_settings_allow_it(
    pawl: Pawl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with serving(pawl) as client:
        entry = kept(client)
        refused = client.call("promote", entry=entry)
        assert refused["isError"] and f"pawl promote -- {entry}" in refused["content"][0]["text"]
    (tmp_path / "config.toml").write_text('[mcp]\npromote = "allow"\n')
    monkeypatch.setenv("PAWL_CONFIG", str(tmp_path / "config.toml"))
    with serving(pawl) as client:
        assert not client.call("promote", entry=entry).get("isError")
    assert (pawl.workspace / "made.txt").exists()


@pytest.mark.whole
@pytest.mark.spec("F6")
@pytest.mark.parametrize("modern", [False, True], ids=["older", "newer"])
def test_results_have_the_types_that_the_tools_promise(pawl: Pawl, modern: bool):
    with serving(pawl, modern=modern) as client:
        told = {one["name"]: one for one in client.ask("tools/list", {})["result"]["tools"]}
        assert list(told) == [one["name"] for one in command_tools()]
        entry = kept(client)
        calls = {
            "locate": {"text": "hello"},
            "diff": {"entry": entry},
            "history": {},
            "verify": {"only": "syntax"},
            "do": {"request": "what can you do?"},
            "fix": {},
        }
        for tool, arguments in calls.items():
            result = client.call(tool, **arguments)
            if result.get("isError"):
                assert tool == "fix" and "test" in result["content"][0]["text"]
                continue
            for name, kind in told[tool]["outputSchema"]["properties"].items():
                kinds = kind["type"] if isinstance(kind["type"], list) else [kind["type"]]
                value = result["structuredContent"][name]
                fits = isinstance(value, tuple(TYPES[one] for one in kinds if one != "null"))
                assert fits or (value is None and "null" in kinds), (tool, name, value)
            assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        assert "+hello" in client.call("diff", entry=entry)["structuredContent"]["patch"]


@pytest.mark.spec("F6")
def test_what_is_wrong_is_answered_and_the_server_goes_on(pawl: Pawl):
    with serving(pawl) as client:
        client._process.stdin.write(b"not json\n\n[1]\n")
        client.send({})
        assert client.read()["error"]["code"] == -32700
        assert client.ask("tools/run", {})["error"]["code"] == -32601
        assert client.ask("tools/call", {"name": "teleport"})["error"]["code"] == -32602
        wrong = client.ask("server/discover", {"_meta": {f"{META}protocolVersion": "1999-01-01"}})["error"]
        assert wrong["code"] == -32022 and "2026-07-28" in wrong["data"]["supported"]
        for tool, arguments, told in (
            ("locate", {}, "text: missing"),
            ("history", {"rm": "-rf"}, "rm: no such field"),
            ("locate", {"text": {"a": 1}}, "text: must be of type string, not dict"),
            ("run", {"command": ["echo", 1]}, "command[1]: must be of type string, not int"),
            ("locate", {"text": "x" * 200_000}, "Argument list too long"),
        ):
            refused = client.call(tool, **arguments)
            assert refused["isError"] and told in refused["content"][0]["text"]
        # Some clients write null for what is left out.
        assert not client.call("locate", text="hello", top=None).get("isError")
        # No word of a client is an option of the command.
        tried = client.call("promote", entry="--allow-protected")
        assert tried["isError"]
        assert client.call("run", command=["--net", "true"])["isError"]
        for odd in ("a\0b", "\ud800"):
            assert "cannot be given to a command" in client.call("locate", text=odd)["content"][0]["text"]
        client.send({"id": [1], "result": {}})
        client.send({"method": "notifications/cancelled", "params": {"requestId": {}}})
        assert client.ask("ping", {})["result"] == {}


@pytest.mark.whole
@pytest.mark.spec("F6")
def test_a_call_tells_its_progress_and_is_stopped_when_the_client_says_so(pawl: Pawl):
    with serving(pawl) as client:
        params = {"name": "run", "arguments": {"command": ["sleep", "600"]}, "_meta": {"progressToken": 7}}
        client.send({"id": "long", "method": "tools/call", "params": params})
        told = client.read()["params"]
        assert (told["progressToken"], told["message"][:4]) == (7, "run:")
        client.send({"method": "notifications/cancelled", "params": {"requestId": "long"}})
        while "method" in (message := client.read()):
            pass
        assert message["id"] == "long"
