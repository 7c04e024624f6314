"""Failures of providers as typed errors, and whether another attempt makes sense."""

from __future__ import annotations

import email.utils
import functools
import json
import random
import re
import socket
import ssl
import time
import urllib.request
from collections.abc import Awaitable, Callable, Iterator, Mapping
from urllib.parse import urljoin, urlsplit

import httpx2

from pawl.core import errors
from pawl.core.lazy_dataclass import dataclass
from pawl.core.redact import MARK, redacted
from pawl.core.text import one_line
from pawl.core.typed import data_table, written
from pawl.models.calls import scrubbed
from pawl.models.providers import LOOPBACK, Endpoint

_LONGEST_QUOTE = 300
_DELAY = re.compile(r"(\d{1,6}(?:\.\d{1,9})?)s")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptFault:
    """How an attempt failed."""

    error: errors.ModelError
    again: bool = False
    """Another attempt may succeed."""
    wait_seconds: float | None = None
    """As the provider asks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultRule:
    kind: str
    texts: tuple[str, ...] = ("",)
    statuses: tuple[int, ...] = ()
    unless_wait: bool = False

    def fits(self, status: int, text: str, *, says_wait: bool) -> bool:
        if (self.statuses and status not in self.statuses) or (self.unless_wait and says_wait):
            return False
        return any(known in text for known in self.texts)


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultKind:
    error: str
    message: str
    advice: str = ""
    passing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    rule: tuple[FaultRule, ...]
    kinds: Mapping[str, FaultKind]


@functools.cache
def faults() -> Faults:
    return written(Faults, data_table("pawl.models", "faults.toml"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderError:
    """An error as the provider words it. `status` is 0 for one inside of an answer."""

    status: int
    message: str
    text: str
    """Code, type and message in small letters, for the rules."""
    wait_seconds: float | None = None


def refused(endpoint: Endpoint, status: int, body: bytes, *, wait_seconds: float | None) -> AttemptFault:
    """The fault that a status and its body describe."""
    return _fault(endpoint, _said(endpoint, status, body.decode("utf-8", "replace"), wait_seconds), "")


def failed_inside(endpoint: Endpoint, body: object, text: str) -> AttemptFault:
    """The fault that an error inside of an answer describes; `text` is what of the answer had come."""
    return _fault(endpoint, _said(endpoint, 0, body if isinstance(body, str) else json.dumps(body), None), text)


def diverted(endpoint: Endpoint, status: int, location: str) -> AttemptFault:
    try:
        to = urlsplit(urljoin(endpoint.base_url, location))
        port = f":{to.port}" if to.port else ""
        # Not the user, the password or the query, which may hold secrets.
        target = f"{to.scheme}://{to.hostname}{port}{to.path}"
    except ValueError:
        target = "an address that cannot be read"
    return AttemptFault(
        error=errors.Diverted(
            f"{endpoint.host!r} sends Pawl on to {quoted(endpoint, target)!r} (status {status}); the key stayed here",
            advice="if that is right, set it as the provider's base_url",
        )
    )


def interrupted(endpoint: Endpoint, why: str, text: str) -> AttemptFault:
    """An answer that did not end properly."""
    return AttemptFault(
        error=errors.AnswerInterrupted(
            f"the answer of {endpoint.model!r} did not end properly: {why}",
            text,
            advice="ask again; nothing of that answer was carried out",
        ),
        again=True,
    )


def unusable(endpoint: Endpoint, why: str) -> AttemptFault:
    return AttemptFault(
        error=errors.AnswerUnusable(
            f"what {endpoint.host!r} sent is not an answer: {why}",
            advice="check the provider's base_url, and that no proxy or sign-in page stands in between",
        )
    )


def quoted(endpoint: Endpoint, text: str) -> str:
    """Words of a provider that may be shown: without the key, without other secrets, on one line, not too long."""
    if endpoint.key:
        text = text.replace(endpoint.key, MARK)
    return one_line(redacted(scrubbed(text)), _LONGEST_QUOTE)


def _said(endpoint: Endpoint, status: int, body: str, wait_seconds: float | None) -> ProviderError:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict):
        looks_like_page = body.lstrip()[:1] == "<"
        message = "a web page" if looks_like_page else body
        return ProviderError(
            status=status, message=quoted(endpoint, message), text=body.lower(), wait_seconds=wait_seconds
        )
    inner = value.get("error", value)
    error: Mapping[str, object] = inner if isinstance(inner, dict) else {"message": inner}
    message = _words(error.get("message")) or _words(value.get("message")) or _words(value.get("detail"))
    code = error.get("code")
    # A provider that stands in between puts what the real one said here.
    raw = error.get("metadata", {})
    words = [message, _words(error.get("type")), _words(code), _words(error.get("status")), _words(raw)]
    if wait_seconds is None:
        wait_seconds = _delay(error.get("details"))
    return ProviderError(
        status=status or (code if isinstance(code, int) and 100 <= code < 600 else 0),
        message=quoted(endpoint, message or " ".join(filter(None, words)) or "no reason given"),
        text=" ".join(words).lower(),
        wait_seconds=wait_seconds,
    )


def _words(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value)


def _delay(details: object) -> float | None:
    """The wait that Gemini puts into the body."""
    for detail in details if isinstance(details, list) else ():
        delay = detail.get("retryDelay") if isinstance(detail, dict) else None
        if isinstance(delay, str) and (match := _DELAY.fullmatch(delay)):
            return float(match[1])
    return None


def _fault(endpoint: Endpoint, said: ProviderError, text: str) -> AttemptFault:
    says_wait = said.wait_seconds is not None
    for rule in faults().rule:
        if rule.fits(said.status, said.text, says_wait=says_wait):
            return _make(rule.kind, endpoint, said)
    status = said.status
    if status == 0:
        return interrupted(endpoint, f"the provider says {said.message}", text)
    return _make("overloaded" if status >= 500 else "request" if status >= 400 else "status", endpoint, said)


def _make(kind: str, endpoint: Endpoint, said: ProviderError) -> AttemptFault:
    table = faults().kinds[kind]
    says = f"{said.message} (status {said.status})" if said.status else said.message
    message = table.message.format(who=repr(endpoint.provider), model=repr(endpoint.model), says=says)
    made: errors.ModelError = getattr(errors, table.error)(message, advice=table.advice.format(key=endpoint.key_advice))
    if isinstance(made, errors.RateLimited):
        made.wait_seconds = said.wait_seconds
    wait = None if kind == "timeout" else said.wait_seconds
    return AttemptFault(error=made, again=table.passing, wait_seconds=wait)


_WRONG_TIME = frozenset({9, 10})
"""OpenSSL's codes for a certificate that is not valid yet or no longer."""


