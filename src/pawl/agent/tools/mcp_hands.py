"""The bench's files and its commands as MCP servers of Pawl's own, and a client of them for an agent's hands (B2).

Each server is a process on the same bench. Where one fails, the same call is made directly, and which way was taken
is told.
"""

from __future__ import annotations

import base64
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

from pawl.agent.mcp_server import ServedCall, ToolServer, failure
from pawl.agent.tools.mcp_client import McpClient, McpRefused
from pawl.agent.tools.served_tools import RunningServer
from pawl.agent.tools.tool_registry import from_os_error
from pawl.core import errors
from pawl.core.errors import ParseFailed, PawlError, ServerUnavailable, TimedOut
from pawl.core.execution import Captured, Completed, Confinement, Ending, Execution, Stream
from pawl.core.typed import plain, typed
from pawl.models.mcp_channels import StreamChannel, on_host
from pawl.sandbox.cancel import CancelToken
from pawl.settings.guardrails import Decision
from pawl.workspace.bench import Bench
from pawl.workspace.bench_files import Files
from pawl.workspace.mcp_settings import KnownServer, McpServer
from pawl.workspace.project import Project

FILES, COMMANDS = "files", "commands"
GRACE_SECONDS = 30.0
"""Beside the limit of a command, for its bench."""
T = TypeVar("T")
_TEXT = {"type": "string"}
_PATH = {"path": _TEXT}
TOOLS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    FILES: {"read": _PATH, "write": {**_PATH, "data": _TEXT}, "delete": _PATH, "exists": _PATH, "walk": _PATH},
    COMMANDS: {"run": {"execution": {"type": "object"}, "shown": {"type": "array"}, "asked": {"type": "array"}}},
}
_FAILED = (ServerUnavailable, TimedOut, ParseFailed, McpRefused)


def serve_hands(shop: Project, hands: str, folder: Path, lines: Iterable[bytes], out: IO[bytes]) -> None:
    """One of the two servers on the bench of another process, until its input ends."""
    from pawl.workspace.benches import attached_bench

    tools = [
        {
            "name": name,
            "description": f"{name} on the bench",
            "inputSchema": {"type": "object", "properties": fields, "required": list(fields)},
        }
        for name, fields in TOOLS[hands].items()
    ]
    with closing(attached_bench(shop, folder)) as bench:
        work = _files_call if hands == FILES else partial(_command_call, shop)
        ToolServer(tools, lambda call: _answered(partial(work, bench, call)), out).serve(lines)


def _answered(work: Callable[[], object]) -> Mapping[str, Any]:
    """The result of a call; an error of Pawl's goes by its name, so that it is the same one at the other end."""
    try:
        value = work()
    except (PawlError, OSError) as error:
        known = from_os_error(error) if isinstance(error, OSError) else error
        told = {"error": type(known).__name__, "message": known.message, "advice": known.advice}
        return {**failure(known.message), "structuredContent": told}
    return {"content": [], "structuredContent": {"value": value}}


def _files_call(bench: Bench, call: ServedCall) -> object:
    path, files = str(call.arguments["path"]), bench.files
    match call.tool:
        case "read":
            return base64.b64encode(files.read(path)).decode()
        case "write":
            files.write(path, base64.b64decode(call.arguments["data"]))
        case "delete":
            files.delete(path)
        case "exists":
            return files.exists(path)
        case "walk":
            return list(files.walk(path))
    return None


def _as_sent(execution: Execution) -> Execution:
    """A command of a model is given nothing to read and is not talked with."""
    return replace(execution, given=b"", pipe=None)


def _command_call(shop: Project, bench: Bench, call: ServedCall) -> object:
    execution = _as_sent(typed(Execution, call.arguments["execution"]))
    shown, asked = frozenset(call.arguments["shown"]), frozenset(call.arguments["asked"])
    gate = shop.read_gate()

    def hides(path: str) -> bool:
        said = gate.judge(path)
        return said is not None and path not in shown and not (said.ruling is Decision.ASK and path in asked)

    def printed(stream: Stream, data: bytes) -> None:
        call.progress(0, f"{stream} {base64.b64encode(data).decode()}")

    with closing(CancelToken()) as stop:
        call.on_stop(stop.request)
        done = bench.run(execution, on_output=printed, cancel=stop, hides=None if gate.is_open else hides)
    streams = {
        name: {"head": base64.b64encode(one.head).decode(), "tail": base64.b64encode(one.tail).decode()}
        for name, one in (("stdout", done.stdout), ("stderr", done.stderr))
    }
    totals = {"stdout_total": done.stdout.total, "stderr_total": done.stderr.total}
    rest = ("ending", "code", "signal", "seconds", "peak_memory_bytes", "confinement", "notices")
    return {**{name: plain(getattr(done, name)) for name in rest}, **streams, **totals}


