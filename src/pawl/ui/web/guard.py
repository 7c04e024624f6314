"""Lets only the user's own page speak with the server: host, origin, kind of body and token are looked at first,
and every answer tells the browser what the page may do."""

from __future__ import annotations

import hmac
import json
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any

from pawl.core.lazy_dataclass import dataclass

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LARGEST_BODY = 8 << 20
LARGEST_HEAD = 16 << 10
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; frame-src http://127.0.0.1:*; base-uri 'none'; form-action 'none';"
    " frame-ancestors {shown_by}; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""Nothing of the page makes HTML of a text. There is no COEP: it would forbid the frame of a preview, whose server is
the project's own and sends no header for it; nothing here needs a page that is isolated."""

HEADERS = (
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("permissions-policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
    ("cache-control", "no-store"),
)


class Refusal(Exception):
    """An answer in the place of the one that was asked for."""

    def __init__(self, status: int, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.advice = advice


@dataclass(slots=True)
class Guard:
    """Stands before the whole application."""

    app: App
    port: int
    token: str
    shown_by: str = ""
    """The origin that shows this one in a frame: it is a preview, which changes nothing."""
    entered: Callable[[], object] = int
    """Called when somebody has come with the token."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            # There is no other kind of connection here.
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            self._check(scope)
        except Refusal as refusal:
            await _refuse(refusal, send)
            return
        await self.app(scope, _bounded(receive), _with_headers(send, framed=bool(self.shown_by)))

    def _check(self, scope: Scope) -> None:
        headers = scope["headers"]
        if len(scope["raw_path"]) + sum(len(name) + len(value) for name, value in headers) > LARGEST_HEAD:
            raise Refusal(431, f"the headers of a request may have at most {LARGEST_HEAD >> 10} kB here")
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or hosts[0] not in self._hosts():
            raise Refusal(421, "this server goes by another name", f"open http://127.0.0.1:{self.port}")
        origins = _values(headers, b"origin")
        if any(one not in {f"http://{host}" for host in self._hosts()} for one in origins):
            raise Refusal(403, "other pages may not talk to this server")
        sites = _values(headers, b"sec-fetch-site")
        api = scope["path"].startswith(("/api/", "/own/api/"))
        if api and any(one not in ("same-origin", "none") for one in sites):
            raise Refusal(403, "other pages may not talk to this server")
        if (not api or self.shown_by) and scope["method"] not in ("GET", "HEAD"):
            raise Refusal(405, "a preview can only be read" if self.shown_by else "the page can only be read")
        if not api:
            return
        self._check_token(headers)
        if scope["method"] not in ("GET", "HEAD"):
            kinds = _values(headers, b"content-type")
            if len(kinds) != 1 or kinds[0].partition(";")[0].strip().lower() != "application/json":
                raise Refusal(415, "the body must be JSON", "send it as application/json")
        lengths = _values(headers, b"content-length")
        if any(not one.isdigit() or int(one) > LARGEST_BODY for one in lengths):
            raise Refusal(413, f"a body may have at most {LARGEST_BODY >> 20} MB here")

    def _check_token(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        given = _values(headers, b"authorization")
        wanted = f"Bearer {self.token}"
        if len(given) != 1 or not hmac.compare_digest(given[0].encode(), wanted.encode()):
            raise Refusal(401, "this page does not know the token", "open the address that 'pawl web' printed")
        self.entered()

    def _hosts(self) -> tuple[str, str]:
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    return [value.decode("latin-1") for key, value in headers if key == name]


def _bounded(receive: Receive) -> Receive:
    """A body without a length is counted as it comes."""
    size = 0

    async def receiving() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        return {"type": "http.disconnect"} if size > LARGEST_BODY else message

    return receiving


def _with_headers(send: Send, *, framed: bool = False) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            known = {name for name, _ in message["headers"]} | ({b"x-frame-options"} if framed else set())
            added = [(name.encode(), value.encode()) for name, value in HEADERS if name.encode() not in known]
            if b"content-security-policy" not in known:
                added.append((b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"))
            message = {**message, "headers": [*message["headers"], *added]}
        await send(message)

    return sending


async def _refuse(refusal: Refusal, send: Send) -> None:
    said = {"error": "refused", "message": refusal.message, "advice": refusal.advice}
    body = json.dumps(said).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    sending = _with_headers(send)
    await sending({"type": "http.response.start", "status": refusal.status, "headers": headers})
    await sending({"type": "http.response.body", "body": body})