def transport_fault(endpoint: Endpoint, error: httpx2.RequestError, text: str) -> AttemptFault:
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


def connect_fault(endpoint: Endpoint, error: BaseException) -> AttemptFault:
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
    return _unreachable(endpoint, "the network is unreachable", "check the network", again=True)


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


def _proxy(endpoint: Endpoint, why: str, *, again: bool) -> AttemptFault:
    try:
        parts = urlsplit(_proxy_for(endpoint))
        where = f" {parts.hostname}:{parts.port}" if parts.hostname else ""
    except ValueError:
        where = ""
    return AttemptFault(
        error=errors.Unreachable(
            f"no connection to {endpoint.host!r}: the proxy{where} {why}",
            advice="check HTTPS_PROXY and HTTP_PROXY, or set NO_PROXY",
        ),
        again=again,
    )


def _unreachable(endpoint: Endpoint, why: str, advice: str, *, again: bool) -> AttemptFault:
    return AttemptFault(
        error=errors.Unreachable(f"no connection to {endpoint.host!r}: {why}", advice=advice), again=again
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedAttempt:
    """An attempt that failed for a passing reason, as a strategy of the user's own sees it."""

    attempt: int
    """From 1."""
    code: str
    """Which way it failed, such as `rate_limited`."""
    asked_seconds: float | None
    """The wait that the provider asks for."""
    seconds: float
    """Since the first failure."""


Strategy = Callable[[FailedAttempt], float | None]
"""The seconds to wait before the next attempt; None for no other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retries:
    """Exponential with full jitter, unless the provider says how long or the user has a strategy of their own."""

    tries: int = 5
    seconds: float = 120.0
    """From the first failure on; no attempt starts later."""
    base: float = 0.5
    longest_asked: float = 60.0
    """A provider that asks for a longer wait is not waited for: the user decides."""
    random: Callable[[], float] = random.random
    clock: Callable[[], float] = time.monotonic
    wait: Callable[[float], Awaitable[None]] | None = None
    """How a wait is done; `asyncio.sleep` unless set."""
    strategy: Strategy | None = None
    """Chooses the waits; which failures are tried again, how often and for how long stays as it is."""

    def pause(self, attempt: int, fault: AttemptFault, since_first_failure: float) -> float | None:
        """The wait before the next attempt after this one failed; None when there is to be none."""
        if not fault.again or attempt >= self.tries:
            return None
        asked = fault.wait_seconds
        if asked is not None and asked > self.longest_asked:
            return None
        wait: float | None = asked
        if self.strategy is not None:
            code, since = fault.error.code, since_first_failure
            wait = self.strategy(FailedAttempt(attempt=attempt, code=code, asked_seconds=asked, seconds=since))
        elif asked is None:
            wait = self.random() * self.base * 2.0 ** (attempt - 1)
        return wait if wait is not None and since_first_failure + wait <= self.seconds else None


def asked_wait(headers: Mapping[str, str], *, now: Callable[[], float] = time.time) -> float | None:
    """The wait that `retry-after-ms` or `retry-after` ask for; None for what makes no sense."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _number(value)
    if seconds is not None:
        return seconds
    until = _moment(value)
    if until is None:
        return None
    # By the server's own clock where it says its time, because this machine's can be wrong.
    there = _moment(headers.get("date", ""))
    return max(0.0, until - (now() if there is None else there))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < 1e9 else None


def _moment(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