def _completed(told: Mapping[str, Any]) -> Completed:
    streams = {
        name: Captured(
            head=base64.b64decode(told[name]["head"]),
            tail=base64.b64decode(told[name]["tail"]),
            total=told[f"{name}_total"],
        )
        for name in ("stdout", "stderr")
    }
    return Completed(
        ending=Ending(told["ending"]),
        code=told["code"],
        signal=told["signal"],
        seconds=told["seconds"],
        peak_memory_bytes=told["peak_memory_bytes"],
        confinement=Confinement(told["confinement"]),
        notices=tuple(told["notices"]),
        **streams,
    )


def _value(answer: Mapping[str, Any]) -> Any:
    """The result of a call; the error that it raised is raised here."""
    body = answer.get("structuredContent") or {}
    if "error" in body:
        kind = getattr(errors, str(body["error"]), errors.ToolError)
        raise kind(str(body["message"]), advice=str(body["advice"]))
    return body.get("value")


class McpHands:
    """Fits `Files`, and runs commands: through the servers, and directly where they fail."""

    def __init__(self, shop: Project, bench: Callable[[], Bench]) -> None:
        self._shop = shop
        self._bench = bench
        self._running: dict[str, RunningServer] = {}
        self.ways: list[str] = []
        """Which way each call took since this was last asked."""

    def ready(self) -> McpHands:
        """Starts the server of the files, which takes longer than an operation may; one that fails is told later."""
        with suppress(*_FAILED):
            self._client(FILES)
        return self

    def close(self) -> None:
        for one in self._running.values():
            one.close()

    def read(self, path: str) -> bytes:
        return self._through("read", {"path": path}, base64.b64decode, lambda files: files.read(path))

    def write(self, path: str, data: bytes) -> None:
        given = {"path": path, "data": base64.b64encode(data).decode()}
        self._through("write", given, lambda value: None, lambda files: files.write(path, data))

    def delete(self, path: str) -> None:
        self._through("delete", {"path": path}, lambda value: None, lambda files: files.delete(path))

    def exists(self, path: str) -> bool:
        return self._through("exists", {"path": path}, bool, lambda files: files.exists(path))

    def walk(self, under: str = "") -> Iterable[str]:
        return self._through("walk", {"path": under}, list, lambda files: list(files.walk(under)))

    def run(
        self,
        execution: Execution,
        direct: Callable[[], Completed],
        *,
        feed: Callable[[Stream, bytes], object],
        shown: Iterable[str] = (),
        asked: Iterable[str] = (),
    ) -> Completed:
        """Files of `shown` the model has written itself, those of `asked` the user let it read."""
        given = {"execution": plain(_as_sent(execution), sparse=True), "shown": sorted(shown), "asked": sorted(asked)}

        def told(text: str) -> None:
            stream, _, data = text.partition(" ")
            feed(Stream(stream), base64.b64decode(data))

        answer = self._ask(COMMANDS, "run", given, execution.limits.seconds + GRACE_SECONDS, told)
        return direct() if answer is None else _completed(_value(answer))

    def _through(
        self, tool: str, given: Mapping[str, Any], read: Callable[[Any], T], direct: Callable[[Files], T]
    ) -> T:
        answer = self._ask(FILES, tool, given, self._shop.config.settings.file_seconds)
        return direct(self._bench().files) if answer is None else read(_value(answer))

    def _ask(
        self,
        hands: str,
        tool: str,
        given: Mapping[str, Any],
        seconds: float,
        told: Callable[[str], object] = lambda text: None,
    ) -> Mapping[str, Any] | None:
        """The answer of a server; None where the way through it failed."""
        params = {"name": tool, "arguments": given, "_meta": {"progressToken": tool}}
        try:
            client = self._client(hands)
            client.progress = told
            answer = client.request("tools/call", params, seconds)
        except _FAILED as error:
            if hands in self._running:
                self._running[hands].close()
            self.ways.append(f"{hands}.{tool} direct: {error.message}")
            return None
        finally:
            self._bench().renew()
        self.ways.append(f"{hands}.{tool} mcp")
        return answer

    def _client(self, hands: str) -> McpClient:
        if hands not in self._running:
            shop = self._shop
            words = (sys.executable, "-P", "-m", "pawl", "-C", shop.workspace, "mcp", "serve")
            more = ("--hands", hands, "--bench", str(self._bench().folder))
            known = KnownServer(name=hands, server=McpServer(command="pawl"), source="pawl", is_own=True)
            start = partial(on_host, (*words, *more), shop.config.environment)
            self._running[hands] = RunningServer(shop, known, channel=lambda: StreamChannel(start()))
        return self._running[hands].client()
