"""An MCP server on standard streams, for both eras of the protocol; and Pawl's commands as its tools."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import partial
from queue import SimpleQueue
from typing import IO, Any

from pawl.agent.contracts import schema_mistakes
from pawl.core import __version__
from pawl.core.lazy_dataclass import dataclass
from pawl.core.text import one_line
from pawl.core.typed import Unreadable, data_table, read_json

MODERN = "2026-07-28"
OLDER = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
BEAT_SECONDS = 1.0
"""Between two words about the progress of a call."""
LARGEST_MESSAGE = 16 << 20
MOST_SHOWN = 6_000
"""Characters of a patch in a question to a person."""
NOT_ANSWERED = "no person answered through this client, and nothing was done. Tell the user to run it: "
_META = "io.modelcontextprotocol/"
_INFO = {"name": "pawl", "version": __version__}
_STAMP = {"resultType": "complete", "_meta": {f"{_META}serverInfo": _INFO}}
_FRESH = {"ttlMs": 0, "cacheScope": "private"}
_NUL_OR_HALF_A_LETTER = re.compile("[\0\ud800-\udc7f\udd00-\udfff]")
_INVALID, _UNKNOWN, _WRONG, _VERSION = -32600, -32601, -32602, -32022


class RpcError(Exception):
    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **({} if data is None else {"data": data})}


class InputNeeded(Exception):
    """A person has to be asked by the client, which calls again with the answer (2026-07-28)."""

    def __init__(self, question: Mapping[str, Any], state: str) -> None:
        super().__init__("input is needed")
        self.result = {
            **_STAMP,
            "resultType": "input_required",
            "inputRequests": {"agree": {"method": "elicitation/create", "params": question}},
            "requestState": state,
        }


@dataclass(slots=True, kw_only=True)
class ServedCall:
    """One call of a tool, and the ways to whoever made it."""

    tool: str
    arguments: Mapping[str, Any]
    ask: Callable[[str], bool | None]
    """A person's yes or no; None where nobody can be asked, or nobody answers."""
    progress: Callable[[float, str], object] = lambda done, message: None
    stopped: threading.Event = field(default_factory=threading.Event)
    _acts: list[Callable[[], object]] = field(default_factory=list)

    def on_stop(self, act: Callable[[], object]) -> None:
        """Called when the client cancels the call."""
        self._acts.append(act)

    def stop(self) -> None:
        self.stopped.set()
        for act in self._acts:
            act()


