"""An MCP client over one channel: both eras of the protocol, requests with a limit, lists in pages."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from pawl.core import __version__
from pawl.core.errors import ParseFailed, PawlError, ServerUnavailable, TimedOut, ToolError
from pawl.models.mcp_channels import Channel, HttpChannel, Message
from pawl.sandbox.cancel import CancelToken

MODERN = ("2026-07-28",)
HANDSHAKE = "2025-11-25"
PROBE_SECONDS = 5.0
"""How long a server has to answer in the newer way before it is greeted in the older one."""
MOST_PAGES, MOST_ITEMS = 200, 5_000
MOST_DEEP = 100
"""Levels of an answer, one in another."""
MOST_ASKED = 1_000
"""Requests of a server's own during one of the client's; all but a ping are refused."""
CLIENT: Mapping[str, str] = {"name": "pawl", "version": __version__}
_META = "io.modelcontextprotocol/"
UNKNOWN_METHOD = -32601


class McpRefused(ToolError):
    """The server answered with an error."""

    def __init__(self, message: str, number: int) -> None:
        super().__init__(message, advice="correct the call, or do it another way")
        self.number = number


class McpClient:
    """One server that was started, with what it says of itself."""

    def __init__(self, name: str, channel: Channel, *, seconds: float, cancel: CancelToken | None = None) -> None:
        self.name = name
        self.version = ""
        self.info: Mapping[str, Any] = {}
        self.capabilities: Mapping[str, Any] = {}
        self.changed = False
        """It said that its definitions are others now."""
        self.progress: Callable[[str], object] = lambda text: None
        self._channel = channel
        self._seconds = seconds
        self._cancel = cancel
        self._numbers = itertools.count(1)
        self._probe = 0
        """The number of the first greeting."""
        self._late: Message = {}
        """Its answer, where that came after the time for it."""

    def close(self) -> None:
        self._channel.close()

    def connect(self, *, probe: bool = True) -> None:
        """Agrees on an era: whatever is no answer of the newer one is greeted in the older."""
        found: Mapping[str, Any] = {}
        with suppress(McpRefused, TimedOut, ParseFailed):
            if probe:
                self._probe, seconds = next(self._numbers), min(self._seconds, PROBE_SECONDS)
                found = self._ask("server/discover", self._stamped({}, MODERN[-1]), seconds, self._probe)
        if not self._is_modern(found):
            given = {"protocolVersion": HANDSHAKE, "capabilities": {}, "clientInfo": CLIENT}
            try:
                found = self._ask("initialize", given, self._seconds)
            except McpRefused:
                # It was slow to start, answers the first greeting only now, and knows no other after it.
                with suppress(McpRefused, ParseFailed):
                    found = _result(self._late, "server/discover")
                if not self._is_modern(found):
                    raise
            else:
                self.version = str(found.get("protocolVersion"))
                self.info = _mapping(found.get("serverInfo"))
                self._settle()
                self._send({"method": "notifications/initialized"})
        self._settle()
        self.capabilities = _mapping(found.get("capabilities"))

    def _is_modern(self, found: Mapping[str, Any]) -> bool:
        """Whether an answer to the first greeting has a version of the newer era in common."""
        versions = found.get("supportedVersions")
        mutual = [one for one in MODERN if isinstance(versions, list) and one in versions]
        if mutual:
            self.version = mutual[-1]
            self.info = _mapping(_mapping(found.get("_meta")).get(f"{_META}serverInfo"))
        return bool(mutual)

    def _settle(self) -> None:
        if isinstance(self._channel, HttpChannel):
            self._channel.version = self.version

    def request(self, method: str, params: Mapping[str, Any], seconds: float | None = None) -> Mapping[str, Any]:
        given = self._stamped(params, self.version) if self.version in MODERN else params
        result = self._ask(method, given, seconds or self._seconds)
        if result.get("resultType", "complete") != "complete":
            raise McpRefused("it asks for input that it is not given here", 0)
        return result

    def listed(self, method: str, key: str) -> tuple[Mapping[str, Any], ...]:
        """All pages of a list; empty where the server does not know the method."""
        found: list[Mapping[str, Any]] = []
        cursor: object = None
        for _ in range(MOST_PAGES):
            try:
                page = self.request(method, {} if cursor is None else {"cursor": cursor})
            except McpRefused as error:
                if error.number == UNKNOWN_METHOD and not found:
                    return ()
                raise
            items = page.get(key)
            if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
                raise ParseFailed(f"its {method} is not a list", advice="tell the user; it does not keep the protocol")
            found += items
            if len(found) > MOST_ITEMS:
                raise ParseFailed(f"it lists more than {MOST_ITEMS} items", advice="tell the user")
            cursor = page.get("nextCursor")
            if not cursor:
                return tuple(found)
        raise ParseFailed(f"its {method} does not end", advice="tell the user")

    def _stamped(self, params: Mapping[str, Any], version: str) -> dict[str, Any]:
        stamp = {"protocolVersion": version, "clientInfo": CLIENT, "clientCapabilities": {}}
        return {**params, "_meta": {**params.get("_meta", {}), **{f"{_META}{key}": at for key, at in stamp.items()}}}

    def _ask(self, method: str, params: Mapping[str, Any], seconds: float, number: int = 0) -> Mapping[str, Any]:
        number = number or next(self._numbers)
        deadline, asked = time.monotonic() + seconds, 0
        self._send({"id": number, "method": method, "params": params})
        while True:
            message = self._channel.inbox.take(deadline, self._cancel)
            # What it sends by itself gives it no more time.
            if message is None or ("method" in message and time.monotonic() >= deadline):
                if method not in ("initialize", "server/discover"):
                    self._send({"method": "notifications/cancelled", "params": {"requestId": number}})
                odd = self._channel.inbox.odd
                more = f"; it wrote something that is not a message: {odd!r}" if odd else ""
                raise TimedOut(
                    f"the MCP server {self.name!r} did not answer {method!r} within {seconds:g} s{more}",
                    advice="it was ended; go on without it, or try once more",
                )
            if "method" in message:
                asked += "id" in message
                if asked > MOST_ASKED:
                    why = f"it asked for something more than {MOST_ASKED:,} times during one call"
                    raise ServerUnavailable(why, advice="go on without it; it is started again at the next call")
                self._heard(message)
            elif message.get("id") == number:
                return _result(message, method)
            elif message.get("id") == self._probe:
                self._late = message

    def _heard(self, message: Message) -> None:
        """A message that the server sends by itself: it is told nothing but that this end is alive."""
        method, number = message.get("method"), message.get("id")
        if number is not None:
            error = {"code": UNKNOWN_METHOD, "message": f"this client has no {method}"}
            self._send({"id": number, **({"result": {}} if method == "ping" else {"error": error})})
        elif isinstance(method, str) and method.endswith("/list_changed"):
            self.changed = True
        elif method == "notifications/progress":
            told = _mapping(message.get("params")).get("message")
            if isinstance(told, str):
                self.progress(told)

    def _send(self, message: Mapping[str, Any]) -> None:
        self._channel.send({"jsonrpc": "2.0", **message}, self._seconds)


def _result(message: Message, method: str) -> Mapping[str, Any]:
    error = message.get("error")
    if error is not None:
        said = _mapping(error)
        number = said.get("code")
        raise McpRefused(str(said.get("message", "an error"))[:4_000], number if isinstance(number, int) else 0)
    result = message.get("result")
    if not isinstance(result, dict):
        raise ParseFailed(f"its answer to {method!r} is not an object", advice="tell the user; it is broken")
    level, depth = [result], 0
    while level and (depth := depth + 1) <= MOST_DEEP:
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [one for several in inner for one in several]
    if level:
        raise ParseFailed(f"its answer to {method!r} is nested too deeply", advice="tell the user; it is broken")
    return result


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


UNUSABLE: tuple[type[PawlError], ...] = (TimedOut, ServerUnavailable)
"""After these a server is ended: what it still has under way cannot be told from a later answer."""
