"""One language server on its standard streams, and its texts as it counts them: requests with a limit, answers to what
it asks, edits, and an end in order."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import signal
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pawl.checks.lsp.servers import LIMIT_SECONDS, LanguageServerStart
from pawl.core.errors import ParseFailed, ServerUnavailable, TimedOut
from pawl.core.lazy_dataclass import dataclass
from pawl.core.typed import read_json

_LINE_ENDS = re.compile(r"\r\n|\r|\n")
_WIDTHS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
_UNITS = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
ENCODINGS = ("utf-32", "utf-16", "utf-8")
"""The position encodings that this client knows, the simplest first."""
LARGEST_MESSAGE = 64 << 20
_END_SECONDS = 2.0
_MALFORMED = (KeyError, TypeError, AttributeError)
"""Errors raised by a message that is JSON, but not of the protocol."""

CAPABILITIES: Mapping[str, Any] = {
    "general": {"positionEncodings": list(ENCODINGS)},
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True, "dataSupport": True},
        "diagnostic": {"dynamicRegistration": True},
        "codeAction": {
            "codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix", "source"]}},
            "isPreferredSupport": True,
            "dataSupport": True,
            "resolveSupport": {"properties": ["edit"]},
        },
    },
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "workspaceEdit": {"documentChanges": True},
        "didChangeConfiguration": {"dynamicRegistration": True},
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "diagnostics": {"refreshSupport": True},
    },
    "window": {"workDoneProgress": True},
    "experimental": {"serverStatusNotification": True},
}


@dataclass(slots=True)
class _Opened:
    language: str
    text: str
    version: int = 1


class LanguageServer:
    """Used as a context; a server that died can be started again, with the same documents open."""

    def __init__(self, start: LanguageServerStart, *, limit: float = LIMIT_SECONDS) -> None:
        self.start = start
        self.capabilities: Mapping[str, Any] = {}
        self._limit = limit
        self._process: asyncio.subprocess.Process | None = None
        self._reading: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._pushed: dict[str, list[dict[str, Any]]] = {}
        self._last_push = 0.0
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._registered: set[str] = set()
        self._opened: dict[str, _Opened] = {}

    async def __aenter__(self) -> LanguageServer:
        try:
            await self._begin()
        except BaseException:
            await self._end()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        with suppress(TimedOut, ServerUnavailable, ParseFailed):
            await self.request("shutdown", None, limit=_END_SECONDS)
            self.notify("exit", None)
        await self._end()

    @property
    def encoding(self) -> str:
        return str(self.capabilities.get("positionEncoding") or "utf-16")

    async def restart(self) -> None:
        """Starts the server anew and opens what was open."""
        await self._end()
        await self._begin()
        for uri, opened in self._opened.items():
            self._open(uri, opened)

    async def request(self, method: str, params: object, *, limit: float | None = None) -> Any:
        """The server's answer; `TimedOut` after the limit, `ServerUnavailable` when it is gone."""
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        seconds = self._limit if limit is None else limit
        self._send({"id": number, "method": method, "params": params})
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError as error:
            self.notify("$/cancelRequest", {"id": number})
            message = f"{self.start.name} did not answer {method!r} within {seconds:g} s"
            raise TimedOut(message, advice="it is skipped; the other steps still count") from error
        finally:
            self._waiting.pop(number, None)

    def notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def show(self, path: str, language: str, text: str) -> None:
        """Opens a document, or tells the server its new text."""
        uri = self.uri(path)
        opened = self._opened.get(uri)
        self._pushed.pop(uri, None)
        if opened is None:
            opened = self._opened[uri] = _Opened(language, text)
            self._open(uri, opened)
            return
        opened.text, opened.version = text, opened.version + 1
        document = {"uri": uri, "version": opened.version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": text}]})

    async def diagnostics(self, path: str) -> list[dict[str, Any]]:
        """The server's findings in an open document: requested where it answers, else awaited."""
        uri = self.uri(path)
        deadline = time.monotonic() + self._limit
        if self.start.says_ready:
            await self._until_ready()
        while (left := deadline - time.monotonic()) > 0:
            if self.capabilities.get("diagnosticProvider") or "textDocument/diagnostic" in self._registered:
                report = await self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}}, limit=left)
                return list((report or {}).get("items", []))
            self._news.clear()
            quiet = self._last_push + self.start.quiet - time.monotonic()
            try:
                await asyncio.wait_for(self._news.wait(), min(left, quiet) if uri in self._pushed else left)
            except TimeoutError:
                break
            self._check_alive()
        if uri not in self._pushed:
            message = f"{self.start.name} said nothing about {path!r} within {self._limit:g} s"
            raise TimedOut(message, advice="it is skipped; the other steps still count")
        return self._pushed[uri]

    async def _until_ready(self) -> None:
        try:
            await asyncio.wait_for(self._ready.wait(), self._limit)
        except TimeoutError as error:
            message = f"{self.start.name} has not read the project within {self._limit:g} s"
            raise TimedOut(message, advice="it is skipped; the other steps still count") from error
        self._check_alive()

    async def actions(self, path: str, diagnostic: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The quick fixes for a diagnostic, each with its edit; those that are commands of the server are left out."""
        params = {
            "textDocument": {"uri": self.uri(path)},
            "range": diagnostic["range"],
            "context": {"diagnostics": [diagnostic], "only": ["quickfix"], "triggerKind": 1},
        }
        found = await self.request("textDocument/codeAction", params)
        provider = self.capabilities.get("codeActionProvider")
        can_resolve = isinstance(provider, Mapping) and bool(provider.get("resolveProvider"))
        actions = []
        for action in found or []:
            if "edit" not in action and can_resolve and "disabled" not in action:
                action = await self.request("codeAction/resolve", action)
            if action.get("edit"):
                actions.append(action)
        return actions

    def edits(self, action: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
        """An action's text edits by path; a path outside of the root keeps its whole name."""
        edit = action["edit"]
        found: dict[str, list[dict[str, Any]]] = {}
        for uri, edits in (edit.get("changes") or {}).items():
            found.setdefault(self._path(uri), []).extend(edits)
        for change in edit.get("documentChanges") or []:
            if "edits" in change:
                found.setdefault(self._path(change["textDocument"]["uri"]), []).extend(change["edits"])
        return found

    def uri(self, path: str) -> str:
        return Path(self.start.root, path).as_uri()

    def _path(self, uri: str) -> str:
        return uri.removeprefix(Path(self.start.root).as_uri() + "/")

    async def _begin(self) -> None:
        try:
            self._process = await asyncio.create_subprocess_exec(
                *self.start.words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                cwd=self.start.root,
                limit=LARGEST_MESSAGE,
                start_new_session=True,
            )
        except OSError as error:
            message = f"{self.start.name} cannot be started: {error.strerror}"
            raise ServerUnavailable(message, advice=f"check {self.start.words[0]!r}") from error
        self._reading = asyncio.create_task(self._read())
        uri = Path(self.start.root).as_uri()
        answer = await self.request(
            "initialize",
            {
                "processId": os.getpid(),
                "clientInfo": {"name": "pawl"},
                "rootUri": uri,
                "workspaceFolders": [{"uri": uri, "name": Path(self.start.root).name}],
                "capabilities": CAPABILITIES,
                "initializationOptions": dict(self.start.options),
            },
        )
        self.capabilities = answer["capabilities"]
        self.notify("initialized", {})

    async def _end(self) -> None:
        """Gives the server a moment to end by itself, then ends it with everything it started."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if self._reading is not None:
            await self._reading
        self._pushed.clear()
        self._registered.clear()
        self._ready.clear()

    def _open(self, uri: str, opened: _Opened) -> None:
        document = {"uri": uri, "languageId": opened.language, "version": opened.version, "text": opened.text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def _send(self, message: Mapping[str, object]) -> None:
        self._check_alive()
        assert self._process is not None and self._process.stdin is not None
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(data) + data)

    def _check_alive(self) -> None:
        if self._process is None or self._reading is None or self._reading.done():
            raise ServerUnavailable(f"{self.start.name} has ended", advice="start it again")

    async def _read(self) -> None:
        """Takes every message until the server's output ends; then nobody is left waiting."""
        assert self._process is not None and self._process.stdout is not None
        with suppress(ParseFailed, asyncio.IncompleteReadError, ConnectionError, *_MALFORMED):
            while (message := await read_message(self._process.stdout)) is not None:
                self._take(message)
        for answer in self._waiting.values():
            if not answer.done():
                answer.set_exception(ServerUnavailable(f"{self.start.name} has ended", advice="start it again"))
        self._news.set()
        self._ready.set()

    def _take(self, message: Mapping[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if method is None:
            self._answered(message)
        elif number is not None:
            self._reply(number, method, message.get("params") or {})
        elif method == "textDocument/publishDiagnostics":
            params = message["params"]
            self._pushed[params["uri"]] = list(params.get("diagnostics", []))
            self._last_push = time.monotonic()
            self._news.set()
        elif method == "experimental/serverStatus" and message["params"].get("quiescent"):
            self._ready.set()

    def _answered(self, message: Mapping[str, Any]) -> None:
        answer = self._waiting.get(message.get("id", 0))
        if answer is None or answer.done():
            return
        if "error" in message:
            said = str(message["error"].get("message", "an error"))
            answer.set_exception(ParseFailed(f"{self.start.name} refuses: {said}", advice="it is skipped"))
        else:
            answer.set_result(message.get("result"))

    def _reply(self, number: object, method: str, params: Mapping[str, Any]) -> None:
        """Answers what a server asks; one that waits for an answer does nothing else."""
        result: object = None
        if method == "workspace/configuration":
            result = [_section(self.start.settings, item.get("section") or "") for item in params.get("items", [])]
        elif method == "client/registerCapability":
            self._registered.update(one["method"] for one in params.get("registrations", []))
            self._news.set()
        elif method == "workspace/applyEdit":
            result = {"applied": False, "failureReason": "edits are only taken from code actions"}
        elif method == "workspace/workspaceFolders":
            uri = Path(self.start.root).as_uri()
            result = [{"uri": uri, "name": Path(self.start.root).name}]
        with suppress(ServerUnavailable):
            self._send({"id": number, "result": result})


async def read_message(stream: asyncio.StreamReader) -> dict[str, Any] | None:
    """The next message; None at the end of the stream."""
    length = -1
    while True:
        try:
            line = await stream.readuntil(b"\n")
        except asyncio.IncompleteReadError as error:
            if error.partial:
                raise
            return None
        except asyncio.LimitOverrunError as error:
            raise ParseFailed("a header without an end", advice="the server does not speak the protocol") from error
        name, _, value = line.strip().partition(b":")
        if not name:
            break
        if name.lower() == b"content-length" and value.strip().isdigit():
            length = int(value)
    if not 0 <= length <= LARGEST_MESSAGE:
        raise ParseFailed(f"a message of {length} bytes", advice="the server does not speak the protocol")
    try:
        message = read_json(await stream.readexactly(length))
    except ValueError as error:
        raise ParseFailed("a message that is not JSON", advice="the server does not speak the protocol") from error
    if not isinstance(message, dict):
        raise ParseFailed("a message that is not an object", advice="the server does not speak the protocol")
    return message


def _section(settings: Mapping[str, Any], name: str) -> Any:
    """The part of the settings that a dotted name leads to; all of them for none, and null for what is not set."""
    value: Any = settings
    for part in name.split(".") if name else ():
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


@dataclass(frozen=True, slots=True)
class Span:
    """The characters from `start` up to `end` of a text give way to `new`."""

    start: int
    end: int
    new: str


class Document:
    def __init__(self, text: str, encoding: str = "utf-16") -> None:
        self.text = text
        self._encoding = encoding if encoding in _UNITS else "utf-16"
        self._starts = [0, *(match.end() for match in _LINE_ENDS.finditer(text))]

    def offset(self, position: Mapping[str, Any]) -> int:
        """Where a position lies in the text; beyond a line's or the text's end it is that end."""
        line, character = int(position["line"]), int(position["character"])
        if line >= len(self._starts):
            return len(self.text)
        following = self._starts[line + 1] if line + 1 < len(self._starts) else len(self.text)
        content = self.text[self._starts[line] : following]
        content = content.rstrip("\r\n") if line + 1 < len(self._starts) else content
        data = content.encode(_WIDTHS[self._encoding], "surrogatepass")
        kept = data[: character * _UNITS[self._encoding]]
        return self._starts[line] + len(kept.decode(_WIDTHS[self._encoding], "ignore"))

    def spans(self, edits: Iterable[Mapping[str, Any]]) -> tuple[Span, ...]:
        """A server's text edits as spans of this text."""
        found = (
            Span(self.offset(edit["range"]["start"]), self.offset(edit["range"]["end"]), str(edit["newText"]))
            for edit in edits
        )
        return tuple(sorted(found, key=lambda span: (span.start, span.end)))


def applied(text: str, spans: Iterable[Span]) -> str:
    """The text after the edits, which do not overlap; those of one place keep their order."""
    parts: list[str] = []
    position = 0
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        parts += [text[position : span.start], span.new]
        position = max(position, span.end)
    return "".join([*parts, text[position:]])