class ToolServer:
    """Serves tools until its input ends; each call in a thread of its own."""

    def __init__(
        self, tools: Sequence[Mapping[str, Any]], call: Callable[[ServedCall], Mapping[str, Any]], out: IO[bytes]
    ) -> None:
        """`call` gives the result of a call as the protocol has it."""
        self._tools = {str(one["name"]): one for one in tools}
        self._call = call
        self._out = out
        self._turn = threading.Lock()
        self._capabilities: Mapping[str, Any] = {}
        self._running: dict[str, ServedCall] = {}
        self._asked: dict[str, SimpleQueue[Mapping[str, Any]]] = {}

    def serve(self, lines: Iterable[bytes]) -> None:
        threads: list[threading.Thread] = []
        for line in lines:
            try:
                message = read_json(line[:LARGEST_MESSAGE]) if line.strip() else None
            except (Unreadable, UnicodeDecodeError):
                self._send({"id": None, "error": {"code": -32700, "message": "this is not JSON"}})
                continue
            if isinstance(message, dict) and message.get("method") == "tools/call" and "id" in message:
                threads.append(threading.Thread(target=self._answer, args=(message,), daemon=True))
                threads[-1].start()
            elif isinstance(message, dict):
                self._answer(message)
        for call in tuple(self._running.values()):
            call.stop()
        for waiting in tuple(self._asked.values()):
            waiting.put({})
        for thread in threads:
            thread.join()

    def _answer(self, message: Mapping[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            if waiting := self._asked.pop(str(number), None):
                waiting.put(message)
            return
        params = message.get("params")
        params = params if isinstance(params, dict) else {}
        if number is None:
            if method == "notifications/cancelled" and (call := self._running.get(repr(params.get("requestId")))):
                call.stop()
            return
        try:
            body: dict[str, object] = {"result": self._result(str(method), params, number)}
        except InputNeeded as error:
            body = {"result": error.result}
        except RpcError as error:
            body = {"error": error.error}
        self._send({"id": number, **body})

    def _result(self, method: str, params: Mapping[str, Any], number: object) -> Mapping[str, Any]:
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        version = meta.get(f"{_META}protocolVersion")
        if version not in (None, MODERN):
            supported = {"supported": [MODERN, *OLDER], "requested": version}
            raise RpcError(_VERSION, "this version of the protocol is not supported", supported)
        stamp, fresh = (_STAMP, _FRESH) if version else ({}, {})
        match method:
            case "initialize":
                self._capabilities = params.get("capabilities") or {}
                asked = params.get("protocolVersion")
                spoken = asked if asked in OLDER else OLDER[-1]
                return {"protocolVersion": spoken, "capabilities": {"tools": {}}, "serverInfo": _INFO}
            case "server/discover":
                return {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, **_STAMP, **_FRESH}
            case "ping":
                return {}
            case "tools/list":
                return {"tools": list(self._tools.values()), **stamp, **fresh}
            case "tools/call":
                return {**self._called(params, meta, number, modern=bool(version)), **stamp}
        raise RpcError(_UNKNOWN, f"there is no method {method}")

    def _called(
        self, params: Mapping[str, Any], meta: Mapping[str, Any], number: object, *, modern: bool
    ) -> Mapping[str, Any]:
        name, given = params.get("name"), params.get("arguments") or {}
        tool = self._tools.get(str(name))
        if tool is None:
            raise RpcError(_WRONG, f"there is no tool {name!r}")
        # Some clients write null for what is left out.
        arguments = {key: one for key, one in given.items() if one is not None} if isinstance(given, dict) else given
        if wrong := tuple(schema_mistakes(arguments, tool["inputSchema"], "arguments")):
            return failure(f"the arguments are wrong; {'; '.join(wrong)}")
        call = ServedCall(tool=str(name), arguments=arguments, ask=partial(self._ask, params, meta, modern=modern))
        if (token := meta.get("progressToken")) is not None:
            call.progress = partial(self._progress, token)
        self._running[repr(number)] = call
        try:
            return self._call(call)
        except OSError as error:
            return failure(f"the call could not be carried out: {error.strerror}")
        finally:
            self._running.pop(repr(number), None)

    def _progress(self, token: object, done: float, message: str) -> None:
        told = {"progressToken": token, "progress": done, "message": message}
        self._send({"method": "notifications/progress", "params": told})

    def _ask(self, params: Mapping[str, Any], meta: Mapping[str, Any], message: str, *, modern: bool) -> bool | None:
        able = meta.get(f"{_META}clientCapabilities") if modern else self._capabilities
        if not isinstance(able, dict) or "elicitation" not in able:
            return None
        agree = {"type": "boolean", "title": "Agree", "description": "Whether this is to be done."}
        form = {"type": "object", "properties": {"agree": agree}, "required": ["agree"]}
        question = {"mode": "form", "message": message, "requestedSchema": form}
        if modern:
            given = params.get("inputResponses")
            # An answer counts for the question that was shown, word for word.
            state = hashlib.sha256(message.encode()).hexdigest()
            if not isinstance(given, dict) or params.get("requestState") != state:
                raise InputNeeded(question, state)
            return _said(given.get("agree"))
        number = f"ask-{len(self._asked)}-{threading.get_ident()}"
        waiting = self._asked[number] = SimpleQueue()
        self._send({"id": number, "method": "elicitation/create", "params": question})
        return _said(waiting.get().get("result"))

    def _send(self, message: Mapping[str, Any]) -> None:
        with self._turn, suppress(BrokenPipeError):
            self._out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
            self._out.flush()


def _said(result: object) -> bool | None:
    given = result if isinstance(result, dict) else {}
    content = given.get("content")
    if given.get("action") in ("accept", "decline"):
        return given["action"] == "accept" and isinstance(content, dict) and content.get("agree") is True
    return None


def failure(text: str) -> Mapping[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def command_tools() -> tuple[Mapping[str, Any], ...]:
    """The tools as a client is told of them."""
    return tuple(_definition(one) for one in data_table("pawl.agent", "command_tools.toml")["tool"])


def _definition(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    given = tool.get("arguments", {})
    fields = {
        name: {key: value for key, value in one.items() if key not in ("option", "required")}
        for name, one in given.items()
    }
    told = {**tool["output"], "exit_code": "integer"}
    out = {name: {"type": kinds.split() if " " in kinds else kinds} for name, kinds in told.items()}
    return {
        "name": tool["name"],
        "description": tool["description"],
        "inputSchema": {
            "type": "object",
            "properties": fields,
            "required": [name for name, one in given.items() if one.get("required")],
            "additionalProperties": False,
        },
        "outputSchema": {"type": "object", "properties": out, "required": list(out)},
        "annotations": {
            "readOnlyHint": tool.get("reads", False),
            "destructiveHint": "asks" in tool,
            "openWorldHint": tool["name"] == "do",
        },
    }


@dataclass(frozen=True, slots=True)
class CommandCaller:
    """Carries out calls as commands in processes of their own, so that there is one way to do a thing."""

    workspace: str
    may_promote: bool
    """Without a person's yes, what is verified."""
    takes_back: Callable[[str], bool] = lambda request: False
    """Whether a request wants something undone, which a person has to agree to."""

    def __call__(self, call: ServedCall) -> Mapping[str, Any]:
        tool = next(one for one in data_table("pawl.agent", "command_tools.toml")["tool"] if one["name"] == call.tool)
        words = _words(tool, call.arguments)
        if any(map(_NUL_OR_HALF_A_LETTER.search, words)):
            return failure("the arguments are wrong; a character in them cannot be given to a command")
        if "asks" in tool and self.may_promote:
            words[1:1] = tool.get("unasked", ())
        elif self.takes_back(str(call.arguments.get("request", ""))):
            return failure("nothing was undone: a person is asked first, so call undo with the entry")
        elif "asks" in tool:
            shown, bound = self._question(tool["asks"], call)
            said = call.ask(shown)
            if not said or call.stopped.is_set():
                way = f"pawl {' '.join(words)}"
                return failure(NOT_ANSWERED + way if said is None else "the person said no; nothing was done")
            words[1:1] = bound
        code, out, err = self._run(["--json", *words], call)
        try:
            body = read_json(out)
        except Unreadable:
            return failure(f"it ended with {code}: {err.strip()[-2_000:] or out[-2_000:]}")
        if "error" in body:
            return failure("\n".join(str(body[key]) for key in ("message", "advice") if body.get(key)))
        body["exit_code"] = code
        if "text" in tool:
            body[tool["text"]] = self._run(words, call)[1]
        return {"content": [{"type": "text", "text": json.dumps(body)}], "structuredContent": body}

    def _question(self, what: str, call: ServedCall) -> tuple[str, Sequence[str]]:
        """The words for a person, and the option that binds a yes to what is shown; an entry never changes."""
        shown, bound = ["diff", "--", str(call.arguments.get("entry"))], list[str]()
        if what == "approve":
            shown, bound = ["approve", "--", str(call.arguments.get("run"))], ["--digest=none"]
            with suppress(Unreadable, KeyError, TypeError):
                bound = [f"--digest={read_json(self._run(['--json', *shown], call)[1])['question']['digest']}"]
        text = self._run(shown, call)[1]
        rest = f"\n… {len(text) - MOST_SHOWN:,} characters more" if len(text) > MOST_SHOWN else ""
        return f"{what} {' '.join(bound)} in {self.workspace}?\n\n{text[:MOST_SHOWN]}{rest}", bound

    def _run(self, words: Sequence[str], call: ServedCall) -> tuple[int, str, str]:
        """Runs one command to its end; a call that is cancelled stops it as Ctrl-C does."""
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "pawl", "-C", self.workspace, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        seconds = 0.0
        with process:
            while True:
                try:
                    out, err = process.communicate(timeout=BEAT_SECONDS)
                    return process.returncode, out, err
                except subprocess.TimeoutExpired:
                    seconds += BEAT_SECONDS
                    call.progress(seconds, f"{one_line(call.tool, 40)}: {seconds:.0f} s")
                if call.stopped.is_set():
                    process.terminate()


def _words(tool: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    options, rest = list[str](), list[str]()
    for name, value in arguments.items():
        option = tool["arguments"][name].get("option")
        if option:
            options.append(f"{option}={value}")
        else:
            rest += map(str, value) if isinstance(value, list) else [str(value)]
    return [*tool["words"], *options, *(["--", *rest] if rest else [])]
