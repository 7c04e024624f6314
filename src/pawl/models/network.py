"""Why there is no connection, told apart: the name, the certificate, the server, the proxy, the network."""

from __future__ import annotations

import socket
import ssl
import urllib.request
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2

from pawl.core.errors import Unreachable
from pawl.models.classify import Fault, interrupted, quoted, unusable
from pawl.models.endpoint import LOOPBACK, Endpoint

_WRONG_TIME = frozenset({9, 10})
"""OpenSSL's codes for a certificate that is not valid yet or no longer."""


def transport_fault(endpoint: Endpoint, error: httpx2.RequestError, text: str) -> Fault:
    """The fault behind an error of the HTTP library; `text` is what of the answer had come."""
    if isinstance(error, httpx2.DecodingError):
        return unusable(endpoint, "its compression is broken")
    if isinstance(error, httpx2.ProxyError):
        return _proxy(endpoint, f"does not let the connection through: {quoted(endpoint, str(error))}", again=False)
    if isinstance(error, httpx2.ConnectTimeout | httpx2.PoolTimeout):
        return _unreachable(endpoint, "it does not answer", "check the network", again=True)
    if isinstance(error, httpx2.ConnectError):
        return connect_fault(endpoint, error)
    if isinstance(error, httpx2.UnsupportedProtocol | httpx2.LocalProtocolError):
        return _unreachable(endpoint, "the request cannot be written", "check base_url and headers", again=False)
    return interrupted(endpoint, "the connection broke", text)


def connect_fault(endpoint: Endpoint, error: BaseException) -> Fault:
    """The fault behind a connection that could not be made."""
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, ssl.SSLCertVerificationError) and cause.verify_code in _WRONG_TIME:
            advice = "check that the clock of this machine is right"
            return _unreachable(
                endpoint, f"its certificate is not valid now: {cause.verify_message}", advice, again=False
            )
        if isinstance(cause, ssl.SSLError):
            reason = getattr(cause, "verify_message", "") or cause.reason or "no TLS there"
            advice = "check base_url, and whether a proxy opens the encryption"
            return _unreachable(endpoint, f"its certificate or TLS fails: {reason}", advice, again=False)
    proxy = _proxy_for(endpoint)
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            if proxy:
                return _proxy(endpoint, "has a name that cannot be found", again=True)
            return _unreachable(endpoint, "its name cannot be found", "check the name and the DNS", again=True)
    if proxy:
        return _proxy(endpoint, "does not accept the connection", again=True)
    if any(isinstance(cause, ConnectionRefusedError) for cause in causes):
        advice = "check that the server runs and that base_url has its port"
        return _unreachable(endpoint, "nothing listens there", advice, again=True)
    return _unreachable(endpoint, "there is no way to it", "check the network", again=True)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        waiting += [one.__cause__, one.__context__]
        if isinstance(one, BaseExceptionGroup):
            waiting += one.exceptions


def _proxy_for(endpoint: Endpoint) -> str:
    """The proxy that this environment puts before the server; empty for none."""
    parts = urlsplit(endpoint.base_url)
    host = parts.hostname or ""
    if host in LOOPBACK or urllib.request.proxy_bypass(host):
        return ""
    proxies = urllib.request.getproxies()
    return proxies.get(parts.scheme) or proxies.get("all") or ""


def _proxy(endpoint: Endpoint, why: str, *, again: bool) -> Fault:
    try:
        parts = urlsplit(_proxy_for(endpoint))
        where = f" {parts.hostname}:{parts.port}" if parts.hostname else ""
    except ValueError:
        where = ""
    return Fault(
        error=Unreachable(
            f"no connection to {endpoint.host!r}: the proxy{where} {why}",
            advice="check HTTPS_PROXY and HTTP_PROXY, or set NO_PROXY",
        ),
        again=again,
    )


def _unreachable(endpoint: Endpoint, why: str, advice: str, *, again: bool) -> Fault:
    return Fault(error=Unreachable(f"no connection to {endpoint.host!r}: {why}", advice=advice), again=again)
